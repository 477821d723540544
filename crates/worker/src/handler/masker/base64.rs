//! The forms of a text in base64.

pub(super) const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub(super) const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The characters that stand for a text inside a longer text in base64, for each place where it may begin there and for both
/// alphabets. Characters that depend on the text before or after it are left out.
pub(super) fn forms(text: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::with_capacity(6);
    for offset in 0..3 {
        for alphabet in [STANDARD, URL_SAFE] {
            let form = form(text, offset, alphabet);
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
    }
    forms
}

/// The form of a text that begins at the byte `offset` of a group of three.
pub(super) fn form(text: &[u8], offset: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let bits_before = offset * 8;
    let first = bits_before.div_ceil(6);
    let end = (bits_before + text.len() * 8) / 6;
    (first..end)
        .map(|character| {
            let bit = character * 6 - bits_before;
            let byte = |at: usize| u16::from(text.get(at).copied().unwrap_or_default());
            let two = byte(bit / 8) << 8 | byte(bit / 8 + 1);
            alphabet[usize::from(two >> (10 - bit % 8) & 63)]
        })
        .collect()
}

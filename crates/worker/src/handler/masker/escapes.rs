//! The ways in which programs escape a text.

/// A way to read a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// As it is.
    None,
    /// `%20` is a space.
    Url,
    /// `%20` and `+` are spaces.
    UrlForm,
    /// `\n` and `\u00e9`, as in a text of JSON.
    Json,
}

/// The bytes that the beginning of a text means, and the length of this beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) bytes: Utf8,
    pub(super) length: usize,
}

/// A byte, or one character in UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Utf8 {
    bytes: [u8; 4],
    length: usize,
}

impl Utf8 {
    fn byte(byte: u8) -> Utf8 {
        Utf8 { bytes: [byte, 0, 0, 0], length: 1 }
    }

    fn character(character: char) -> Utf8 {
        let mut bytes = [0; 4];
        let length = character.encode_utf8(&mut bytes).len();
        Utf8 { bytes, length }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// What an escape may be.
enum Escape {
    Is(Decoded),
    /// The text may end inside an escape.
    Cut,
    Not,
}

/// Whether an escape may begin with this byte.
pub(super) fn may_begin(byte: u8) -> bool {
    matches!(byte, b'%' | b'+' | b'\\')
}

impl Escapes {
    pub(super) const ALL: [Escapes; 4] = [Escapes::None, Escapes::Url, Escapes::UrlForm, Escapes::Json];

    /// Reads the beginning of a text. Nothing if the text is empty, or if it ends inside an escape and may go on.
    pub(super) fn decode(self, text: &[u8], is_whole: bool) -> Option<Decoded> {
        let first = *text.first()?;
        let escape = match (self, first) {
            (Escapes::Url | Escapes::UrlForm, b'%') => percent(text),
            (Escapes::UrlForm, b'+') => Escape::Is(Decoded { bytes: Utf8::byte(b' '), length: 1 }),
            (Escapes::Json, b'\\') => backslash(text),
            (Escapes::None | Escapes::Url | Escapes::UrlForm | Escapes::Json, _) => Escape::Not,
        };
        match escape {
            Escape::Is(decoded) => Some(decoded),
            Escape::Cut if !is_whole => None,
            Escape::Cut | Escape::Not => Some(Decoded { bytes: Utf8::byte(first), length: 1 }),
        }
    }
}

fn percent(text: &[u8]) -> Escape {
    match hexadecimal(text, 1, 2) {
        Ok(value) => {
            let byte = u8::try_from(value).unwrap_or_default();
            Escape::Is(Decoded { bytes: Utf8::byte(byte), length: 3 })
        }
        Err(Digits::Wrong) => Escape::Not,
        Err(Digits::Missing) => Escape::Cut,
    }
}

fn backslash(text: &[u8]) -> Escape {
    let Some(kind) = text.get(1) else { return Escape::Cut };
    let byte = match kind {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'"' | b'\\' | b'/' => *kind,
        b'u' => return unicode(text),
        _ => return Escape::Not,
    };
    Escape::Is(Decoded { bytes: Utf8::byte(byte), length: 2 })
}

fn unicode(text: &[u8]) -> Escape {
    let first = match hexadecimal(text, 2, 4) {
        Ok(value) => value,
        Err(Digits::Missing) => return Escape::Cut,
        Err(Digits::Wrong) => return Escape::Not,
    };
    if let Some(character) = char::from_u32(first) {
        return Escape::Is(Decoded { bytes: Utf8::character(character), length: 6 });
    }
    // A character outside of the basic plane has two escapes.
    match (text.get(6), text.get(7)) {
        (None, _) | (Some(b'\\'), None) => return Escape::Cut,
        (Some(b'\\'), Some(b'u')) => {}
        (Some(_), _) => return Escape::Not,
    }
    let second = match hexadecimal(text, 8, 4) {
        Ok(value) => value,
        Err(Digits::Missing) => return Escape::Cut,
        Err(Digits::Wrong) => return Escape::Not,
    };
    let pair = char::decode_utf16([first, second].map(|unit| u16::try_from(unit).unwrap_or_default())).next();
    match pair {
        Some(Ok(character)) => Escape::Is(Decoded { bytes: Utf8::character(character), length: 12 }),
        Some(Err(_)) | None => Escape::Not,
    }
}

/// Why there is no number.
enum Digits {
    Missing,
    Wrong,
}

/// The number of `count` hexadecimal digits.
fn hexadecimal(text: &[u8], from: usize, count: usize) -> Result<u32, Digits> {
    let mut number = 0;
    for at in from..from + count {
        let byte = text.get(at).ok_or(Digits::Missing)?;
        let digit = char::from(*byte).to_digit(16).ok_or(Digits::Wrong)?;
        number = number * 16 + digit;
    }
    Ok(number)
}

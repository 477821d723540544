//! Parts of addresses.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What stays as it is in a part of an address.
const ENCODED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The longest query that a page reads, in bytes.
pub const QUERY_BYTES_MAX: usize = 16_384;
/// The longest value of a filter or a window.
const VALUE_BYTES_MAX: usize = 500;

/// A text as a segment of a path, or as a name or a value of a query. A segment of dots alone would be a step in the path,
/// so its dots are encoded too.
#[must_use]
pub fn encode(text: &str) -> String {
    match text {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => utf8_percent_encode(text, &ENCODED).to_string(),
    }
}

/// A query of names and values, with its question mark; empty without any.
#[must_use]
pub fn query<'t>(pairs: impl IntoIterator<Item = (&'t str, &'t str)>) -> String {
    let pairs: Vec<String> =
        pairs.into_iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// The names and values of a query, without empty values, which forms send for fields that nobody filled in.
///
/// # Errors
/// A sentence if the query or a value is too long, or no text.
pub(super) fn filled_pairs(query: &str) -> Result<Vec<(String, String)>, String> {
    let filled: Vec<_> = pairs(query)?.into_iter().filter(|(_name, value)| !value.is_empty()).collect();
    match filled.iter().find(|(_name, value)| value.len() > VALUE_BYTES_MAX) {
        Some((name, _value)) => {
            Err(format!("The value of `{name}` is too long: it may have {VALUE_BYTES_MAX} bytes."))
        }
        None => Ok(filled),
    }
}

/// The names and values of a query without its question mark.
///
/// # Errors
/// A sentence if it is too long or no text.
pub fn pairs(query: &str) -> Result<Vec<(String, String)>, String> {
    if query.len() > QUERY_BYTES_MAX {
        return Err(format!("The address is too long: its query may have {QUERY_BYTES_MAX} bytes."));
    }
    decoded_pairs(query, QUERY_BYTES_MAX)
}

/// The names and values of a query or of a form, at most so many.
pub(crate) fn decoded_pairs(text: &str, pairs_max: usize) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        if pairs.len() == pairs_max {
            return Err(format!("There are more than {pairs_max} values."));
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        pairs.push((decode(name)?, decode(value)?));
    }
    Ok(pairs)
}

/// A name or a value as it was before it was encoded. No table takes a zero byte.
pub(crate) fn decode(text: &str) -> Result<String, String> {
    let spaces = text.replace('+', " ");
    match percent_decode_str(&spaces).decode_utf8() {
        Ok(text) if text.contains('\0') => Err("A value has a zero byte.".to_owned()),
        Ok(text) => Ok(text.into_owned()),
        Err(_no_text) => Err(format!("`{}` is no text in UTF-8.", text.escape_debug())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_text_comes_back() {
        for text in ["", "a b", "load[3]", "a/b?c#d&e=f", "ü漢\u{202e}", "..", "100%+1"] {
            let address = query([("name", text)]);
            assert!(address.is_ascii());
            assert_eq!(pairs(&address[1..]).unwrap(), [("name".to_owned(), text.to_owned())]);
        }
        assert_eq!(encode("../x"), "..%2Fx");
        assert_eq!(encode(".."), "%2E%2E");
    }

    #[test]
    fn forms_send_spaces_as_plus() {
        assert_eq!(
            pairs("a=b+c&&d").unwrap(),
            [("a".to_owned(), "b c".to_owned()), ("d".to_owned(), String::new())]
        );
        assert!(pairs("a=%ff").is_err() && pairs("a=%00").is_err());
        assert!(decoded_pairs("a&b", 2).is_ok() && decoded_pairs("a&b&c", 2).is_err());
        assert!(pairs(&"a".repeat(QUERY_BYTES_MAX + 1)).is_err());
    }
}

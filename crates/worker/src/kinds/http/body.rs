//! Reads the body of an answer, up to its limit.

use std::io::{self, Read, Write};

use serde_json::{Map, Value as Json};
use ureq::Body;
use ureq::http::{HeaderMap, header};

/// How much is read at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// Characters of the first line of a body that an error message repeats.
const FIRST_LINE_CHARS: usize = 300;

/// Why a body could not be read.
#[derive(Debug)]
pub(super) enum ReadError {
    /// It is larger than the limit.
    TooLarge,
    /// The connection failed.
    Network(io::Error),
    /// The file could not be written.
    File(io::Error),
}

/// Reads a body into a file or a vector. Returns the number of bytes.
pub(super) fn copy(body: Body, limit: u64, into: &mut impl Write) -> Result<u64, ReadError> {
    let mut reader = body.into_reader();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut total = 0;
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(ReadError::Network(error)),
        };
        total += count as u64;
        if total > limit {
            return Err(ReadError::TooLarge);
        }
        into.write_all(&buffer[..count]).map_err(ReadError::File)?;
    }
}

/// The headers as JSON, with names in small letters. Values of the same header are joined with a comma.
pub(super) fn headers_json(headers: &HeaderMap) -> Json {
    let mut object = Map::new();
    for name in headers.keys() {
        let values: Vec<String> = headers
            .get_all(name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).replace('\0', "\u{fffd}"))
            .collect();
        object.insert(name.as_str().to_owned(), Json::from(values.join(", ")));
    }
    Json::Object(object)
}

/// The body as a value: JSON if the answer says so and it is, else text. An empty body is null.
pub(super) fn body_json(headers: &HeaderMap, body: &[u8]) -> Json {
    if body.is_empty() {
        return Json::Null;
    }
    if says_json(headers)
        && let Ok(json) = serde_json::from_slice(body)
        && !has_nul(&json)
    {
        return json;
    }
    // NUL is replaced, because databases do not store it.
    Json::from(String::from_utf8_lossy(body).replace('\0', "\u{fffd}"))
}

/// Whether the answer says that its body is JSON.
fn says_json(headers: &HeaderMap) -> bool {
    let Some(content_type) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind == "text/json" || kind.ends_with("+json")
}

/// Whether a text in the value has a NUL, which databases do not store.
fn has_nul(json: &Json) -> bool {
    match json {
        Json::String(text) => text.contains('\0'),
        Json::Array(items) => items.iter().any(has_nul),
        Json::Object(fields) => fields.iter().any(|(name, value)| name.contains('\0') || has_nul(value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

/// The first line of a body that is not blank, for an error message.
pub(super) fn first_line(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let shown = |character: char| if character.is_control() { '\u{fffd}' } else { character };
    Some(line.chars().take(FIRST_LINE_CHARS).map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use ureq::http::HeaderValue;

    fn headers(content_type: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))])
    }

    #[test]
    fn a_body_is_json_if_the_answer_says_so() {
        for (content_type, body, expected) in [
            ("application/json; charset=utf-8", "{\"a\": [1]}", json!({"a": [1]})),
            ("application/problem+json", "7", json!(7)),
            ("APPLICATION/JSON", "null", json!(null)),
            ("text/plain", "7", json!("7")),
            ("application/json", "{", json!("{")),
            ("application/json", "\"a\\u0000b\"", json!("\"a\\u0000b\"")),
            ("application/json", "", json!(null)),
            ("text/plain", "a\0b", json!("a\u{fffd}b")),
        ] {
            assert_eq!(body_json(&headers(content_type), body.as_bytes()), expected, "{content_type} {body}");
        }
        assert_eq!(body_json(&HeaderMap::new(), b"7"), json!("7"));
    }

    #[test]
    fn the_same_header_twice_is_one_text() {
        let mut headers = headers("text/plain");
        headers.append(header::VARY, HeaderValue::from_static("a"));
        headers.append(header::VARY, HeaderValue::from_static("b"));
        assert_eq!(headers_json(&headers), json!({"content-type": "text/plain", "vary": "a, b"}));
    }

    #[test]
    fn a_message_has_one_short_line_of_a_body() {
        assert_eq!(first_line(b"\n  no such table \r\nmore").as_deref(), Some("no such table"));
        assert_eq!(first_line(b" \n\n"), None);
        assert_eq!(first_line(b"a\x1b[31m").as_deref(), Some("a\u{fffd}[31m"));
        assert_eq!(first_line(&vec![b'x'; 100_000]).map(|line| line.len()), Some(FIRST_LINE_CHARS));
    }
}

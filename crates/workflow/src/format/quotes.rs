//! The simplest quotes of keys and texts.

use std::borrow::Cow;

use toml_parser::lexer::TokenKind;

/// Writes a key without quotes if it needs none, and a text in single quotes with double quotes if its characters mean the
/// same in them. Everything else stays.
pub(super) fn simplest(kind: TokenKind, text: &str, is_key: bool) -> Cow<'_, str> {
    match kind {
        TokenKind::LiteralString => {
            let content = text.trim_matches('\'');
            if is_key && is_bare(content) {
                Cow::Borrowed(content)
            } else if is_key || content.contains(['"', '\\']) || content.contains(|c: char| c.is_control()) {
                Cow::Borrowed(text)
            } else {
                Cow::Owned(format!("\"{content}\""))
            }
        }
        TokenKind::BasicString if is_key => {
            let content = text.trim_matches('"');
            Cow::Borrowed(if is_bare(content) { content } else { text })
        }
        TokenKind::Comment => Cow::Borrowed(text.trim_end()),
        TokenKind::BasicString
        | TokenKind::MlLiteralString
        | TokenKind::MlBasicString
        | TokenKind::Atom
        | TokenKind::Dot
        | TokenKind::Equals
        | TokenKind::Comma
        | TokenKind::LeftSquareBracket
        | TokenKind::RightSquareBracket
        | TokenKind::LeftCurlyBracket
        | TokenKind::RightCurlyBracket
        | TokenKind::Whitespace
        | TokenKind::Newline
        | TokenKind::Eof => Cow::Borrowed(text),
    }
}

/// Whether a key may stand without quotes.
fn is_bare(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

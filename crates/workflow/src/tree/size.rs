//! Estimates the memory that a tree will need, before the text is parsed.
//!
//! A parser needs some sixty bytes for each token, and allocates several entries for each table and list. A text of a few
//! megabytes can have millions of tokens.

use jsonc_parser::tokens::Token;
use jsonc_parser::{Scanner, ScannerOptions};
use toml_parser::lexer::TokenKind;

use crate::limits;
use crate::source::Format;

/// The largest weight of a token.
const WEIGHT_MAX: usize = 17;

/// Whether a text has more than [`limits::PARTS`]. The check itself allocates no memory.
pub fn has_too_many_parts(text: &str, format: Format) -> bool {
    // Every token has at least one byte, so a short text can't have too many.
    if text.len() <= limits::PARTS / WEIGHT_MAX {
        return false;
    }
    match format {
        Format::Toml => {
            exceeds_limit(toml_parser::Source::new(text).lex().map(|token| toml_weight(token.kind())))
        }
        // Its parser gives one part after the other, so the tree is counted while it is made.
        Format::Yaml => false,
        Format::Json => {
            let mut scanner = Scanner::new(text, &ScannerOptions::default());
            // The scan stops at an invalid token. The parser stops there too.
            exceeds_limit(std::iter::from_fn(|| {
                scanner.scan().ok().flatten().map(|token| json_weight(&token))
            }))
        }
    }
}

/// Whether the weights add up to more than [`limits::PARTS`].
fn exceeds_limit(weights: impl Iterator<Item = usize>) -> bool {
    let mut parts = 0;
    weights.into_iter().any(|weight| {
        parts += weight;
        parts > limits::PARTS
    })
}

/// The weight of a token. A token that begins a table or a list counts for the memory of that table or list. A dot in a key
/// begins a table too.
fn toml_weight(kind: TokenKind) -> usize {
    match kind {
        TokenKind::LeftCurlyBracket => 17,
        TokenKind::Dot => 13,
        TokenKind::LeftSquareBracket => 9,
        TokenKind::Equals
        | TokenKind::Comma
        | TokenKind::RightSquareBracket
        | TokenKind::RightCurlyBracket
        | TokenKind::Whitespace
        | TokenKind::Comment
        | TokenKind::Newline
        | TokenKind::LiteralString
        | TokenKind::BasicString
        | TokenKind::MlLiteralString
        | TokenKind::MlBasicString
        | TokenKind::Atom
        | TokenKind::Eof => 1,
    }
}

fn json_weight(token: &Token<'_>) -> usize {
    match token {
        Token::OpenBrace => 5,
        Token::OpenBracket => 2,
        Token::CloseBrace
        | Token::CloseBracket
        | Token::Comma
        | Token::Colon
        | Token::String(_)
        | Token::Word(_)
        | Token::Boolean(_)
        | Token::Number(_)
        | Token::Null
        | Token::CommentLine(_)
        | Token::CommentBlock(_) => 1,
    }
}

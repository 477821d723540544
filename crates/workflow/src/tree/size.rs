//! How large the tree of a text will be, before it is made. A parser needs some sixty bytes for each token, of which a
//! text of a few megabytes can have millions, and makes room for several entries in each table and list.

use jsonc_parser::tokens::Token;
use jsonc_parser::{Scanner, ScannerOptions};
use toml_parser::lexer::TokenKind;

use crate::limits;
use crate::source::Format;

/// What the largest token counts for.
const WEIGHT_MAX: usize = 17;

/// Whether a text has more than [`limits::PARTS`]. Needs no memory itself.
pub fn has_too_many_parts(text: &str, format: Format) -> bool {
    // Every token has a byte at least.
    if text.len() <= limits::PARTS / WEIGHT_MAX {
        return false;
    }
    match format {
        Format::Toml => {
            is_too_much(toml_parser::Source::new(text).lex().map(|token| toml_weight(token.kind())))
        }
        Format::Json => {
            let mut scanner = Scanner::new(text, &ScannerOptions::default());
            // The parser finds what is no token, and stops there as well.
            is_too_much(std::iter::from_fn(|| scanner.scan().ok().flatten().map(|token| json_weight(&token))))
        }
    }
}

fn is_too_much(weights: impl Iterator<Item = usize>) -> bool {
    let mut parts = 0;
    weights.into_iter().any(|weight| {
        parts += weight;
        parts > limits::PARTS
    })
}

/// A token, and what the parser keeps for a table or a list that it begins. Each dot of a name is a table, too.
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

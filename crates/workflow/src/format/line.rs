//! The lines of a TOML file, each written anew from its tokens.

use toml_parser::Source;
use toml_parser::lexer::TokenKind;

use super::quotes;

/// How many spaces a line inside a list is indented, for each list.
const INDENT: usize = 4;

/// A line in its new form. A text of several lines is part of the line in which it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    Blank,
    /// Only a comment, outside of lists.
    Comment(String),
    /// `[table]` or `[[table]]`.
    Header(String),
    /// It begins with the end of a list or of an inline table.
    Closing(String),
    Other(String),
}

#[derive(Debug, Clone, Copy)]
struct Token<'t> {
    kind: TokenKind,
    text: &'t str,
    /// Whether spaces stand before it.
    is_spaced: bool,
}

/// What a bracket holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    List,
    Table,
}

/// A bracket that is open, and the line in which it was opened.
type Open = (Inside, usize);

/// Takes a valid file apart and writes each line anew.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let (mut lines, mut open) = (Vec::new(), Vec::new());
    for (number, tokens) in tokens_by_line(text).iter().enumerate() {
        lines.push(line(tokens, number, &mut open));
    }
    lines
}

fn tokens_by_line(text: &str) -> Vec<Vec<Token<'_>>> {
    let (mut lines, mut present, mut is_spaced) = (Vec::new(), Vec::new(), false);
    for token in Source::new(text).lex() {
        let span = token.span();
        let text = text.get(span.start()..span.end()).unwrap_or_default();
        match token.kind() {
            TokenKind::Newline | TokenKind::Eof => {
                lines.push(std::mem::take(&mut present));
                is_spaced = false;
            }
            TokenKind::Whitespace => is_spaced = true,
            kind @ (TokenKind::Dot
            | TokenKind::Equals
            | TokenKind::Comma
            | TokenKind::LeftSquareBracket
            | TokenKind::RightSquareBracket
            | TokenKind::LeftCurlyBracket
            | TokenKind::RightCurlyBracket
            | TokenKind::Comment
            | TokenKind::LiteralString
            | TokenKind::BasicString
            | TokenKind::MlLiteralString
            | TokenKind::MlBasicString
            | TokenKind::Atom) => {
                present.push(Token { kind, text, is_spaced });
                is_spaced = false;
            }
        }
    }
    lines
}

/// Writes a line. `open` are the brackets that are open before it, and is changed to those that are open after it.
fn line(tokens: &[Token<'_>], number: usize, open: &mut Vec<Open>) -> Line {
    let Some(first) = tokens.first() else { return Line::Blank };
    let is_outside = open.is_empty();
    let closing = tokens.iter().take_while(|token| is_closing(token.kind)).count();
    let indent = INDENT * levels(&open[..open.len().saturating_sub(closing)]);
    if is_outside && first.kind == TokenKind::LeftSquareBracket {
        return Line::Header(header(tokens));
    }
    let mut text = " ".repeat(indent);
    let mut is_key = expects_key(open.last().map(|(inside, _line)| *inside));
    let mut before: Option<Token<'_>> = None;
    for token in tokens {
        if let Some(before) = before {
            text.push_str(gap(before, *token));
        }
        text.push_str(&quotes::simplest(token.kind, token.text, is_key));
        match token.kind {
            TokenKind::LeftSquareBracket => open.push((Inside::List, number)),
            TokenKind::LeftCurlyBracket => open.push((Inside::Table, number)),
            TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket => drop(open.pop()),
            TokenKind::Equals
            | TokenKind::Dot
            | TokenKind::Comma
            | TokenKind::Comment
            | TokenKind::LiteralString
            | TokenKind::BasicString
            | TokenKind::MlLiteralString
            | TokenKind::MlBasicString
            | TokenKind::Atom
            | TokenKind::Whitespace
            | TokenKind::Newline
            | TokenKind::Eof => {}
        }
        is_key = key_follows(token.kind, open, is_key);
        before = Some(*token);
    }
    match (is_outside, first.kind) {
        (true, TokenKind::Comment) => Line::Comment(text),
        _ if closing > 0 => Line::Closing(text),
        _ => Line::Other(text),
    }
}

fn header(tokens: &[Token<'_>]) -> String {
    let mut text = String::new();
    for token in tokens {
        if token.kind == TokenKind::Comment {
            text.push_str("  ");
        }
        text.push_str(&quotes::simplest(token.kind, token.text, true));
    }
    text
}

fn is_closing(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket)
}

/// Brackets that were opened in the same line indent once.
fn levels(open: &[Open]) -> usize {
    let mut lines: Vec<usize> = open.iter().map(|(_inside, line)| *line).collect();
    lines.dedup();
    lines.len()
}

fn expects_key(inside: Option<Inside>) -> bool {
    inside != Some(Inside::List)
}

/// Whether a key may follow this token.
fn key_follows(kind: TokenKind, open: &[Open], is_key: bool) -> bool {
    let inside = open.last().map(|(inside, _line)| *inside);
    match kind {
        TokenKind::Equals | TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket => false,
        TokenKind::Comma | TokenKind::LeftCurlyBracket | TokenKind::LeftSquareBracket => {
            inside == Some(Inside::Table)
        }
        TokenKind::Dot
        | TokenKind::Comment
        | TokenKind::LiteralString
        | TokenKind::BasicString
        | TokenKind::MlLiteralString
        | TokenKind::MlBasicString
        | TokenKind::Atom
        | TokenKind::Whitespace
        | TokenKind::Newline
        | TokenKind::Eof => is_key,
    }
}

/// What stands between two tokens of a line.
fn gap(before: Token<'_>, after: Token<'_>) -> &'static str {
    use TokenKind::{
        Atom, Comma, Comment, Dot, Equals, LeftCurlyBracket, LeftSquareBracket, RightCurlyBracket,
        RightSquareBracket,
    };
    match (before.kind, after.kind) {
        (_, Comment) => "  ",
        (_, Comma) | (Dot, _) | (_, Dot) | (LeftCurlyBracket, RightCurlyBracket) => "",
        (Equals | Comma | LeftCurlyBracket, _) | (_, Equals | RightCurlyBracket) => " ",
        (LeftSquareBracket, _) | (_, RightSquareBracket) => "",
        // The date and the time of an instant.
        (Atom, Atom) if after.is_spaced => " ",
        _ => "",
    }
}

//! Splits a text into literal pieces and expressions.

use std::ops::Range;

use crate::expression::{Fault, Lookup, Segment, TOO_LONG_HELP, lookups};
use crate::limits;

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    Literal(&'t str),
    /// The text between `{{` and `}}`, and its range in the whole text.
    Expression(&'t str, Range<usize>),
}

pub(super) fn split(text: &str) -> Result<Vec<Piece<'_>>, Fault> {
    if text.len() > limits::TEMPLATE_BYTES {
        let message =
            format!("a text with a template may have at most {} KiB", limits::TEMPLATE_BYTES / 1024);
        return Err(Fault::new(0..text.len(), message));
    }
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(offset) = text[at..].find('{') {
        let open = at + offset;
        match text.as_bytes().get(open + 1) {
            Some(b'{') => {
                let start = literal_start(&pieces);
                if open > start {
                    pieces.push(Piece::Literal(&text[start..open]));
                }
                let end = expression_end(text, open)?;
                pieces.push(Piece::Expression(&text[open + 2..end], open + 2..end));
                at = end + 2;
            }
            Some(b'%') => return Err(not_a_statement(open)),
            Some(b'#') => return Err(not_a_comment(open)),
            _ => at = open + 1,
        }
    }
    let start = literal_start(&pieces);
    if start < text.len() {
        pieces.push(Piece::Literal(&text[start..]));
    }
    Ok(pieces)
}

/// The expressions between braces, with their ranges in the text. A text that is no valid template has none.
pub(crate) fn expressions(text: &str) -> Vec<(&str, Range<usize>)> {
    let pieces = split(text).unwrap_or_default().into_iter();
    let expression = |piece| match piece {
        Piece::Expression(expression, range) => Some((expression, range)),
        Piece::Literal(_) => None,
    };
    pieces.filter_map(expression).collect()
}

/// Whether an expression reads a secret.
pub(super) fn reads_secrets(expression: &str) -> bool {
    let is_secret =
        |lookup: &Lookup| matches!(lookup.path.first(), Some(Segment::Name(root)) if root == "secrets");
    lookups(expression).unwrap_or_default().iter().any(is_secret)
}

/// The names of the secrets that the templates in a text read. A text that is no valid template reads none.
#[must_use]
pub fn secrets_read(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for piece in split(text).unwrap_or_default() {
        let Piece::Expression(expression, _) = piece else { continue };
        for lookup in lookups(expression).unwrap_or_default() {
            if let [Segment::Name(root), Segment::Name(name), ..] = lookup.path.as_slice()
                && root == "secrets"
            {
                names.push(name.clone());
            }
        }
    }
    names
}

/// Where the literal text after the last expression begins.
fn literal_start(pieces: &[Piece<'_>]) -> usize {
    match pieces.last() {
        Some(Piece::Expression(_, range)) => range.end + 2,
        Some(Piece::Literal(_)) | None => 0,
    }
}

/// The position of the `}}` that ends the expression opened at `open`. A `}}` inside a string does not count.
fn expression_end(text: &str, open: usize) -> Result<usize, Fault> {
    let bytes = text.as_bytes();
    let mut quote = None;
    let mut at = open + 2;
    while at < bytes.len() {
        match (quote, bytes[at]) {
            (Some(_), b'\\') => at += 1,
            (Some(mark), byte) if byte == mark => quote = None,
            (None, mark @ (b'"' | b'\'')) => quote = Some(mark),
            (None, b'}') if bytes.get(at + 1) == Some(&b'}') => return within_limit(text, open, at),
            _ => (),
        }
        at += 1;
    }
    let message = match quote {
        Some(_) => "a string inside `{{` is not closed",
        None => "`{{` without `}}`",
    };
    Err(Fault::new(open..open + 2, message).help("to have two braces in the text, write {{ \"{{\" }}"))
}

fn within_limit(text: &str, open: usize, end: usize) -> Result<usize, Fault> {
    let range = open..end + 2;
    if end - open > limits::EXPRESSION_BYTES {
        let message = format!("an expression may have at most {} bytes", limits::EXPRESSION_BYTES);
        return Err(Fault::new(range, message).help(TOO_LONG_HELP));
    }
    let inside = &text[open + 2..end];
    if inside.starts_with(['-', '+']) && inside[1..].starts_with(char::is_whitespace)
        || inside.ends_with(['-', '+'])
    {
        return Err(Fault::new(range, "templates do not control white space")
            .help("remove the sign next to the braces"));
    }
    Ok(end)
}

fn not_a_statement(at: usize) -> Fault {
    Fault::new(at..at + 2, "`{%` begins a statement, and templates have only {{ expressions }}")
        .help("write logic in the job's script; to have the two characters in the text, write {{ \"{%\" }}")
}

fn not_a_comment(at: usize) -> Fault {
    Fault::new(at..at + 2, "`{#` begins a comment, and templates have only {{ expressions }}")
        .help("to have the two characters in the text, write {{ \"{#\" }}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_text_is_split_at_the_braces() {
        let pieces = split("a{{ x }}{b}{{y}}").unwrap();
        let expected = [
            Piece::Literal("a"),
            Piece::Expression(" x ", 3..6),
            Piece::Literal("{b}"),
            Piece::Expression("y", 13..14),
        ];
        assert_eq!(pieces, expected);
        assert_eq!(split("").unwrap(), []);
        assert_eq!(split("{").unwrap(), [Piece::Literal("{")]);
    }

    #[test]
    fn braces_in_strings_do_not_end_an_expression() {
        let pieces = split(r#"{{ "}}\"}}" }}{{ '{%' }}"#).unwrap();
        let expected = [Piece::Expression(r#" "}}\"}}" "#, 2..12), Piece::Expression(" '{%' ", 16..22)];
        assert_eq!(pieces, expected);
    }

    #[test]
    fn statements_comments_and_long_expressions_are_refused() {
        let long = format!("{{{{ {} }}}}", "x".repeat(limits::EXPRESSION_BYTES));
        let large = format!("{{{{ x }}}}{}", "x".repeat(limits::TEMPLATE_BYTES));
        let cases = [
            ("{% if x %}", "statement", 0..2),
            ("ab{# x #}", "comment", 2..4),
            ("{{ x", "without", 0..2),
            ("{{ 'x }}", "string", 0..2),
            ("{{- x }}", "white space", 0..8),
            ("{{ x -}}", "white space", 0..8),
            (&long, "500 bytes", 0..long.len()),
            (&large, "64 KiB", 0..large.len()),
        ];
        for (text, reason, range) in cases {
            let fault = split(text).unwrap_err();
            assert!(fault.message.contains(reason), "{}", fault.message);
            assert_eq!(fault.range, range);
        }
    }
}

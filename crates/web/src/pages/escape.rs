//! How texts are written into HTML. Names, errors and output come from anybody, so every value of a template goes through
//! [`Html`]: it escapes what HTML would read, and shows characters that would hide or reorder the text.

use std::fmt::{Result, Write};

use askama::filters::Escaper;

/// Escapes for HTML, and shows invisible characters.
#[derive(Debug, Clone, Copy)]
pub struct Html;

impl Escaper for Html {
    fn write_escaped_str<W: Write>(&self, mut into: W, text: &str) -> Result {
        for character in text.chars() {
            match shown(character) {
                Shown::AsItIs => escape(&mut into, character)?,
                Shown::Picture(picture) => into.write_char(picture)?,
                Shown::Number => write!(into, "\u{2039}U+{:04X}\u{203a}", u32::from(character))?,
            }
        }
        Ok(())
    }
}

/// Escapes for HTML, and changes nothing else: for values that a form sends back.
#[derive(Debug, Clone, Copy)]
pub struct Exact;

impl Escaper for Exact {
    fn write_escaped_str<W: Write>(&self, mut into: W, text: &str) -> Result {
        text.chars().try_for_each(|character| escape(&mut into, character))
    }
}

fn escape<W: Write>(into: &mut W, character: char) -> Result {
    match character {
        '&' => into.write_str("&amp;"),
        '<' => into.write_str("&lt;"),
        '>' => into.write_str("&gt;"),
        '"' => into.write_str("&quot;"),
        '\'' => into.write_str("&#39;"),
        other => into.write_char(other),
    }
}

/// How a character is shown.
enum Shown {
    AsItIs,
    /// By its picture from the block U+2400.
    Picture(char),
    /// By its number.
    Number,
}

fn shown(character: char) -> Shown {
    match character {
        '\n' | '\t' => Shown::AsItIs,
        '\0'..='\u{1f}' => {
            char::from_u32(0x2400 + u32::from(character)).map_or(Shown::Number, Shown::Picture)
        }
        '\u{7f}' => Shown::Picture('\u{2421}'),
        // C1 controls, and characters that change the direction or the place of others or have no width.
        '\u{80}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => Shown::Number,
        _other => Shown::AsItIs,
    }
}

/// The text without the sequences by which programs colour the output of a terminal or set its title.
#[must_use]
pub fn without_terminal_sequences(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        let sequence = &rest[at..];
        let length = sequence_length(sequence);
        if length == 0 {
            plain.push('\u{1b}');
        }
        rest = &sequence[length.max(1)..];
    }
    plain.push_str(rest);
    plain
}

/// The length in bytes of the terminal sequence at the beginning of a text; 0 if it is none.
fn sequence_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.get(1) {
        // Parameters, then intermediate bytes, then one final byte.
        Some(b'[') => match bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte)) {
            Some(at) if bytes[2..2 + at].iter().all(|byte| (0x20..=0x3f).contains(byte)) => at + 3,
            Some(_) | None => 0,
        },
        // Up to BEL or ESC \.
        Some(b']') => match text.find('\u{7}') {
            Some(at) => at + 1,
            None => text[2..].find("\u{1b}\\").map_or(0, |at| at + 4),
        },
        Some(b'(' | b')') if bytes.len() > 2 && bytes[2].is_ascii() => 3,
        Some(_) | None => 0,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn html(text: &str) -> String {
        let mut written = String::new();
        Html.write_escaped_str(&mut written, text).unwrap();
        written
    }

    #[test]
    fn what_html_reads_is_escaped() {
        assert_eq!(html("<script>&\"'"), "&lt;script&gt;&amp;&quot;&#39;");
    }

    #[test]
    fn characters_that_hide_or_reorder_text_are_shown() {
        assert_eq!(html("a\u{202e}b\u{2066}c\u{200b}\u{feff}"), "a‹U+202E›b‹U+2066›c‹U+200B›‹U+FEFF›");
        assert_eq!(html("\0\u{7}\u{1b}[31m\u{7f}\u{85}\r"), "␀␇␛[31m␡‹U+0085›␍");
        assert_eq!(html("line\n\ttab ü 漢 👩\u{200d}👧"), "line\n\ttab ü 漢 👩\u{200d}👧");
    }

    #[test]
    fn values_of_forms_stay_as_they_are() {
        let mut written = String::new();
        Exact.write_escaped_str(&mut written, "\u{202e}\"<").unwrap();
        assert_eq!(written, "\u{202e}&quot;&lt;");
    }

    #[test]
    fn sequences_of_terminals_are_left_out() {
        let cases = [
            ("\u{1b}[1;31merror\u{1b}[0m: x", "error: x"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}[2K\u{1b}[1Gdone", "done"),
            ("\u{1b}(B", ""),
            ("\u{1b}", "\u{1b}"),
            ("\u{1b}[31", "\u{1b}[31"),
            ("\u{1b}]0;never ended", "\u{1b}]0;never ended"),
            ("a\u{1b}üb", "a\u{1b}üb"),
        ];
        for (text, plain) in cases {
            assert_eq!(without_terminal_sequences(text), plain, "{text:?}");
        }
    }
}

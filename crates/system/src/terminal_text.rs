//! Text from outside that is shown on a terminal: colours stay, and everything else that a terminal would obey is removed.

use std::borrow::Cow;
use std::fmt::Write;

use anstyle_parse::{DefaultCharAccumulator, Params, Parser, Perform};

/// The longest code of a colour that is kept: `38:2::255:255:255` and the like.
const COLOUR_MAX_BYTES: usize = 24;
/// Effects that are kept: bold, dim, italic, underlined, inverted, struck out. Blinking and hidden text are not.
const EFFECTS: [u16; 6] = [1, 2, 3, 4, 7, 9];

/// Cleans the lines of a stream. A colour that a line does not end is ended, and begins again in the next line.
#[derive(Debug, Default)]
pub struct LineCleaner {
    style: Style,
}

impl LineCleaner {
    /// The line with its colours, and without other escape sequences and control characters but tabs. Of a line that was
    /// overwritten, such as a progress bar, the last version.
    pub fn clean<'t>(&mut self, line: &'t str) -> Cow<'t, str> {
        if self.style.is_plain() && !needs_cleaning(line) {
            return Cow::Borrowed(line);
        }
        let mut cleaned = Cleaned {
            style: std::mem::take(&mut self.style),
            text: String::with_capacity(line.len()),
            ..Cleaned::default()
        };
        let mut parser = Parser::<DefaultCharAccumulator>::new();
        for byte in line.bytes() {
            parser.advance(&mut cleaned, byte);
        }
        cleaned.change_to(&Style::default());
        self.style = cleaned.style;
        Cow::Owned(cleaned.text)
    }
}

/// A line with its colours, and without other escape sequences and control characters but tabs.
#[must_use]
pub fn coloured(line: &str) -> Cow<'_, str> {
    LineCleaner::default().clean(line)
}

/// A line without colours, other escape sequences, and control characters but tabs.
#[must_use]
pub fn plain(line: &str) -> Cow<'_, str> {
    if !needs_cleaning(line) {
        return Cow::Borrowed(line);
    }
    let mut cleaned = Cleaned { is_plain: true, ..Cleaned::default() };
    let mut parser = Parser::<DefaultCharAccumulator>::new();
    for byte in line.bytes() {
        parser.advance(&mut cleaned, byte);
    }
    Cow::Owned(cleaned.text)
}

fn needs_cleaning(line: &str) -> bool {
    line.chars().any(|character| character.is_control() && character != '\t')
}

/// How characters look.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Style {
    effects: [bool; EFFECTS.len()],
    /// The codes of the colours of the characters and of their background.
    foreground: Option<String>,
    background: Option<String>,
}

impl Style {
    fn is_plain(&self) -> bool {
        *self == Style::default()
    }

    /// Applies the parameters of one code.
    fn apply(&mut self, params: &Params) {
        let mut groups = params.iter();
        while let Some(group) = groups.next() {
            match group {
                [] | [0] => *self = Style::default(),
                [4, 0] | [24] => self.set(4, false),
                [4, ..] => self.set(4, true),
                [22] => {
                    self.set(1, false);
                    self.set(2, false);
                }
                [code @ (23 | 27 | 29)] => self.set(code - 20, false),
                [code] if EFFECTS.contains(code) => self.set(*code, true),
                [30..=37 | 90..=97] => self.foreground = Some(group[0].to_string()),
                [40..=47 | 100..=107] => self.background = Some(group[0].to_string()),
                [39] => self.foreground = None,
                [49] => self.background = None,
                [38] => self.foreground = Style::long_colour(38, &mut groups),
                [48] => self.background = Style::long_colour(48, &mut groups),
                [38, rest @ ..] => self.foreground = Style::joined_colour(38, rest),
                [48, rest @ ..] => self.background = Style::joined_colour(48, rest),
                [..] => {}
            }
        }
    }

    fn set(&mut self, effect: u16, is_on: bool) {
        if let Some(index) = EFFECTS.iter().position(|known| *known == effect) {
            self.effects[index] = is_on;
        }
    }

    /// A colour of several parameters: `38;5;N` or `38;2;R;G;B`.
    fn long_colour<'p>(code: u16, groups: &mut impl Iterator<Item = &'p [u16]>) -> Option<String> {
        let kind = *groups.next()?.first()?;
        let count = match kind {
            5 => 1,
            2 => 3,
            _ => return None,
        };
        let mut text = format!("{code};{kind}");
        for _value in 0..count {
            let _ = write!(text, ";{}", groups.next()?.first()?);
        }
        Some(text)
    }

    /// A colour of one parameter with parts: `38:2::R:G:B`.
    fn joined_colour(code: u16, rest: &[u16]) -> Option<String> {
        let mut text = code.to_string();
        for value in rest {
            let _ = write!(text, ":{value}");
        }
        (text.len() <= COLOUR_MAX_BYTES).then_some(text)
    }

    fn write(&self, text: &mut String) {
        let effects = EFFECTS.iter().zip(self.effects).filter(|(_, is_on)| *is_on);
        let codes = effects.map(|(code, _)| code.to_string());
        let colours = self.foreground.iter().chain(&self.background).cloned();
        let codes: Vec<String> = codes.chain(colours).collect();
        let _ = write!(text, "\x1b[{}m", codes.join(";"));
    }
}

/// A line while it is cleaned.
#[derive(Debug, Default)]
struct Cleaned {
    text: String,
    /// The style of the next character, and that of the last one in the text.
    style: Style,
    written: Style,
    /// The cursor is at the beginning: the next character overwrites the line.
    is_overwritten: bool,
    /// Leave colours out.
    is_plain: bool,
}

impl Cleaned {
    fn push(&mut self, character: char) {
        self.overwrite();
        let style = self.style.clone();
        self.change_to(&style);
        self.text.push(character);
    }

    /// Forgets the line if the cursor has returned to its beginning.
    fn overwrite(&mut self) {
        if std::mem::take(&mut self.is_overwritten) {
            self.text.clear();
            self.written = Style::default();
        }
    }

    fn change_to(&mut self, style: &Style) {
        if self.is_plain || self.written == *style {
            return;
        }
        if !self.written.is_plain() {
            self.text.push_str("\x1b[0m");
        }
        if !style.is_plain() {
            style.write(&mut self.text);
        }
        self.written = style.clone();
    }
}

impl Perform for Cleaned {
    fn print(&mut self, character: char) {
        if !character.is_control() {
            self.push(character);
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\t' => self.push('\t'),
            b'\r' => self.is_overwritten = true,
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: u8) {
        match action {
            b'm' if intermediates.is_empty() && !ignore => self.style.apply(params),
            // The line is erased.
            b'K' => self.overwrite(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_stay_and_everything_else_goes() {
        let cases = [
            ("plain\ttext ✓", "plain\ttext ✓"),
            ("\x1b[31mred\x1b[0m end", "\x1b[31mred\x1b[0m end"),
            ("\x1b[1;4;38;5;208mx\x1b[22;24;39my", "\x1b[1;4;38;5;208mx\x1b[0my"),
            ("\x1b[38;2;1;2;3;48;5;0mx", "\x1b[38;2;1;2;3;48;5;0mx\x1b[0m"),
            ("\x1b[38:2::1:2:3mx", "\x1b[38:2:0:1:2:3mx\x1b[0m"),
            ("\x1b[4:3mx\x1b[4:0my", "\x1b[4mx\x1b[0my"),
            ("\x1b[31m\x1b[32mgreen", "\x1b[32mgreen\x1b[0m"),
            ("\x1b[31m\x1b[0m", ""),
            ("\x1b[2J\x1b[Hgone\x1b[5;8mx", "gonex"),
            ("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "xlink"),
            ("bell\x07 back\x08 c1\u{9b}31m", "bell back c131m"),
            ("\x1b[?25l\x1b[>4;2mx", "x"),
            ("a\x1b[31", "a"),
        ];
        for (text, expected) in cases {
            assert_eq!(coloured(text), expected, "{text:?}");
            let without = plain(expected);
            assert_eq!(plain(text), without, "{text:?}");
            assert!(!without.contains('\x1b'), "{without:?}");
            assert_eq!(coloured(expected), expected, "cleaning twice changes nothing: {text:?}");
        }
    }

    #[test]
    fn of_an_overwritten_line_the_last_version_stays() {
        let cases = [
            (" 10%\r 50%\r100%", "100%"),
            ("\x1b[32m10%\r\x1b[2K100%\x1b[0m", "\x1b[32m100%\x1b[0m"),
            ("working\r\x1b[K", ""),
            ("windows\r", "windows"),
        ];
        for (text, expected) in cases {
            assert_eq!(coloured(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_colour_of_several_lines_is_in_each_of_them() {
        let mut cleaner = LineCleaner::default();
        let lines: Vec<String> = ["\x1b[31mone", "two", "", "three\x1b[0m", "four"]
            .iter()
            .map(|line| cleaner.clean(line).into_owned())
            .collect();
        let expected = ["\x1b[31mone\x1b[0m", "\x1b[31mtwo\x1b[0m", "", "\x1b[31mthree\x1b[0m", "four"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn codes_without_end_stay_small() {
        let text = "\x1b[1m\x1b[31m\x1b[44m".repeat(10_000);
        assert_eq!(coloured(&format!("{text}x")), "\x1b[1;31;44mx\x1b[0m");
        assert_eq!(coloured(&format!("\x1b[38:{}mx", "1:".repeat(30))), "x");
    }
}

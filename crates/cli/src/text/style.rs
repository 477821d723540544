//! Colours, and text that is safe for a terminal.
//!
//! Text is always styled. `anstream` removes the codes if the output is not a terminal or `NO_COLOR` is set.

use std::borrow::Cow;
use std::fmt::Display;

use anstyle::{AnsiColor, Style};
use windlass_system::terminal_text;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();
pub(crate) const PLAIN: Style = Style::new();

/// The text in a style.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// A line from outside (output, a name, an error) without escape sequences and control characters, so that it
/// cannot move the cursor or repaint the screen.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    terminal_text::plain(text)
}

/// A line that a job wrote, with its colours, which end with the line.
pub(crate) fn coloured(text: &str) -> Cow<'_, str> {
    terminal_text::coloured(text)
}

/// The first line of a text, printable, cut to `columns` with an ellipsis.
pub(crate) fn headline(text: &str, columns: usize) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = printable(lines.next().unwrap_or_default()).replace('\t', " ");
    console::truncate_str(&first, columns, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_control_characters_are_removed() {
        let cases = [
            ("plain\ttext", "plain\ttext"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[2J\u{1b}[Hgone", "gone"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("bell\u{7} back\u{8} return\r", "bell back return"),
            ("grün ✓", "grün ✓"),
            ("c1 \u{9b}31m", "c1 31m"),
        ];
        for (text, expected) in cases {
            assert_eq!(printable(text), expected, "{text:?}");
        }
    }

    #[test]
    fn headlines_are_one_short_line() {
        assert_eq!(headline("\n  \nfirst\nsecond", 40), "first");
        assert_eq!(headline("abcdef", 4), "abc…");
        assert_eq!(headline("", 4), "");
    }
}

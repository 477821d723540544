//! Converts byte offsets to lines and columns, and cuts out the text to show.

use super::Span;

/// The number of characters of a long line that are shown before the marked part.
const BEFORE: usize = 50;
/// The number of characters of a long line that are shown from the start of the marked part.
const FROM: usize = 90;

/// A line of the file, or a part of a long line, in which something is marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Excerpt {
    /// The path of the file that has the line.
    pub(super) path: String,
    /// The line, counted from 1.
    pub(super) line: usize,
    /// The column in characters of the whole line, counted from 1.
    pub(super) column: usize,
    pub(super) text: String,
    /// The marked part, in bytes of `text`.
    pub(super) marked: std::ops::Range<usize>,
    pub(super) label: Option<String>,
}

/// A text, and the byte at which each line starts.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Lines<'t> {
        let mut starts = vec![0];
        starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        Lines { text, starts }
    }

    /// The line and the column of a byte, counted from 1. The column is in characters.
    pub(super) fn position(&self, at: usize) -> (usize, usize) {
        let at = self.text.floor_char_boundary(at);
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts[line - 1];
        (line, self.text[start..at].chars().count() + 1)
    }

    /// The line in which the span starts, shortened if it is long. If the span has several lines, only its part in the first
    /// line is marked.
    pub(super) fn excerpt(&self, path: &str, span: Span, label: Option<String>) -> Excerpt {
        let start = self.text.floor_char_boundary(span.start);
        let (line, column) = self.position(start);
        let line_start = self.starts[line - 1];
        let line_text = self.text[line_start..].lines().next().unwrap_or("");
        let line_end = line_start + line_text.len();
        let start = start.min(line_end);
        let end = self.text.floor_char_boundary(span.end.clamp(start, line_end));
        let from = chars_back(self.text, line_start, start);
        let to = chars_on(self.text, line_end, start);
        let before = if from > line_start { "…" } else { "" };
        let after = if to < line_end { "…" } else { "" };
        let text = format!("{before}{}{after}", &self.text[from..to]);
        let shift = before.len();
        let marked = start - from + shift..end.min(to) - from + shift;
        Excerpt { path: path.to_owned(), line, column, text, marked, label }
    }
}

/// The byte that is [`BEFORE`] characters before `at`, or the start of the line.
fn chars_back(text: &str, line_start: usize, at: usize) -> usize {
    text[line_start..at]
        .char_indices()
        .rev()
        .take(BEFORE)
        .last()
        .map_or(at, |(offset, _)| line_start + offset)
}

/// The byte that is [`FROM`] characters after `at`, or the end of the line.
fn chars_on(text: &str, line_end: usize, at: usize) -> usize {
    text[at..line_end].char_indices().nth(FROM).map_or(line_end, |(offset, _)| at + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_one_and_in_characters() {
        let lines = Lines::of("ab\nüñx\n");
        assert_eq!(lines.position(0), (1, 1));
        assert_eq!(lines.position(3), (2, 1));
        assert_eq!(lines.position(7), (2, 3));
        assert_eq!(lines.position(8), (2, 4), "the end of a line belongs to it");
        assert_eq!(lines.position(9), (3, 1));
        assert_eq!(lines.position(1_000), (3, 1), "past the end is the end");
    }

    #[test]
    fn a_long_line_is_shortened_around_the_marked_part() {
        let text = format!("{}HERE{}", "é".repeat(5_000), "x".repeat(5_000));
        let excerpt = Lines::of(&text).excerpt("a.toml", 10_000..10_004, None);
        assert_eq!(&excerpt.text[excerpt.marked.clone()], "HERE");
        assert_eq!((excerpt.line, excerpt.column), (1, 5_001));
        assert!(excerpt.text.chars().count() < 150);
    }

    #[test]
    fn of_a_span_over_several_lines_the_first_line_is_marked() {
        let excerpt = Lines::of("a = '''one\ntwo'''\n").excerpt("a.toml", 4..17, None);
        assert_eq!(&excerpt.text[excerpt.marked.clone()], "'''one");
    }
}

//! From byte offsets to lines, columns and the piece of text that is shown.

use super::Span;

/// Characters of a long line that are shown before the marked place.
const BEFORE: usize = 50;
/// Characters of a long line that are shown from the marked place on.
const FROM: usize = 90;

/// One line of the file (the part of it around the marked place) and what is marked in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Excerpt {
    /// Counted from 1.
    pub(super) line: usize,
    /// Counted from 1, in characters of the whole line.
    pub(super) column: usize,
    pub(super) text: String,
    /// Bytes of `text`.
    pub(super) marked: std::ops::Range<usize>,
    pub(super) label: Option<String>,
}

/// A text and where its lines start.
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

    /// Line and column, counted from 1; the column in characters.
    pub(super) fn position(&self, at: usize) -> (usize, usize) {
        let at = self.text.floor_char_boundary(at);
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts[line - 1];
        (line, self.text[start..at].chars().count() + 1)
    }

    /// The line in which the span starts, cut if it is long. A span over several lines is marked to
    /// the end of its first.
    pub(super) fn excerpt(&self, span: Span, label: Option<String>) -> Excerpt {
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
        Excerpt { line, column, text, marked, label }
    }
}

fn chars_back(text: &str, line_start: usize, at: usize) -> usize {
    text[line_start..at]
        .char_indices()
        .rev()
        .take(BEFORE)
        .last()
        .map_or(at, |(offset, _)| line_start + offset)
}

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
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("{}HERE{}", "é".repeat(5_000), "x".repeat(5_000));
        let excerpt = Lines::of(&text).excerpt(10_000..10_004, None);
        assert_eq!(&excerpt.text[excerpt.marked.clone()], "HERE");
        assert_eq!((excerpt.line, excerpt.column), (1, 5_001));
        assert!(excerpt.text.chars().count() < 150);
    }

    #[test]
    fn a_span_over_lines_ends_with_its_first_line() {
        let excerpt = Lines::of("a = '''one\ntwo'''\n").excerpt(4..17, None);
        assert_eq!(&excerpt.text[excerpt.marked.clone()], "'''one");
    }
}

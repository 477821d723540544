//! What is not carried over: a line for people, and a comment in the file.

use crate::report::Span;

/// The notes of a file so far.
#[derive(Debug)]
pub(super) struct Notes {
    /// The byte at which each line of the file begins.
    starts: Vec<usize>,
    lines: Vec<(usize, String)>,
}

impl Notes {
    /// No notes on this text.
    pub(super) fn new(text: &str) -> Notes {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Notes { starts, lines: Vec::new() }
    }

    /// Notes that something is left out. Returns the comment for its place.
    pub(super) fn leave_out(&mut self, span: &Span, what: impl AsRef<str>) -> String {
        let what = what.as_ref().split_whitespace().collect::<Vec<_>>().join(" ");
        let line = self.starts.partition_point(|start| *start <= span.start).max(1);
        self.lines.push((line, format!("line {line}: {what}")));
        format!("# Not carried over: {what}")
    }

    pub(super) fn into_lines(mut self) -> Vec<String> {
        self.lines.sort_by_key(|(line, _)| *line);
        self.lines.into_iter().map(|(_, text)| text).collect()
    }
}

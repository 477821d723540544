//! The newest lines of an attempt, from which its error is made if it fails.

use std::collections::VecDeque;

use super::output_log::{LOG_TAIL_BYTES, LOG_TAIL_LINES};
use windlass_engine::store::LogStream;
use windlass_system::first_error::{Certainty, first_error, summary};
use windlass_system::terminal_text;

/// The newest lines of an attempt: as many as are kept at the end of a long output.
#[derive(Debug, Default)]
pub(super) struct NewestLines {
    lines: VecDeque<(LogStream, String)>,
    bytes: usize,
    /// The last line of standard error that is not blank, among those that are older.
    older_stderr: Option<String>,
}

impl NewestLines {
    pub(super) fn push(&mut self, stream: LogStream, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        self.bytes += text.len();
        self.lines.push_back((stream, text.to_owned()));
        while self.lines.len() > LOG_TAIL_LINES || self.bytes > LOG_TAIL_BYTES {
            let Some((stream, oldest)) = self.lines.pop_front() else { break };
            self.bytes -= oldest.len();
            if stream == LogStream::Stderr && !is_blank(&oldest) {
                self.older_stderr = Some(oldest);
            }
        }
    }

    /// The line that says what went wrong: the first that has the form of an error; else the last one of standard error; else the
    /// first whose words speak of a failure.
    pub(super) fn error(&self) -> Option<String> {
        let lines: Vec<_> = self.lines.iter().map(|(_stream, line)| terminal_text::plain(line)).collect();
        let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
        let found = first_error(&lines);
        let text = |certainty| {
            let found = found.filter(|found| found.certainty == certainty)?;
            Some(summary(&lines, found.at))
        };
        let last_stderr = || self.last_stderr().map(|line| summary(&[&terminal_text::plain(line)], 0));
        text(Certainty::Certain).or_else(last_stderr).or_else(|| text(Certainty::Likely))
    }

    fn last_stderr(&self) -> Option<&str> {
        let is_wanted =
            |(stream, line): &&(LogStream, String)| *stream == LogStream::Stderr && !is_blank(line);
        let newest = self.lines.iter().rev().find(is_wanted).map(|(_stream, line)| line.as_str());
        newest.or(self.older_stderr.as_deref())
    }
}

/// Whether a line has nothing but spaces and colours.
fn is_blank(line: &str) -> bool {
    terminal_text::plain(line).trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(lines: &[(LogStream, &str)]) -> Option<String> {
        let mut newest = NewestLines::default();
        for (stream, text) in lines {
            newest.push(*stream, text);
        }
        newest.error()
    }

    #[test]
    fn the_error_is_not_the_end_of_a_stack_trace() {
        let node = [
            (LogStream::Stdout, "listening on 80"),
            (LogStream::Stderr, "/srv/app.js:7"),
            (LogStream::Stderr, "TypeError: Cannot read properties of null (reading 'host')"),
            (LogStream::Stderr, "    at start (/srv/app.js:7:3)"),
            (LogStream::Stderr, "Node.js v20.20.2"),
        ];
        assert_eq!(error_of(&node).as_deref(), Some(node[2].1));
    }

    #[test]
    fn programs_that_print_their_errors_are_read_too() {
        let printed = [
            (LogStream::Stdout, "2 passed"),
            (LogStream::Stdout, "FAILED test_orders.py::test_total - assert 3 == 4"),
            (LogStream::Stdout, "1 failed"),
        ];
        assert_eq!(error_of(&printed).as_deref(), Some(printed[1].1));
        let words = [(LogStream::Stdout, "the upload failed"), (LogStream::Stdout, "see above")];
        assert_eq!(error_of(&words).as_deref(), Some("the upload failed"));
    }

    #[test]
    fn what_stands_on_standard_error_is_taken_before_words() {
        let lines = [(LogStream::Stdout, "the upload failed"), (LogStream::Stderr, "giving in")];
        assert_eq!(error_of(&lines).as_deref(), Some("giving in"));
        assert_eq!(error_of(&[(LogStream::Stdout, "hm"), (LogStream::Stdout, " ")]), None);
        assert_eq!(error_of(&[(LogStream::Stderr, "\x1b[31m\x1b[0m"), (LogStream::Stderr, " ")]), None);
    }

    #[test]
    fn memory_is_bounded_and_the_last_line_of_standard_error_stays() {
        let mut newest = NewestLines::default();
        newest.push(LogStream::Stderr, "\x1b[31mgiving in\x1b[0m");
        for number in 0..5_000 {
            newest.push(LogStream::Stdout, &format!("{number} {}", "ü".repeat(number)));
            assert!(newest.lines.len() <= LOG_TAIL_LINES && newest.bytes <= LOG_TAIL_BYTES, "{number}");
        }
        assert_eq!(newest.bytes, newest.lines.iter().map(|(_stream, line)| line.len()).sum::<usize>());
        assert!(newest.lines.back().is_some_and(|(_stream, line)| line.starts_with("4999 ")));
        assert_eq!(newest.error().as_deref(), Some("giving in"));
    }
}

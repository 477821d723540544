//! Payloads from a file or a pipe, one JSON value per line. Lines that arrive together share a commit.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::check::check_payload;
use crate::error::Failure;
use crate::read_file::{self, PathOrigin};

/// The most jobs in one commit.
const GROUP_MAX: usize = 1_000;
/// The longest line.
const LINE_MAX_BYTES: usize = 16 * 1024 * 1024;
/// How much is read ahead. Only lines in the buffer can share a commit.
const BUFFER_BYTES: usize = 256 * 1024;

/// Reads lines as they arrive.
pub(super) struct Payloads<R> {
    input: BufReader<R>,
    source: String,
    /// The kind whose input a line is.
    kind: String,
    /// The number of the last line that was read, from 1.
    line: usize,
}

/// Lines that arrived together.
pub(super) struct Group {
    /// Each is valid JSON.
    pub(super) payloads: Vec<String>,
    /// The error of the next line, after which nothing is read.
    pub(super) broken: Option<Failure>,
}

/// Opens a file, or standard input for `-`.
pub(super) fn open(path: &Path, kind: &str) -> Result<Payloads<Box<dyn Read>>, Failure> {
    if path == Path::new("-") {
        return Ok(Payloads::new(Box::new(io::stdin()), "standard input".to_owned(), kind));
    }
    let file = read_file::open(path, PathOrigin::Named)?;
    Ok(Payloads::new(Box::new(file), path.display().to_string(), kind))
}

impl<R: Read> Payloads<R> {
    fn new(input: R, source: String, kind: &str) -> Payloads<R> {
        let input = BufReader::with_capacity(BUFFER_BYTES, input);
        Payloads { input, source, kind: kind.to_owned(), line: 0 }
    }

    /// Waits for a line and takes all lines of the buffer with it. Returns `None` at the end.
    pub(super) fn next_group(&mut self) -> Option<Group> {
        let mut group = Group { payloads: Vec::new(), broken: None };
        while group.payloads.len() < GROUP_MAX && (group.payloads.is_empty() || self.has_line()) {
            match self.next_line() {
                Ok(Some(payload)) => group.payloads.push(payload),
                Ok(None) => break,
                Err(failure) => {
                    group.broken = Some(failure);
                    break;
                }
            }
        }
        let is_over = group.payloads.is_empty() && group.broken.is_none();
        (!is_over).then_some(group)
    }

    fn has_line(&self) -> bool {
        self.input.buffer().contains(&b'\n')
    }

    /// The next line that is not empty.
    fn next_line(&mut self) -> Result<Option<String>, Failure> {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            self.line += 1;
            let mut limited = self.input.by_ref().take(LINE_MAX_BYTES as u64 + 1);
            let read = limited
                .read_until(b'\n', &mut bytes)
                .map_err(|error| self.broken(&format!("cannot be read: {error}")))?;
            if read == 0 {
                return Ok(None);
            }
            if read > LINE_MAX_BYTES {
                let mebibytes = LINE_MAX_BYTES / (1024 * 1024);
                return Err(self.broken(&format!("is longer than {mebibytes} MiB")));
            }
            if !bytes.trim_ascii().is_empty() {
                break;
            }
        }
        let text = bytes.trim_ascii();
        serde_json::from_slice::<serde::de::IgnoredAny>(text).map_err(|error| {
            self.broken(&format!("is not JSON, at column {}: {}", error.column(), reason(&error)))
        })?;
        match std::str::from_utf8(text) {
            Ok(payload) => match check_payload(&self.kind, payload) {
                Ok(()) => Ok(Some(payload.to_owned())),
                Err(failure) => Err(self.refused(&failure)),
            },
            Err(error) => Err(self.broken(&format!("is not UTF-8: {error}"))),
        }
    }

    fn refused(&self, failure: &Failure) -> Failure {
        let (message, help) = failure.parts().unwrap_or_default();
        self.broken(&format!("cannot be used: {message}; {help}"))
    }

    fn broken(&self, reason: &str) -> Failure {
        let line = self.line;
        Failure::usage(
            format!("line {line} of {} {reason}", self.source),
            format!(
                "the lines before it are accepted; correct the line and continue there, for example with \
                 `tail -n +{line} FILE`"
            ),
        )
    }
}

/// The message without its position: the parser counts within the line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split_once(" at line ").map_or(text.clone(), |(reason, _place)| reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payloads(text: &str) -> Payloads<&[u8]> {
        Payloads::new(text.as_bytes(), "a file".to_owned(), "mail")
    }

    #[test]
    fn lines_in_the_buffer_come_together_and_empty_lines_are_skipped() {
        let mut lines = payloads("{\"a\": 1}\n\n  [2]  \n3");
        let group = lines.next_group().expect("a group");
        assert_eq!(group.payloads, ["{\"a\": 1}", "[2]"]);
        // A line without a newline may not be complete yet.
        assert_eq!(lines.next_group().expect("the last line").payloads, ["3"]);
        assert!(lines.next_group().is_none());
    }

    #[test]
    fn a_group_has_a_limit() {
        let text = "1\n".repeat(GROUP_MAX + 1);
        let mut lines = payloads(&text);
        assert_eq!(lines.next_group().expect("a group").payloads.len(), GROUP_MAX);
        assert_eq!(lines.next_group().expect("the rest").payloads.len(), 1);
        assert!(lines.next_group().is_none());
    }

    #[test]
    fn an_invalid_line_is_named_and_the_lines_before_it_are_kept() {
        let long = format!("1\n\"{}\"\n", "x".repeat(LINE_MAX_BYTES));
        for (text, reason) in
            [("1\n\n{x}\n2\n", "line 3 of a file is not JSON"), (&long, "longer than 16 MiB")]
        {
            let mut lines = payloads(text);
            let mut group = lines.next_group().expect("a group");
            assert_eq!(group.payloads, ["1"]);
            if group.broken.is_none() {
                group = lines.next_group().expect("the invalid line");
            }
            let Some(Failure::Usage { message, help }) = group.broken else { panic!("{:?}", group.broken) };
            assert!(message.contains(reason), "{message}");
            assert!(help.contains("the lines before it are accepted"), "{help}");
        }
    }
}

//! The lines that jobs write, as they are shown while a run executes.

use windlass_engine::store::{LogLine, LogStream};

use super::screen::{Chunk, Target};
use crate::text::style::{CYAN, DIM, YELLOW, coloured, paint, printable};

/// The widest column of names.
const MAX_NAME_COLUMNS: usize = 30;

/// How lines are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineStyle {
    /// The width of the names before the lines, if they have names.
    pub(super) name_columns: Option<usize>,
    /// Where the lines of standard output go.
    pub(super) stdout: Target,
}

/// The lines of one job. What the job wrote to standard output goes to the target of the style, all else to standard
/// error.
pub(super) fn chunks(name: &str, lines: &[LogLine], style: LineStyle) -> Vec<Chunk> {
    let prefix = style.name_columns.map(|columns| prefix(name, columns)).unwrap_or_default();
    let mut chunks: Vec<Chunk> = Vec::new();
    for line in lines {
        let target = match line.stream {
            LogStream::Stdout => style.stdout,
            LogStream::Stderr | LogStream::Engine => Target::Stderr,
        };
        let text = format!("{prefix}{}\n", text(line));
        match chunks.last_mut().filter(|last| last.target == target) {
            Some(last) => last.text.push_str(&text),
            None => chunks.push(Chunk { target, text }),
        }
    }
    chunks
}

/// One line without its name.
pub(super) fn text(line: &LogLine) -> String {
    match line.stream {
        LogStream::Stdout | LogStream::Stderr => coloured(&line.text).into_owned(),
        LogStream::Engine => paint(YELLOW, format!("[windlass] {}", printable(&line.text))),
    }
}

fn prefix(name: &str, columns: usize) -> String {
    let name = printable(name);
    let padded = console::pad_str(&name, columns.min(MAX_NAME_COLUMNS), console::Alignment::Left, None);
    format!("{} {} ", paint(CYAN, padded), paint(DIM, "|"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstream::adapter::strip_str;

    fn line(line: i64, stream: LogStream, text: &str) -> LogLine {
        LogLine { job_id: 1, attempt: 1, line, at: 0, stream, text: text.to_owned() }
    }

    #[test]
    fn lines_go_where_the_job_wrote_them() {
        let lines = [
            line(1, LogStream::Stdout, "one"),
            line(2, LogStream::Stdout, "two"),
            line(3, LogStream::Stderr, "three"),
            line(4, LogStream::Engine, "four"),
        ];
        let found = |style| -> Vec<(Target, String)> {
            chunks("a", &lines, style)
                .into_iter()
                .map(|chunk| (chunk.target, strip_str(&chunk.text).to_string()))
                .collect()
        };
        let plain = LineStyle { name_columns: None, stdout: Target::Stdout };
        let expected = [
            (Target::Stdout, "one\ntwo\n".to_owned()),
            (Target::Stderr, "three\n[windlass] four\n".to_owned()),
        ];
        assert_eq!(found(plain), expected);
        let named = LineStyle { name_columns: Some(3), stdout: Target::Stderr };
        let text = "a   | one\na   | two\na   | three\na   | [windlass] four\n".to_owned();
        assert_eq!(found(named), [(Target::Stderr, text)]);
    }
}

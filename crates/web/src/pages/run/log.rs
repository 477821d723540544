//! The output of a job: a window of its lines, opened at the first error.

use askama::Template;
use windlass_engine::store::{LogLine, LogStream};

use crate::pages::escape::without_terminal_sequences;
use crate::pages::times::Times;

/// So many lines are written into the page; the script and links show others.
pub const LINES_OF_WINDOW: i64 = 400;
/// So many lines before the first error are shown with it.
pub const LINES_BEFORE_ERROR: i64 = 12;
/// Lines below the first error that belong to it at most, for their mark.
const ERROR_LINES_MAX: i64 = 40;

/// What the page knows of the output of one attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogData {
    /// The attempt.
    pub attempt: i64,
    /// All attempts with output or without.
    pub attempts: i64,
    /// The lines of the window.
    pub lines: Vec<LogLine>,
    /// The number of the last line of the attempt; 0 without output.
    pub last_line: i64,
    /// The number of the first error's line.
    pub first_error: Option<i64>,
    /// The line that the address names.
    pub asked_line: Option<i64>,
    /// The text that is looked for, and the numbers of the lines that have it.
    pub found: Option<(String, Vec<i64>)>,
    /// Whether the job may still write.
    pub is_open: bool,
}

/// The output as it is shown.
pub(super) struct LogPanel {
    pub(super) attempt: i64,
    pub(super) attempts: Vec<i64>,
    pub(super) lines: Vec<ShownLine>,
    /// How many lines are before the window, and the first line of the window before it.
    pub(super) before: Option<(i64, i64)>,
    /// How many lines are after the window, and the first line of the window after it.
    pub(super) after: Option<(i64, i64)>,
    pub(super) find: String,
    pub(super) hits: Option<String>,
    /// The line with the next hit behind the first line of the window.
    pub(super) next_hit: Option<i64>,
    pub(super) empty: Option<&'static str>,
    pub(super) is_open: bool,
    pub(super) last_line: i64,
}

/// A line by itself, for a page that is open.
#[derive(Template)]
#[template(path = "line.html")]
struct LineOfPage {
    line: ShownLine,
}

/// A line as the page has it.
#[must_use]
pub fn line_html(line: &LogLine, times: &Times) -> String {
    let data = LogData::default();
    // It is written into memory.
    LineOfPage { line: shown(line, &data, "", times) }.render().unwrap_or_default()
}

/// A line.
pub(super) struct ShownLine {
    pub(super) number: i64,
    pub(super) time: String,
    pub(super) parts: Vec<LinePart>,
    pub(super) class: &'static str,
    pub(super) stream: &'static str,
}

/// A part of a line.
pub(super) struct LinePart {
    pub(super) text: String,
    pub(super) is_hit: bool,
}

impl LogPanel {
    pub(super) fn new(data: &LogData, times: &Times) -> LogPanel {
        let find = data.found.as_ref().map_or("", |(find, _)| find.as_str());
        let first = data.lines.first().map(|line| line.line);
        let last = data.lines.last().map(|line| line.line);
        let before =
            first.filter(|first| *first > 1).map(|first| (first - 1, (first - LINES_OF_WINDOW).max(1)));
        let after = last.filter(|last| *last < data.last_line).map(|last| (data.last_line - last, last + 1));
        LogPanel {
            attempt: data.attempt,
            attempts: (1..=data.attempts).rev().take(50).collect(),
            lines: data.lines.iter().map(|line| shown(line, data, find, times)).collect(),
            before,
            after,
            hits: data.found.as_ref().map(|(_, lines)| hits(lines, data)),
            next_hit: data.found.as_ref().and_then(|(_, lines)| next_hit(lines, data)),
            find: find.to_owned(),
            empty: data.lines.is_empty().then_some(match (data.is_open, data.attempts) {
                (_, 0) => "It has not started, so there is no output.",
                (true, _) => "It has written nothing yet.",
                (false, _) => "This attempt has written nothing.",
            }),
            is_open: data.is_open,
            last_line: data.last_line,
        }
    }
}

/// `2 of 5`: which hit the window begins with.
fn hits(lines: &[i64], data: &LogData) -> String {
    let at = data.asked_line.and_then(|line| lines.iter().position(|hit| *hit >= line)).unwrap_or(0);
    match lines.len() {
        0 => "not found".to_owned(),
        count => format!("{} of {count}", at + 1),
    }
}

fn next_hit(lines: &[i64], data: &LogData) -> Option<i64> {
    let at = data.asked_line.unwrap_or(0);
    lines.iter().copied().find(|hit| *hit > at).or(lines.first().copied())
}

fn shown(line: &LogLine, data: &LogData, find: &str, times: &Times) -> ShownLine {
    let is_first = data.first_error == Some(line.line);
    let is_near = data.first_error.is_some_and(|error| {
        line.line > error && line.line <= error + ERROR_LINES_MAX && line.stream == LogStream::Stderr
    });
    let is_asked = data.asked_line == Some(line.line) && !is_first;
    let class = match (line.stream, is_first, is_near, is_asked) {
        (_, true, _, _) => "first",
        (_, _, _, true) => "asked",
        (LogStream::Engine, ..) => "g",
        (LogStream::Stdout | LogStream::Stderr, _, true, _) => "e",
        (LogStream::Stdout | LogStream::Stderr, ..) => "",
    };
    ShownLine {
        number: line.line,
        time: times.millisecond(line.at),
        parts: parts(&without_terminal_sequences(&line.text), find),
        class,
        stream: line.stream.as_str(),
    }
}

/// Splits a text at the hits. The case of ASCII letters does not matter.
fn parts(text: &str, find: &str) -> Vec<LinePart> {
    let part = |text: &str, is_hit| LinePart { text: text.to_owned(), is_hit };
    if find.is_empty() {
        return vec![part(text, false)];
    }
    let (lower, find) = (text.to_ascii_lowercase(), find.to_ascii_lowercase());
    let (mut parts, mut at) = (Vec::new(), 0);
    while let Some(found) = lower[at..].find(&find) {
        if found > 0 {
            parts.push(part(&text[at..at + found], false));
        }
        parts.push(part(&text[at + found..at + found + find.len()], true));
        at += found + find.len();
    }
    if at < text.len() || parts.is_empty() {
        parts.push(part(&text[at..], false));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: i64, text: &str) -> LogLine {
        LogLine {
            job_id: 1,
            attempt: 1,
            line: number,
            at: 0,
            stream: LogStream::Stderr,
            text: text.to_owned(),
        }
    }

    #[test]
    fn hits_are_marked_in_any_case() {
        let texts = |text, find| -> Vec<(String, bool)> {
            parts(text, find).into_iter().map(|part| (part.text, part.is_hit)).collect()
        };
        let owned = |parts: &[(&str, bool)]| -> Vec<(String, bool)> {
            parts.iter().map(|(text, hit)| ((*text).to_owned(), *hit)).collect()
        };
        assert_eq!(
            texts("a Refused b refused", "REFUSED"),
            owned(&[("a ", false), ("Refused", true), (" b ", false), ("refused", true)])
        );
        assert_eq!(texts("ü", "x"), owned(&[("ü", false)]));
        assert_eq!(texts("", "x"), owned(&[("", false)]));
    }

    #[test]
    fn a_window_says_what_is_before_and_after_it() {
        let data = LogData {
            attempt: 2,
            attempts: 2,
            lines: vec![line(600, "a"), line(601, "b")],
            last_line: 700,
            first_error: Some(601),
            found: Some(("b".to_owned(), vec![601, 650])),
            asked_line: Some(601),
            ..LogData::default()
        };
        let panel = LogPanel::new(&data, &Times { zone: chrono_tz::Tz::UTC, now_ms: 0 });
        assert_eq!((panel.before, panel.after), (Some((599, 200)), Some((99, 602))));
        assert_eq!((panel.hits.as_deref(), panel.next_hit), (Some("1 of 2"), Some(650)));
        assert_eq!(panel.lines.iter().map(|line| line.class).collect::<Vec<_>>(), ["", "first"]);
        assert_eq!(panel.attempts, [2, 1]);
    }
}

//! The output of a job: a window of its lines, opened at the first error.

use askama::Template;
use windlass_engine::store::{LogLine, LogStream};

use super::RunQuery;
use crate::pages::escape::without_terminal_sequences;
use crate::pages::times::{Times, grouped};

/// So many lines are written into the page; the script and links show others.
pub const LINES_OF_WINDOW: i64 = 400;
/// The first error is looked for in so many lines from the beginning, and a text too.
pub const LINES_READ_MAX: i64 = 50_000;
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
    /// The number and the text of the first error's line, looked for in what failed.
    pub first_error: Option<(i64, String)>,
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
    /// How many lines are before the window, and the address of the window before it.
    pub(super) before: Option<(i64, String)>,
    /// How many lines are after the window, and the address of the window after it.
    pub(super) after: Option<(i64, String)>,
    /// The address of the last lines.
    pub(super) end: String,
    pub(super) find: String,
    pub(super) hits: Option<String>,
    /// The addresses of the hits before and after this one, if there are several.
    pub(super) other_hits: Option<[String; 2]>,
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
    let query = RunQuery::default().of_job(line.job_id);
    // It is written into memory.
    LineOfPage { line: shown(line, &data, &RunQuery { attempt: Some(line.attempt), ..query }, times) }
        .render()
        .unwrap_or_default()
}

/// A line.
pub(super) struct ShownLine {
    pub(super) number: i64,
    /// An address that shows the same line to others.
    pub(super) href: String,
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
    /// `query` shows the job, without a part of its output. The addresses are relative to the page of the run.
    pub(super) fn new(data: &LogData, query: &RunQuery, times: &Times) -> LogPanel {
        let query = RunQuery { attempt: Some(data.attempt), ..query.clone() };
        let of_lines = RunQuery { find: data.found.as_ref().map(|(find, _)| find.clone()), ..query.clone() };
        let window = |from: i64| RunQuery { from: Some(from.max(1)), ..query.clone() }.to_query();
        let first = data.lines.first().map(|line| line.line);
        let last = data.lines.last().map(|line| line.line);
        let before = first
            .filter(|first| *first > 1)
            .map(|first| (first - 1, format!("{}#job", window(first - LINES_OF_WINDOW))));
        let after = last
            .filter(|last| *last < data.last_line)
            .map(|last| (data.last_line - last, format!("{}#job", window(last + 1))));
        let find = data.found.as_ref().map_or("", |(find, _)| find.as_str());
        LogPanel {
            attempt: data.attempt,
            attempts: (1..=data.attempts).rev().take(50).collect(),
            lines: data.lines.iter().map(|line| shown(line, data, &of_lines, times)).collect(),
            before,
            after,
            end: format!("{}#L{}", window(data.last_line - LINES_OF_WINDOW + 1), data.last_line),
            hits: data.found.as_ref().map(|(_, lines)| hits(lines, data)),
            other_hits: data.found.as_ref().and_then(|(_, lines)| other_hits(lines, data, &of_lines)),
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

/// `2 of 5`: which hit is shown.
fn hits(lines: &[i64], data: &LogData) -> String {
    let at = lines.iter().position(|hit| data.asked_line == Some(*hit)).unwrap_or(0);
    let searched = match data.last_line > LINES_READ_MAX {
        true => format!(", in the first {} lines", grouped(LINES_READ_MAX)),
        false => String::new(),
    };
    match lines.len() {
        0 => format!("not found{searched}"),
        count => format!("{} of {count}{searched}", at + 1),
    }
}

/// The hit before this one and the one after it. After the last one comes the first one.
fn other_hits(lines: &[i64], data: &LogData, query: &RunQuery) -> Option<[String; 2]> {
    let at = lines.iter().position(|hit| data.asked_line == Some(*hit))?;
    let count = lines.len();
    let href = |line: i64| format!("{}#L{line}", RunQuery { line: Some(line), ..query.clone() }.to_query());
    (count > 1).then(|| [href(lines[(at + count - 1) % count]), href(lines[(at + 1) % count])])
}

/// `query` shows the output, with the text that is looked for.
fn shown(line: &LogLine, data: &LogData, query: &RunQuery, times: &Times) -> ShownLine {
    let find = query.find.as_deref().unwrap_or_default();
    let own = RunQuery { line: Some(line.line), find: None, ..query.clone() };
    let first_error = data.first_error.as_ref().map(|(line, _text)| *line);
    let is_first = first_error == Some(line.line);
    let is_near = first_error.is_some_and(|error| {
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
        href: format!("{}#L{}", own.to_query(), line.line),
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
            first_error: Some((601, "Error: no space left".to_owned())),
            found: Some(("b".to_owned(), vec![150, 601, 650])),
            asked_line: Some(601),
            ..LogData::default()
        };
        let times = Times { zone: chrono_tz::Tz::UTC, now_ms: 0 };
        let panel = LogPanel::new(&data, &RunQuery::default().of_job(1), &times);
        let at = |query: &str| format!("?job=1&attempt=2&{query}");
        assert_eq!(
            (panel.before, panel.after),
            (Some((599, at("from=200#job"))), Some((99, at("from=602#job"))))
        );
        assert_eq!(panel.hits.as_deref(), Some("2 of 3"));
        let hits = ["line=150&find=b#L150", "line=650&find=b#L650"];
        assert_eq!(panel.other_hits, Some(hits.map(at)));
        assert_eq!((panel.end, &panel.lines[0].href), (at("from=301#L700"), &at("line=600#L600")));
        assert_eq!(panel.lines.iter().map(|line| line.class).collect::<Vec<_>>(), ["", "first"]);
        assert_eq!(panel.attempts, [2, 1]);
    }
}

//! Where the output of a program begins to say what went wrong.
//!
//! A line is taken if its form is that of an error in some language or tool, or if its level says so. If there is none, the
//! first line is taken whose words speak of a failure. Lines of a lower level are never taken: what a program warns of and
//! goes on after is not what ended it.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

/// After a Python traceback, its error is looked for in so many lines.
const TRACEBACK_LINES_MAX: usize = 400;

/// Characters of a line that an error message repeats, at most.
const SUMMARY_CHARS: usize = 300;

/// Where an output begins to say what went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstError {
    /// The index of the line.
    pub at: usize,
    /// How sure it is that the line is an error.
    pub certainty: Certainty,
}

/// How sure it is that a line is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// Its form or its level says so.
    Certain,
    /// Its words speak of a failure.
    Likely,
}

/// The first error among the lines of an output; `None` if no line speaks of one.
///
/// ```
/// use windlass_system::first_error::{first_error, summary};
///
/// let lines = ["2026-11-22 07:42:00 INFO connecting", "2026-11-22 07:42:01 ERROR refused", "INFO the end"];
/// let found = first_error(&lines).unwrap();
/// assert_eq!(found.at, 1);
/// assert_eq!(summary(&lines, found.at), "ERROR refused");
/// ```
#[must_use]
pub fn first_error(lines: &[&str]) -> Option<FirstError> {
    let certain = |at| Some(FirstError { at, certainty: Certainty::Certain });
    let mut words = None;
    for (at, line) in lines.iter().enumerate() {
        if line.len() < 4 {
            continue;
        }
        let line = head(line);
        if TRACEBACK.is_match(line) {
            return certain(error_of_traceback(lines, at));
        }
        match level(line) {
            Level::Error => return certain(at),
            Level::Lower => {}
            Level::None if FORMS.is_match(line) => return certain(at),
            Level::None => {
                if words.is_none() && WORDS.is_match(line) && !NO_ERRORS.is_match(line) {
                    words = Some(FirstError { at, certainty: Certainty::Likely });
                }
            }
        }
    }
    words
}

/// What a line says, for an error message: without the time at its beginning, so that the same error is the same text each time,
/// and at most 300 characters of it. A panic of Rust says it on its next line. Of a JSON object it is the message, and the error.
#[must_use]
pub fn summary(lines: &[&str], at: usize) -> String {
    let line = lines.get(at).copied().unwrap_or_default();
    let line = match lines.get(at + 1) {
        Some(message) if RUST_PANIC.is_match(head(line)) && !message.trim().is_empty() => message,
        Some(_) | None => line,
    };
    let line = line.trim();
    if let Some(message) = message_of_json(line) {
        return message.chars().take(SUMMARY_CHARS).collect();
    }
    let start = TIME.find(line).map_or(0, |time| time.end());
    line[start..].chars().take(SUMMARY_CHARS).collect()
}

/// The message and the error of a line of a log in JSON.
fn message_of_json(line: &str) -> Option<String> {
    if !line.starts_with('{') {
        return None;
    }
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).ok()?;
    let text = |names: [&str; 2]| {
        let found = names.into_iter().find_map(|name| fields.get(name)?.as_str());
        found.map(str::trim).filter(|text| !text.is_empty())
    };
    match (text(["msg", "message"]), text(["error", "err"])) {
        (Some(message), Some(error)) if !message.contains(error) => Some(format!("{message}: {error}")),
        (Some(text), _) | (None, Some(text)) => Some(text.to_owned()),
        (None, None) => None,
    }
}

/// The beginning of a line, which has the form.
fn head(line: &str) -> &str {
    const HEAD_BYTES: usize = 600;
    match line.len() <= HEAD_BYTES {
        true => line,
        false => &line[..line.floor_char_boundary(HEAD_BYTES)],
    }
}

/// The line below a traceback that is not indented, which has the error. Without one it is the traceback itself.
fn error_of_traceback(lines: &[&str], traceback: usize) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = indent(lines[traceback]);
    let below = lines.iter().enumerate().skip(traceback + 1).take(TRACEBACK_LINES_MAX);
    below
        .filter(|(_, line)| !line.trim().is_empty())
        .find(|(_, line)| indent(line) <= own && !line.trim_start().starts_with("File \""))
        .map_or(traceback, |(at, _)| at)
}

/// What a line says about its own weight.
enum Level {
    Error,
    Lower,
    None,
}

/// The level that stands near the beginning of a line, as most loggers write it.
fn level(line: &str) -> Level {
    let Some(found) = LEVEL.captures(line) else { return Level::None };
    let word = found.iter().skip(1).flatten().next().map_or("", |word| word.as_str());
    match word.to_ascii_lowercase().as_str() {
        "error" | "err" | "fatal" | "critical" | "crit" | "severe" | "emerg" | "alert" | "panic" => {
            Level::Error
        }
        _lower => Level::Lower,
    }
}

/// A panic whose message stands on the next line.
static RUST_PANIC: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^thread '[^']*' (?:\(\d+\) )?panicked at \S+:\d+:\d+:$"));

/// A time at the beginning of a line, with or without the day; or the field with the time.
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"^\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?:?\s+|^(?:time|ts|timestamp)=(?:"[^"]*"|\S*)\s+"#,
    )
});

static TRACEBACK: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*Traceback \(most recent call last\):"));

static LEVEL: LazyLock<Regex> = LazyLock::new(|| {
    let names = "trace|debug|info|notice|warn|warning|error|err|fatal|critical|crit|severe|emerg|alert|panic";
    let upper = names.to_ascii_uppercase();
    regex(&format!(
        // JSON; logfmt; a word in capitals after a time and a few names; `[error]`; `2026/11/22 07:42:00 error: `.
        r#"(?:^|[{{,\s])"(?:level|severity|lvl|log\.level)"\s*:\s*"((?i:{names}))"|(?:^|\s)(?:level|lvl|severity)=(?i:"?({names})\b)|^[^\w"']{{0,8}}(?:\S{{0,40}}[\[\]:.,\d(/=-]\S{{0,40}}\s+){{0,5}}?\[?\b({upper})\b[\]:| ]|^[^a-zA-Z]{{0,40}}\[((?i:{names}))\]"#
    ))
});

/// The forms of errors, one a line, with the languages and tools that write them.
static FORMS: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        // Rust: a panic.
        r"^thread '[^']*' (?:\(\d+\) )?panicked at ",
        // rustc, git, clang and many tools; `Error: ` of Rust and JavaScript.
        r"^(?:error(?:\[\w+\])?|Error|fatal|FATAL): \S",
        // Go.
        r"^(?:panic|fatal error|fatal): \S",
        r"^\s*--- FAIL: ",
        r"^\S+\.go:\d+:\d+: ",
        // Java.
        r#"^Exception in thread ""#,
        r"^\s*\S+\.(?:java|kt|scala):\d+: error: ",
        // Java, Python, C#: the full name of an error.
        r"^(?:Caused by: )?(?:[A-Za-z_]\w*[.:]+)+[A-Z]\w*(?:Exception|Error|Failure|Fault|Timeout|Interrupt)(?::|$)",
        // JavaScript, Python: an error without a path.
        r"^(?:Uncaught )?(?:[A-Z]\w*(?:Error|Exception))(?: \[\w+\])?:(?: |$)",
        r"^npm (?:ERR!|error)",
        // TypeScript and MSBuild.
        r"\(\d+,\d+\): error ",
        // Ruby.
        r"^\S+\.rb:\d+:in .*\([A-Z]\w*(?:::\w+)*\)$",
        // C, C++ and everything that reports as they do.
        r"^\S+?:\d+(?::\d+)?: (?:fatal )?error: ",
        r"(?:^|: )undefined reference to ",
        r"^(?:\S+: )?Segmentation fault|^Aborted(?: \(core dumped\))?$|^Killed$|^Bus error",
        r"^(?:g?make)(?:\[\d+\])?: \*\*\* ",
        r"Assertion [`'].*' failed",
        r"==\d+==\s*ERROR: ",
        // Shells, and the programs that they call.
        r"^\S+: line \d+: .*\S",
        r"^\S*sh: \d+: .+: (?:not found|Permission denied|[Cc]annot |Syntax error|Bad |No such)",
        r": command not found$",
        r"^[\w./+-]+: (?:.*: )?(?:cannot |can't |unable to |No such file or directory|Permission denied|Is a directory|Not a directory|Connection refused|No space left on device|Operation not permitted|Cannot allocate memory)",
        r"^curl: \(\d+\) ",
        r"^(?:ssh|scp|rsync|tar|wget|gzip|sudo|docker|podman|kubectl|aws|terraform|psql|mysql|pg_dump)(?:\[\d+\])?: .*(?i:error|fail|fatal|refused|denied|not found|unable)",
        // SQL shells.
        r"^(?:psql:\S+ )?ERROR:\s",
        r"^ERROR \d+ \(",
        // PHP, Perl, C#, pytest, Erlang.
        r"^(?:PHP )?(?:Fatal error|Parse error|Uncaught \w+): ",
        r"^\S.* at \S+ line \d+\.$",
        r"^Unhandled exception",
        r"^E   +\S",
        r"^(?:FAILED|FAIL) \S+",
        r"^\*\* \(\w+\) ",
    ])
});

static WORDS: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:errors?|failed|failure|exception|fatal|cannot|could not|unable to|refused|denied|not found|no such file|timed out|timeout|aborted|aborting|killed|out of memory|unauthorized|forbidden|rejected|invalid)\b",
    )
});

static NO_ERRORS: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:0|no|without|zero) (?:\w+ )?(?:errors?|failures?|failed|exceptions?|timeouts?|invalid|rejected|refused|denied|aborted|killed)\b|\b(?:errors?|failures?|failed|invalid|rejected|refused|denied|aborted|killed)\s*[:=]\s*0\b|\bon_?error\b|--\w*-?error|error_?(?:count|rate|handl)|\.\.\. ok$",
    )
});

#[allow(clippy::unwrap_used)] // The patterns are constants, and each is compiled in a test.
fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

#[allow(clippy::unwrap_used)] // As above.
fn set(patterns: &[&str]) -> RegexSet {
    RegexSet::new(patterns).unwrap()
}

#[cfg(test)]
mod tests {
    use super::{Certainty, FirstError, first_error, summary};

    fn found(lines: &[&'static str]) -> Option<&'static str> {
        first_error(lines).map(|found| lines[found.at])
    }

    #[test]
    fn a_summary_has_no_time() {
        for time in [
            "2026-11-22 07:42:01,000 ",
            "2026-11-22T07:42:01Z ",
            "2026/11/22 07:42:01 ",
            "[2026-11-22T07:42:01.123456+01:00] ",
            "07:42:01.000 ",
            "  07:42:01: ",
            "time=2026-11-22T07:42:01Z ",
            "ts=\"2026-11-22 07:42:01\" ",
            "",
        ] {
            assert_eq!(summary(&[&format!("{time}ERROR gave up")], 0), "ERROR gave up", "{time}");
        }
        assert_eq!(summary(&["07:42:01"], 0), "07:42:01", "there is nothing else");
        assert_eq!(summary(&["ü".repeat(900).as_str()], 0).chars().count(), 300);
        assert_eq!(summary(&[], 0), "");
    }

    #[test]
    fn the_summary_of_a_line_in_json_is_its_message() {
        let cases = [
            (r#"{"time":"x","level":"error","msg":"no host","n":3}"#, "no host"),
            (
                r#"{"level":"error","message":"upload failed","error":"timed out"}"#,
                "upload failed: timed out",
            ),
            (r#"{"level":"error","msg":"upload: timed out","err":"timed out"}"#, "upload: timed out"),
            (r#"{"level":"error","error":"timed out"}"#, "timed out"),
            (
                r#"{"level":"error","msg":" ","error":{"code":3}}"#,
                r#"{"level":"error","msg":" ","error":{"code":3}}"#,
            ),
            (r#"{"level":"error","msg":"cut"#, r#"{"level":"error","msg":"cut"#),
        ];
        for (line, expected) in cases {
            assert_eq!(summary(&[line], 0), expected);
        }
    }

    #[test]
    fn the_summary_of_a_panic_of_rust_is_its_message() {
        let lines = ["thread 'main' (25874) panicked at main.rs:5:21:", "no such row", "note: run with"];
        assert_eq!(summary(&lines, 0), "no such row");
        assert_eq!(summary(&lines[..1], 0), lines[0]);
        let older = ["thread 'main' panicked at 'no such row', main.rs:5:21", "note: run with"];
        assert_eq!(summary(&older, 0), older[0]);
    }

    #[test]
    fn words_are_less_certain_than_forms() {
        let likely = FirstError { at: 1, certainty: Certainty::Likely };
        assert_eq!(first_error(&["begin", "the upload failed"]), Some(likely));
        let certain = FirstError { at: 2, certainty: Certainty::Certain };
        assert_eq!(first_error(&["begin", "the upload failed", "Error: x"]), Some(certain));
    }

    #[test]
    fn a_level_decides_before_words_do() {
        let cases: [&[&str]; 9] = [
            &["INFO retrying after error: refused", "WARN failed once", "ERROR gave up"],
            &["2026-11-22 07:42:00,123 INFO error handler ready", "2026-11-22 07:42:01,000 ERROR boom"],
            &[r#"{"time":"x","level":"info","msg":"error"}"#, r#"{"time":"x","level":"error","msg":"m"}"#],
            &["time=x level=warn msg=\"failed\"", "time=x level=error msg=\"m\""],
            &["[info] failed to warm the cache", "[error] open() failed"],
            &["2026-11-22T07:42:00Z  WARN app::db: error", "2026-11-22T07:42:00Z ERROR app::db: m"],
            &["07:42:00.000 [main] INFO  c.e.App - errors: 3", "07:42:00.000 [main] ERROR c.e.App - m"],
            &["DEBUG:root:error", "ERROR:root:m"],
            &["app[12]: WARNING: failed", "app[12]: CRITICAL: m"],
        ];
        for lines in cases {
            assert_eq!(found(lines), lines.last().copied());
        }
    }

    #[test]
    fn words_count_only_if_nothing_has_the_form_of_an_error() {
        assert_eq!(found(&["the upload failed", "rest"]), Some("the upload failed"));
        assert_eq!(found(&["the upload failed", "Error: x"]), Some("Error: x"));
        for calm in [
            "0 errors, 0 failed",
            "no error found",
            "errors: 0",
            "0 rows rejected, denied=0",
            "test on_error ... ok",
            "all is well",
            "",
        ] {
            assert_eq!(found(&[calm]), None, "{calm}");
        }
    }

    #[test]
    fn long_and_odd_lines_are_read_too() {
        let long = format!("Error: {}", "ü".repeat(5_000));
        assert_eq!(first_error(&["", "\u{0}", &long]).map(|found| found.at), Some(2));
        assert_eq!(first_error(&["Traceback (most recent call last):"]).map(|found| found.at), Some(0));
        assert_eq!(first_error(&[]), None);
    }
}

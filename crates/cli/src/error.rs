//! What can go wrong for a user, in words, and the one place that turns it into an exit code.
//!
//! Every failure says what happened, where, and what to do next. Outcomes of runs are failures
//! too: the command did its work, but a script must be able to tell "failed" from "successful".

mod engine;
mod file;
#[cfg(feature = "postgres")]
mod server;

use std::io;
use std::path::Path;

use anstyle::{AnsiColor, Style};

use crate::output;

/// Why a command did not end as wished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The command line asks for something that makes no sense.
    Usage { message: String, help: String },
    /// A workflow file has errors; the report shows the places.
    InvalidWorkflow { report: String, help: String },
    /// Files were checked and some are invalid; each was reported already.
    InvalidFiles { message: Option<String> },
    /// Parameters that the workflow does not take as they are given.
    InvalidParameters { message: String, help: String },
    /// The state of a run or job does not allow it.
    Conflict { message: String, help: String },
    /// A file that cannot be read or written.
    File { message: String, help: String },
    /// What was asked for is not there.
    NotFound { message: String, help: String },
    /// The database cannot be used.
    Database { message: String, help: String },
    /// The database can be read, but its content is damaged; the problems were printed.
    DamagedDatabase { message: String, help: String },
    /// A run or a job ended FAILED; the summary was printed already.
    RunFailed,
    /// `doctor` found problems; they were printed already.
    ProblemsFound,
    /// A run or a job ended CANCELLED; the summary was printed already.
    RunCancelled,
    /// A run reached its timeout; the summary was printed already.
    RunTimedOut,
    /// A signal ended the command before the work was done.
    Interrupted { message: String, resume: String },
    /// Whoever read standard output stopped reading: they have what they wanted.
    ClosedPipe,
    /// Standard output cannot be written, for example because the disk is full.
    Output { message: String, help: String },
    /// The engine broke one of its own rules.
    Internal { message: String, help: String },
}

impl Failure {
    /// A failure of how the command was called.
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Usage { message: message.into(), help: help.into() }
    }

    /// Something that is not there.
    pub(crate) fn not_found(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::NotFound { message: message.into(), help: help.into() }
    }

    /// A file that could not be read, with the reason and what to do about it.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Failure {
        let path = path.display();
        let kind = error.kind();
        let (message, help) = if kind == io::ErrorKind::NotFound {
            (
                format!("the file {path} does not exist"),
                "check the spelling, and the folder you are in".to_owned(),
            )
        } else if kind == io::ErrorKind::PermissionDenied {
            (
                format!("the file {path} may not be read: permission denied"),
                format!("`ls -l {path}` shows who may; `chmod u+r {path}` allows it"),
            )
        } else if kind == io::ErrorKind::IsADirectory {
            (
                format!("{path} is a directory, not a file"),
                format!("name a file in it, for example {path}/workflow.toml"),
            )
        } else {
            (
                format!("the file {path} cannot be read: {error}"),
                "check the path and the disk, then try again".to_owned(),
            )
        };
        Failure::File { message, help }
    }

    /// A failure of writing to standard output.
    pub(crate) fn from_output(error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::ClosedPipe;
        }
        Failure::Output {
            message: format!("standard output cannot be written: {error}"),
            help: "check where it goes; what the command did is kept in the database".to_owned(),
        }
    }

    /// The operating system gives this process no thread, or none of what else it needs.
    pub(crate) fn no_resources(why: &str) -> Failure {
        let (message, help) = out_of_resources(why);
        Failure::Database { message, help }
    }

    /// The exit code: a public promise, documented in `windlass --help`.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::ClosedPipe => 0,
            Failure::RunFailed
            | Failure::ProblemsFound
            | Failure::Output { .. }
            | Failure::Internal { .. } => 1,
            Failure::Usage { .. }
            | Failure::InvalidWorkflow { .. }
            | Failure::InvalidFiles { .. }
            | Failure::InvalidParameters { .. }
            | Failure::Conflict { .. }
            | Failure::File { .. } => 2,
            Failure::RunCancelled => 3,
            Failure::RunTimedOut => 4,
            Failure::NotFound { .. } => 5,
            Failure::Database { .. } | Failure::DamagedDatabase { .. } => 6,
            Failure::Interrupted { .. } => 130,
        }
    }

    /// The text for standard error, or nothing when all was said before.
    fn text(&self) -> Option<String> {
        match self {
            Failure::ClosedPipe
            | Failure::RunFailed
            | Failure::ProblemsFound
            | Failure::RunCancelled
            | Failure::RunTimedOut => None,
            Failure::InvalidFiles { message } => message.as_deref().map(labelled_error),
            Failure::InvalidWorkflow { report, help } => {
                Some(format!("{}\n\n{}", report.trim_end(), labelled_help(help)))
            }
            Failure::Interrupted { message, resume } => Some(format!("{message}\nresume with: {resume}")),
            Failure::Usage { message, help }
            | Failure::InvalidParameters { message, help }
            | Failure::Conflict { message, help }
            | Failure::File { message, help }
            | Failure::NotFound { message, help }
            | Failure::Database { message, help }
            | Failure::DamagedDatabase { message, help }
            | Failure::Output { message, help }
            | Failure::Internal { message, help } => {
                Some(format!("{}\n\n{}", labelled_error(message), labelled_help(help)))
            }
        }
    }

    /// The text without colours, for a log.
    pub(crate) fn plain(&self) -> String {
        anstream::adapter::strip_str(&self.text().unwrap_or_default()).to_string()
    }

    /// Says it on standard error. A closed standard error is no reason to fail differently.
    pub(crate) fn say(&self) {
        if let Some(text) = self.text() {
            output::note(&text);
        }
    }

    /// What was wrong and what to do, for a program that reads both.
    pub(crate) fn parts(&self) -> Option<(&str, &str)> {
        match self {
            Failure::ClosedPipe
            | Failure::RunFailed
            | Failure::ProblemsFound
            | Failure::RunCancelled
            | Failure::RunTimedOut
            | Failure::InvalidFiles { .. } => None,
            Failure::InvalidWorkflow { report, help } => Some((report, help)),
            Failure::Usage { message, help }
            | Failure::InvalidParameters { message, help }
            | Failure::Conflict { message, help }
            | Failure::File { message, help }
            | Failure::NotFound { message, help }
            | Failure::Database { message, help }
            | Failure::DamagedDatabase { message, help }
            | Failure::Interrupted { message, resume: help }
            | Failure::Output { message, help }
            | Failure::Internal { message, help } => Some((message, help)),
        }
    }
}

/// The tables of a database are newer than this program.
fn newer_version(database: &str, found: i64, supported: i64) -> (String, String) {
    (
        format!(
            "{database} was made by a newer windlass: its tables have version {found}, and this program knows \
             versions up to {supported}"
        ),
        format!("use a newer windlass than {}; nothing was changed", env!("CARGO_PKG_VERSION")),
    )
}

/// What to do where the operating system gives a process no more.
pub(crate) const RAISE_LIMITS: &str = "raise the limit that is reached: open files (`ulimit -n`, LimitNOFILE= of a \
    systemd unit), processes and threads (`ulimit -u`, TasksMax=, the pids limit of a container), memory, or room in \
    the folder for temporary files (TMPDIR)";

/// The operating system gives this process no more.
fn out_of_resources(why: &str) -> (String, String) {
    (format!("this process lacks what it needs: {why}"), RAISE_LIMITS.to_owned())
}

/// The engine of this process had ended.
fn closed(database: &str, hint: impl Fn(&str) -> String) -> (String, String) {
    (
        format!("the database {database} was closed while it was needed"),
        format!("`{}` carries on what is unfinished", hint("resume")),
    )
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default().bold();

fn labelled_error(message: &str) -> String {
    format!("{ERROR}error:{ERROR:#} {message}")
}

/// The next step, indented; lines after the first stay under it.
fn labelled_help(help: &str) -> String {
    let lines = help.replace('\n', "\n        ");
    format!("  {HELP}help:{HELP:#} {lines}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_message_has_a_label_and_a_next_step() {
        let failure = Failure::not_found("run 7 does not exist", "`windlass runs` lists them");
        let text = anstream::adapter::strip_str(&failure.text().unwrap()).to_string();
        assert_eq!(text, "error: run 7 does not exist\n\n  help: `windlass runs` lists them");
    }

    #[test]
    fn unreadable_files_are_told_apart() {
        let cases = [
            (io::ErrorKind::NotFound, "does not exist"),
            (io::ErrorKind::PermissionDenied, "permission denied"),
            (io::ErrorKind::IsADirectory, "is a directory"),
            (io::ErrorKind::TimedOut, "cannot be read"),
        ];
        for (kind, expected) in cases {
            let failure = Failure::unreadable(Path::new("x.toml"), &io::Error::from(kind));
            let text = failure.text().unwrap();
            assert!(text.contains(expected), "{kind:?}: {text}");
            assert!(text.contains("x.toml"), "{kind:?}: {text}");
            assert_eq!(failure.exit_code(), 2);
        }
    }

    #[test]
    fn a_closed_pipe_is_success_and_silent() {
        let failure = Failure::from_output(&io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(failure.exit_code(), 0);
        assert_eq!(failure.text(), None);
    }
}

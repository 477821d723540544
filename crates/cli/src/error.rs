//! Every failure of a command: its message, its next step and its exit code.
//!
//! A run that ended FAILED is a failure too: the command did its work, but a script must be able to tell
//! "failed" from "successful".

mod view;

use std::io;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use windlass_views::FileError;
use windlass_workflow::{Colour, Report};

use crate::arguments::OutputFormat;
use crate::stderr;

/// Why a command did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The command line is invalid.
    Usage { message: String, help: String },
    /// A workflow file has errors. The report shows the lines.
    InvalidWorkflow { report: Box<Report>, help: String },
    /// Some of the named files are invalid. People were told about each before, programs get the errors.
    InvalidFiles { message: Option<String>, errors: Vec<FileError> },
    /// The parameters do not fit the workflow.
    InvalidParameters { message: String, help: String },
    /// The state of the run or job does not allow the command.
    Conflict { message: String, help: String },
    /// A file that cannot be read or written.
    File { message: String, help: String },
    /// The run, job, workflow or schedule does not exist.
    NotFound { message: String, help: String },
    /// The database cannot be used.
    Database { message: String, help: String },
    /// The content of the database is damaged. The problems were printed before.
    DamagedDatabase { message: String, help: String },
    /// A run or a job ended FAILED. The summary was printed before.
    RunFailed,
    /// `doctor` found problems. They were printed before.
    ProblemsFound,
    /// Cases of a test file failed. They were printed before.
    CasesFailed,
    /// A run or a job ended CANCELLED. The summary was printed before.
    RunCancelled,
    /// A run reached its timeout. The summary was printed before.
    RunTimedOut,
    /// A signal ended the command before the work was done.
    Interrupted { message: String, resume: String },
    /// The reader of standard output closed it. This is no error.
    ClosedPipe,
    /// Standard output cannot be written, for example because the disk is full.
    Output { message: String, help: String },
    /// A defect of this program.
    Internal { message: String, help: String },
}

impl Failure {
    /// An invalid command line.
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Usage { message: message.into(), help: help.into() }
    }

    /// Something that does not exist.
    pub(crate) fn not_found(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::NotFound { message: message.into(), help: help.into() }
    }

    /// A file that could not be read.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Failure {
        let path = path.display();
        let kind = error.kind();
        let (message, help) = if kind == io::ErrorKind::NotFound {
            (
                format!("the file {path} does not exist"),
                "check the spelling and the current folder".to_owned(),
            )
        } else if kind == io::ErrorKind::PermissionDenied {
            (
                format!("the file {path} cannot be read: permission denied"),
                format!(
                    "`ls -l {path}` shows who may read it; `chmod u+r {path}` gives its owner permission"
                ),
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

    /// A file that does not exist, beside one with a similar name.
    pub(crate) fn not_found_file(path: &Path, similar: &Path) -> Failure {
        Failure::File {
            message: format!(
                "the file {} does not exist; did you mean {}?",
                path.display(),
                similar.display()
            ),
            help: "check the spelling and the current folder".to_owned(),
        }
    }

    /// A failure of writing to standard output.
    pub(crate) fn from_output(error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::ClosedPipe;
        }
        Failure::Output {
            message: format!("standard output cannot be written: {error}"),
            help: "check where standard output goes; everything that the command did is in the database"
                .to_owned(),
        }
    }

    /// The operating system refused a thread, an open file or another resource.
    pub(crate) fn no_resources(why: &str) -> Failure {
        Failure::Database {
            message: format!("the system refused a resource that this process needs: {why}"),
            help: RAISE_LIMITS.to_owned(),
        }
    }

    /// The exit code: a public promise, documented in `windlass --help`.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::ClosedPipe => 0,
            Failure::RunFailed
            | Failure::ProblemsFound
            | Failure::CasesFailed
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

    /// The text for standard error, or nothing if everything was printed before.
    fn text(&self) -> Option<String> {
        match self.form() {
            Form::SaidBefore(_) => None,
            Form::Files { message, .. } => message.map(labelled_error),
            Form::Report { report, help } => {
                let report = report.render(Colour::Always);
                Some(format!("{}\n\n{}", report.trim_end(), labelled_help(help)))
            }
            Form::Interrupted { message, resume } => Some(format!("{message}\nresume with: {resume}")),
            Form::Message { message, help } => {
                Some(format!("{}\n\n{}", labelled_error(message), labelled_help(help)))
            }
        }
    }

    /// The text without colours, for the log.
    pub(crate) fn plain(&self) -> String {
        anstream::adapter::strip_str(&self.text().unwrap_or_default()).to_string()
    }

    /// Writes the message to standard error.
    pub(crate) fn print(&self) {
        if let Some(text) = self.text() {
            stderr::warn(&text);
        }
    }

    /// Writes the message to standard error for people, and returns the errors for programs, which get them at the end.
    pub(crate) fn report(&self, format: OutputFormat) -> Vec<FileError> {
        if format == OutputFormat::Text {
            self.print();
        }
        self.file_errors()
    }

    /// Writes the end of a command to standard error: for people, or as one line of JSON for the program that reads
    /// standard output as JSON.
    pub(crate) fn conclude(&self, format: OutputFormat) {
        match format {
            OutputFormat::Text => self.print(),
            OutputFormat::Json | OutputFormat::Jsonl => {
                if let Some(line) = self.view().and_then(|view| serde_json::to_string(&view).ok()) {
                    stderr::warn(&line);
                }
            }
        }
    }

    /// The message and the next step. A report on a file has many.
    pub(crate) fn parts(&self) -> Option<(&str, &str)> {
        match self.form() {
            Form::Message { message, help } => Some((message, help)),
            Form::Interrupted { message, resume } => Some((message, resume)),
            Form::SaidBefore(_) | Form::Report { .. } | Form::Files { .. } => None,
        }
    }

    /// What there is to say.
    fn form(&self) -> Form<'_> {
        match self {
            Failure::ClosedPipe => Form::SaidBefore("standard output was closed"),
            Failure::RunFailed => Form::SaidBefore("a run ended FAILED"),
            Failure::RunCancelled => Form::SaidBefore("a run ended CANCELLED"),
            Failure::RunTimedOut => Form::SaidBefore("a run reached its timeout"),
            Failure::ProblemsFound => Form::SaidBefore("problems were found; standard output lists them"),
            Failure::CasesFailed => Form::SaidBefore("cases failed; standard output lists them"),
            Failure::InvalidWorkflow { report, help } => Form::Report { report, help },
            Failure::InvalidFiles { message, errors } => Form::Files { message: message.as_deref(), errors },
            Failure::Interrupted { message, resume } => Form::Interrupted { message, resume },
            Failure::Usage { message, help }
            | Failure::InvalidParameters { message, help }
            | Failure::Conflict { message, help }
            | Failure::File { message, help }
            | Failure::NotFound { message, help }
            | Failure::Database { message, help }
            | Failure::DamagedDatabase { message, help }
            | Failure::Output { message, help }
            | Failure::Internal { message, help } => Form::Message { message, help },
        }
    }
}

/// What there is to say about a failure, whatever it is.
enum Form<'f> {
    /// People were told before. Programs get it in a few words.
    SaidBefore(&'static str),
    /// The errors of a file, with its lines.
    Report { report: &'f Report, help: &'f str },
    /// The errors of several files, which people were told.
    Files { message: Option<&'f str>, errors: &'f [FileError] },
    /// The way to go on.
    Interrupted { message: &'f str, resume: &'f str },
    /// A message and the next step.
    Message { message: &'f str, help: &'f str },
}

/// The next step after the system refused a resource.
pub(crate) const RAISE_LIMITS: &str = "raise the limit: open files (`ulimit -n`, or LimitNOFILE= in a systemd unit), \
    processes and threads (`ulimit -u`, TasksMax=, or the pids limit of a container), memory, or space in the folder \
    for temporary files (TMPDIR)";

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default().bold();

fn labelled_error(message: &str) -> String {
    format!("{ERROR}error:{ERROR:#} {message}")
}

/// The next step, indented, and its other lines below the first.
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
    fn each_reason_for_an_unreadable_file_has_its_message() {
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

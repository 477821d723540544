//! An error of a command as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use crate::FileError;

/// The last line of standard error when a command fails with `-o json` or `-o jsonl`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ErrorLine")]
pub struct ErrorView {
    /// The error.
    pub error: ErrorDetails,
}

/// Why a command did not succeed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorDetails {
    /// A word for programs.
    pub kind: ErrorKind,
    /// A sentence for people.
    pub message: String,
    /// What to do about it.
    pub next_step: Option<String>,
    /// The exit code of the command.
    pub exit_code: u8,
    /// The errors of files, each with its place.
    pub errors: Vec<FileError>,
}

/// Why a command did not succeed, as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ErrorKind {
    /// The command line is invalid.
    Usage,
    /// Files have errors: `errors` lists them.
    InvalidFile,
    /// The parameters do not fit the workflow.
    InvalidParameters,
    /// The state of the run, the job or the database does not allow the command.
    Conflict,
    /// A file cannot be read or written.
    File,
    /// There is no such run, job, workflow, schedule or database.
    NotFound,
    /// The database cannot be used.
    Database,
    /// The content of the database is damaged.
    DamagedDatabase,
    /// A run or a job ended FAILED.
    RunFailed,
    /// A run or a job ended CANCELLED.
    RunCancelled,
    /// A run reached its timeout.
    RunTimedOut,
    /// Checks found problems.
    ProblemsFound,
    /// Cases of a test file failed.
    CasesFailed,
    /// A signal ended the command before the work was done.
    Interrupted,
    /// Standard output cannot be written.
    Output,
    /// A defect of this program.
    Internal,
}

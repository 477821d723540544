//! A checked workflow file as JSON.

use serde::Serialize;

/// The result of checking one file.
#[derive(Debug, Serialize)]
pub struct ValidatedFile {
    /// The path, as it was given.
    pub file: String,
    /// Whether the file has no errors, and with `--strict` no warnings.
    pub valid: bool,
    /// All errors, in the order of the file.
    pub errors: Vec<FileError>,
    /// All warnings of a file without errors, in the order of the file.
    pub warnings: Vec<FileError>,
}

/// One error or warning of a file. A file that could not be read has an error without line and column.
#[derive(Debug, Serialize)]
pub struct FileError {
    /// The file that has it: the checked file, or one that it includes.
    pub file: Option<String>,
    /// Counted from 1.
    pub line: Option<usize>,
    /// Counted from 1.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// The next step.
    pub help: Option<String>,
}

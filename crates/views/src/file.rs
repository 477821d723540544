//! A checked workflow file as JSON.

use schemars::JsonSchema;
use serde::Serialize;

/// The result of checking one file.
#[derive(Debug, Serialize, JsonSchema)]
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

/// One error or warning of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileError {
    /// What is wrong.
    pub message: String,
    /// Where it is. Null for a file that could not be read.
    pub place: Option<PlaceView>,
    /// What to do about it.
    pub next_step: Option<String>,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Place")]
pub struct PlaceView {
    /// The checked file, or one that it includes.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1.
    pub column: usize,
}

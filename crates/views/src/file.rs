//! A checked workflow file as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_workflow::Report;

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

impl FileError {
    /// The errors or the warnings of a report, each with its place.
    pub fn all_of(report: &Report) -> Vec<FileError> {
        let errors = report.diagnostics().iter().map(|diagnostic| FileError {
            message: diagnostic.message.clone(),
            place: Some(PlaceView {
                file: diagnostic.file.clone(),
                line: diagnostic.line,
                column: diagnostic.column,
            }),
            next_step: diagnostic.advice().map(str::to_owned),
        });
        errors.collect()
    }
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

//! A checked file as JSON.

use serde::Serialize;

use crate::error::Failure;

/// One file that `validate` looked at.
#[derive(Debug, Serialize)]
pub(crate) struct ValidatedFile {
    pub(crate) file: String,
    pub(crate) valid: bool,
    pub(crate) errors: Vec<FileError>,
}

/// One error of a file; without a place when the file could not be read at all.
#[derive(Debug, Serialize)]
pub(crate) struct FileError {
    pub(crate) line: Option<usize>,
    pub(crate) column: Option<usize>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl FileError {
    /// A file that could not be read.
    pub(crate) fn without_place(failure: &Failure) -> FileError {
        let (message, help) = failure.parts().unwrap_or_default();
        FileError {
            line: None,
            column: None,
            message: message.to_owned(),
            help: Some(help.to_owned()).filter(|help| !help.is_empty()),
        }
    }
}

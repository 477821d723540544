//! Files that a verb wrote, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

/// A file that was written.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WrittenFile {
    /// Its path.
    pub file: String,
}

/// A workflow file after it was formatted or checked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FormattedFile {
    /// Its path; `-` is standard input.
    pub file: String,
    /// It was not formatted before.
    pub changed: bool,
    /// The formatted text, for standard input only.
    pub text: Option<String>,
}

/// What was made of the file of another program.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Import")]
pub struct ImportView {
    /// The workflows.
    pub files: Vec<ImportedFile>,
    /// What of the other file was left out, or means something else.
    pub left_out: Vec<String>,
}

/// A workflow that was made of the file of another program.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ImportedFile {
    /// Its name.
    pub workflow: String,
    /// The file that was written; null without `--to`.
    pub file: Option<String>,
    /// The text of the workflow file, without `--to`.
    pub text: Option<String>,
}

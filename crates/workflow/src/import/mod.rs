//! Workflow files made from files of other programs.

mod crontab;
mod crontab_line;
mod dagu;

pub use crontab::{CrontabOptions, UserColumn, crontab};
pub use dagu::{DaguOptions, dagu};

/// What became of a file of another program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// The workflows, in the order of the file.
    pub workflows: Vec<ImportedWorkflow>,
    /// What was not carried over, for people, each with its line.
    pub left_out: Vec<String>,
}

/// A workflow file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedWorkflow {
    /// The workflow's name, which is different from those of the others.
    pub name: String,
    /// The file, in TOML. It is valid and formatted.
    pub text: String,
}

//! `windlass validate`: check workflow files without running them.

use std::path::{Path, PathBuf};

use clap::Args;
use windlass::workflow::{Colour, Report, Workflow};

use crate::cli::GlobalOptions;
use crate::describe::counted;
use crate::error::Failure;
use crate::files::Origin;
use crate::output::{self, Format, Output};
use crate::style::{GREEN, paint};
use crate::submission::{self, LoadError};
use crate::views::{FileError, ValidatedFile};

/// Check workflow files and show all errors with their lines
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ValidateArgs {
    /// The workflow files, TOML or JSON
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  windlass validate nightly.toml
  windlass validate workflows/*.toml
  windlass validate nightly.toml -o json | jq '.[].errors'";

/// Checks each file, and shows every error of every one.
pub(crate) fn execute(global: &GlobalOptions, args: &ValidateArgs) -> Result<(), Failure> {
    let mut views = Vec::new();
    for path in &args.files {
        let checked = submission::load(path, Origin::Named);
        if global.output == Format::Text {
            match &checked {
                Ok(workflow) => output::write_text(&praise(path, workflow))?,
                Err(LoadError::Unreadable(failure)) => failure.say(),
                Err(LoadError::Invalid(report)) => output::note(&report.render(Colour::Always)),
            }
        }
        views.push(view(path, checked.err()));
    }
    Output { format: global.output }.list(&views, |_| String::new())?;
    let invalid = views.iter().filter(|view| !view.valid).count();
    match (invalid, views.len()) {
        (0, _) => Ok(()),
        (1, 1) => Err(Failure::InvalidFiles { message: None }),
        (_, all) => {
            Err(Failure::InvalidFiles { message: Some(format!("{invalid} of {all} files cannot be used")) })
        }
    }
}

fn praise(path: &Path, workflow: &Workflow) -> String {
    let jobs = workflow.jobs.len();
    let edges: usize = workflow.jobs.iter().map(|job| job.needs.len()).sum();
    let ok = paint(GREEN, "valid");
    let schedules = match workflow.schedules.len() as i64 {
        0 => String::new(),
        schedules => format!(", {}", counted(schedules, "schedule", "schedules")),
    };
    format!(
        "{}: {ok}, workflow `{}` with {} and {}{schedules}",
        path.display(),
        workflow.name,
        counted(jobs as i64, "job", "jobs"),
        counted(edges as i64, "dependency", "dependencies"),
    )
}

fn view(path: &Path, error: Option<LoadError>) -> ValidatedFile {
    let errors = match &error {
        None => Vec::new(),
        Some(LoadError::Unreadable(failure)) => vec![FileError::without_place(failure)],
        Some(LoadError::Invalid(report)) => places(report),
    };
    ValidatedFile { file: path.display().to_string(), valid: error.is_none(), errors }
}

fn places(report: &Report) -> Vec<FileError> {
    report
        .diagnostics()
        .iter()
        .map(|diagnostic| FileError {
            line: Some(diagnostic.line),
            column: Some(diagnostic.column),
            message: diagnostic.message.clone(),
            help: diagnostic.advice().map(str::to_owned),
        })
        .collect()
}

//! `windlass validate`: checks workflow files without running them.

use std::path::{Path, PathBuf};

use clap::Args;
use windlass_views::ValidatedFile;
use windlass_workflow::{Colour, Report, Workflow};

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::commands::test::{check_test_file, is_test_file};
use crate::error::{Failure, errors_of};
use crate::output::{self, Output};
use crate::read_file::PathOrigin;
use crate::stderr;
use crate::submission::{self, LoadError};
use crate::text::style::{GREEN, paint};
use crate::text::values::counted;

/// Check workflow files and show all errors and warnings
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ValidateArgs {
    /// The workflow files, TOML, YAML or JSON
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Treat warnings as errors: exit with 2 if there are any
    #[arg(long)]
    strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass validate nightly.toml
  windlass validate workflows/*.toml --strict
  windlass validate nightly.toml -o json | jq '.[].errors'";

/// Checks all files and shows all errors.
pub(crate) fn execute(global: &GlobalOptions, args: &ValidateArgs) -> Result<(), Failure> {
    let mut views = Vec::new();
    let mut warned = 0;
    for path in &args.files {
        let mut checked = check(path);
        let warnings = checked.as_mut().ok().and_then(|checked| checked.warnings.take());
        if global.output == OutputFormat::Text {
            match &checked {
                Ok(checked) => output::write_text(&checked.text)?,
                Err(LoadError::Unreadable(failure) | LoadError::Calls(failure)) => failure.print(),
                Err(LoadError::Invalid(report)) => stderr::note(&report.render(Colour::Always)),
            }
            if let Some(warnings) = &warnings {
                stderr::warn(&warnings.render(Colour::Always));
            }
        }
        if args.strict && warnings.is_some() {
            warned += 1;
        }
        let mut view = view(path, checked.err(), warnings.as_ref());
        view.valid &= !args.strict || view.warnings.is_empty();
        views.push(view);
    }
    Output { format: global.output }.list(&views, |_| String::new())?;
    let invalid = views.iter().filter(|view| !view.valid).count();
    let errors = views.iter().flat_map(|view| view.errors.clone()).collect();
    match (invalid, views.len()) {
        (0, _) => Ok(()),
        (1, 1) if warned == 0 => Err(Failure::InvalidFiles { message: None, errors }),
        (_, all) if warned > 0 => {
            let message =
                format!("with --strict {invalid} of {all} files are invalid, {warned} because of warnings");
            Err(Failure::InvalidFiles { message: Some(message), errors })
        }
        (_, all) => {
            let message = Some(format!("{invalid} of {all} files are invalid"));
            Err(Failure::InvalidFiles { message, errors })
        }
    }
}

/// A valid file.
struct Valid {
    /// The line that says so, and what is in it.
    text: String,
    /// Its warnings, if it has any.
    warnings: Option<Report>,
}

/// Checks a workflow file, or a test file.
fn check(path: &Path) -> Result<Valid, LoadError> {
    if is_test_file(path) {
        check_test_file(path)?;
        let text = format!("{}: {}, a test file", path.display(), paint(GREEN, "valid"));
        return Ok(Valid { text, warnings: None });
    }
    let (workflow, source) = submission::load_with_source(path, PathOrigin::Named)?;
    let warnings = windlass_workflow::warnings(&source, &workflow);
    let warnings = Some(warnings).filter(|warnings| !warnings.diagnostics().is_empty());
    Ok(Valid { text: success(path, &workflow), warnings })
}

fn success(path: &Path, workflow: &Workflow) -> String {
    let handlers = workflow.jobs.iter().filter(|job| job.handler.is_some()).count();
    let jobs = workflow.jobs.len() - handlers;
    let edges: usize = workflow.jobs.iter().map(|job| job.needs.len()).sum();
    let ok = paint(GREEN, "valid");
    let schedules = match workflow.schedules.len() as i64 {
        0 => String::new(),
        schedules => format!(", {}", counted(schedules, "schedule", "schedules")),
    };
    let handlers = match handlers as i64 {
        0 => String::new(),
        handlers => format!(", {}", counted(handlers, "handler", "handlers")),
    };
    let called = match workflow.workflows.len() as i64 {
        0 => String::new(),
        called => format!(", {}", counted(called, "called workflow", "called workflows")),
    };
    format!(
        "{}: {ok}, workflow `{}` with {} and {}{handlers}{called}{schedules}",
        path.display(),
        workflow.name,
        counted(jobs as i64, "job", "jobs"),
        counted(edges as i64, "dependency", "dependencies"),
    )
}

fn view(path: &Path, error: Option<LoadError>, warnings: Option<&Report>) -> ValidatedFile {
    let errors = match &error {
        None => Vec::new(),
        Some(LoadError::Unreadable(failure) | LoadError::Calls(failure)) => failure.file_errors(),
        Some(LoadError::Invalid(report)) => errors_of(report),
    };
    let warnings = warnings.map(errors_of).unwrap_or_default();
    ValidatedFile { file: path.display().to_string(), valid: error.is_none(), errors, warnings }
}

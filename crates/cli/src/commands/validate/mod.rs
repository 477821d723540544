//! `windlass validate`: checks workflow files without running them.

mod targets;

use std::path::{Path, PathBuf};

use clap::Args;
use windlass_views::{FileError, ValidatedFile};
use windlass_workflow::{Colour, Report, Workflow};

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::commands::test::{check_test_file, is_test_file};
use crate::complete;
use crate::error::Failure;
use crate::output::{self, Output};
use crate::read_file::PathOrigin;
use crate::stderr;
use crate::submission::{self, LoadError, StandardInputArgs};
use crate::text::style::{GREEN, paint};
use crate::text::values::counted;
use crate::workflow_files;
use targets::{Target, targets};

/// Check workflow files and show all errors and warnings
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ValidateArgs {
    /// Workflow files, TOML, YAML or JSON; folders, whose files are checked at any depth; `-`, standard input
    #[arg(value_name = "FILE|FOLDER", add = complete::workflow_file(), required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    standard_input: StandardInputArgs,

    /// Treat warnings as errors: exit with 2 if there are any
    #[arg(long)]
    strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass validate nightly.toml
  windlass validate workflows/ --strict
  generate | windlass validate - --format yaml
  windlass validate nightly.toml -o json | jq '.[].errors'";

/// Checks all files and shows all errors.
pub(crate) fn execute(global: &GlobalOptions, args: &ValidateArgs) -> Result<(), Failure> {
    let targets = targets(&args.files)?;
    if !targets.contains(&Target::StandardInput) {
        args.standard_input.refuse()?;
    }
    let mut checked: Vec<Checked> = targets
        .into_iter()
        .map(|target| Checked { result: check(&target, &args.standard_input), target })
        .filter(|checked| !checked.is_only_included())
        .collect();
    if checked.is_empty() {
        return Err(workflow_files::none_found());
    }
    refuse_equal_names(&mut checked);
    if global.output == OutputFormat::Text {
        print(&checked)?;
    }
    let views: Vec<ValidatedFile> = checked.iter().map(|checked| checked.view(args.strict)).collect();
    Output { format: global.output }.list(&views, |_| String::new())?;
    let warned = checked.iter().filter(|checked| args.strict && checked.warnings().is_some()).count();
    conclude(&views, warned)
}

/// The end of the command. Several files have a summary.
fn conclude(views: &[ValidatedFile], warned: usize) -> Result<(), Failure> {
    let invalid = views.iter().filter(|view| !view.valid).count();
    let errors = views.iter().flat_map(|view| view.errors.clone()).collect();
    match (invalid, views.len()) {
        (0, 1) => Ok(()),
        (0, all) => {
            stderr::note(&format!("all {all} files are valid"));
            Ok(())
        }
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

/// Prints the result of each file. An error that several files share is printed once.
fn print(all: &[Checked]) -> Result<(), Failure> {
    let mut printed: Vec<&Failure> = Vec::new();
    for checked in all {
        match &checked.result {
            Ok(valid) => output::write_text(&valid.text)?,
            Err(LoadError::Invalid(report)) => {
                stderr::note(&report.render(Colour::Always));
                if checked.target == Target::StandardInput {
                    stderr::note(submission::STANDARD_INPUT_FORMAT_HELP);
                }
            }
            Err(LoadError::Unreadable(failure) | LoadError::Calls(failure)) => {
                if !printed.contains(&failure) {
                    failure.print();
                    printed.push(failure);
                }
            }
        }
        if let Some(warnings) = checked.warnings() {
            stderr::warn(&warnings.render(Colour::Always));
        }
    }
    Ok(())
}

/// Makes files of folders with the same workflow name invalid, as `apply` does.
fn refuse_equal_names(all: &mut [Checked]) {
    let found = all.iter().enumerate().filter_map(|(index, checked)| {
        let name = checked.result.as_ref().ok()?.workflow.clone()?;
        Some((index, checked.target.found()?.to_owned(), name))
    });
    let found: Vec<(usize, PathBuf, String)> = found.collect();
    let files: Vec<(&Path, &str)> =
        found.iter().map(|(_index, path, name)| (path.as_path(), name.as_str())).collect();
    for (position, failure) in workflow_files::equal_names(&files) {
        all[found[position].0].result = Err(LoadError::Calls(failure));
    }
}

/// What was checked, and the result.
struct Checked {
    target: Target,
    result: Result<Valid, LoadError>,
}

impl Checked {
    fn warnings(&self) -> Option<&Report> {
        self.result.as_ref().ok().and_then(|valid| valid.warnings.as_ref())
    }

    /// Whether it was found in a folder and is there only for other files to include.
    fn is_only_included(&self) -> bool {
        self.result.is_err() && self.target.found().is_some_and(submission::is_only_included)
    }

    fn view(&self, strict: bool) -> ValidatedFile {
        let errors = match &self.result {
            Ok(_valid) => Vec::new(),
            Err(LoadError::Unreadable(failure) | LoadError::Calls(failure)) => failure.file_errors(),
            Err(LoadError::Invalid(report)) => FileError::all_of(report),
        };
        let warnings = self.warnings().map(FileError::all_of).unwrap_or_default();
        let valid = self.result.is_ok() && (warnings.is_empty() || !strict);
        ValidatedFile { file: self.target.title(), valid, errors, warnings }
    }
}

/// A valid file.
struct Valid {
    /// The line that says so, and what is in it.
    text: String,
    /// The name of its workflow. A test file has none.
    workflow: Option<String>,
    /// Its warnings, if it has any.
    warnings: Option<Report>,
}

/// Checks a workflow file, or a test file.
fn check(target: &Target, standard_input: &StandardInputArgs) -> Result<Valid, LoadError> {
    let (workflow, source) = match target {
        Target::StandardInput => standard_input.load()?,
        Target::File { path, origin: PathOrigin::Named } if is_test_file(path) => {
            check_test_file(path)?;
            let text = format!("{}: {}, a test file", path.display(), paint(GREEN, "valid"));
            return Ok(Valid { text, workflow: None, warnings: None });
        }
        Target::File { path, origin } => submission::load_with_source(path, *origin)?,
    };
    let warnings = windlass_workflow::warnings(&source, &workflow);
    let warnings = Some(warnings).filter(|warnings| !warnings.diagnostics().is_empty());
    Ok(Valid { text: success(&target.title(), &workflow), workflow: Some(workflow.name), warnings })
}

fn success(title: &str, workflow: &Workflow) -> String {
    let handlers = workflow.jobs.iter().filter(|job| job.handler.is_some()).count();
    let jobs = workflow.jobs.len() - handlers;
    let edges: usize = workflow.jobs.iter().map(|job| job.needs.len()).sum();
    let ok = paint(GREEN, "valid");
    let schedules = match workflow.schedules.len() as i64 {
        0 => String::new(),
        schedules => format!(", {}", counted(schedules, "schedule", "schedules")),
    };
    let triggers = match workflow.triggers.len() as i64 {
        0 => String::new(),
        triggers => format!(", {}", counted(triggers, "trigger", "triggers")),
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
        "{title}: {ok}, workflow `{}` with {} and {}{handlers}{called}{schedules}{triggers}",
        workflow.name,
        counted(jobs as i64, "job", "jobs"),
        counted(edges as i64, "dependency", "dependencies"),
    )
}

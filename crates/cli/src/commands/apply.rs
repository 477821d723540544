//! `windlass apply`: registers workflows and their schedules.

use std::path::PathBuf;

use clap::Args;
use windlass_engine::store::{Applied, RegistrationChange, Subject};
use windlass_views::{AppliedView, WorkflowChanges};

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::output::{self, Output};
use crate::stderr;
use crate::submission::is_standard_input;
use crate::text::schedules;
use crate::text::style::{GREEN, YELLOW, paint, printable};
use crate::workflow_files::{self, WorkflowFile};
use windlass_workflow::trigger::Trigger;

/// Register workflows and their schedules, as numbered versions
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ApplyArgs {
    /// Workflow files, or folders whose *.toml, *.json, *.yaml and *.yml files are registered, at any depth
    #[arg(value_name = "FILE|FOLDER", add = complete::workflow_file(), required = true)]
    paths: Vec<PathBuf>,

    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass apply nightly.toml
  windlass apply workflows/
  windlass apply workflows/ --dry-run
  windlass run nightly          # run a registered workflow by its name

All files are checked first. If one has errors, all errors are shown and
nothing is registered. Unchanged content makes no new version. A workflow
stays registered when its file is not named here; `windlass workflows remove
NAME` deactivates it.";

/// Checks all files, then registers all of them.
pub(crate) fn execute(global: &GlobalOptions, args: &ApplyArgs) -> Result<(), Failure> {
    if args.paths.iter().any(|path| is_standard_input(path)) {
        return Err(Failure::usage(
            "standard input can't be registered: a registration keeps the path of its file",
            "save the text in a file and name that, or run it once with `windlass run -`",
        ));
    }
    let collection = workflow_files::collect(&args.paths)?;
    if !collection.invalid.is_empty() {
        let errors = workflow_files::report_failures(&collection.invalid, global.output);
        let (invalid, all) = (collection.invalid.len(), collection.invalid.len() + collection.valid.len());
        let message = format!("{invalid} of {all} files are invalid; nothing was registered");
        return Err(Failure::InvalidFiles { message: Some(message), errors });
    }
    if collection.valid.is_empty() {
        return Err(workflow_files::none_found());
    }
    let mut views = Vec::with_capacity(collection.valid.len());
    let database = match args.dry_run {
        false => Some(Database::existing_or_new(global)?),
        true => None,
    };
    for file in &collection.valid {
        let applied = match &database {
            Some(database) => database.change(Subject::Workflow(file.workflow.name.clone()), |store| {
                store.registrations().apply(file.registration())
            })?,
            None => preview(global, file)?,
        };
        views.push(AppliedView::new(Some(&file.absolute), &file.workflow, &applied));
        if global.output == OutputFormat::Text {
            output::write_text(&line(file, &applied))?;
        }
    }
    if args.dry_run {
        stderr::note("this was a dry run: nothing was registered");
    }
    Output { format: global.output }.list(&views, |_| String::new())
}

/// What `apply` would do. If there is no database, every workflow is new.
fn preview(global: &GlobalOptions, file: &WorkflowFile) -> Result<Applied, Failure> {
    match Database::if_exists(global)? {
        Some(database) => database.ask(|store| store.registrations().preview(&file.workflow)),
        None => Ok(Applied {
            name: file.workflow.name.clone(),
            version: 1,
            change: RegistrationChange::Created,
            before: None,
            schedules: Vec::new(),
        }),
    }
}

fn line(file: &WorkflowFile, applied: &Applied) -> String {
    format!("{}: {}", printable(&applied.name), summary(file, applied))
}

/// What `apply` did with a workflow, in one line.
pub(crate) fn summary(file: &WorkflowFile, applied: &Applied) -> String {
    let version = format!("version {}", applied.version);
    match (applied.change, &applied.before) {
        (RegistrationChange::Created, _) if applied.version == 1 => {
            format!("{}{}", paint(GREEN, format!("created {version}")), schedules(file))
        }
        (RegistrationChange::Created, _) => {
            format!("{}{}", paint(GREEN, format!("registered again, {version}")), schedules(file))
        }
        (RegistrationChange::Unchanged, _) => format!("unchanged, {version}"),
        (RegistrationChange::Updated, None) => paint(YELLOW, version),
        (RegistrationChange::Updated, Some(before)) => {
            let changes = WorkflowChanges::between(before, &file.workflow).summary();
            format!("{}: {}", paint(YELLOW, version), printable(&changes))
        }
    }
}

/// The schedules and the triggers of a file.
fn schedules(file: &WorkflowFile) -> String {
    let schedules: Vec<String> = file.workflow.schedules.iter().map(schedules::summary).collect();
    let triggers: Vec<String> = file.workflow.triggers.iter().map(Trigger::text).collect();
    format!("{}{}", listed("schedule", &schedules), listed("trigger", &triggers))
}

fn listed(noun: &str, texts: &[String]) -> String {
    match texts.len() {
        0 => String::new(),
        1 => format!("; {noun} {}", printable(&texts[0])),
        _several => format!("; {noun}s {}", printable(&texts.join("; "))),
    }
}

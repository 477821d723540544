//! `windlass apply`: register workflows and their schedules.

use std::path::PathBuf;

use clap::Args;
use windlass::store::{Applied, Change};

use crate::changes::Changes;
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::describe;
use crate::error::Failure;
use crate::output::{self, Format, Output};
use crate::style::{GREEN, YELLOW, paint, printable};
use crate::views::AppliedView;
use crate::workflow_files::{self, WorkflowFile};

/// Register workflows and their schedules, as numbered versions
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ApplyArgs {
    /// Workflow files, or folders: their *.toml and *.json, also in folders inside
    #[arg(value_name = "FILE|FOLDER", required = true)]
    paths: Vec<PathBuf>,

    /// Only say what would change
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass apply nightly.toml
  windlass apply workflows/
  windlass apply workflows/ --dry-run
  windlass run nightly          # starts the registered version by its name

All files are checked first: when one has errors, all errors are shown and nothing is registered.
The same content makes no new version. A workflow whose file is not named stays registered:
`windlass workflows remove NAME` takes it out.";

/// Checks everything, then registers everything.
pub(crate) fn execute(global: &GlobalOptions, args: &ApplyArgs) -> Result<(), Failure> {
    let collection = workflow_files::collect(&args.paths)?;
    if !collection.broken.is_empty() {
        workflow_files::say(&collection.broken);
        let (invalid, all) = (collection.broken.len(), collection.broken.len() + collection.good.len());
        let message = format!("{invalid} of {all} files cannot be used; nothing was registered");
        return Err(Failure::InvalidFiles { message: Some(message) });
    }
    if collection.good.is_empty() {
        return Err(Failure::usage(
            "there are no workflow files in it",
            "a workflow file ends in .toml or .json; hidden ones and windlass.toml do not count",
        ));
    }
    let mut views = Vec::with_capacity(collection.good.len());
    let database = match args.dry_run {
        false => Some(Database::existing_or_new(global)?),
        true => None,
    };
    for file in &collection.good {
        let applied = match &database {
            Some(database) => database.ask(|store| store.registrations().apply(file.registration()))?,
            None => preview(global, file)?,
        };
        views.push(AppliedView::new(file, &applied));
        if global.output == Format::Text {
            output::write_text(&line(file, &applied))?;
        }
    }
    if args.dry_run {
        output::note("this was a dry run: nothing was registered");
    }
    Output { format: global.output }.list(&views, |_| String::new())
}

/// Where there is no database, nothing is registered.
fn preview(global: &GlobalOptions, file: &WorkflowFile) -> Result<Applied, Failure> {
    match Database::if_there(global)? {
        Some(database) => database.ask(|store| store.registrations().preview(&file.workflow)),
        None => Ok(Applied {
            name: file.workflow.name.clone(),
            version: 1,
            change: Change::Created,
            before: None,
            schedules: Vec::new(),
        }),
    }
}

fn line(file: &WorkflowFile, applied: &Applied) -> String {
    format!("{}: {}", printable(&applied.name), summary(file, applied))
}

/// What became of a workflow, in one line for people.
pub(crate) fn summary(file: &WorkflowFile, applied: &Applied) -> String {
    let version = format!("version {}", applied.version);
    match (applied.change, &applied.before) {
        (Change::Created, _) if applied.version == 1 => {
            format!("{}{}", paint(GREEN, format!("created {version}")), schedules(file))
        }
        (Change::Created, _) => {
            format!("{}{}", paint(GREEN, format!("registered, {version} again")), schedules(file))
        }
        (Change::Unchanged, _) => format!("unchanged, {version}"),
        (Change::Updated, None) => paint(YELLOW, version),
        (Change::Updated, Some(before)) => {
            let changes = Changes::between(before, &file.workflow).text();
            format!("{}: {}", paint(YELLOW, version), printable(&changes))
        }
    }
}

fn schedules(file: &WorkflowFile) -> String {
    let texts: Vec<String> = file.workflow.schedules.iter().map(describe::schedule).collect();
    match texts.len() {
        0 => String::new(),
        1 => format!("; schedule {}", printable(&texts[0])),
        _several => format!("; schedules {}", printable(&texts.join("; "))),
    }
}

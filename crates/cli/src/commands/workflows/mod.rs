//! `windlass workflows`: what is registered, its versions, and deactivating it.

mod history;
mod list;
mod show;

use clap::{Args, Subcommand};

use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::{lookup, output};

/// List, show, pause or deactivate registered workflows
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkflowsArgs {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List registered workflows; the same as `workflows` alone
    List,
    /// Print a definition, its schedules and jobs
    Show(show::ShowArgs),
    /// List the versions of a workflow and what each changed
    History(history::HistoryArgs),
    /// Deactivate a workflow; its versions and runs stay
    Remove(NameArgs),
    /// Pause the schedules of a workflow
    Pause(NameArgs),
    /// Resume the schedules of a workflow; what was missed during the pause is not caught up
    Resume(NameArgs),
}

#[derive(Debug, Args)]
struct NameArgs {
    /// The name of the workflow
    #[arg(value_name = "NAME")]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass workflows
  windlass workflows show nightly
  windlass workflows show nightly --version 3 -o json
  windlass workflows history nightly
  windlass workflows pause nightly

`windlass apply FILE` registers a workflow.";

/// Lists, shows or changes.
pub(crate) fn execute(global: &GlobalOptions, args: &WorkflowsArgs) -> Result<(), Failure> {
    match &args.action {
        None | Some(Action::List) => list::execute(global),
        Some(Action::Show(args)) => show::execute(global, args),
        Some(Action::History(args)) => history::execute(global, args),
        Some(Action::Remove(args)) => remove(global, &args.name),
        Some(Action::Pause(args)) => pause(global, &args.name),
        Some(Action::Resume(args)) => resume(global, &args.name),
    }
}

fn remove(global: &GlobalOptions, name: &str) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let registration = lookup::registration(&database, name)?;
    database.ask(|store| store.registrations().remove(name))?;
    output::note(&format!(
        "workflow `{name}` is inactive; its {} and its runs are kept, and runs that are not over go on",
        if registration.version == 1 {
            "version".to_owned()
        } else {
            format!("{} versions", registration.version)
        }
    ));
    if let Some(file) = registration.file.filter(|file| std::path::Path::new(file).exists()) {
        output::note(&format!("it comes back with the next `{}`", database.hint(&format!("apply {file}"))));
    }
    Ok(())
}

fn pause(global: &GlobalOptions, name: &str) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    lookup::registration(&database, name)?;
    let changed = database.ask(|store| store.registrations().pause(name))?;
    output::note(&match changed {
        true => {
            format!("workflow `{name}` is paused: its schedules fire nothing, runs that are not over go on")
        }
        false => format!("workflow `{name}` was paused already"),
    });
    Ok(())
}

fn resume(global: &GlobalOptions, name: &str) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    lookup::registration(&database, name)?;
    let changed = database.ask(|store| store.registrations().resume(name))?;
    output::note(&match changed {
        true => format!("workflow `{name}` goes on: its schedules fire again from now on"),
        false => format!("workflow `{name}` was not paused"),
    });
    Ok(())
}

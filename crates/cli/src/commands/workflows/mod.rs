//! `windlass workflows`: lists, shows, pauses and deactivates registered workflows.

mod history;
mod list;
mod show;

use clap::{Args, Subcommand};
use windlass_engine::store::{Registration, Subject};
use windlass_views::{ChangedWorkflow, RegistrationView};

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::{find, stderr};

/// List, show, pause or deactivate registered workflows
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkflowsArgs {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List registered workflows (the default)
    List,
    /// Print a definition, its schedules and jobs
    Show(show::ShowArgs),
    /// List the versions of a workflow and their changes
    History(history::HistoryArgs),
    /// Deactivate a workflow; its versions and runs stay
    Remove(NameArgs),
    /// Pause the schedules of a workflow
    Pause(NameArgs),
    /// Resume the schedules of a workflow; runs missed during the pause are not caught up
    Resume(NameArgs),
}

#[derive(Debug, Args)]
struct NameArgs {
    /// The name of the workflow
    #[arg(value_name = "WORKFLOW", add = complete::workflow())]
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

/// Calls the subcommand.
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
    let registration = find::workflow(&database, name)?;
    let view = view(&database, &registration)?;
    database.change(Subject::Workflow(name.to_owned()), |store| store.registrations().remove(name))?;
    stderr::note(&format!(
        "workflow `{name}` is inactive; its {} and its runs are kept, and unfinished runs continue",
        if registration.version == 1 {
            "version".to_owned()
        } else {
            format!("{} versions", registration.version)
        }
    ));
    if let Some(file) = registration.file.filter(|file| std::path::Path::new(file).exists()) {
        stderr::note(&format!("`{}` registers it again", database.hint(&format!("apply {file}"))));
    }
    print_change(global, view, true)
}

fn pause(global: &GlobalOptions, name: &str) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    find::workflow(&database, name)?;
    let changed =
        database.change(Subject::Workflow(name.to_owned()), |store| store.registrations().pause(name))?;
    stderr::note(&match changed {
        true => {
            format!("workflow `{name}` is paused: its schedules start no runs; unfinished runs continue")
        }
        false => format!("workflow `{name}` was already paused"),
    });
    print_change(global, view(&database, &find::workflow(&database, name)?)?, changed)
}

fn resume(global: &GlobalOptions, name: &str) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    find::workflow(&database, name)?;
    let changed =
        database.change(Subject::Workflow(name.to_owned()), |store| store.registrations().resume(name))?;
    stderr::note(&match changed {
        true => format!("workflow `{name}` is no longer paused: its schedules start runs again"),
        false => format!("workflow `{name}` was not paused"),
    });
    print_change(global, view(&database, &find::workflow(&database, name)?)?, changed)
}

fn view(database: &Database, registration: &Registration) -> Result<RegistrationView, Failure> {
    let schedules = database.ask(|store| store.schedules().list())?;
    let triggers = database.ask(|store| store.registrations().triggers())?;
    Ok(list::view(registration, &schedules, &triggers))
}

/// Prints the workflow for programs. `changed`: it was not like this before.
fn print_change(global: &GlobalOptions, workflow: RegistrationView, changed: bool) -> Result<(), Failure> {
    if global.output == OutputFormat::Text {
        return Ok(());
    }
    Output { format: global.output }.object(&ChangedWorkflow { workflow, changed }, |_| String::new())
}

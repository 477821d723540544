//! `windlass queue`: pauses and limits queues.

mod drain;
mod limit;
mod list;
mod pause;
mod resume;

use clap::{Args, Subcommand};
use windlass_engine::store::Queue;
use windlass_views::{ChangedQueue, QueueView};
use windlass_workflow::limits;
use windlass_workflow::model::DEFAULT_QUEUE;

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::database::Database;
use crate::error::Failure;
use crate::find::nearest_name;
use crate::output::Output;
use crate::stderr;

/// List, pause, limit or drain queues
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct QueueArgs {
    /// What to do; `list` by default
    #[command(subcommand)]
    command: Option<QueueCommand>,
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    List(list::ListArgs),
    Pause(pause::PauseArgs),
    Resume(resume::ResumeArgs),
    Limit(limit::LimitArgs),
    Drain(drain::DrainArgs),
}

const EXAMPLES: &str = "\
Examples:
  windlass queue list
  windlass queue limit mail --max-running 4 --rate 100/1m
  windlass queue limit deploy --fifo
  windlass queue drain mail";

/// Calls the subcommand.
pub(crate) fn execute(global: &GlobalOptions, args: &QueueArgs) -> Result<(), Failure> {
    let Some(command) = &args.command else { return list::execute(global) };
    match command {
        QueueCommand::List(list::ListArgs {}) => list::execute(global),
        QueueCommand::Pause(args) => pause::execute(global, args),
        QueueCommand::Resume(args) => resume::execute(global, args),
        QueueCommand::Limit(args) => limit::execute(global, args),
        QueueCommand::Drain(args) => drain::execute(global, args),
    }
}

/// Reads the name of a queue; for clap. A queue may have rules before its first job.
fn parse_name(text: &str) -> Result<String, String> {
    match text.chars().count() {
        0 => Err("the name of the queue is empty".to_owned()),
        count if count > limits::NAME_CHARS => {
            Err(format!("the name has {count} characters; the limit is {}", limits::NAME_CHARS))
        }
        _short_enough => Ok(text.to_owned()),
    }
}

/// Tells the user about a new name, because it may be mistyped.
fn note_a_new_name(database: &Database, name: &str) -> Result<(), Failure> {
    let queues = database.ask(|store| store.queues().list())?;
    if name == DEFAULT_QUEUE || queues.iter().any(|queue| queue.name == name) {
        return Ok(());
    }
    let near = nearest_name(name, queues.iter().map(|queue| queue.name.as_str()));
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    stderr::note(&format!("the queue `{name}` is new: it has no rules and no jobs{hint}"));
    Ok(())
}

/// Prints the queue for programs. `changed`: it was not like this before.
fn print_change(
    global: &GlobalOptions,
    database: &Database,
    name: &str,
    changed: bool,
) -> Result<(), Failure> {
    if global.output == OutputFormat::Text {
        return Ok(());
    }
    let queue = read(database, name)?.unwrap_or_else(|| Queue::without_rules(name));
    let view = ChangedQueue { queue: QueueView::new(&queue), changed };
    Output { format: global.output }.object(&view, |_| String::new())
}

/// The queue with this name, if it has jobs or rules.
fn read(database: &Database, name: &str) -> Result<Option<Queue>, Failure> {
    database.ask(|store| store.queues().find(name))
}

//! `windlass queue pause`: starts no more jobs of a queue.

use clap::Args;
use windlass_engine::store::Subject;

use crate::arguments::GlobalOptions;
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::shell_words::quoted;
use crate::stderr;

/// Start no more jobs of a queue; running jobs may finish
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PauseArgs {
    /// The queue
    #[arg(value_name = "QUEUE", add = complete::queue(), value_parser = super::parse_name)]
    queue: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass queue pause mail
  windlass queue resume mail";

pub(super) fn execute(global: &GlobalOptions, args: &PauseArgs) -> Result<(), Failure> {
    let database = Database::existing_or_new(global)?;
    super::note_a_new_name(&database, &args.queue)?;
    let was_paused = super::read(&database, &args.queue)?.is_some_and(|queue| queue.paused_at.is_some());
    database.change(Subject::Queue(args.queue.clone()), |store| store.queues().pause(&args.queue))?;
    let running = database.ask(|store| store.queues().count_running(&args.queue))?;
    let resume = global.hint(&format!("queue resume {}", quoted(&args.queue)));
    let runs = match running {
        0 => "no job is running".to_owned(),
        1 => "1 job is still running".to_owned(),
        jobs => format!("{jobs} jobs are still running"),
    };
    stderr::note(&format!("the queue `{}` is paused; {runs}; `{resume}` ends the pause", args.queue));
    super::print_change(global, &database, &args.queue, !was_paused)
}

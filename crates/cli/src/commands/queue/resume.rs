//! `windlass queue resume`: ends the pause of a queue.

use clap::Args;
use windlass_engine::store::Subject;

use crate::arguments::GlobalOptions;
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::stderr;

/// End the pause of a queue
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ResumeArgs {
    /// The queue
    #[arg(value_name = "QUEUE", add = complete::queue(), value_parser = super::parse_name)]
    queue: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass queue resume mail";

pub(super) fn execute(global: &GlobalOptions, args: &ResumeArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let has_ended =
        database.change(Subject::Queue(args.queue.clone()), |store| store.queues().resume(&args.queue))?;
    stderr::note(&match has_ended {
        true => format!("the queue `{}` is no longer paused", args.queue),
        false => format!("the queue `{}` was not paused", args.queue),
    });
    super::print_change(global, &database, &args.queue, has_ended)
}

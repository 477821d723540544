//! `windlass queue drain`: pauses a queue and waits until none of its jobs run.

use std::time::Duration;

use clap::Args;
use windlass_engine::store::Subject;
use windlass_system::wake_ups::WakeUps;

use crate::arguments::GlobalOptions;
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::shell_words::quoted;
use crate::signals::StopRequests;
use crate::stderr;
use crate::text::values::counted;

/// Pause a queue and wait for its running jobs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DrainArgs {
    /// The queue
    #[arg(value_name = "QUEUE", add = complete::queue(), value_parser = super::parse_name)]
    queue: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass queue drain mail && ./upgrade.sh && windlass queue resume mail

Ctrl-C ends the wait. The queue stays paused.";

/// The longest wait. A change ends the wait at once.
const POLL: Duration = Duration::from_secs(1);

pub(super) fn execute(global: &GlobalOptions, args: &DrainArgs) -> Result<(), Failure> {
    let database = Database::existing_or_new(global)?;
    let listener = database.store().listen(WakeUps::PROGRESS | WakeUps::STOP);
    let mut stops = StopRequests::listen(listener.clone())?;
    database.store().watch();
    let was_paused = super::read(&database, &args.queue)?.is_some_and(|queue| queue.paused_at.is_some());
    database.change(Subject::Queue(args.queue.clone()), |store| store.queues().pause(&args.queue))?;
    let resume = global.hint(&format!("queue resume {}", quoted(&args.queue)));
    let mut reported = None;
    loop {
        let running = database.ask(|store| store.queues().count_running(&args.queue))?;
        if running == 0 {
            break;
        }
        if reported.is_none_or(|reported| reported > running) {
            reported = Some(running);
            let jobs = counted(running, "running job", "running jobs");
            stderr::note(&format!("the queue `{}` is paused; waiting for {jobs}", args.queue));
        }
        if stops.new_request().is_some() {
            return Err(Failure::Interrupted {
                message: format!(
                    "{} still running; the queue stays paused",
                    counted(running, "job is", "jobs are")
                ),
                resume,
            });
        }
        listener.wait(POLL);
    }
    stderr::note(&format!(
        "the queue `{}` is paused and has no running jobs; `{resume}` ends the pause",
        args.queue
    ));
    super::print_change(global, &database, &args.queue, !was_paused)
}

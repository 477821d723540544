//! `windlass queue drain`: pause a queue and wait until nothing of it runs.

use std::time::Duration;

use clap::Args;
use windlass::wake_ups::WakeUps;

use crate::cli::{GlobalOptions, quoted};
use crate::database::Database;
use crate::error::Failure;
use crate::output;
use crate::signals::StopRequests;

/// Pause a queue and wait for its running jobs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DrainArgs {
    /// The queue
    #[arg(value_name = "QUEUE", value_parser = super::parse_name)]
    queue: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass queue drain mail && ./upgrade-mail-server && windlass queue resume mail

Ctrl-C ends the waiting, not the pause.";

/// How long it sleeps at most; changes wake it at once.
const POLL: Duration = Duration::from_secs(1);

pub(super) fn execute(global: &GlobalOptions, args: &DrainArgs) -> Result<(), Failure> {
    let database = Database::existing_or_new(global)?;
    let listener = database.store().listen(WakeUps::PROGRESS | WakeUps::STOP);
    let mut stops = StopRequests::listen(listener.clone())?;
    database.store().watch();
    database.ask(|store| store.queues().pause(&args.queue))?;
    let resume = global.hint(&format!("queue resume {}", quoted(&args.queue)));
    let mut told = None;
    loop {
        let running = database.ask(|store| store.queues().count_running(&args.queue))?;
        if running == 0 {
            break;
        }
        if told.is_none_or(|told| told > running) {
            told = Some(running);
            let jobs = if running == 1 { "1 job".to_owned() } else { format!("{running} jobs") };
            output::note(&format!("the queue `{}` is paused; {jobs} of it to end", args.queue));
        }
        if stops.news().is_some() {
            return Err(Failure::Interrupted {
                message: format!("{running} of its jobs still run; the queue stays paused"),
                resume,
            });
        }
        listener.wait(POLL);
    }
    output::note(&format!(
        "the queue `{}` is paused and nothing of it runs; `{resume}` ends the pause",
        args.queue
    ));
    Ok(())
}

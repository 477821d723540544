//! `windlass worker`: execute whatever is claimable, until stopped.

use std::time::Duration;

use clap::Args;
use windlass::store::Scope;
use windlass::wake_ups::WakeUps;

use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::execution::{Duties, WorkOptions, Workforce};
use crate::logging::{self, LogFormat, LogOptions};
use crate::signals::{StopRequests, Urgency};

/// Execute submitted runs and enqueued jobs until stopped
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkerArgs {
    /// Only jobs of these queues, separated by commas; without it, all queues
    #[arg(long = "queue", value_name = "QUEUES", value_delimiter = ',')]
    queues: Vec<String>,
    #[command(flatten)]
    work: WorkOptions,

    /// Stop when no work is left
    #[arg(long)]
    until_idle: bool,

    #[command(flatten)]
    log: LogOptions,
}

const EXAMPLES: &str = "\
Examples:
  windlass worker
  windlass worker --queue default,mail --threads 8
  windlass worker --until-idle    # for cron: do what there is, then stop

Any number of workers may share one database. The first Ctrl-C lets running jobs finish, the
second stops them. RUST_LOG=debug tells more.";

/// How long a worker that waits for the end of all work sleeps at most; changes wake it at once.
const IDLE_POLL: Duration = Duration::from_secs(1);

/// Executes until stopped, or until nothing is left.
pub(crate) fn execute(global: &GlobalOptions, args: &WorkerArgs) -> Result<(), Failure> {
    logging::start("info", args.log.format().unwrap_or(LogFormat::Text));
    let scope = scope(&args.queues)?;
    let database = Database::existing_or_new(global)?;
    // Only who waits for the end of all work wants to hear of every step.
    let wants = if args.until_idle { WakeUps::PROGRESS | WakeUps::STOP } else { WakeUps::STOP };
    let listener = database.store().listen(wants);
    let mut stops = StopRequests::listen(listener.clone())?;
    let duties = Duties::executing(scope.clone(), &args.work);
    let workforce = Workforce::start(global, &database, duties)?;
    tracing::info!(worker = workforce.worker_id(), database = %database.place(), "working");
    let mut was_stopped = false;
    while !workforce.has_ended() {
        match stops.news() {
            None => {}
            Some(Urgency::Drain) => {
                was_stopped = true;
                tracing::info!(
                    "draining: what runs may finish, nothing new starts (once more stops it at once)"
                );
                workforce.drain();
            }
            Some(Urgency::Leave) => {
                tracing::info!("stopping what runs");
                workforce.leave();
            }
        }
        let is_idle = || {
            database
                .ask(|store| store.for_workers().has_work(&scope, workforce.worker_capabilities()))
                .map(|work| !work)
        };
        if args.until_idle && !was_stopped && is_idle()? {
            tracing::info!("nothing is left to do for this worker");
            workforce.drain();
            break;
        }
        listener.wait(IDLE_POLL);
    }
    workforce.join(&database)?;
    stops.outcome(|| global.hint("worker"))
}

fn scope(queues: &[String]) -> Result<Scope, Failure> {
    if queues.iter().any(String::is_empty) {
        return Err(Failure::usage(
            "the name of a queue is empty",
            "write names separated by commas, for example --queue default,mail",
        ));
    }
    Ok(match queues {
        [] => Scope::Everything,
        queues => Scope::Queues(queues.to_vec()),
    })
}

//! `windlass worker`: executes jobs until it is stopped.

use std::time::Duration;

use clap::Args;
use windlass_engine::store::Scope;
use windlass_system::wake_ups::WakeUps;

use crate::arguments::{GlobalOptions, LogFormat, LogOptions, WorkOptions, push_option};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::execution::{LocalWorker, LocalWorkerOptions};
use crate::service::DEFAULT_LEVEL;
use crate::signals::{StopRequests, Urgency};
use crate::{config, logging, output};

/// Execute submitted runs and enqueued jobs until stopped
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkerArgs {
    /// Only jobs of these queues, separated by commas [default: all queues]
    #[arg(long = "queue", value_name = "QUEUES", add = complete::queue(), value_delimiter = ',')]
    queues: Option<Vec<String>>,
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
  windlass worker --until-idle    # for cron: execute all jobs, then stop

Any number of workers can share one database. The first Ctrl-C waits for
running jobs, the second stops them. RUST_LOG=debug shows more messages.";

/// The longest wait. A change ends the wait at once.
const IDLE_POLL: Duration = Duration::from_secs(1);

/// Executes jobs until a signal, or until no job is left.
pub(crate) fn execute(global: GlobalOptions, args: &WorkerArgs) -> Result<(), Failure> {
    let config = config::read_here(global.config().as_deref())?;
    let global = &global.configured(config.global.clone());
    let format = args.log.format().or(config.log_format).unwrap_or(LogFormat::Text);
    logging::start(logging::service_level(config.log_level.unwrap_or(DEFAULT_LEVEL), global), format);
    let next_step = "use --log-format json for a log with one JSON object per line";
    output::refuse_json(global, "worker", "a log", next_step)?;
    let scope = scope(args.queues.as_ref().or(config.queues.as_ref()))?;
    let work = WorkOptions {
        threads: args.work.threads.or(config.threads),
        capabilities: args.work.capabilities.clone().or(config.capabilities),
        code_version: args.work.code_version.or(config.code_version),
    };
    let database = Database::existing_or_new(global)?;
    // Only --until-idle needs a wake-up for each finished job.
    let wants = if args.until_idle { WakeUps::PROGRESS | WakeUps::STOP } else { WakeUps::STOP };
    let listener = database.store().listen(wants);
    let mut stops = StopRequests::listen(listener.clone())?;
    let worker_options = LocalWorkerOptions::executing(global, scope.clone(), &work);
    let worker = LocalWorker::start(global, &database, worker_options)?;
    tracing::info!(worker = worker.worker_id(), database = %database.address(), "worker started");
    let mut was_stopped = false;
    while !worker.has_ended() {
        match stops.new_request() {
            None => {}
            Some(Urgency::Drain) => {
                was_stopped = true;
                tracing::info!(
                    "stopping: waiting for running jobs to finish (send the signal again to stop them now)"
                );
                worker.drain();
            }
            Some(Urgency::Leave) => {
                tracing::info!("stopping running jobs");
                worker.leave();
            }
        }
        let is_idle = || {
            database
                .ask(|store| store.for_workers().has_work(&scope, worker.worker_capabilities()))
                .map(|work| !work)
        };
        if args.until_idle && !was_stopped && is_idle()? {
            tracing::info!("no job is left for this worker");
            worker.drain();
            break;
        }
        listener.wait(IDLE_POLL);
    }
    worker.join(&database)?;
    stops.outcome(|| args.hint(global))
}

impl WorkerArgs {
    /// The command that continues.
    fn hint(&self, global: &GlobalOptions) -> String {
        let mut verb = "worker".to_owned();
        push_option(&mut verb, "queue", self.queues.as_ref().map(|queues| queues.join(",")));
        self.work.push_options(&mut verb);
        if self.until_idle {
            verb.push_str(" --until-idle");
        }
        global.hint(&verb)
    }
}

fn scope(queues: Option<&Vec<String>>) -> Result<Scope, Failure> {
    let queues = queues.map_or(&[][..], Vec::as_slice);
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

//! Runs that are executed here, in the foreground, or watched while others execute them.

mod observer;
mod stall;
mod summary;
mod workforce;

use std::time::Duration;

use clap::Args;
use windlass::store::{Run, Scope};
use windlass::wake_ups::WakeUps;
use windlass::{FailureDetector, RunStatus, StopReason};

use crate::cli::{GlobalOptions, parse_name, quoted};
use crate::commands::inspect;
use crate::database::Database;
use crate::error::Failure;
use crate::lookup;
use crate::output::{self, Format, Output};
use crate::signals::{StopRequests, Urgency};
use crate::views::InspectedRun;
use observer::Observer;
use stall::{Activity, Stall};
pub(crate) use workforce::{Duties, Workforce, check_files};

/// How long a foreground run waits for a database that cannot be used before it gives up.
const FOREGROUND_PATIENCE: Duration = Duration::from_secs(30);

/// What a process that executes brings along.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WorkOptions {
    /// How many jobs run at once [default: one per processor, at least 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=1024))]
    pub(crate) threads: Option<i64>,

    /// Capabilities that this worker has, separated by commas, for example gpu
    #[arg(long = "capability", value_name = "NAMES", value_delimiter = ',', value_parser = parse_name)]
    pub(crate) capabilities: Option<Vec<String>>,

    /// The version of your code on this worker: jobs that require a later one are left to others [default: 0]
    #[arg(long = "code-version", value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) version: Option<i64>,
}

impl WorkOptions {
    /// A command that executes jobs and that the user may type next, with what this process brought along.
    pub(crate) fn hint(&self, global: &GlobalOptions, verb: &str) -> String {
        let mut verb = verb.to_owned();
        if let Some(capabilities) = &self.capabilities {
            verb.push_str(&format!(" --capability {}", quoted(&capabilities.join(","))));
        }
        if let Some(version) = self.version {
            verb.push_str(&format!(" --code-version {version}"));
        }
        global.hint(&verb)
    }
}

/// What is shown at the end, beside the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One run, as an object.
    One,
    /// Several runs, as a list.
    Many,
}

/// Executes runs here until they end or a signal stops it, with progress on standard error.
pub(crate) fn execute(
    global: &GlobalOptions,
    database: &Database,
    run_ids: &[i64],
    work: &WorkOptions,
    shape: Shape,
) -> Result<(), Failure> {
    let listener = database.store().listen(WakeUps::PROGRESS | WakeUps::STOP);
    let mut stops = StopRequests::listen(listener.clone())?;
    let mut observer = Observer::new(database, run_ids, listener)?;
    observer.open();
    let scope = Scope::Runs(run_ids.to_vec());
    let patience = Some(FOREGROUND_PATIENCE);
    let duties = Duties { patience, ..Duties::executing(scope, work) };
    let workforce = Workforce::start(global, database, duties)?;
    let mut stall = Stall::default();
    while !observer.look(database)? && !workforce.has_ended() {
        if let Some(why) = stall.look(observer.activity(), run_ids, database, global)? {
            observer.say(&why);
        }
        match stops.news() {
            None => {}
            Some(Urgency::Drain) => {
                observer
                    .say("stopping: what runs may finish, nothing new starts (once more stops it at once)");
                workforce.drain();
            }
            Some(Urgency::Leave) => {
                observer.say("stopping what runs");
                workforce.leave();
            }
        }
        observer.wait();
    }
    drop(observer);
    workforce.drain();
    let left = workforce.join(database);
    match (conclude(global, database, run_ids, work, shape), left) {
        // Nobody interrupted it: it gave up, and for that it has a reason.
        (Err(Failure::Interrupted { .. }), Err(reason)) => Err(reason),
        (concluded, _) => concluded,
    }
}

/// Watches a run until it ends, while others execute it.
pub(crate) fn watch(global: &GlobalOptions, database: &Database, run_id: i64) -> Result<(), Failure> {
    let listener = database.store().listen(WakeUps::PROGRESS);
    database.store().watch();
    let mut observer = Observer::new(database, &[run_id], listener)?;
    observer.open();
    let mut failure_detector = FailureDetector::default();
    let mut is_alone = false;
    let mut stall = Stall::default();
    while !observer.look(database)? {
        // A worker that dies tells nobody; whoever looks finds out.
        database.ask(|store| failure_detector.look(store))?;
        let was_alone = is_alone;
        is_alone = database.ask(|store| store.runs().is_interrupted(run_id))?;
        if is_alone && !was_alone {
            let resume = global.hint(&format!("resume {run_id}"));
            observer.say(&format!("nobody executes this run now; `{resume}` does"));
        }
        let activity = if is_alone { Activity::Some } else { observer.activity() };
        if let Some(why) = stall.look(activity, &[run_id], database, global)? {
            observer.say(&why);
        }
        observer.wait();
    }
    drop(observer);
    conclude(global, database, &[run_id], &WorkOptions::default(), Shape::One)
}

/// Says what came of the runs, prints them as data, and gives the exit code.
pub(crate) fn conclude(
    global: &GlobalOptions,
    database: &Database,
    run_ids: &[i64],
    work: &WorkOptions,
    shape: Shape,
) -> Result<(), Failure> {
    let runs: Vec<Run> =
        run_ids.iter().map(|run_id| lookup::run(database, *run_id)).collect::<Result<_, Failure>>()?;
    for run in runs.iter().filter(|run| run.status.is_terminal()) {
        output::note(&summary::closing(database, run, work, global)?);
    }
    print(global, database, &runs, shape)?;
    let unfinished: Vec<&Run> = runs.iter().filter(|run| !run.status.is_terminal()).collect();
    match unfinished.as_slice() {
        [] => runs.iter().filter_map(failure_of).next().map_or(Ok(()), Err),
        [only] => Err(Failure::Interrupted {
            message: format!(
                "run {} is interrupted: {} of its {} jobs are over",
                only.id,
                (only.total_jobs - only.unfinished_jobs).max(0),
                only.total_jobs
            ),
            resume: work.hint(global, &format!("resume {}", only.id)),
        }),
        several => Err(Failure::Interrupted {
            message: format!("{} runs are interrupted", several.len()),
            resume: work.hint(global, "resume"),
        }),
    }
}

/// The runs on standard output. Who stopped reading it still wants to know the outcome.
fn print(global: &GlobalOptions, database: &Database, runs: &[Run], shape: Shape) -> Result<(), Failure> {
    if global.output == Format::Text {
        return Ok(());
    }
    let output = Output { format: global.output };
    let views: Vec<InspectedRun> = runs
        .iter()
        .map(|run| Ok(inspect::RunFacts::read(database, run.clone())?.view()))
        .collect::<Result<_, Failure>>()?;
    let printed = match (shape, views.as_slice()) {
        (Shape::One, [only]) => output.object(only, |_| String::new()),
        (Shape::One | Shape::Many, views) => output.list(views, |_| String::new()),
    };
    match printed {
        Err(Failure::ClosedPipe) => Ok(()),
        other => other,
    }
}

/// The exit code of a run that is over, as a failure.
fn failure_of(run: &Run) -> Option<Failure> {
    match (run.status, run.stop_reason) {
        (RunStatus::Failed, Some(StopReason::TimedOut)) => Some(Failure::RunTimedOut),
        (RunStatus::Failed, Some(StopReason::Cancelled) | None) => Some(Failure::RunFailed),
        (RunStatus::Cancelled, _) => Some(Failure::RunCancelled),
        (RunStatus::Successful | RunStatus::Pending | RunStatus::Running, _) => None,
    }
}

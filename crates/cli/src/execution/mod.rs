//! Executes runs in the foreground, or watches runs that workers execute.

mod alone;
mod job_output;
mod local_worker;
mod observer;
mod stall;
mod summary;

use std::time::Duration;

use windlass_engine::store::{Run, Scope};
use windlass_engine::{RunStatus, StopReason};
use windlass_scheduler::FailureDetector;
use windlass_system::wake_ups::WakeUps;
use windlass_views::InspectedRun;

use crate::arguments::{GlobalOptions, OutputFormat, ShowOptions, WorkOptions};
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::signals::{StopRequests, Urgency};
use crate::{find, stderr};
pub(crate) use local_worker::{LocalWorker, LocalWorkerOptions, check_files};
use observer::Observer;
use stall::{Activity, Stall};
use summary::FailedOutput;

/// How long a foreground run waits for an unavailable database.
const FOREGROUND_PATIENCE: Duration = Duration::from_secs(30);

/// How the runs are printed as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputShape {
    /// One run, as an object.
    One,
    /// Several runs, as a list.
    Many,
}

/// Executes runs here until they end or a signal stops the command. Progress goes to standard error.
pub(crate) fn execute(
    global: &GlobalOptions,
    database: &Database,
    run_ids: &[i64],
    work: &WorkOptions,
    show: ShowOptions,
    shape: OutputShape,
) -> Result<(), Failure> {
    let listener = database.store().listen(WakeUps::PROGRESS | WakeUps::STOP);
    let mut stops = StopRequests::listen(listener.clone())?;
    let mut observer = Observer::new(database, run_ids, listener, global, show)?;
    observer.open();
    let scope = Scope::Runs(run_ids.to_vec());
    let patience = Some(FOREGROUND_PATIENCE);
    let worker_options =
        LocalWorkerOptions { patience, ..LocalWorkerOptions::executing(global, scope, work) };
    let worker = LocalWorker::start(global, database, worker_options)?;
    let mut stall = Stall::default();
    while !observer.show_changes(database)? && !worker.has_ended() {
        if let Some(why) = stall.check(observer.activity(), run_ids, database, global)? {
            observer.say(&why);
        }
        match stops.new_request() {
            None => {}
            Some(Urgency::Drain) => {
                observer.say("stopping: waiting for running jobs to finish (Ctrl-C again to stop them now)");
                worker.drain();
            }
            Some(Urgency::Leave) => {
                observer.say("stopping running jobs");
                worker.leave();
            }
        }
        observer.wait();
    }
    drop(observer);
    worker.drain();
    let left = worker.join(database);
    settle_files(database);
    match (conclude_shown(global, database, run_ids, work, shape, FailedOutput::Nothing), left) {
        // No signal interrupted the command: the worker gave up, and returned why.
        (Err(Failure::Interrupted { .. }), Err(reason)) => Err(reason),
        (concluded, _) => concluded,
    }
}

/// Removes the workspaces of the runs that are over. A failure does not change the outcome.
fn settle_files(database: &Database) {
    let failures = match windlass_scheduler::settle_files(database.store()) {
        Ok(failures) => failures,
        Err(error) => vec![error.to_string()],
    };
    for failure in failures {
        stderr::warn(&format!("warning: files of runs can't be removed: {failure}\n"));
    }
}

/// Watches a run that workers execute, until it ends.
pub(crate) fn watch(
    global: &GlobalOptions,
    database: &Database,
    run_id: i64,
    show: ShowOptions,
) -> Result<(), Failure> {
    let listener = database.store().listen(WakeUps::PROGRESS);
    database.store().watch();
    let mut observer = Observer::new(database, &[run_id], listener, global, show)?;
    observer.open();
    let mut failure_detector = FailureDetector::default();
    let mut is_alone = false;
    let mut stall = Stall::default();
    while !observer.show_changes(database)? {
        // A dead worker sends no message, so look for dead workers here.
        database.ask(|store| failure_detector.rescue_dead_workers(store))?;
        let was_alone = is_alone;
        is_alone = database.ask(|store| store.runs().is_interrupted(run_id))?;
        if is_alone && !was_alone {
            let resume = global.hint(&format!("resume {run_id}"));
            observer.say(&format!("no worker executes this run; `{resume}` continues it"));
        }
        let activity = if is_alone { Activity::Some } else { observer.activity() };
        if let Some(why) = stall.check(activity, &[run_id], database, global)? {
            observer.say(&why);
        }
        observer.wait();
    }
    drop(observer);
    conclude_shown(
        global,
        database,
        &[run_id],
        &WorkOptions::default(),
        OutputShape::One,
        FailedOutput::Nothing,
    )
}

/// Prints the outcome of runs that had ended before, and returns it as an exit code.
pub(crate) fn conclude(
    global: &GlobalOptions,
    database: &Database,
    run_ids: &[i64],
    work: &WorkOptions,
    shape: OutputShape,
) -> Result<(), Failure> {
    conclude_shown(global, database, run_ids, work, shape, FailedOutput::LastLines)
}

fn conclude_shown(
    global: &GlobalOptions,
    database: &Database,
    run_ids: &[i64],
    work: &WorkOptions,
    shape: OutputShape,
    failed: FailedOutput,
) -> Result<(), Failure> {
    let runs: Vec<Run> =
        run_ids.iter().map(|run_id| find::run(database, *run_id)).collect::<Result<_, Failure>>()?;
    for run in runs.iter().filter(|run| run.status.is_terminal()) {
        let text = summary::closing(database, run, work, global, failed)?;
        match run.status {
            RunStatus::Successful => stderr::note(&text),
            RunStatus::Failed | RunStatus::Cancelled | RunStatus::Pending | RunStatus::Running => {
                stderr::warn(&text);
            }
        }
    }
    print(global, database, &runs, shape)?;
    let unfinished: Vec<&Run> = runs.iter().filter(|run| !run.status.is_terminal()).collect();
    match unfinished.as_slice() {
        [] => runs.iter().filter_map(failure_of).next().map_or(Ok(()), Err),
        [only] => Err(Failure::Interrupted {
            message: format!(
                "run {} is interrupted: {} of {} jobs have ended",
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

/// Prints the runs as JSON. A closed standard output does not change the outcome.
fn print(
    global: &GlobalOptions,
    database: &Database,
    runs: &[Run],
    shape: OutputShape,
) -> Result<(), Failure> {
    if global.output == OutputFormat::Text {
        return Ok(());
    }
    let output = Output { format: global.output };
    let views: Vec<InspectedRun> =
        database.ask(|store| runs.iter().map(|run| InspectedRun::read(store, run)).collect())?;
    let printed = match (shape, views.as_slice()) {
        (OutputShape::One, [only]) => output.object(only, |_| String::new()),
        (OutputShape::One | OutputShape::Many, views) => output.list(views, |_| String::new()),
    };
    match printed {
        Err(Failure::ClosedPipe) => Ok(()),
        other => other,
    }
}

/// The failure with the exit code of a run that has ended.
fn failure_of(run: &Run) -> Option<Failure> {
    match (run.status, run.stop_reason) {
        (RunStatus::Failed, Some(StopReason::TimedOut)) => Some(Failure::RunTimedOut),
        (RunStatus::Failed, Some(StopReason::Cancelled | StopReason::Skipped) | None) => {
            Some(Failure::RunFailed)
        }
        (RunStatus::Cancelled, _) => Some(Failure::RunCancelled),
        (RunStatus::Successful | RunStatus::Pending | RunStatus::Running, _) => None,
    }
}

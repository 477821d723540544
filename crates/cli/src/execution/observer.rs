//! Reads runs repeatedly and shows their changes, and what their jobs write.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use windlass_engine::store::{Job, Run};
use windlass_system::wake_ups::WakeUpListener;
use windlass_workflow::RunHandler;

use super::alone::alone;
use super::job_output::JobOutput;
use super::stall::Activity;
use super::summary;
use crate::arguments::{GlobalOptions, ShowOptions};
use crate::database::Database;
use crate::error::Failure;
use crate::progress::{Change, Display, FailedOutput, JobState, Order, OutputPlan, Tracker};
use crate::text::called_jobs::{CalledJobs, has_calls};
use crate::text::time;
use crate::{find, stderr};

/// Each read starts this long before the newest known change, because an earlier transaction may commit later.
const OVERLAP_MS: i64 = 2_000;
/// The shortest time between two reads.
const MIN_SPACING: Duration = Duration::from_millis(10);
/// The longest time between two reads.
const MAX_SPACING: Duration = Duration::from_millis(500);
/// Reading may take this share of the time (one tenth). The jobs of a large run are therefore read less often.
const COST_SHARE: u32 = 10;
/// The order of the jobs of a larger run is not examined. They may run side by side.
const MAX_ORDERED_JOBS: usize = 10_000;

/// Observes some runs.
pub(super) struct Observer {
    listener: WakeUpListener,
    watched: Vec<WatchedRun>,
    names: JobNaming,
    tracker: Tracker,
    display: Display,
    output: JobOutput,
    read_at: Instant,
    spacing: Duration,
}

struct WatchedRun {
    run: Run,
    newest_change_ms: i64,
    /// Whether its jobs may start runs, whose jobs are shown too.
    has_calls: bool,
    called: CalledJobs,
    /// When the jobs are read again. The run itself is read every time, so that its end is seen at once.
    jobs_due_at: Instant,
}

/// How jobs are named.
#[derive(Debug, Clone, Copy)]
enum JobNaming {
    /// `build`, when there is one run.
    Short,
    /// `3/build`.
    WithRun,
}

impl Observer {
    /// Begins with the current states. Only later changes are shown.
    pub(super) fn new(
        database: &Database,
        run_ids: &[i64],
        listener: WakeUpListener,
        global: &GlobalOptions,
        show: ShowOptions,
    ) -> Result<Observer, Failure> {
        let names = if run_ids.len() == 1 { JobNaming::Short } else { JobNaming::WithRun };
        let mut watched = Vec::new();
        let mut states = Vec::new();
        let mut total = 0;
        let mut alone = HashSet::new();
        for run_id in run_ids {
            let run = find::run(database, *run_id)?;
            let jobs = database.ask(|store| store.jobs().of_run(*run_id))?;
            total += jobs.len();
            if run_ids.len() == 1 && jobs.len() <= MAX_ORDERED_JOBS {
                alone = jobs_alone(database, *run_id, &jobs)?;
            }
            let mut watched_run = WatchedRun {
                run,
                newest_change_ms: 0,
                has_calls: has_calls(&jobs),
                called: CalledJobs::default(),
                jobs_due_at: Instant::now(),
            };
            let jobs = watched_run.with_called(database, jobs, i64::MIN)?;
            watched_run.newest_change_ms = jobs.iter().map(|job| job.updated_at).max().unwrap_or(0);
            states.extend(jobs.iter().map(|job| names.state(job, &watched_run.called)));
            watched.push(watched_run);
        }
        let longest = states.iter().map(|state| console::measure_text_width(&state.name)).max();
        let mut display = Display::new(global.output, stderr::talk(), time::now_ms(), longest.unwrap_or(0));
        let has_calls = watched.iter().any(|watched| watched.has_calls);
        let is_chain = !has_calls && states.iter().all(|job| alone.contains(&job.id));
        let order = if is_chain { Order::OneAfterTheOther } else { Order::SideBySide };
        let plan = OutputPlan::of(show.show, order, display.place());
        display.name_lines(plan.names);
        let output = JobOutput::new(plan, alone, &states, database)?;
        let tracker = Tracker::new(total, states);
        let read_at = Instant::now();
        Ok(Observer { listener, watched, names, tracker, display, output, read_at, spacing: MIN_SPACING })
    }

    /// Shows the first line of each run.
    pub(super) fn open(&self) {
        for watched in &self.watched {
            self.say(&summary::opening(&watched.run));
        }
    }

    /// Shows the changes since the last read. Returns whether all runs have ended.
    pub(super) fn show_changes(&mut self, database: &Database) -> Result<bool, Failure> {
        self.read_at = Instant::now();
        let mut states = Vec::new();
        for watched in &mut self.watched {
            let jobs = watched.changes(database)?;
            states.extend(jobs.iter().map(|job| self.names.state(job, &watched.called)));
        }
        let total = self.tracker.counts().total;
        for event in self.tracker.update(states) {
            self.show_output(database, &event.job, event.ended_attempt())?;
            let output = match event.change {
                Change::Failed => self.output.of_failed(database, &event.job)?,
                Change::Started
                | Change::Successful
                | Change::Retrying
                | Change::Interrupted
                | Change::Skipped
                | Change::Cancelled => FailedOutput::default(),
            };
            self.display.event(&event, &output, total);
        }
        let running = self.tracker.running();
        for job in self.output.next_jobs(&running) {
            let lines = self.output.next(database, job, job.attempt)?;
            self.display.lines(job, &lines, total);
        }
        let named = &running[..self.display.named_jobs(running.len())];
        let tails = self.output.tails(database, named, self.display.tail_lines(named.len()))?;
        self.display.refresh(&self.tracker, &tails, time::now_ms());
        self.spacing = (self.read_at.elapsed() * COST_SHARE).clamp(MIN_SPACING, MAX_SPACING);
        Ok(self.watched.iter().all(|watched| watched.run.status.is_terminal()))
    }

    /// Waits for a change, or for the next refresh of the view.
    pub(super) fn wait(&self) {
        // One read for many small changes.
        thread::sleep(self.spacing.saturating_sub(self.read_at.elapsed()));
        self.listener.wait(self.display.refresh_interval());
    }

    /// Whether any job ran at the last read, or waited for a retry.
    pub(super) fn activity(&self) -> Activity {
        match self.tracker.is_idle() {
            true => Activity::None,
            false => Activity::Some,
        }
    }

    /// Shows a message above the progress.
    pub(super) fn say(&self, text: &str) {
        self.display.say(text);
    }

    /// Shows the lines of a job up to the end of an attempt, if they are shown as they come.
    fn show_output(
        &mut self,
        database: &Database,
        job: &JobState,
        through_attempt: i64,
    ) -> Result<(), Failure> {
        loop {
            let lines = self.output.next(database, job, through_attempt)?;
            if lines.is_empty() {
                return Ok(());
            }
            self.display.lines(job, &lines, self.tracker.counts().total);
        }
    }
}

/// The jobs of a run that no other job can run beside. An item can run beside the others, and so can a job of a run
/// that was started by a job.
fn jobs_alone(database: &Database, run_id: i64, jobs: &[Job]) -> Result<HashSet<i64>, Failure> {
    let edges = database.ask(|store| store.jobs().dependencies(run_id))?;
    let mut found = HashSet::new();
    // The handlers begin after the jobs. Only one of their tables is used, and then `finally`.
    for handler in [None].into_iter().chain(RunHandler::ALL.map(Some)) {
        let side_by_side = jobs.iter().filter(|job| job.group_id.is_none() && job.handler == handler);
        let ids: Vec<i64> = side_by_side.map(|job| job.id).collect();
        found.extend(alone(&ids, &edges));
    }
    Ok(found)
}

/// Removes the live view, also after an error.
impl Drop for Observer {
    fn drop(&mut self) {
        self.display.end();
    }
}

impl WatchedRun {
    /// Adds the jobs of child runs that changed at an instant or later.
    fn with_called(
        &mut self,
        database: &Database,
        mut jobs: Vec<Job>,
        since_ms: i64,
    ) -> Result<Vec<Job>, Failure> {
        if self.has_calls {
            let run_id = self.run.id;
            // The runs are read after the jobs, so that the run of each job is known.
            jobs.extend(database.ask(|store| store.jobs().changed_below(run_id, since_ms))?);
            self.called.learn(database, run_id)?;
        }
        Ok(jobs)
    }

    /// The jobs that changed since the last call, and possibly others.
    fn changes(&mut self, database: &Database) -> Result<Vec<Job>, Failure> {
        if self.run.status.is_terminal() {
            return Ok(Vec::new());
        }
        // Read the run before its jobs: if the run has ended, so have they.
        self.run = find::run(database, self.run.id)?;
        let began = Instant::now();
        let jobs = if self.run.status.is_terminal() {
            // Read all jobs once more, because a clock that was set back could have hidden a change.
            let jobs = database.ask(|store| store.jobs().of_run(self.run.id))?;
            self.with_called(database, jobs, i64::MIN)?
        } else if began < self.jobs_due_at {
            return Ok(Vec::new());
        } else {
            let since_ms = self.newest_change_ms - OVERLAP_MS;
            let jobs = database.ask(|store| store.jobs().changed(self.run.id, since_ms))?;
            self.with_called(database, jobs, since_ms)?
        };
        // Reading a large run takes long, and its workers need the processor.
        self.jobs_due_at = began + began.elapsed() * COST_SHARE;
        let newest = jobs.iter().map(|job| job.updated_at).max();
        self.newest_change_ms = newest.unwrap_or(0).max(self.newest_change_ms);
        Ok(jobs)
    }
}

impl JobNaming {
    fn state(self, job: &Job, called: &CalledJobs) -> JobState {
        JobState {
            id: job.id,
            name: match self {
                JobNaming::Short => called.name(job),
                JobNaming::WithRun => job.label(),
            },
            status: job.status,
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            failures: job.failures,
            interruptions: job.interruptions,
            execute_after_ms: job.execute_after,
            started_at_ms: job.started_at,
            finished_at_ms: job.finished_at,
            updated_at_ms: job.updated_at,
            allow_failure: job.allow_failure,
            last_error: job.last_error.clone(),
        }
    }
}

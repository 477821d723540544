//! Reads runs repeatedly and shows their changes.

use std::thread;
use std::time::{Duration, Instant};

use windlass_engine::store::{Job, Run};
use windlass_system::wake_ups::WakeUpListener;

use super::stall::Activity;
use super::summary;
use crate::database::Database;
use crate::error::Failure;
use crate::find;
use crate::progress::{Change, Display, Event, JobState, Tracker};
use crate::text::called_jobs::{CalledJobs, has_calls};
use crate::text::failed_jobs::TAIL_LINES;
use crate::text::time;

/// Each read starts this long before the newest known change, because an earlier transaction may commit later.
const OVERLAP_MS: i64 = 2_000;
/// The shortest time between two reads.
const MIN_SPACING: Duration = Duration::from_millis(10);
/// The longest time between two reads.
const MAX_SPACING: Duration = Duration::from_millis(500);
/// Reading may take this share of the time (one tenth). The jobs of a large run are therefore read less often.
const COST_SHARE: u32 = 10;
/// How many failed jobs are shown with their output. Later ones show only their error.
const MAX_TAILS: usize = 20;

/// Observes some runs.
pub(super) struct Observer {
    listener: WakeUpListener,
    watched: Vec<WatchedRun>,
    names: JobNaming,
    tracker: Tracker,
    display: Display,
    tails_shown: usize,
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
    ) -> Result<Observer, Failure> {
        let names = if run_ids.len() == 1 { JobNaming::Short } else { JobNaming::WithRun };
        let mut watched = Vec::new();
        let mut states = Vec::new();
        let mut total = 0;
        for run_id in run_ids {
            let run = find::run(database, *run_id)?;
            let jobs = database.ask(|store| store.jobs().of_run(*run_id))?;
            total += jobs.len();
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
        let display = Display::for_stderr(time::now_ms(), longest.unwrap_or(0));
        let tracker = Tracker::new(total, states);
        let read_at = Instant::now();
        Ok(Observer {
            listener,
            watched,
            names,
            tracker,
            display,
            tails_shown: 0,
            read_at,
            spacing: MIN_SPACING,
        })
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
        for event in self.tracker.update(states) {
            let tail = self.tail(database, &event)?;
            self.display.event(&event, &tail, self.tracker.counts().total);
        }
        self.display.refresh(&self.tracker, time::now_ms());
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

    fn tail(&mut self, database: &Database, event: &Event) -> Result<Vec<String>, Failure> {
        if event.change != Change::Failed || self.tails_shown >= MAX_TAILS {
            return Ok(Vec::new());
        }
        self.tails_shown += 1;
        let (job_id, attempt) = (event.job.id, event.job.attempt);
        let lines = database.ask(|store| store.logs().last(job_id, attempt, TAIL_LINES))?;
        Ok(lines.into_iter().map(|line| line.text).collect())
    }
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

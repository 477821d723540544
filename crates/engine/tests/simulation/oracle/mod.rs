//! The oracle: what the tables must hold after each call of the store, according to the rules alone.
//!
//! It is a small model in memory, without SQL, transactions, indexes or handing over. For each operation of the store
//! it has a function that makes the same change by the rules of the guide, and returns what the store must return.

mod admission;
mod attempts;
mod claims;
mod compare;
mod graph;
mod people;
mod schedules;
mod scripted;
mod workers;

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::status::StopReason;
use windlass_engine::store::LogLine;
use windlass_engine::{JobStatus, RunStatus};
use windlass_workflow::model::{OnFull, Schedule};

pub use attempts::End;
pub use people::Refusal;
pub use scripted::{Script, ScriptedResult};

use crate::rules::JobRules;

/// What the tables must hold.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    pub jobs: BTreeMap<i64, Job>,
    pub runs: BTreeMap<i64, Run>,
    pub workers: BTreeMap<i64, Worker>,
    pub queues: BTreeMap<String, Queue>,
    pub schedules: BTreeMap<i64, ScheduleRules>,
    /// Lines of output, by job, attempt and number.
    pub lines: BTreeMap<(i64, i64, i64), String>,
    /// The owner of each attempt. A second owner would be a double claim.
    owners: BTreeMap<(i64, i64), i64>,
}

/// A row of `jobs`.
#[derive(Debug, Clone)]
pub struct Job {
    pub id: i64,
    pub run_id: Option<i64>,
    /// The settings it was submitted with.
    pub rules: JobRules,
    pub parents: Vec<i64>,
    pub status: JobStatus,
    pub attempt: i64,
    pub failures: i64,
    pub interruptions: i64,
    pub priority: i64,
    /// The earliest and the latest instant at which it may be due, because the backoff has a random part.
    pub due: (i64, i64),
    pub owner: Option<i64>,
    /// Whether it was asked to stop.
    pub is_stopping: bool,
    /// Whether the consequences of its end were applied.
    pub is_over: bool,
    /// While it is WAITING: whether for a decision of the scheduler, and not for a slot of its key.
    pub is_undecided: bool,
    /// Whether it was skipped because a job before it failed or was cancelled.
    pub upstream_failed: bool,
    pub output: Option<String>,
    /// The recorded attempts: number, worker, outcome.
    pub kept_attempts: BTreeMap<i64, (i64, &'static str)>,
    /// How often a person retried it.
    pub retries: u64,
}

/// A row of `runs`. What is counted or decided from its jobs is computed.
#[derive(Debug, Clone)]
pub struct Run {
    pub id: i64,
    pub run_key: Option<String>,
    pub timeout_ms: Option<i64>,
    pub deadline_at: Option<i64>,
    /// Whether one of its jobs was claimed since it was last retried.
    pub has_started: bool,
    pub stop_reason: Option<StopReason>,
    /// Whether a person, its deadline or a full key has changed its course, so that its script alone does not decide
    /// its end.
    pub is_touched: bool,
    /// The schedule that started it, and the nominal time.
    pub occasion: Option<(i64, i64)>,
}

/// A row of `workers`.
#[derive(Debug, Clone)]
pub struct Worker {
    pub is_alive: bool,
    pub heartbeats: i64,
}

/// A row of `queues`, and what is counted for it.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    pub is_paused: bool,
    pub max_running: Option<i64>,
    /// At most so many starts within so many milliseconds.
    pub rate: Option<(usize, i64)>,
    pub is_fifo: bool,
    /// When its jobs were started.
    pub starts: Vec<i64>,
    /// The job that was claimed last.
    pub turn: Option<i64>,
}

/// The settings of a concurrency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub name: String,
    pub limit: i64,
    pub on_full: OnFull,
}

/// A schedule, and since when it is active.
#[derive(Debug, Clone)]
pub struct ScheduleRules {
    pub definition: Schedule,
    pub every_ms: i64,
    pub made_at_ms: i64,
}

impl Run {
    pub fn new(id: i64) -> Run {
        Run {
            id,
            run_key: None,
            timeout_ms: None,
            deadline_at: None,
            has_started: false,
            stop_reason: None,
            is_touched: false,
            occasion: None,
        }
    }
}

impl Job {
    /// Whether its children can run.
    pub fn has_passed(&self) -> bool {
        self.is_over && !self.is_broken() && !self.is_not_needed()
    }

    /// Whether its children can't run, because it failed, was cancelled, or was skipped because of such a job.
    pub fn is_broken(&self) -> bool {
        self.is_over
            && (self.status == JobStatus::Cancelled
                || (self.status == JobStatus::Failed && !self.rules.allow_failure)
                || self.upstream_failed)
    }

    /// Whether it was skipped although no job before it failed.
    pub fn is_not_needed(&self) -> bool {
        self.status == JobStatus::Skipped && !self.upstream_failed
    }

    /// Whether another program wrote its end, and the consequences were not applied yet.
    pub fn is_reported(&self) -> bool {
        !self.is_over && self.status.is_terminal()
    }

    pub fn holds_key(&self, key: &str) -> bool {
        self.has_key(key) && matches!(self.status, JobStatus::Pending | JobStatus::Running)
    }

    pub fn waits_for_key(&self, key: &str) -> bool {
        self.has_key(key) && self.status == JobStatus::Waiting && !self.is_undecided
    }

    fn has_key(&self, key: &str) -> bool {
        self.rules.key.as_ref().is_some_and(|own| own.name == key)
    }

    /// Its position in the order of claiming: the instant at which it became due, with a head start of one minute for
    /// each point of priority.
    pub fn rank(&self) -> (i64, i64) {
        (self.due.0 - self.priority * 60_000, self.id)
    }

    fn is_owned_by(&self, worker_id: i64, attempt: i64) -> bool {
        self.status == JobStatus::Running && self.owner == Some(worker_id) && self.attempt == attempt
    }

    fn end(&mut self, status: JobStatus) {
        self.status = status;
        self.is_over = true;
    }
}

impl Oracle {
    pub fn jobs_of(&self, run_id: i64) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(move |job| job.run_id == Some(run_id))
    }

    pub fn unfinished(&self, run_id: i64) -> i64 {
        self.jobs_of(run_id).filter(|job| !job.is_over).count() as i64
    }

    /// The number of jobs that failed without `allow_failure`, or were cancelled.
    pub fn failed(&self, run_id: i64) -> i64 {
        let has_failed = |job: &&Job| {
            job.is_over
                && (job.status == JobStatus::Cancelled
                    || (job.status == JobStatus::Failed && !job.rules.allow_failure))
        };
        self.jobs_of(run_id).filter(has_failed).count() as i64
    }

    pub fn run_status(&self, run: &Run) -> RunStatus {
        if self.unfinished(run.id) > 0 {
            return if run.has_started { RunStatus::Running } else { RunStatus::Pending };
        }
        match run.stop_reason {
            Some(StopReason::Cancelled | StopReason::Skipped) => RunStatus::Cancelled,
            Some(StopReason::TimedOut) => RunStatus::Failed,
            None if self.failed(run.id) > 0 => RunStatus::Failed,
            None => RunStatus::Successful,
        }
    }

    /// The outputs of some jobs of a run, by name.
    pub fn outputs(&self, run_id: i64, names: &[String]) -> BTreeMap<String, Option<String>> {
        let wanted = self.jobs_of(run_id).filter(|job| names.contains(&job.rules.name));
        wanted.map(|job| (job.rules.name.clone(), job.output.clone())).collect()
    }

    /// Records lines of output. Lines that exist already stay.
    pub fn append(&mut self, lines: &[LogLine]) {
        for line in lines {
            self.lines.entry((line.job_id, line.attempt, line.line)).or_insert_with(|| line.text.clone());
        }
    }

    fn is_fifo(&self, queue: &str) -> bool {
        self.queues.get(queue).is_some_and(|queue| queue.is_fifo)
    }

    fn keys(&self) -> BTreeSet<String> {
        self.jobs.values().filter_map(|job| Some(job.rules.key.as_ref()?.name.clone())).collect()
    }
}

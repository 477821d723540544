//! What `windlass top` shows, and what the thread that reads and the one that draws tell each other.

use std::collections::BTreeMap;

use windlass_engine::store::{FailureGroup, Failures, JobSummary, LogLine, OldestJob, Queue};

/// The lists, as of one moment.
#[derive(Debug, Clone)]
pub(super) struct Lists {
    /// All queues.
    pub(super) queues: Vec<Queue>,
    /// The oldest job of each queue that can be claimed.
    pub(super) oldest: BTreeMap<String, OldestJob>,
    /// Running jobs, the one that started first first.
    pub(super) running: Vec<JobSummary>,
    /// Whether more jobs run than these.
    pub(super) has_more_running: bool,
    /// What failed in the last day.
    pub(super) failures: Failures,
}

/// What makes a group of failures: its workflow, its job and the first line of its error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupName {
    pub(super) workflow: String,
    pub(super) job: String,
    pub(super) error: String,
}

impl GroupName {
    pub(super) fn of(group: &FailureGroup) -> GroupName {
        GroupName { workflow: group.workflow.clone(), job: group.job.clone(), error: group.error.clone() }
    }
}

/// A run of a group of failures, or a job without a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailedRun {
    /// `None` for a job without a run.
    pub(super) run_id: Option<i64>,
    /// The job whose output tells most.
    pub(super) job_id: i64,
    /// Its name, or its kind if it has no run.
    pub(super) job: String,
    pub(super) error: String,
}

/// What the thread that draws asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// The output of this job, now and as it grows.
    Follow(i64),
    /// The runs of a group of failures.
    Open { name: GroupName, run_ids: Vec<i64>, job_ids: Vec<i64> },
    /// Pause this queue.
    Pause(String),
    /// End the pause of this queue.
    Resume(String),
}

/// Where lines of output go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// They are all that is shown of the job.
    InPlaceOfAll,
    /// They follow those that are shown.
    AtTheEnd,
}

/// What the thread that reads tells.
#[derive(Debug, Clone)]
pub(super) enum News {
    Lists(Box<Lists>),
    Output {
        job_id: i64,
        lines: Vec<LogLine>,
        placement: Placement,
        is_over: bool,
    },
    Runs {
        name: GroupName,
        runs: Vec<FailedRun>,
    },
    /// A change was made.
    Done(String),
    /// Something could not be read or changed.
    Problem(String),
}

//! What a verb changed, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{JobView, QueueView, RegistrationView, RunView, ScheduleView};

/// A queue after a verb that changes queues.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangedQueue {
    /// The queue as it is now.
    #[serde(flatten)]
    pub queue: QueueView,
    /// False if it was like this before.
    pub changed: bool,
}

/// A schedule after a verb that changes schedules.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangedSchedule {
    /// The schedule as it is now, or as it was when it was removed.
    #[serde(flatten)]
    pub schedule: ScheduleView,
    /// False if it was like this before.
    pub changed: bool,
}

/// A registered workflow after a verb that changes it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangedWorkflow {
    /// The workflow as it is now, or as it was when it was removed.
    #[serde(flatten)]
    pub workflow: RegistrationView,
    /// False if it was like this before.
    pub changed: bool,
}

/// A job after a verb that changes it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangedJob {
    /// The job as it is now.
    #[serde(flatten)]
    pub job: JobView,
    /// False if it was like this before.
    pub changed: bool,
}

/// A run after it was cancelled.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CancelledRun {
    /// The run as it is now.
    #[serde(flatten)]
    pub run: RunView,
    /// False if it had ended or was stopping before.
    pub changed: bool,
    /// How many of its jobs ended at once.
    pub cancelled_jobs: i64,
    /// How many of its jobs run and are being stopped.
    pub stopping_jobs: i64,
}

/// A job after it was cancelled.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CancelledJob {
    /// The job as it is now.
    #[serde(flatten)]
    pub job: JobView,
    /// False if it had ended or was stopping before.
    pub changed: bool,
    /// How many jobs ended at once: the job itself, or its items.
    pub cancelled_jobs: i64,
    /// How many jobs run and are being stopped.
    pub stopping_jobs: i64,
}

/// A run of which jobs are ready to run again.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RetriedRun {
    /// The run as it is now.
    #[serde(flatten)]
    pub run: RunView,
    /// How many of its jobs are ready to run again.
    pub retried_jobs: i64,
}

/// Jobs that belong to no run, after all that match were retried, or before it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RetriedJobs {
    /// How many jobs match, up to a million.
    pub matching_jobs: i64,
    /// How many of them are ready to run again; 0 without `--yes`.
    pub retried_jobs: i64,
}

/// What a retry of a run would execute.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RetryPreview")]
pub struct RetryPreviewView {
    /// The run.
    pub run_id: i64,
    /// The jobs that would run again, in the order of the file.
    pub jobs: Vec<RetriedJobPreview>,
}

/// A job that would run again.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RetriedJobPreview {
    /// Its name.
    pub job: String,
    /// Why: `ended` without success, `items` of it did, `changed`, `added`, `named`, `after` another job, or `handler`.
    pub reason: String,
    /// The job that it needs, which would run again.
    pub after: Option<String>,
}

/// Jobs that belong to no run, after all that match were deleted, or before it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeletedJobs {
    /// How many jobs match, up to a million.
    pub matching_jobs: i64,
    /// How many of them are deleted; 0 without `--yes`.
    pub deleted_jobs: i64,
}

/// A job that was deleted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeletedJob {
    /// The job.
    pub job_id: i64,
}

//! A job as JSON.

use serde::Serialize;
use serde_json::Value;
use windlass::store::{Attempt, Job};

use crate::database::Database;
use crate::error::Failure;
use crate::lookup;

use super::{duration_ms, instant, json};

/// A job.
#[derive(Debug, Serialize)]
pub(crate) struct JobView {
    id: i64,
    run_id: Option<i64>,
    name: Option<String>,
    kind: String,
    queue: String,
    status: &'static str,
    priority: i64,
    needs: Vec<String>,
    attempt: i64,
    max_attempts: i64,
    failures: i64,
    interruptions: i64,
    execute_after: Option<String>,
    created_at: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
    duration_ms: Option<i64>,
    worker_id: Option<i64>,
    allow_failure: bool,
    last_error: Option<String>,
    output: Option<Value>,
}

impl JobView {
    /// A job with the names of the jobs that it needs from the database.
    pub(crate) fn read(database: &Database, job: &Job) -> Result<JobView, Failure> {
        Ok(JobView::new(job, lookup::needs(database, job)?))
    }

    /// A job with the names of the jobs that it needs.
    pub(crate) fn new(job: &Job, needs: Vec<String>) -> JobView {
        JobView {
            id: job.id,
            run_id: job.run_id,
            name: job.name.clone(),
            kind: job.kind.clone(),
            queue: job.queue.clone(),
            status: job.status.as_str(),
            priority: job.priority,
            needs,
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            failures: job.failures,
            interruptions: job.interruptions,
            execute_after: instant(Some(job.execute_after)),
            created_at: instant(Some(job.created_at)),
            started_at: instant(job.started_at),
            finished_at: instant(job.finished_at),
            duration_ms: duration_ms(job.started_at, job.finished_at),
            worker_id: job.worker_id,
            allow_failure: job.allow_failure,
            last_error: job.last_error.clone(),
            output: job.output.as_deref().map(json),
        }
    }
}

/// A job with what it was given and the attempts that did not succeed.
#[derive(Debug, Serialize)]
pub(crate) struct InspectedJob {
    #[serde(flatten)]
    job: JobView,
    payload: Value,
    attempts: Vec<AttemptView>,
}

impl InspectedJob {
    pub(crate) fn new(job: &Job, needs: Vec<String>, attempts: &[Attempt]) -> InspectedJob {
        InspectedJob {
            job: JobView::new(job, needs),
            payload: json(&job.payload),
            attempts: attempts.iter().map(AttemptView::new).collect(),
        }
    }
}

/// An attempt that did not succeed.
#[derive(Debug, Serialize)]
pub(crate) struct AttemptView {
    attempt: i64,
    outcome: String,
    error: Option<String>,
    worker_id: Option<i64>,
    started_at: Option<String>,
    finished_at: Option<String>,
}

impl AttemptView {
    fn new(attempt: &Attempt) -> AttemptView {
        AttemptView {
            attempt: attempt.attempt,
            outcome: attempt.outcome.clone(),
            error: attempt.error.clone(),
            worker_id: attempt.worker_id,
            started_at: instant(attempt.started_at),
            finished_at: instant(Some(attempt.finished_at)),
        }
    }
}

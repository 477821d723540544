//! A job as JSON.

use serde::Serialize;
use serde_json::Value;
use windlass_engine::store::{Attempt, Job, Rounds};
use windlass_engine::{Result, Store, WaitsFor};

use windlass_workflow::model::RunHandler;

use crate::json;
use crate::time::{duration_ms, instant};

/// A job.
#[derive(Debug, Serialize)]
pub struct JobView {
    job_id: i64,
    run_id: Option<i64>,
    job: Option<String>,
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
    waits_for: Option<&'static str>,
    upstream_failed: bool,
    handler: Option<&'static str>,
    exit_code: Option<i64>,
    deadline_at: Option<String>,
    group: Option<String>,
    index: Option<i64>,
    item: Option<Value>,
    last_error: Option<String>,
    output: Option<Value>,
}

impl JobView {
    /// Reads the names of the jobs that the job needs.
    pub fn read(store: &Store, job: &Job) -> Result<JobView> {
        Ok(JobView::new(job, names_of_needed_jobs(store, job)?))
    }

    /// `needs` are the names of the jobs that the job needs.
    pub fn new(job: &Job, needs: Vec<String>) -> JobView {
        JobView {
            job_id: job.id,
            run_id: job.run_id,
            job: job.name.clone(),
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
            waits_for: job.waits_for.map(WaitsFor::as_str),
            upstream_failed: job.upstream_failed,
            handler: job.handler.map(RunHandler::key),
            exit_code: job.exit_code,
            deadline_at: instant(job.deadline_at),
            group: group_name(job),
            index: job.item_index,
            item: job.item.as_deref().map(json),
            last_error: job.last_error.clone(),
            output: job.output.as_deref().map(json),
        }
    }
}

/// The names of the jobs that a job needs; a job without a name is shown by its id, as `j42`.
pub fn names_of_needed_jobs(store: &Store, job: &Job) -> Result<Vec<String>> {
    Ok(store.jobs().parents(job.id)?.iter().map(job_name).collect())
}

/// The name of the job with `for_each` of which a job is an item: `load` for `load[3]`.
fn group_name(job: &Job) -> Option<String> {
    job.group_id?;
    let (group, _index) = job.name.as_deref()?.rsplit_once('[')?;
    Some(group.to_owned())
}

/// The name of a job in its run, or its id.
pub(crate) fn job_name(job: &Job) -> String {
    job.name.clone().unwrap_or_else(|| format!("j{}", job.id))
}

/// A job with its payload and the attempts that did not succeed.
#[derive(Debug, Serialize)]
pub struct InspectedJob {
    #[serde(flatten)]
    job: JobView,
    payload: Value,
    rounds: Option<i64>,
    max_rounds: Option<i64>,
    attempts: Vec<AttemptView>,
}

impl InspectedJob {
    /// `needs` are the names of the jobs that the job needs.
    pub fn new(job: &Job, needs: Vec<String>, rounds: Option<&Rounds>, attempts: &[Attempt]) -> InspectedJob {
        InspectedJob {
            job: JobView::new(job, needs),
            payload: json(&job.payload),
            rounds: rounds.map(|rounds| rounds.ended),
            max_rounds: rounds.map(|rounds| rounds.max),
            attempts: attempts.iter().map(AttemptView::new).collect(),
        }
    }
}

/// An attempt that did not succeed.
#[derive(Debug, Serialize)]
pub struct AttemptView {
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

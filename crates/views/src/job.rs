//! A job as JSON.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use windlass_engine::store::{Attempt, Job, Rounds};
use windlass_engine::{Result, Store, WaitsFor};

use windlass_workflow::model::RunHandler;

use crate::json;
use crate::time::{Instant, duration_ms, instant};

/// A job.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Job")]
pub struct JobView {
    /// Its number.
    job_id: i64,
    /// Its run; null for a job that stands alone.
    run_id: Option<i64>,
    /// Its name in its run.
    job: Option<String>,
    /// What executes it.
    kind: String,
    /// Its queue.
    queue: String,
    /// Its state.
    #[schemars(schema_with = "crate::schema::job_status")]
    status: &'static str,
    /// A higher one runs first.
    priority: i64,
    /// The names of the jobs that it needs.
    needs: Vec<String>,
    /// How many times it was claimed.
    attempt: i64,
    /// How many attempts may fail.
    max_attempts: i64,
    /// How many attempts failed.
    failures: i64,
    /// How many attempts ended because their worker died.
    interruptions: i64,
    /// It does not start before.
    execute_after: Option<Instant>,
    /// When it was accepted.
    created_at: Option<Instant>,
    /// When a worker could take it, for its last attempt or the next one.
    ready_at: Option<Instant>,
    /// When its last attempt started.
    started_at: Option<Instant>,
    /// When it ended.
    finished_at: Option<Instant>,
    /// From the start to the end of its last attempt.
    duration_ms: Option<i64>,
    /// The worker of its last attempt.
    worker_id: Option<i64>,
    /// Its failure does not fail its run.
    allow_failure: bool,
    /// What it waits for, if it is WAITING.
    #[schemars(extend("enum" = ["slot", "decision", "event", "approval", "items", "run", null]))]
    waits_for: Option<&'static str>,
    /// It was skipped because a job before it failed or was cancelled.
    upstream_failed: bool,
    /// The table for the end of its run that it belongs to.
    #[schemars(schema_with = "crate::schema::run_handler")]
    handler: Option<&'static str>,
    /// That of its last attempt; null after a signal, and for a kind without processes.
    exit_code: Option<i64>,
    /// It fails if it has not ended by then.
    deadline_at: Option<Instant>,
    /// The job with `for_each` whose item it is.
    group: Option<String>,
    /// The place of its item.
    index: Option<i64>,
    /// The value of its item.
    item: Option<Value>,
    /// Why its last attempt failed.
    last_error: Option<String>,
    /// Its output.
    output: Option<Value>,
}

impl JobView {
    /// Reads the names of the jobs that the job needs.
    pub fn read(store: &Store, job: &Job) -> Result<JobView> {
        Ok(JobView::new(job, names_of_needed_jobs(store, job)?))
    }

    /// Reads the same for many jobs at once.
    pub fn read_all(store: &Store, jobs: &[Job]) -> Result<Vec<JobView>> {
        let mut needs = names_needed_by(store, jobs)?;
        Ok(jobs.iter().map(|job| JobView::new(job, needs.remove(&job.id).unwrap_or_default())).collect())
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
            ready_at: instant(job.ready_at),
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

/// The same for many jobs, by the id of the job that needs them.
pub(crate) fn names_needed_by(store: &Store, jobs: &[Job]) -> Result<HashMap<i64, Vec<String>>> {
    let ids: Vec<i64> = jobs.iter().map(|job| job.id).collect();
    let mut needs: HashMap<i64, Vec<String>> = HashMap::new();
    for needed in store.jobs().needed_by(&ids)? {
        let name = needed.name.unwrap_or_else(|| format!("j{}", needed.id));
        needs.entry(needed.needed_by).or_default().push(name);
    }
    Ok(needs)
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

/// A job with its payload and its recorded attempts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InspectedJob {
    /// The job itself.
    #[serde(flatten)]
    job: JobView,
    /// Its input.
    payload: Value,
    /// The rounds of a job with `repeat` that have ended.
    rounds: Option<i64>,
    /// How many rounds it may have.
    max_rounds: Option<i64>,
    /// The attempts that did not succeed, and those that a retry of the run has replaced.
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

/// An attempt that did not succeed, or that succeeded before its run was retried.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Attempt")]
pub struct AttemptView {
    /// Its number, from 1.
    attempt: i64,
    /// How it ended.
    #[schemars(extend("enum" = ["failed", "timed_out", "interrupted", "cancelled", "successful"]))]
    outcome: String,
    /// Why.
    error: Option<String>,
    /// The worker that executed it.
    worker_id: Option<i64>,
    /// When a worker could take the job for it.
    ready_at: Option<Instant>,
    /// When it started.
    started_at: Option<Instant>,
    /// When it ended.
    finished_at: Option<Instant>,
}

impl AttemptView {
    /// From the row of the attempt.
    pub fn new(attempt: &Attempt) -> AttemptView {
        AttemptView {
            attempt: attempt.attempt,
            outcome: attempt.outcome.clone(),
            error: attempt.error.clone(),
            worker_id: attempt.worker_id,
            ready_at: instant(attempt.ready_at),
            started_at: instant(attempt.started_at),
            finished_at: instant(Some(attempt.finished_at)),
        }
    }
}

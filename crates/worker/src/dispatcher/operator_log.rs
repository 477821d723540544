//! What an operator reads in the log: runs that start and end, attempts that do not succeed. Payloads and values of
//! parameters are never logged.

use windlass_engine::status::JobStatus;
use windlass_engine::store::{ClaimedJob, EndedRun, Finish};

/// A run started with the claim of this job.
pub(super) fn run_started(job: &ClaimedJob) {
    if let (Some(run_id), Some(workflow)) = (job.run_id, &job.started_run) {
        tracing::info!(run_id, %workflow, "run started");
    }
}

/// A run ended with its last job.
pub(super) fn run_ended(run: &EndedRun) {
    let EndedRun { run_id, workflow, status, took_ms } = run;
    tracing::info!(run_id, %workflow, %status, took_ms, "run ended");
}

/// An attempt ended, and not with success.
pub(super) fn attempt_ended(job: &ClaimedJob, finish: &Finish) {
    let transition = &finish.transition;
    let Some(error) = &transition.last_error else { return };
    let (job, attempt) = (job.label(), finish.attempt);
    let next_try_in_ms = transition.delay_ms;
    match transition.status {
        JobStatus::Failed => tracing::warn!(job, attempt, error, "job failed"),
        JobStatus::Cancelled => tracing::info!(job, attempt, error, "job cancelled"),
        JobStatus::Scheduled => tracing::info!(job, attempt, error, next_try_in_ms, "attempt failed"),
        JobStatus::Skipped => tracing::info!(job, attempt, reason = error, "job skipped"),
        JobStatus::Pending
        | JobStatus::Blocked
        | JobStatus::Waiting
        | JobStatus::Running
        | JobStatus::Successful => tracing::info!(job, attempt, error, "attempt ended, another follows"),
    }
}

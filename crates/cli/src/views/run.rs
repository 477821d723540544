//! A run as JSON.

use serde::Serialize;
use serde_json::Value;
use windlass::store::{JobCounts, Run, Submitted};
use windlass::{JobStatus, RunSource, RunStatus, StopReason};

use crate::database::Database;
use crate::error::Failure;

use super::{JobView, duration_ms, instant, json};

/// A run.
#[derive(Debug, Serialize)]
pub(crate) struct RunView {
    id: i64,
    workflow: String,
    status: &'static str,
    stop_reason: Option<&'static str>,
    params: Value,
    run_key: Option<String>,
    source: Option<&'static str>,
    schedule_id: Option<i64>,
    scheduled_for: Option<String>,
    dir: Option<String>,
    created_at: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
    duration_ms: Option<i64>,
    interrupted: bool,
    job_counts: JobCountsView,
}

impl RunView {
    /// A run with what the database knows of it beside its row.
    pub(crate) fn read(database: &Database, run: &Run) -> Result<RunView, Failure> {
        let counts = database.ask(|store| store.runs().job_counts(run.id))?;
        let interrupted = database.ask(|store| store.runs().is_interrupted(run.id))?;
        Ok(RunView::new(run, &counts, interrupted))
    }

    pub(crate) fn new(run: &Run, counts: &JobCounts, interrupted: bool) -> RunView {
        RunView {
            id: run.id,
            workflow: run.workflow.clone(),
            status: run.status.as_str(),
            stop_reason: run.stop_reason.map(StopReason::as_str),
            params: json(&run.params),
            run_key: run.run_key.clone(),
            source: run.source.map(RunSource::as_str),
            schedule_id: run.schedule_id,
            scheduled_for: instant(run.scheduled_for),
            dir: run.dir.clone(),
            created_at: instant(Some(run.created_at)),
            started_at: instant(run.started_at),
            finished_at: instant(run.finished_at),
            duration_ms: duration_ms(run.started_at, run.finished_at),
            interrupted,
            job_counts: JobCountsView::new(counts),
        }
    }
}

/// How many jobs of a run are in each state.
#[derive(Debug, Serialize)]
pub(crate) struct JobCountsView {
    total: i64,
    blocked: i64,
    scheduled: i64,
    pending: i64,
    running: i64,
    waiting: i64,
    successful: i64,
    failed: i64,
    skipped: i64,
    cancelled: i64,
}

impl JobCountsView {
    fn new(counts: &JobCounts) -> JobCountsView {
        JobCountsView {
            total: counts.total(),
            blocked: counts.of(JobStatus::Blocked),
            scheduled: counts.of(JobStatus::Scheduled),
            pending: counts.of(JobStatus::Pending),
            running: counts.of(JobStatus::Running),
            waiting: counts.of(JobStatus::Waiting),
            successful: counts.of(JobStatus::Successful),
            failed: counts.of(JobStatus::Failed),
            skipped: counts.of(JobStatus::Skipped),
            cancelled: counts.of(JobStatus::Cancelled),
        }
    }
}

/// A run with its jobs.
#[derive(Debug, Serialize)]
pub(crate) struct InspectedRun {
    #[serde(flatten)]
    pub(crate) run: RunView,
    pub(crate) jobs: Vec<JobView>,
}

/// What a submission came to.
#[derive(Debug, Serialize)]
pub(crate) struct SubmittedView {
    run_id: i64,
    workflow: String,
    status: &'static str,
    created: bool,
}

impl SubmittedView {
    pub(crate) fn new(submitted: Submitted, workflow: &str, status: RunStatus) -> SubmittedView {
        SubmittedView {
            run_id: submitted.run_id,
            workflow: workflow.to_owned(),
            status: status.as_str(),
            created: submitted.created,
        }
    }
}

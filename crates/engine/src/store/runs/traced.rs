//! Runs that are over, for traces: the run, the runs below it, their jobs and attempts, a page at a time.

use crate::status::{JobStatus, RunStatus, StopReason};
use crate::store::runs::read_trace;
use crate::store::{Attempt, Runs, json_ids};
use crate::trace::{RowKey, RunTrace};
use windlass_db::error::Result;
use windlass_db::{Row, all, first};

/// How many runs, jobs or attempts are read at a time.
pub const TRACED_MAX: i64 = 500;

/// A run that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedRun {
    /// Its id.
    pub id: i64,
    /// What identifies its row. It was accepted at this instant.
    pub key: RowKey,
    /// The name of its workflow.
    pub workflow: String,
    /// Its state.
    pub status: RunStatus,
    /// Why it was stopped before its jobs had finished.
    pub stop_reason: Option<StopReason>,
    /// How many jobs it has.
    pub total_jobs: i64,
    /// When it ended.
    pub finished_at: i64,
    /// The job that has started it.
    pub caller: Option<RowKey>,
}

/// A job of a run that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedJob {
    /// Its id.
    pub id: i64,
    /// What identifies its row.
    pub key: RowKey,
    /// Its name.
    pub name: String,
    /// What executes it.
    pub kind: String,
    /// Its queue.
    pub queue: String,
    /// Its state.
    pub status: JobStatus,
    /// Claims so far.
    pub attempt: i64,
    /// That of its last attempt.
    pub exit_code: Option<i64>,
    /// The beginning of its last error.
    pub error: Option<String>,
    /// When the first of its attempts was claimed that did not succeed, or that a retry has replaced.
    pub first_started_at: Option<i64>,
    /// When its last attempt was claimed.
    pub started_at: Option<i64>,
    /// When the scheduler decided that it runs.
    pub decided_at: Option<i64>,
    /// When it finished.
    pub finished_at: i64,
    /// The job with `for_each` of which it is an item.
    pub group: Option<RowKey>,
}

impl Runs<'_> {
    /// A run that ended at this instant, and its trace. `None` if it is deleted, or was retried since.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn traced(&self, run_id: i64, finished_at: i64) -> Result<Option<(TracedRun, RunTrace)>> {
        self.store.read(|connection| {
            first(
                connection,
                "SELECT id, created_at, token, traceparent, workflow, status, stop_reason, total_jobs, finished_at,
                        CAST(NULL AS BIGINT), CAST(NULL AS BIGINT)
                 FROM runs WHERE id = $1 AND finished_at = $2",
                &[run_id.into(), finished_at.into()],
                |row| Ok((read_traced_run(row)?, read_trace(row, 1)?)),
            )
        })
    }

    /// The next runs below a run, over all depths, after the run `after`.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn traced_below(&self, run_id: i64, after: i64) -> Result<Vec<TracedRun>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT runs.id, runs.created_at, runs.token, runs.traceparent, runs.workflow, runs.status,
                        runs.stop_reason, runs.total_jobs, runs.finished_at, callers.created_at, callers.token
                 FROM runs LEFT JOIN jobs AS callers ON {by callers.id = runs.parent_job_id}
                 WHERE runs.root_run_id IS NOT NULL AND runs.root_run_id = $1 AND runs.id > $2
                   AND {guard runs.finished_at IS NOT NULL}
                 ORDER BY runs.id LIMIT $3",
                &[run_id.into(), after.into(), TRACED_MAX.into()],
                read_traced_run,
            )
        })
    }

    /// The next jobs of a run by their names, after the job of the name `after`.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn traced_jobs(&self, run_id: i64, after: &str) -> Result<Vec<TracedJob>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT jobs.id, jobs.created_at, jobs.token, jobs.name, jobs.kind, jobs.queue, jobs.status, jobs.attempt,
                        jobs.exit_code, substr(jobs.last_error, 1, 500),
                        (SELECT min(job_attempts.started_at) FROM job_attempts WHERE job_attempts.job_id = jobs.id),
                        jobs.started_at, jobs.decided_at, jobs.finished_at, owners.created_at, owners.token
                 FROM jobs LEFT JOIN jobs AS owners ON {by owners.id = jobs.group_id}
                 WHERE jobs.run_id IS NOT NULL AND jobs.run_id = $1 AND jobs.name > $2
                   AND {guard jobs.finished_at IS NOT NULL}
                 ORDER BY jobs.name LIMIT $3",
                &[run_id.into(), after.into(), TRACED_MAX.into()],
                read_traced_job,
            )
        })
    }

    /// The next attempts of these jobs that did not succeed, or that a retry has replaced, each with its job, after the attempt
    /// `after`: a job and a number.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn traced_attempts(&self, job_ids: &[i64], after: (i64, i64)) -> Result<Vec<(i64, Attempt)>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT job_id, attempt, worker_id, outcome, substr(error, 1, 500), ready_at, started_at, finished_at,
                        retried_at
                 FROM job_attempts WHERE job_id {in $1} AND (job_id, attempt) > ($2, $3)
                 ORDER BY job_id, attempt LIMIT $4",
                &[(&json_ids(job_ids)).into(), after.0.into(), after.1.into(), TRACED_MAX.into()],
                |row| {
                    let attempt = Attempt {
                        attempt: row.integer(1)?,
                        worker_id: row.optional_integer(2)?,
                        outcome: row.text(3)?,
                        error: row.lossy_text(4)?,
                        ready_at: row.optional_integer(5)?,
                        started_at: row.optional_integer(6)?,
                        finished_at: row.integer(7)?,
                        retried_at: row.optional_integer(8)?,
                    };
                    Ok((row.integer(0)?, attempt))
                },
            )
        })
    }
}

/// Reads a key from two columns.
fn read_key(row: &dyn Row, from: usize) -> Result<Option<RowKey>> {
    let (created_at, token) = (row.optional_integer(from)?, row.optional_integer(from + 1)?);
    Ok(created_at.zip(token).map(|(created_at, token)| RowKey { created_at, token }))
}

fn read_traced_run(row: &dyn Row) -> Result<TracedRun> {
    Ok(TracedRun {
        id: row.integer(0)?,
        key: RowKey { created_at: row.integer(1)?, token: row.integer(2)? },
        workflow: row.lossy_text(4)?.unwrap_or_default(),
        status: row.parsed(5, RunStatus::parse)?,
        stop_reason: row.lossy_text(6)?.as_deref().and_then(StopReason::parse),
        total_jobs: row.integer(7)?,
        finished_at: row.integer(8)?,
        caller: read_key(row, 9)?,
    })
}

fn read_traced_job(row: &dyn Row) -> Result<TracedJob> {
    Ok(TracedJob {
        id: row.integer(0)?,
        key: RowKey { created_at: row.integer(1)?, token: row.integer(2)? },
        name: row.text(3)?,
        kind: row.lossy_text(4)?.unwrap_or_default(),
        queue: row.lossy_text(5)?.unwrap_or_default(),
        status: row.parsed(6, JobStatus::parse)?,
        attempt: row.integer(7)?,
        exit_code: row.optional_integer(8)?,
        error: row.lossy_text(9)?,
        first_started_at: row.optional_integer(10)?,
        started_at: row.optional_integer(11)?,
        decided_at: row.optional_integer(12)?,
        finished_at: row.integer(13)?,
        group: read_key(row, 14)?,
    })
}

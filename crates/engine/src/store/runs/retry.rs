//! Retrying a finished run: some of its jobs are reset, and the others stay as they are.

use crate::join_rule::EndColumns;
use crate::status::{JobStatus, RunStatus};
use crate::store::Runs;
use crate::store::evidence::Evidence;
use crate::store::finish::propagation::{Ended, skip_descendants};
use crate::store::json_ids;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, all, first, one};
use windlass_system::wake_ups::WakeUps;

/// Which jobs of a run to reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetrySelection {
    /// Jobs that failed or were cancelled, and jobs that were skipped because of them.
    Failed,
    /// This job and all jobs that depend on it, directly or through others.
    From(String),
}

impl Runs<'_> {
    /// Resets jobs of a finished run and reopens it. Returns how many jobs were reset. Their attempts keep counting,
    /// but failures and interruptions start from zero.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] if the run is unfinished, was pruned in part, or has nothing to
    /// retry; and the database's.
    pub fn retry(&self, run_id: i64, selection: RetrySelection) -> Result<i64> {
        let now_ms = self.store.clock.now_ms();
        self.store.write("retry a run", Evidence::Token, move |connection| {
            retry(connection, run_id, &selection, now_ms)
        })
    }
}

fn retry(
    connection: &mut dyn Connection,
    run_id: i64,
    selection: &RetrySelection,
    now_ms: i64,
) -> Result<i64> {
    let operation = || format!("retry run {run_id}");
    // This UPDATE locks the row, so that no other transaction changes the run until this one is committed.
    let finished = first(
        connection,
        "UPDATE runs SET updated_at = $2
         WHERE id = $1 AND status IN ('SUCCESSFUL', 'FAILED', 'CANCELLED')
         RETURNING total_jobs",
        &[run_id.into(), now_ms.into()],
        |row| row.integer(0),
    )?;
    let Some(total) = finished else { return Err(why_not_retryable(connection, run_id)?) };
    // Counted by a statement of its own, because the UPDATE above may have waited for the lock and would use an older
    // snapshot.
    let left = one(connection, "SELECT count(*) FROM jobs WHERE run_id = $1", &[run_id.into()], |row| {
        row.integer(0)
    })?;
    if left != total {
        let reason =
            format!("{left} of its {total} jobs are left, and the others were pruned; submit it again");
        return Err(Error::conflict(operation(), reason));
    }
    let reset = match selection {
        RetrySelection::Failed => reset_failed(connection, run_id, now_ms)?,
        RetrySelection::From(name) => reset_from(connection, run_id, name, now_ms)?,
    };
    if reset == 0 {
        return Err(Error::conflict(operation(), "none of its jobs failed, was cancelled or was skipped"));
    }
    unblock(connection, run_id, now_ms)?;
    reopen_run(connection, run_id, now_ms)?;
    connection.wake(WakeUps::PENDING | WakeUps::PROGRESS | WakeUps::DUE);
    Ok(reset)
}

fn why_not_retryable(connection: &mut dyn Connection, run_id: i64) -> Result<Error> {
    let status = first(connection, "SELECT status FROM runs WHERE id = $1", &[run_id.into()], |row| {
        row.parsed(0, RunStatus::parse)
    })?;
    Ok(match status {
        None => Error::not_found(format!("run {run_id}")),
        Some(status) => {
            Error::conflict(format!("retry run {run_id}"), format!("it is {status}, not finished"))
        }
    })
}

/// Resets the jobs that failed or were cancelled, and all that depend on them: a job that ran because another one failed
/// is decided anew. Jobs elsewhere that were not needed stay as they are.
fn reset_failed(connection: &mut dyn Connection, run_id: i64, now_ms: i64) -> Result<i64> {
    let broken = all(
        connection,
        "SELECT id FROM jobs
         WHERE run_id = $1 AND (status = 'CANCELLED' OR (status = 'FAILED' AND allow_failure = 0))",
        &[run_id.into()],
        |row| row.integer(0),
    )?;
    reset_with_descendants(connection, &broken, now_ms)
}

fn reset_from(connection: &mut dyn Connection, run_id: i64, name: &str, now_ms: i64) -> Result<i64> {
    let root = first(
        connection,
        "SELECT id FROM jobs WHERE run_id = $1 AND name = $2",
        &[run_id.into(), name.into()],
        |row| row.integer(0),
    )?
    .ok_or_else(|| Error::not_found(format!("job {run_id}/{name}")))?;
    let reset = reset_with_descendants(connection, &[root], now_ms)?;
    skip_jobs_with_broken_parents(connection, run_id, now_ms)?;
    Ok(reset)
}

/// Resets jobs and all jobs that depend on them, directly or through others.
fn reset_with_descendants(connection: &mut dyn Connection, roots: &[i64], now_ms: i64) -> Result<i64> {
    let reset = connection.execute(
        "WITH RECURSIVE again (id) AS (
             SELECT id FROM jobs WHERE id {in $1}
             UNION
             SELECT edges.child_id FROM again
             JOIN job_dependencies AS edges ON {by edges.parent_id = again.id}
         )
         UPDATE jobs
         SET status = 'BLOCKED', failures = 0, interruptions = 0, cancel_requested_at = NULL,
             cancel_at_once = 0,
             last_error = NULL, output = NULL, worker_id = NULL, started_at = NULL, finished_at = NULL,
             execute_after = $2, updated_at = $2, upstream_failed = 0
         WHERE id {in SELECT id FROM again}",
        &[(&json_ids(roots)).into(), now_ms.into()],
    )?;
    Ok(i64::try_from(reset).unwrap_or(i64::MAX))
}

/// Skips blocked jobs that have a broken parent. A reset job may have such a parent that was not reset.
pub(in crate::store) fn skip_jobs_with_broken_parents(
    connection: &mut dyn Connection,
    run_id: i64,
    now_ms: i64,
) -> Result<()> {
    let broken = all(
        connection,
        "SELECT DISTINCT parent.id, parent.name, parent.status, parent.allow_failure, parent.upstream_failed
         FROM jobs AS child
         JOIN job_dependencies AS edges ON {by edges.child_id = child.id}
         JOIN jobs AS parent ON {by parent.id = edges.parent_id}
         WHERE child.run_id = $1 AND child.status = 'BLOCKED' AND parent.finished_at IS NOT NULL
           AND (parent.status = 'CANCELLED' OR (parent.status = 'FAILED' AND parent.allow_failure = 0)
                OR (parent.status = 'SKIPPED' AND parent.upstream_failed = 1))",
        &[run_id.into()],
        |row| {
            let columns = EndColumns {
                status: row.parsed(2, JobStatus::parse)?,
                allow_failure: row.integer(3)? != 0,
                upstream_failed: row.integer(4)? != 0,
            };
            Ok(Ended { job_id: row.integer(0)?, run_id: Some(run_id), name: row.lossy_text(1)?, columns })
        },
    )?;
    for parent in broken {
        skip_descendants(connection, &parent, now_ms)?;
    }
    Ok(())
}

/// Counts the unfinished parents of blocked jobs again, and promotes jobs that have none. A parent whose end is only
/// reported counts as unfinished. Returns how many jobs were promoted.
pub(in crate::store) fn unblock(connection: &mut dyn Connection, run_id: i64, now_ms: i64) -> Result<u64> {
    connection.execute(
        "UPDATE jobs
         SET blocked_by = (SELECT count(*) FROM job_dependencies AS edges
                           JOIN jobs AS parent ON {by parent.id = edges.parent_id}
                           WHERE {by edges.child_id = jobs.id} AND parent.finished_at IS NULL)
         WHERE run_id = $1 AND status = 'BLOCKED'",
        &[run_id.into()],
    )?;
    connection.execute(
        "UPDATE jobs SET join_rule = 'all_successful'
         WHERE run_id = $1 AND status = 'BLOCKED' AND join_rule IS NULL
           AND EXISTS (SELECT 1 FROM job_dependencies AS edges
                       JOIN jobs AS parent ON {by parent.id = edges.parent_id}
                       WHERE {by edges.child_id = jobs.id} AND parent.status = 'SKIPPED'
                         AND parent.upstream_failed = 0)",
        &[run_id.into()],
    )?;
    let unblocked = connection.execute(
        "UPDATE jobs
         SET status = CASE WHEN concurrency_key IS NULL AND join_rule IS NULL THEN 'PENDING' ELSE 'WAITING' END,
             waits_for = CASE WHEN join_rule IS NOT NULL THEN 'decision'
                              WHEN concurrency_key IS NOT NULL THEN 'slot' END,
             priority = {priority},
             updated_at = $2
         WHERE run_id = $1 AND status = 'BLOCKED' AND blocked_by = 0",
        &[run_id.into(), now_ms.into()],
    )?;
    Ok(unblocked)
}

fn reopen_run(connection: &mut dyn Connection, run_id: i64, now_ms: i64) -> Result<()> {
    let unfinished = one(
        connection,
        "UPDATE runs
         SET status = 'PENDING', stop_reason = NULL, deadline_at = NULL, started_at = NULL,
             finished_at = NULL, updated_at = $2,
             unfinished_jobs = (SELECT count(*) FROM jobs WHERE jobs.run_id = runs.id
                AND jobs.status IN ('BLOCKED', 'SCHEDULED', 'PENDING', 'RUNNING', 'WAITING')),
             failed_jobs = (SELECT count(*) FROM jobs WHERE jobs.run_id = runs.id
                AND (jobs.status = 'CANCELLED' OR (jobs.status = 'FAILED' AND jobs.allow_failure = 0)))
         WHERE id = $1
         RETURNING unfinished_jobs",
        &[run_id.into(), now_ms.into()],
        |row| row.integer(0),
    )?;
    if unfinished == 0 {
        let reason = "every selected job needs a job that failed; use --failed";
        return Err(Error::conflict(format!("retry run {run_id}"), reason));
    }
    Ok(())
}

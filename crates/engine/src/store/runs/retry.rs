//! Retrying a finished run: some of its jobs are reset, and the others stay as they are.

use super::retry_items::{
    Reset, begin_deadlines_anew, delete_items, find_reset, release_first_items, reopen_groups,
};
use super::submit::RunStart;
use super::workspaces;
use crate::join_rule::EndColumns;
use crate::status::{JobStatus, RunStatus};
use crate::store::evidence::Evidence;
use crate::store::finish::items::count_items;
use crate::store::finish::propagation::{Belonging, Ended, skip_descendants};
use crate::store::finish::run_end::end_runs;
use crate::store::json_ids;
use crate::store::{Runs, artifacts};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Fragment, Row, all, first, one};
use windlass_system::wake_ups::WakeUps;

/// Which jobs of a run to reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetrySelection {
    /// Jobs that failed or were cancelled, and all jobs that depend on them, directly or through others.
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
    refuse_child(connection, run_id)?;
    retry_locked(connection, run_id, selection, now_ms)
}

/// Refuses to retry a run that a job has started: the job has its end already.
pub(super) fn refuse_child(connection: &mut dyn Connection, run_id: i64) -> Result<()> {
    let root = first(
        connection,
        "SELECT root_run_id FROM runs WHERE id = $1 AND root_run_id IS NOT NULL",
        &[run_id.into()],
        |row| row.integer(0),
    )?;
    match root {
        Some(root) => {
            let reason = format!("a job of run {root} has started it; retry run {root}");
            Err(Error::conflict(format!("retry run {run_id}"), reason))
        }
        None => Ok(()),
    }
}

/// Retries a run. If a job has started it, its row is locked already, and so is that of the job's run.
pub(in crate::store) fn retry_locked(
    connection: &mut dyn Connection,
    run_id: i64,
    selection: &RetrySelection,
    now_ms: i64,
) -> Result<i64> {
    lock_finished(connection, run_id, now_ms)?;
    let roots = match selection {
        RetrySelection::Failed => broken_jobs(connection, run_id)?,
        RetrySelection::From(name) => vec![named_job(connection, run_id, name)?],
    };
    if roots.is_empty() {
        return Err(Error::conflict(
            format!("retry run {run_id}"),
            "none of its jobs failed or was cancelled",
        ));
    }
    let calls: Vec<i64> = match selection {
        RetrySelection::Failed => {
            roots.iter().filter(|root| root.phase == 0 && root.is_call).map(|root| root.id).collect()
        }
        RetrySelection::From(_) => Vec::new(),
    };
    continue_run(connection, run_id, &roots, &calls, now_ms)
}

/// Locks a finished run, of which no job was pruned.
pub(super) fn lock_finished(connection: &mut dyn Connection, run_id: i64, now_ms: i64) -> Result<()> {
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
    Ok(())
}

/// Resets jobs with all that depends on them, and reopens their run. `calls` are the jobs that go on with the runs that they
/// have started. Returns how many jobs were reset.
pub(super) fn continue_run(
    connection: &mut dyn Connection,
    run_id: i64,
    roots: &[Root],
    calls: &[i64],
    now_ms: i64,
) -> Result<i64> {
    choose_runs_to_retry(connection, run_id, calls)?;
    let Reset { jobs, reopened } = find_reset(connection, roots)?;
    workspaces::reopen(connection, run_id, &jobs)?;
    delete_items(connection, run_id, &jobs)?;
    keep_attempts(connection, run_id, &jobs, now_ms)?;
    let reset = reset(connection, &jobs, now_ms)?;
    reopen_groups(connection, &reopened, now_ms)?;
    let handlers = reset_handlers(connection, run_id, now_ms)?;
    skip_jobs_with_broken_parents(connection, run_id, now_ms)?;
    let (unfinished, start) = reopen_run(connection, run_id, now_ms)?;
    count_open_parents(connection, run_id)?;
    let is_about_handlers = roots.iter().all(|root| root.phase > 0);
    if unfinished == 0 && !is_about_handlers {
        let reason = "every selected job needs a job that failed; use --failed";
        return Err(Error::conflict(format!("retry run {run_id}"), reason));
    }
    match start {
        RunStart::AtOnce => start_reopened(connection, run_id, unfinished, now_ms)?,
        RunStart::WithSlot => count_items(connection, run_id)?,
    }
    connection.wake(WakeUps::PENDING | WakeUps::PROGRESS | WakeUps::DUE);
    Ok(reset + reopened.len() as i64 + handlers)
}

/// Lets the jobs of a run go on that need no others, or its handlers if its jobs have ended: the run was retried, or has got
/// a slot of its concurrency key.
pub(in crate::store) fn start_reopened(
    connection: &mut dyn Connection,
    run_id: i64,
    unfinished: i64,
    now_ms: i64,
) -> Result<()> {
    begin_deadlines_anew(connection, run_id, now_ms)?;
    release_unblocked(connection, run_id, now_ms)?;
    release_first_items(connection, run_id, now_ms)?;
    if unfinished == 0 {
        end_runs(connection, vec![run_id], now_ms)?;
    }
    Ok(())
}

/// Chooses the runs below that are retried in place, when the jobs that have started them are decided: those of failed jobs
/// that did not succeed themselves. Jobs that are reset for another reason start new runs.
fn choose_runs_to_retry(connection: &mut dyn Connection, run_id: i64, jobs: &[i64]) -> Result<()> {
    // A retry before may have chosen runs of jobs that were cancelled after it.
    connection.execute(
        "UPDATE runs SET call_open = 0 WHERE root_run_id IS NOT NULL AND root_run_id = $1 AND call_open = 2",
        &[run_id.into()],
    )?;
    if jobs.is_empty() {
        return Ok(());
    }
    connection.execute(
        "UPDATE runs SET call_open = 2
         WHERE parent_job_id IS NOT NULL AND parent_job_id {in $1} AND {guard status IN ('FAILED', 'CANCELLED')}
           AND parent_attempt = (SELECT attempt FROM jobs WHERE {by jobs.id = runs.parent_job_id})
           AND total_jobs = (SELECT count(*) FROM jobs AS left_over WHERE left_over.run_id = runs.id)
           AND EXISTS (SELECT 1 FROM jobs AS broken WHERE broken.run_id = runs.id
                       AND (broken.status = 'CANCELLED' OR (broken.status = 'FAILED' AND broken.allow_failure = 0)))",
        &[(&json_ids(jobs)).into()],
    )?;
    Ok(())
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

/// A job that is reset together with all jobs that depend on it.
pub(super) struct Root {
    pub(super) id: i64,
    /// Above 0 for a handler.
    pub(super) phase: i64,
    /// Of an item: its group.
    pub(super) group_id: Option<i64>,
    /// Whether it calls a workflow.
    pub(super) is_call: bool,
}

fn read_root(row: &dyn Row) -> Result<Root> {
    let is_call = row.integer(3)? != 0;
    Ok(Root { id: row.integer(0)?, phase: row.integer(1)?, group_id: row.optional_integer(2)?, is_call })
}

/// The jobs that failed or were cancelled. A job that ran or was skipped because of them is decided anew. Jobs elsewhere that
/// were not needed stay as they are.
pub(super) fn broken_jobs(connection: &mut dyn Connection, run_id: i64) -> Result<Vec<Root>> {
    all(
        connection,
        "SELECT id, phase, group_id, CASE WHEN kind = 'workflow' THEN 1 ELSE 0 END FROM jobs
         WHERE run_id = $1 AND (status = 'CANCELLED' OR (status = 'FAILED' AND allow_failure = 0))",
        &[run_id.into()],
        read_root,
    )
}

pub(super) fn named_job(connection: &mut dyn Connection, run_id: i64, name: &str) -> Result<Root> {
    first(
        connection,
        "SELECT id, phase, group_id, CASE WHEN kind = 'workflow' THEN 1 ELSE 0 END FROM jobs
         WHERE run_id = $1 AND name = $2",
        &[run_id.into(), name.into()],
        read_root,
    )?
    .ok_or_else(|| Error::not_found(format!("job {run_id}/{name}")))
}

/// These jobs, those of them that exist.
pub(super) fn roots_of(connection: &mut dyn Connection, job_ids: &[i64]) -> Result<Vec<Root>> {
    all(
        connection,
        "SELECT id, phase, group_id, CASE WHEN kind = 'workflow' THEN 1 ELSE 0 END FROM jobs WHERE id {in $1}",
        &[(&json_ids(job_ids)).into()],
        read_root,
    )
}

/// Records the last attempts of the jobs that are reset: the row of a job is about its next attempt then. Attempts that did not
/// succeed are recorded already, and get the instant of the retry.
fn keep_attempts(connection: &mut dyn Connection, run_id: i64, job_ids: &[i64], now_ms: i64) -> Result<()> {
    connection.execute(
        "INSERT INTO job_attempts (job_id, attempt, worker_id, outcome, error, ready_at, started_at, finished_at,
                                   retried_at)
         SELECT jobs.id, jobs.attempt, jobs.worker_id, 'successful', NULL, jobs.ready_at, jobs.started_at,
                coalesce(jobs.finished_at, $3), $3
         FROM (SELECT id FROM jobs WHERE id {in $1}
               UNION SELECT id FROM jobs WHERE run_id = $2 AND phase > 0) AS found
         JOIN jobs ON {by jobs.id = found.id}
         WHERE jobs.attempt > 0
           AND (jobs.status = 'SUCCESSFUL'
                OR EXISTS (SELECT 1 FROM job_attempts AS kept
                           WHERE kept.job_id = jobs.id AND kept.attempt = jobs.attempt))
         ON CONFLICT (job_id, attempt) DO UPDATE SET retried_at = excluded.retried_at",
        &[(&json_ids(job_ids)).into(), run_id.into(), now_ms.into()],
    )?;
    Ok(())
}

/// Resets jobs. Returns how many.
fn reset(connection: &mut dyn Connection, job_ids: &[i64], now_ms: i64) -> Result<i64> {
    artifacts::delete(connection, job_ids)?;
    let reset = connection.execute(
        "UPDATE jobs SET status = 'BLOCKED', {as_before_its_first_attempt}, execute_after = $2, updated_at = $2 WHERE id {in $1}",
        &[(&json_ids(job_ids)).into(), now_ms.into()],
    )?;
    Ok(i64::try_from(reset).unwrap_or(i64::MAX))
}

/// Resets all handlers of a run, because they run for what its jobs come to.
fn reset_handlers(connection: &mut dyn Connection, run_id: i64, now_ms: i64) -> Result<i64> {
    artifacts::delete_of_handlers(connection, run_id)?;
    let reset = connection.execute(
        "UPDATE jobs
         SET status = 'BLOCKED', {as_before_its_first_attempt}, execute_after = $2, updated_at = $2
         WHERE run_id = $1 AND phase > 0",
        &[run_id.into(), now_ms.into()],
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
            let belonging = Belonging::Alone;
            let (job_id, name) = (row.integer(0)?, row.lossy_text(1)?);
            Ok(Ended { job_id, run_id: Some(run_id), name, columns, belonging })
        },
    )?;
    for parent in broken {
        skip_descendants(connection, &parent, now_ms)?;
    }
    Ok(())
}

/// What a reset writes into a job, besides its state. The number of its attempts stays.
pub(crate) const AS_BEFORE_ITS_FIRST_ATTEMPT: Fragment = Fragment {
    name: "as_before_its_first_attempt",
    sql: "failures = 0, interruptions = 0, cancel_requested_at = NULL, cancel_at_once = 0,
          last_error = NULL, output = NULL, waits_for = NULL, worker_id = NULL, ready_at = NULL, started_at = NULL,
          finished_at = NULL, upstream_failed = 0, exit_code = NULL, decided_at = NULL, event = NULL,
          wait_ends_at = NULL, deadline_at = NULL,
          definition = coalesce((SELECT runs.definition FROM runs WHERE runs.id = jobs.run_id), 1),
          retry = CASE WHEN retry LIKE '%\"rounds\":%' THEN {with_integer retry rounds 0} ELSE retry END",
};

/// Counts the unfinished parents of blocked jobs again, and promotes jobs that have none. Returns how many were promoted.
pub(in crate::store) fn unblock(connection: &mut dyn Connection, run_id: i64, now_ms: i64) -> Result<u64> {
    count_open_parents(connection, run_id)?;
    release_unblocked(connection, run_id, now_ms)
}

/// Counts the unfinished parents of blocked jobs again. A parent whose end is only reported counts as unfinished.
fn count_open_parents(connection: &mut dyn Connection, run_id: i64) -> Result<()> {
    connection.execute(
        "UPDATE jobs
         SET blocked_by = (SELECT count(*) FROM job_dependencies AS edges
                           JOIN jobs AS parent ON {by parent.id = edges.parent_id}
                           WHERE {by edges.child_id = jobs.id} AND parent.finished_at IS NULL)
                          -- A handler also waits for its phase.
                          + (SELECT count(*) FROM runs WHERE runs.id = jobs.run_id AND runs.phase < jobs.phase)
                          -- An item waits for its turn.
                          + CASE WHEN group_id IS NOT NULL THEN 1 ELSE 0 END
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
    Ok(())
}

/// Promotes blocked jobs that wait for no parent. Returns how many.
fn release_unblocked(connection: &mut dyn Connection, run_id: i64, now_ms: i64) -> Result<u64> {
    let unblocked = connection.execute(
        "UPDATE jobs
         SET status = CASE WHEN concurrency_key IS NULL AND join_rule IS NULL AND control IS NULL
                           THEN 'PENDING' ELSE 'WAITING' END,
             waits_for = CASE WHEN join_rule IS NOT NULL OR control IS NOT NULL THEN 'decision'
                              WHEN concurrency_key IS NOT NULL THEN 'slot' END,
             priority = {priority},
             updated_at = $2
         WHERE run_id = $1 AND status = 'BLOCKED' AND blocked_by = 0",
        &[run_id.into(), now_ms.into()],
    )?;
    Ok(unblocked)
}

/// Reopens a run. Returns the number of its unfinished jobs, without handlers, and when they may start. A run with a
/// concurrency key waits for a slot, whatever its `on_full` says, because a person asked for the retry.
fn reopen_run(connection: &mut dyn Connection, run_id: i64, now_ms: i64) -> Result<(i64, RunStart)> {
    one(
        connection,
        "UPDATE runs
         SET status = 'PENDING', stop_reason = NULL, deadline_at = NULL, started_at = NULL,
             finished_at = NULL,
             ran_before_ms = ran_before_ms + CASE WHEN finished_at > started_at THEN finished_at - started_at ELSE 0 END,
             phase = 0, outcome = NULL, updated_at = $2,
             waits_for = CASE WHEN concurrency_key IS NOT NULL THEN 'slot' END,
             on_full = CASE WHEN concurrency_key IS NOT NULL THEN 'wait' END,
             unfinished_jobs = (SELECT count(*) FROM jobs WHERE jobs.run_id = runs.id AND jobs.phase = 0
                AND jobs.status IN ('BLOCKED', 'SCHEDULED', 'PENDING', 'RUNNING', 'WAITING')),
             failed_jobs = (SELECT count(*) FROM jobs WHERE jobs.run_id = runs.id AND jobs.phase = 0
                AND {counts_as_failed})
         WHERE id = $1
         RETURNING unfinished_jobs, waits_for",
        &[run_id.into(), now_ms.into()],
        |row| {
            let start = row.lossy_text(1)?.map_or(RunStart::AtOnce, |_slot| RunStart::WithSlot);
            Ok((row.integer(0)?, start))
        },
    )
}

//! Finds what one step of pruning may delete. Reads a snapshot, so that no writer waits.

use super::{AUDIT_LINES_MAX, AUDIT_MS, EVENTS_MARGIN_MS, EVENTS_MS, JOBS_MAX, LEFTOVERS_MS, ROWS_MAX};
use crate::store::access::idempotency::KEYS_KEPT_MS;
use crate::store::for_scheduler::prune::Prune;
use crate::store::json_ids;
use windlass_db::error::Result;
use windlass_db::{Connection, all, first};

/// How many workflows with too many runs one step handles.
const WORKFLOWS_MAX: i64 = 100;

/// Rows that may be deleted.
#[derive(Debug, Default)]
pub(in crate::store) struct PruneCandidates {
    /// Standalone jobs, and rows that deleted runs left behind, are deleted if they are older than this.
    pub(in crate::store) before_ms: i64,
    /// (run, its `finished_at`)
    pub(in crate::store) runs: Vec<(i64, i64)>,
    /// (job, its run), for the runs above.
    pub(in crate::store) jobs: Vec<(i64, i64)>,
    pub(in crate::store) jobs_alone: Vec<i64>,
    pub(in crate::store) workflows: Vec<i64>,
    pub(in crate::store) workers: Vec<i64>,
    /// (schedule, nominal time)
    pub(in crate::store) occurrences: Vec<(i64, i64)>,
    pub(in crate::store) events: Vec<i64>,
    /// Notifications that were delivered or given up long ago.
    pub(in crate::store) notifications: Vec<i64>,
    /// Lines of the audit.
    pub(in crate::store) audit: Vec<i64>,
    /// Requests that were sent with a key, a day ago or earlier.
    pub(in crate::store) idempotency_keys: Vec<i64>,
}

impl PruneCandidates {
    pub(in crate::store) fn is_empty(&self) -> bool {
        let PruneCandidates {
            before_ms: _,
            runs,
            jobs,
            jobs_alone,
            workflows,
            workers,
            occurrences,
            events,
            notifications,
            audit,
            idempotency_keys,
        } = self;
        [jobs_alone, workflows, workers, events, notifications, audit, idempotency_keys]
            .iter()
            .all(|ids| ids.is_empty())
            && [runs, jobs, occurrences].iter().all(|pairs| pairs.is_empty())
    }
}

pub(in crate::store) fn find_candidates(
    connection: &mut dyn Connection,
    prune: Prune,
    now_ms: i64,
) -> Result<PruneCandidates> {
    let before_ms = prune.before_ms.unwrap_or(now_ms.saturating_sub(LEFTOVERS_MS));
    let mut candidates = PruneCandidates { before_ms, ..PruneCandidates::default() };
    if let Some(before_ms) = prune.before_ms {
        candidates.runs = pairs(
            connection,
            "SELECT id, finished_at FROM runs
             WHERE finished_at IS NOT NULL AND finished_at < $1 AND parent_job_id IS NULL
               AND status IN ('SUCCESSFUL', 'FAILED', 'CANCELLED')
             ORDER BY finished_at LIMIT $2",
            before_ms,
        )?;
    }
    if let (true, Some(keep)) = (candidates.runs.is_empty(), prune.keep_runs) {
        candidates.runs = runs_beyond_limit(connection, keep.max(0))?;
    }
    with_children(connection, &mut candidates)?;
    let run_ids: Vec<i64> = candidates.runs.iter().map(|(id, _finished_at)| *id).collect();
    candidates.jobs = all(
        connection,
        "SELECT id, run_id FROM jobs WHERE run_id {in $1} ORDER BY run_id DESC LIMIT $2",
        &[(&json_ids(&run_ids)).into(), (JOBS_MAX as i64).into()],
        |row| Ok((row.integer(0)?, row.integer(1)?)),
    )?;
    if let Some(before_ms) = prune.before_ms {
        candidates.jobs_alone = all(
            connection,
            "SELECT id FROM jobs
             WHERE run_id IS NULL AND finished_at IS NOT NULL AND finished_at < $1
               AND status IN ('SUCCESSFUL', 'FAILED', 'SKIPPED', 'CANCELLED')
             ORDER BY finished_at LIMIT $2",
            &[before_ms.into(), ((JOBS_MAX - candidates.jobs.len()) as i64).into()],
            |row| row.integer(0),
        )?;
    }
    if candidates.is_empty() {
        find_leftovers(connection, &mut candidates, prune)?;
        candidates.notifications = all(
            connection,
            "SELECT id FROM notifications WHERE finished_at IS NOT NULL AND finished_at < $1
             ORDER BY finished_at LIMIT $2",
            &[candidates.before_ms.into(), (ROWS_MAX as i64).into()],
            |row| row.integer(0),
        )?;
        candidates.audit = old_audit(connection, prune.before_ms, now_ms)?;
        candidates.idempotency_keys = ids(
            connection,
            "SELECT id FROM (SELECT id, created_at FROM idempotency_keys ORDER BY id LIMIT $2) AS oldest
             WHERE created_at < $1",
            now_ms.saturating_sub(KEYS_KEPT_MS),
        )?;
        candidates.events = old_events(connection, now_ms, prune.keep_events_ms.unwrap_or(EVENTS_MS))?;
    }
    Ok(candidates)
}

/// Replaces runs by the runs below them, as long as there are such runs. A run is deleted after those that its jobs have
/// started, because their rows name its jobs. The newest are deleted first: a run is newer than the one above it.
fn with_children(connection: &mut dyn Connection, candidates: &mut PruneCandidates) -> Result<()> {
    let top: Vec<i64> = candidates.runs.iter().map(|(id, _finished_at)| *id).collect();
    let below = all(
        connection,
        "SELECT id, finished_at, root_run_id FROM runs
         WHERE root_run_id IS NOT NULL AND root_run_id {in $1} ORDER BY id DESC LIMIT $2",
        &[(&json_ids(&top)).into(), (ROWS_MAX as i64).into()],
        |row| Ok((row.integer(0)?, row.optional_integer(1)?, row.integer(2)?)),
    )?;
    if below.is_empty() {
        return Ok(());
    }
    let with_children: Vec<i64> = below.iter().map(|(_id, _finished_at, top)| *top).collect();
    candidates.runs.retain(|(id, _finished_at)| !with_children.contains(id));
    // An unfinished one is left, and so is the run above it.
    let over = below.into_iter().filter_map(|(id, finished_at, _top)| Some((id, finished_at?)));
    candidates.runs.extend(over);
    Ok(())
}

/// Finds finished runs beyond the newest `keep` of each workflow, as (run, its `finished_at`).
fn runs_beyond_limit(connection: &mut dyn Connection, keep: i64) -> Result<Vec<(i64, i64)>> {
    // Steps from workflow to workflow with one seek each, and counts along an index: 0.2 microseconds for each run
    // that is kept, once a round if nothing is to be deleted. A stored count for each workflow would be a row that
    // the end of every run has to update.
    let workflows = all(
        connection,
        "WITH RECURSIVE names (workflow) AS (
             SELECT (SELECT workflow FROM runs WHERE finished_at IS NOT NULL AND parent_job_id IS NULL
                     ORDER BY workflow LIMIT 1)
             UNION ALL
             SELECT (SELECT runs.workflow FROM runs
                     WHERE runs.finished_at IS NOT NULL AND runs.parent_job_id IS NULL
                       AND runs.workflow > names.workflow
                     ORDER BY runs.workflow LIMIT 1)
             FROM names WHERE names.workflow IS NOT NULL
         )
         SELECT workflow FROM names
         WHERE workflow IS NOT NULL
           AND (SELECT runs.finished_at FROM runs
                WHERE runs.workflow = names.workflow AND runs.finished_at IS NOT NULL AND runs.parent_job_id IS NULL
                ORDER BY runs.finished_at DESC LIMIT 1 OFFSET $1) IS NOT NULL
         LIMIT $2",
        &[keep.into(), WORKFLOWS_MAX.into()],
        |row| row.text(0),
    )?;
    let mut runs = Vec::new();
    for workflow in &workflows {
        if runs.len() >= ROWS_MAX {
            break;
        }
        runs.extend(all(
            connection,
            "SELECT id, finished_at FROM runs
             WHERE workflow = $1 AND finished_at IS NOT NULL AND parent_job_id IS NULL
             ORDER BY finished_at DESC, id DESC LIMIT $2 OFFSET $3",
            &[workflow.into(), ((ROWS_MAX - runs.len()) as i64).into(), keep.into()],
            |row| Ok((row.integer(0)?, row.integer(1)?)),
        )?);
    }
    Ok(runs)
}

fn find_leftovers(
    connection: &mut dyn Connection,
    candidates: &mut PruneCandidates,
    prune: Prune,
) -> Result<()> {
    let before_ms = candidates.before_ms;
    candidates.workers = ids(
        connection,
        "SELECT id FROM workers
         WHERE stopped_at < $1 AND status IN ('STOPPED', 'DEAD')
           AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.status = 'RUNNING' AND jobs.worker_id = workers.id)
         LIMIT $2",
        before_ms,
    )?;
    if prune == Prune::default() {
        return Ok(());
    }
    candidates.workflows = ids(
        connection,
        "SELECT id FROM workflows
         WHERE created_at < $1
           AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.workflow_id = workflows.id)
           AND NOT EXISTS (SELECT 1 FROM run_definitions AS definitions
                           WHERE definitions.workflow_id = workflows.id)
           AND NOT EXISTS (SELECT 1 FROM registration_versions AS versions
                           WHERE versions.workflow_id = workflows.id)
           AND NOT EXISTS (SELECT 1 FROM registrations WHERE registrations.workflow_id = workflows.id)
         LIMIT $2",
        before_ms,
    )?;
    candidates.occurrences = pairs(
        connection,
        "SELECT schedule_id, scheduled_for FROM occurrences
         WHERE status = 'SKIPPED' AND updated_at < $1 ORDER BY updated_at LIMIT $2",
        before_ms,
    )?;
    Ok(())
}

/// Finds the oldest lines of the audit that are beyond its number of lines, or older than [`AUDIT_MS`] and than the runs that
/// are kept. Without an age for runs, age alone deletes no line.
fn old_audit(connection: &mut dyn Connection, before_ms: Option<i64>, now_ms: i64) -> Result<Vec<i64>> {
    let before_ms = before_ms.map_or(i64::MIN, |before_ms| before_ms.min(now_ms.saturating_sub(AUDIT_MS)));
    all(
        connection,
        "SELECT id FROM (SELECT id, at FROM audit ORDER BY id LIMIT $3) AS oldest
         WHERE at < $1 OR id <= (SELECT id FROM audit ORDER BY id DESC LIMIT 1) - $2 ORDER BY id",
        &[before_ms.into(), AUDIT_LINES_MAX.into(), (ROWS_MAX as i64).into()],
        |row| row.integer(0),
    )
}

/// Finds events that no run can wait for any more. A run may wait for an event that came after it was created.
fn old_events(connection: &mut dyn Connection, now_ms: i64, keep_ms: i64) -> Result<Vec<i64>> {
    let oldest_run = first(
        connection,
        "SELECT created_at FROM runs WHERE status IN ('PENDING', 'RUNNING') ORDER BY id LIMIT 1",
        &[],
        |row| row.integer(0),
    )?;
    let kept_since_ms = now_ms.saturating_sub(keep_ms);
    // Runs and events are committed a little later than their times say.
    let before_ms = oldest_run.map_or(kept_since_ms, |run_ms| kept_since_ms.min(run_ms - EVENTS_MARGIN_MS));
    ids(
        connection,
        "SELECT id FROM events WHERE received_at < $1 AND dispatched_at IS NOT NULL
         ORDER BY received_at LIMIT $2",
        before_ms,
    )
}

fn ids(connection: &mut dyn Connection, sql: &'static str, before_ms: i64) -> Result<Vec<i64>> {
    all(connection, sql, &[before_ms.into(), (ROWS_MAX as i64).into()], |row| row.integer(0))
}

fn pairs(connection: &mut dyn Connection, sql: &'static str, before_ms: i64) -> Result<Vec<(i64, i64)>> {
    all(connection, sql, &[before_ms.into(), (ROWS_MAX as i64).into()], |row| {
        Ok((row.integer(0)?, row.integer(1)?))
    })
}

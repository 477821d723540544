//! Pruning: deleting finished runs and jobs by age and by number, in small batches.
//!
//! A snapshot says what may be deleted. The write transaction deletes by id and checks each row again, because a run
//! may have been retried in between.

use crate::store::evidence::Evidence;
use crate::store::{ForScheduler, json_ids};
use find::{PruneCandidates, find_candidates};
use std::collections::{HashMap, HashSet};
use windlass_db::error::Result;
use windlass_db::{Connection, Value, all};

mod find;

/// How many jobs one transaction deletes. It limits how long other writers wait.
const JOBS_MAX: usize = 500;
/// How many lines of output one transaction deletes.
const LINES_MAX: i64 = 20_000;
/// How many runs one transaction deletes, and how many rows of any other table.
const ROWS_MAX: usize = 200;
/// How long rows that deleted runs left behind (definitions, workers) are kept if no other age is given, in
/// milliseconds: a week.
const LEFTOVERS_MS: i64 = 7 * 24 * 3_600 * 1_000;

/// How many lines the audit has at most.
const AUDIT_LINES_MAX: i64 = 1_000_000;
/// How long lines of the audit are kept at least if runs are kept for less, in milliseconds: 90 days.
const AUDIT_MS: i64 = 90 * 24 * 3_600 * 1_000;
/// How long events are kept if nothing else is said, in milliseconds: a week.
const EVENTS_MS: i64 = 7 * 24 * 3_600 * 1_000;
/// Events that came so shortly before an unfinished run are kept too, in milliseconds.
const EVENTS_MARGIN_MS: i64 = 60_000;

/// What to delete. Nothing unfinished is ever deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prune {
    /// Delete what finished before this instant, in milliseconds since the Unix epoch.
    pub before_ms: Option<i64>,
    /// Of each workflow, keep this many of the newest finished runs.
    pub keep_runs: Option<i64>,
    /// Keep events for so long, in milliseconds; `None` for a week. Those that an unfinished run can wait for are kept longer.
    pub keep_events_ms: Option<i64>,
}

/// What a step of pruning deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Jobs, with their output and attempts.
    pub jobs: i64,
    /// Runs.
    pub runs: i64,
    /// Lines of output, if a step deleted only those.
    pub lines: i64,
    /// Definitions without runs, workers that are gone, skipped occurrences, events, notifications, lines of the audit, and
    /// keys of requests.
    pub leftovers: i64,
}

impl Pruned {
    /// Adds what another step deleted.
    pub fn add(&mut self, other: Pruned) {
        self.jobs += other.jobs;
        self.runs += other.runs;
        self.lines += other.lines;
        self.leftovers += other.leftovers;
    }
}

impl ForScheduler<'_> {
    /// Deletes one batch: runs with their jobs, and standalone jobs. A large run takes several steps. When none are
    /// left, it deletes the rows that they left behind. Call it again until nothing is deleted.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn prune_step(&self, prune: Prune) -> Result<Pruned> {
        let now_ms = self.store.clock.now_ms();
        let candidates = self.store.read(|connection| find_candidates(connection, prune, now_ms))?;
        if candidates.is_empty() {
            return Ok(Pruned::default());
        }
        self.store.write("prune", Evidence::Token, move |connection| delete(connection, &candidates))
    }
}

fn delete(connection: &mut dyn Connection, candidates: &PruneCandidates) -> Result<Pruned> {
    // A locked run may be in the middle of a retry, so it is left for the next time.
    let ended: HashMap<i64, i64> = candidates.runs.iter().copied().collect();
    let run_ids: Vec<i64> = candidates.runs.iter().map(|(id, _finished_at)| *id).collect();
    let locked = all(
        connection,
        "SELECT id, finished_at FROM runs
         WHERE id {in $1} AND {guard status IN ('SUCCESSFUL', 'FAILED', 'CANCELLED')} {lock}",
        &[(&json_ids(&run_ids)).into()],
        |row| Ok((row.integer(0)?, row.optional_integer(1)?)),
    )?;
    let runs: Vec<i64> = locked
        .into_iter()
        .filter(|(id, finished_at)| ended.get(id).copied() == *finished_at)
        .map(|(id, _finished_at)| id)
        .collect();
    let jobs = jobs_to_delete(connection, candidates, &runs)?;
    let lines = delete_lines(connection, &jobs)?;
    if lines >= LINES_MAX {
        return Ok(Pruned { lines, ..Pruned::default() });
    }
    let leftovers = delete_leftovers(connection, candidates)?;
    let jobs = execute(connection, "DELETE FROM jobs WHERE id {in $1}", &[(&json_ids(&jobs)).into()])?;
    let runs = execute(
        connection,
        "DELETE FROM runs WHERE id {in $1} AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.run_id = runs.id)",
        &[(&json_ids(&runs)).into()],
    )?;
    Ok(Pruned { jobs, runs, lines: 0, leftovers })
}

fn execute(connection: &mut dyn Connection, sql: &'static str, parameters: &[Value<'_>]) -> Result<i64> {
    Ok(i64::try_from(connection.execute(sql, parameters)?).unwrap_or(i64::MAX))
}

/// Jobs of the runs that are still as they were found, and standalone jobs that are still finished.
fn jobs_to_delete(
    connection: &mut dyn Connection,
    candidates: &PruneCandidates,
    runs: &[i64],
) -> Result<Vec<i64>> {
    let runs: HashSet<i64> = runs.iter().copied().collect();
    let mut jobs = all(
        connection,
        "SELECT id FROM jobs
         WHERE id {in $1} AND {guard run_id IS NULL} AND {guard finished_at < $2}
           AND {guard status IN ('SUCCESSFUL', 'FAILED', 'SKIPPED', 'CANCELLED')} {lock}",
        &[(&json_ids(&candidates.jobs_alone)).into(), candidates.before_ms.into()],
        |row| row.integer(0),
    )?;
    jobs.extend(candidates.jobs.iter().filter(|(_job, run)| runs.contains(run)).map(|(job, _run)| *job));
    Ok(jobs)
}

/// Deletes output before its jobs, a limited number of lines at a time.
fn delete_lines(connection: &mut dyn Connection, jobs: &[i64]) -> Result<i64> {
    execute(
        connection,
        "DELETE FROM job_logs
         WHERE (job_id, attempt, line) IN (
             SELECT job_id, attempt, line FROM job_logs WHERE job_id {in $1}
             ORDER BY job_id, attempt, line LIMIT $2)",
        &[(&json_ids(jobs)).into(), LINES_MAX.into()],
    )
}

fn delete_leftovers(connection: &mut dyn Connection, candidates: &PruneCandidates) -> Result<i64> {
    let workflows = execute(
        connection,
        "DELETE FROM workflows
         WHERE id {in $1} AND {guard created_at < $2}
           AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.workflow_id = workflows.id)
           AND NOT EXISTS (SELECT 1 FROM run_definitions AS definitions
                           WHERE definitions.workflow_id = workflows.id)
           AND NOT EXISTS (SELECT 1 FROM registration_versions AS versions
                           WHERE versions.workflow_id = workflows.id)
           AND NOT EXISTS (SELECT 1 FROM registrations WHERE registrations.workflow_id = workflows.id)",
        &[(&json_ids(&candidates.workflows)).into(), candidates.before_ms.into()],
    )?;
    let workers = execute(
        connection,
        "DELETE FROM workers WHERE id {in $1} AND {guard stopped_at < $2 AND status IN ('STOPPED', 'DEAD')}",
        &[(&json_ids(&candidates.workers)).into(), candidates.before_ms.into()],
    )?;
    let events = execute(
        connection,
        "DELETE FROM events WHERE id {in $1}",
        &[(&json_ids(&candidates.events)).into()],
    )?;
    let notifications = execute(
        connection,
        "DELETE FROM notifications WHERE id {in $1} AND {guard status IN ('DELIVERED', 'FAILED')}",
        &[(&json_ids(&candidates.notifications)).into()],
    )?;
    let audit =
        execute(connection, "DELETE FROM audit WHERE id {in $1}", &[(&json_ids(&candidates.audit)).into()])?;
    let keys = execute(
        connection,
        "DELETE FROM idempotency_keys WHERE id {in $1}",
        &[(&json_ids(&candidates.idempotency_keys)).into()],
    )?;
    Ok(workflows
        + audit
        + keys
        + workers
        + events
        + notifications
        + delete_occurrences(connection, &candidates.occurrences)?)
}

fn delete_occurrences(connection: &mut dyn Connection, occurrences: &[(i64, i64)]) -> Result<i64> {
    if occurrences.is_empty() {
        return Ok(0);
    }
    let candidates: Vec<[Value<'_>; 2]> = occurrences
        .iter()
        .map(|(schedule_id, scheduled_for)| [(*schedule_id).into(), (*scheduled_for).into()])
        .collect();
    let deleted = connection.execute(
        "DELETE FROM occurrences
         WHERE (schedule_id, scheduled_for) IN
               (SELECT schedule_id, scheduled_for
                FROM {rows $1: schedule_id integer, scheduled_for integer} AS old)
           AND {guard status = 'SKIPPED'}",
        &[Value::rows(&candidates)],
    )?;
    Ok(i64::try_from(deleted).unwrap_or(i64::MAX))
}

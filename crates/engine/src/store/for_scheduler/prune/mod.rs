//! Taking out what is over, by age and by number, in small batches.
//!
//! What to take is looked for in a snapshot, which keeps nobody waiting. The write transaction only
//! deletes by id, and looks again whether that is still right: a run may have been retried meanwhile.

use crate::store::ForScheduler;
use crate::store::evidence::Evidence;
use crate::store::json_ids;
use find::{Old, find};
use std::collections::HashMap;
use std::collections::HashSet;
use windlass_db::Connection;
use windlass_db::Value;
use windlass_db::all;
use windlass_db::error::Result;

mod find;

/// Jobs deleted in one transaction at most: other writers wait no longer than that takes.
const JOBS_MAX: usize = 500;
/// Lines of output deleted in one transaction at most.
const LINES_MAX: i64 = 20_000;
/// Runs, and of anything else each, deleted in one transaction at most.
const ROWS_MAX: usize = 200;
/// What nobody looks at after a run is gone (definitions, workers) stays so long at least when nothing else is
/// said, in milliseconds: a week.
const LEFTOVERS_MS: i64 = 7 * 24 * 3_600 * 1_000;

/// What is to be deleted. What is not over never is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prune {
    /// What was over before this instant, in milliseconds since the Unix epoch.
    pub before_ms: Option<i64>,
    /// Of each workflow, runs that are over beyond the newest so many.
    pub keep_runs: Option<i64>,
}

/// What a step of pruning deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Jobs, with their output and attempts.
    pub jobs: i64,
    /// Runs.
    pub runs: i64,
    /// Lines of output, where that was all there was room for.
    pub lines: i64,
    /// Definitions that no run has, workers that are gone, notes of skipped occurrences.
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
    /// Deletes one batch: runs with their jobs, a large one in several steps, and jobs that stand alone; when there
    /// are none of these, what they leave behind. Call again until nothing is deleted.
    ///
    /// # Errors
    /// The database's.
    pub fn prune_step(&self, prune: Prune) -> Result<Pruned> {
        let now_ms = self.store.clock.now_ms();
        let old = self.store.read(|connection| find(connection, prune, now_ms))?;
        if old.is_empty() {
            return Ok(Pruned::default());
        }
        self.store.write("prune", Evidence::Token, move |connection| delete(connection, &old))
    }
}

fn delete(connection: &mut dyn Connection, old: &Old) -> Result<Pruned> {
    // A run that somebody holds may be on its way into another life: it is left for the next time.
    let ended: HashMap<i64, i64> = old.runs.iter().copied().collect();
    let run_ids: Vec<i64> = old.runs.iter().map(|(id, _finished_at)| *id).collect();
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
    let jobs = jobs_to_delete(connection, old, &runs)?;
    let lines = delete_lines(connection, &jobs)?;
    if lines >= LINES_MAX {
        return Ok(Pruned { lines, ..Pruned::default() });
    }
    let leftovers = delete_leftovers(connection, old)?;
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

/// Jobs of the runs that are still what they were, and jobs that stand alone and still are over.
fn jobs_to_delete(connection: &mut dyn Connection, old: &Old, runs: &[i64]) -> Result<Vec<i64>> {
    let runs: HashSet<i64> = runs.iter().copied().collect();
    let mut jobs = all(
        connection,
        "SELECT id FROM jobs
         WHERE id {in $1} AND {guard run_id IS NULL} AND {guard finished_at < $2}
           AND {guard status IN ('SUCCESSFUL', 'FAILED', 'SKIPPED', 'CANCELLED')} {lock}",
        &[(&json_ids(&old.jobs_alone)).into(), old.before_ms.into()],
        |row| row.integer(0),
    )?;
    jobs.extend(old.jobs.iter().filter(|(_job, run)| runs.contains(run)).map(|(job, _run)| *job));
    Ok(jobs)
}

/// Output goes before its jobs, a bounded part of it at a time.
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

fn delete_leftovers(connection: &mut dyn Connection, old: &Old) -> Result<i64> {
    let workflows = execute(
        connection,
        "DELETE FROM workflows
         WHERE id {in $1} AND {guard created_at < $2}
           AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.workflow_id = workflows.id)
           AND NOT EXISTS (SELECT 1 FROM registration_versions AS versions
                           WHERE versions.workflow_id = workflows.id)
           AND NOT EXISTS (SELECT 1 FROM registrations WHERE registrations.workflow_id = workflows.id)",
        &[(&json_ids(&old.workflows)).into(), old.before_ms.into()],
    )?;
    let workers = execute(
        connection,
        "DELETE FROM workers WHERE id {in $1} AND {guard stopped_at < $2 AND status IN ('STOPPED', 'DEAD')}",
        &[(&json_ids(&old.workers)).into(), old.before_ms.into()],
    )?;
    Ok(workflows + workers + delete_occurrences(connection, &old.occurrences)?)
}

fn delete_occurrences(connection: &mut dyn Connection, occurrences: &[(i64, i64)]) -> Result<i64> {
    if occurrences.is_empty() {
        return Ok(0);
    }
    let old: Vec<[Value<'_>; 2]> = occurrences
        .iter()
        .map(|(schedule_id, scheduled_for)| [(*schedule_id).into(), (*scheduled_for).into()])
        .collect();
    let deleted = connection.execute(
        "DELETE FROM occurrences
         WHERE (schedule_id, scheduled_for) IN
               (SELECT schedule_id, scheduled_for
                FROM {rows $1: schedule_id integer, scheduled_for integer} AS old)
           AND {guard status = 'SKIPPED'}",
        &[Value::rows(&old)],
    )?;
    Ok(i64::try_from(deleted).unwrap_or(i64::MAX))
}

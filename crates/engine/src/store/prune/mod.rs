//! Taking out what is over, by age and by number, in small batches.
//!
//! What to take is looked for in a snapshot, which keeps nobody waiting. The write transaction only
//! deletes by id, and looks again whether that is still right: a run may have been retried meanwhile.

mod find;

use std::collections::HashMap;

use super::{Store, json_ids, json_rows};
use crate::db::{Connection, all};
use crate::error::Result;
use find::{Old, find};

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
    /// Lines of output of jobs that have too much of it for one step.
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

impl Store {
    /// Deletes one batch: runs with their jobs, a large one in several steps, and jobs that stand alone; when there
    /// are none of these, what they leave behind. Call again until nothing is deleted.
    ///
    /// # Errors
    /// The database's.
    pub fn prune_step(&self, prune: Prune) -> Result<Pruned> {
        let now_ms = self.clock.now_ms();
        let old = self.read(|connection| find(connection, prune, now_ms))?;
        if old.is_empty() {
            return Ok(Pruned::default());
        }
        self.write("prune", move |connection| delete(connection, &old))
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
    let mut execute = |sql: &'static str, ids: &[i64]| -> Result<i64> {
        if ids.is_empty() {
            return Ok(0);
        }
        let deleted = connection.execute(sql, &[(&json_ids(ids)).into(), old.before_ms.into()])?;
        Ok(i64::try_from(deleted).unwrap_or(i64::MAX))
    };
    let jobs = execute(
        "DELETE FROM jobs WHERE id {in $1} AND {guard run_id IS NULL} AND {guard finished_at < $2}",
        &old.jobs_alone,
    )?;
    let leftovers = execute(
        "DELETE FROM workflows
         WHERE id {in $1} AND {guard created_at < $2}
           AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.workflow_id = workflows.id)
           AND NOT EXISTS (SELECT 1 FROM registration_versions AS versions
                           WHERE versions.workflow_id = workflows.id)
           AND NOT EXISTS (SELECT 1 FROM registrations WHERE registrations.workflow_id = workflows.id)",
        &old.workflows,
    )? + execute(
        "DELETE FROM workers WHERE id {in $1} AND {guard stopped_at < $2 AND status IN ('STOPPED', 'DEAD')}",
        &old.workers,
    )? + delete_occurrences(connection, &old.occurrences)?;
    let lines = delete_lines(connection, &runs, old)?;
    let (of_runs, runs) = delete_runs(connection, &runs, &old.jobs)?;
    Ok(Pruned { jobs: jobs + of_runs, runs, lines, leftovers })
}

/// Jobs of runs, and the runs of which none is left; (jobs, runs).
fn delete_runs(connection: &mut dyn Connection, runs: &[i64], jobs: &[i64]) -> Result<(i64, i64)> {
    if runs.is_empty() {
        return Ok((0, 0));
    }
    let runs = json_ids(runs);
    let jobs = connection.execute(
        "DELETE FROM jobs
         WHERE id {in $1}
           AND (EXISTS (SELECT 1 FROM runs WHERE runs.id = jobs.run_id AND runs.id {in $2})) IS TRUE",
        &[(&json_ids(jobs)).into(), (&runs).into()],
    )?;
    let runs = connection.execute(
        "DELETE FROM runs WHERE id {in $1} AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.run_id = runs.id)",
        &[(&runs).into()],
    )?;
    Ok((i64::try_from(jobs).unwrap_or(i64::MAX), i64::try_from(runs).unwrap_or(i64::MAX)))
}

/// Output of a job that has more of it than goes in one step: the first lines by their keys.
fn delete_lines(connection: &mut dyn Connection, runs: &[i64], old: &Old) -> Result<i64> {
    let Some((job_id, run_id)) = old.talker else { return Ok(0) };
    if run_id.is_some_and(|run_id| !runs.contains(&run_id)) {
        return Ok(0);
    }
    let deleted = connection.execute(
        "DELETE FROM job_logs
         WHERE job_id = $1
           AND (attempt, line) IN (SELECT attempt, line FROM job_logs WHERE job_id = $1
                                   ORDER BY attempt, line LIMIT $2)
           AND EXISTS (SELECT 1 FROM jobs WHERE jobs.id = $1 AND jobs.finished_at IS NOT NULL)",
        &[job_id.into(), LINES_MAX.into()],
    )?;
    Ok(i64::try_from(deleted).unwrap_or(i64::MAX))
}

fn delete_occurrences(connection: &mut dyn Connection, occurrences: &[(i64, i64)]) -> Result<i64> {
    if occurrences.is_empty() {
        return Ok(0);
    }
    let deleted = connection.execute(
        "DELETE FROM occurrences
         WHERE (schedule_id, scheduled_for) IN
               (SELECT schedule_id, scheduled_for
                FROM {rows $1: schedule_id integer, scheduled_for integer} AS old)
           AND {guard status = 'SKIPPED'}",
        &[(&json_rows("prune", occurrences)?).into()],
    )?;
    Ok(i64::try_from(deleted).unwrap_or(i64::MAX))
}

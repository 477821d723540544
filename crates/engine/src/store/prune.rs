//! Taking out what is long over, in small batches.
//!
//! What to take is looked for in a snapshot, which keeps nobody waiting. The write transaction only
//! deletes by id, and looks again whether that is still right: a run may have been retried meanwhile.

use super::{Store, json_ids};
use crate::db::{Connection, all};
use crate::error::Result;

/// Jobs deleted in one transaction at most: other writers wait no longer than that takes.
const JOBS_MAX: usize = 500;
/// Runs, and of definitions and workers each, deleted in one transaction at most.
const ROWS_MAX: usize = 200;

/// What a step of pruning deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Jobs, with their output and attempts.
    pub jobs: i64,
    /// Runs.
    pub runs: i64,
}

/// What was found to be deleted, by id.
#[derive(Default)]
struct Old {
    jobs: Vec<i64>,
    runs: Vec<i64>,
    workflows: Vec<i64>,
    workers: Vec<i64>,
}

impl Store {
    /// Deletes one batch of what was over before an instant: the oldest runs with their jobs, a large one
    /// in several steps, and jobs that stand alone. Call again until nothing is deleted; the last step
    /// takes the definitions and workers that nothing refers to any more.
    ///
    /// # Errors
    /// The database's.
    pub fn prune_step(&self, before_ms: i64) -> Result<Pruned> {
        loop {
            let old = self.read(|connection| find(connection, before_ms))?;
            let Old { jobs, runs, workflows, workers } = &old;
            if [jobs, runs, workflows, workers].iter().all(|ids| ids.is_empty()) {
                return Ok(Pruned::default());
            }
            let only_leftovers = jobs.is_empty() && runs.is_empty();
            let pruned = self.write("prune", move |connection| delete(connection, &old, before_ms))?;
            if !only_leftovers {
                return Ok(pruned);
            }
        }
    }
}

fn find(connection: &mut dyn Connection, before_ms: i64) -> Result<Old> {
    let runs = ids(
        connection,
        "SELECT id FROM runs
         WHERE finished_at IS NOT NULL AND finished_at < $1
           AND status IN ('SUCCESSFUL', 'FAILED', 'CANCELLED')
         ORDER BY finished_at LIMIT $2",
        before_ms,
        ROWS_MAX,
    )?;
    let mut jobs = all(
        connection,
        "SELECT id FROM jobs WHERE run_id {in $1} LIMIT $2",
        &[(&json_ids(&runs)).into(), (JOBS_MAX as i64).into()],
        |row| row.integer(0),
    )?;
    jobs.extend(ids(
        connection,
        "SELECT id FROM jobs
         WHERE run_id IS NULL AND finished_at IS NOT NULL AND finished_at < $1
           AND status IN ('SUCCESSFUL', 'FAILED', 'SKIPPED', 'CANCELLED')
         ORDER BY finished_at LIMIT $2",
        before_ms,
        JOBS_MAX - jobs.len(),
    )?);
    let (mut workflows, mut workers) = (Vec::new(), Vec::new());
    if runs.is_empty() && jobs.is_empty() {
        workflows = ids(
            connection,
            "SELECT id FROM workflows
             WHERE created_at < $1
               AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.workflow_id = workflows.id)
               AND NOT EXISTS (SELECT 1 FROM registration_versions AS versions
                               WHERE versions.workflow_id = workflows.id)
             LIMIT $2",
            before_ms,
            ROWS_MAX,
        )?;
        workers = ids(
            connection,
            "SELECT id FROM workers WHERE stopped_at < $1 AND status IN ('STOPPED', 'DEAD') LIMIT $2",
            before_ms,
            ROWS_MAX,
        )?;
    }
    Ok(Old { jobs, runs, workflows, workers })
}

fn ids(connection: &mut dyn Connection, sql: &'static str, before_ms: i64, limit: usize) -> Result<Vec<i64>> {
    all(connection, sql, &[before_ms.into(), (limit as i64).into()], |row| row.integer(0))
}

fn delete(connection: &mut dyn Connection, old: &Old, before_ms: i64) -> Result<Pruned> {
    // A run that somebody holds may be on its way into another life: it is left for the next time.
    let runs = all(
        connection,
        "SELECT id FROM runs WHERE id {in $1} {lock}",
        &[(&json_ids(&old.runs)).into()],
        |row| row.integer(0),
    )?;
    let jobs = connection.execute(
        "DELETE FROM jobs
         WHERE id {in $1}
           AND ((run_id IS NULL AND finished_at < $2
                 AND status IN ('SUCCESSFUL', 'FAILED', 'SKIPPED', 'CANCELLED'))
                OR EXISTS (SELECT 1 FROM runs
                           WHERE runs.id = jobs.run_id AND runs.id {in $3} AND runs.finished_at < $2
                             AND runs.status IN ('SUCCESSFUL', 'FAILED', 'CANCELLED')))",
        &[(&json_ids(&old.jobs)).into(), before_ms.into(), (&json_ids(&runs)).into()],
    )?;
    let mut delete = |sql: &'static str, ids: &[i64]| -> Result<i64> {
        let deleted = connection.execute(sql, &[(&json_ids(ids)).into(), before_ms.into()])?;
        Ok(i64::try_from(deleted).unwrap_or(i64::MAX))
    };
    let runs = delete(
        "DELETE FROM runs
         WHERE id {in $1} AND finished_at < $2 AND status IN ('SUCCESSFUL', 'FAILED', 'CANCELLED')
           AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.run_id = runs.id)",
        &runs,
    )?;
    delete(
        "DELETE FROM workflows
         WHERE id {in $1} AND created_at < $2
           AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.workflow_id = workflows.id)
           AND NOT EXISTS (SELECT 1 FROM registration_versions AS versions
                           WHERE versions.workflow_id = workflows.id)",
        &old.workflows,
    )?;
    delete(
        "DELETE FROM workers WHERE id {in $1} AND stopped_at < $2 AND status IN ('STOPPED', 'DEAD')",
        &old.workers,
    )?;
    Ok(Pruned { jobs: i64::try_from(jobs).unwrap_or(i64::MAX), runs })
}

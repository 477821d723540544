//! Taking out what is long over, in small batches.

use super::{Store, json_ids};
use crate::db::all;
use crate::error::Result;

/// Jobs deleted in one transaction at most: other writers wait no longer than that takes.
const BATCH: i64 = 500;

/// What a step of pruning deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Jobs, with their output and attempts.
    pub jobs: i64,
    /// Runs.
    pub runs: i64,
}

impl Store {
    /// Deletes one batch of what was over before an instant: jobs first, then the runs that have none
    /// left. Call again until nothing is deleted.
    ///
    /// # Errors
    /// The database's.
    pub fn prune_step(&self, before_ms: i64) -> Result<Pruned> {
        self.write("prune", move |connection| {
            let jobs = all(
                connection,
                "SELECT jobs.id FROM jobs LEFT JOIN runs ON runs.id = jobs.run_id
                 WHERE (jobs.run_id IS NULL AND jobs.finished_at < $1
                        AND jobs.status IN ('SUCCESSFUL', 'FAILED', 'SKIPPED', 'CANCELLED'))
                    OR (runs.finished_at < $1 AND runs.status IN ('SUCCESSFUL', 'FAILED', 'CANCELLED'))
                 LIMIT $2",
                &[before_ms.into(), BATCH.into()],
                |row| row.integer(0),
            )?;
            let deleted =
                connection.execute("DELETE FROM jobs WHERE id IN {ids $1}", &[(&json_ids(&jobs)).into()])?;
            let mut runs = 0;
            if (jobs.len() as i64) < BATCH {
                runs = connection.execute(
                    "DELETE FROM runs
                     WHERE finished_at < $1 AND status IN ('SUCCESSFUL', 'FAILED', 'CANCELLED')",
                    &[before_ms.into()],
                )?;
                connection.execute(
                    "DELETE FROM workflows
                     WHERE created_at < $1
                       AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.workflow_id = workflows.id)",
                    &[before_ms.into()],
                )?;
                connection.execute(
                    "DELETE FROM workers WHERE stopped_at < $1 AND status IN ('STOPPED', 'DEAD')",
                    &[before_ms.into()],
                )?;
            }
            let count = |rows| i64::try_from(rows).unwrap_or(i64::MAX);
            Ok(Pruned { jobs: count(deleted), runs: count(runs) })
        })
    }
}

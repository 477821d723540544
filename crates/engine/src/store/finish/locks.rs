//! The lock of a run, where several transactions write side by side.

use crate::store::json_ids;
use windlass_db::error::Result;
use windlass_db::{Connection, Writers};

/// Locks runs in the order of their ids, where several transactions write side by side. A run's row is the lock of its
/// jobs: a transaction that changes several jobs of a run, or counts them, holds it. So transactions can't wait for each
/// other in a circle.
pub(in crate::store) fn lock_runs(connection: &mut dyn Connection, mut run_ids: Vec<i64>) -> Result<()> {
    run_ids.sort_unstable();
    run_ids.dedup();
    if connection.capabilities().writers == Writers::OneAtATime || run_ids.is_empty() {
        return Ok(());
    }
    connection.execute_with_next(
        "SELECT id FROM runs WHERE id {in $1} ORDER BY id {wait}",
        &[(&json_ids(&run_ids)).into()],
    )
}

/// Locks the runs of these jobs, as [`lock_runs`] does.
pub(in crate::store) fn lock_runs_of(connection: &mut dyn Connection, job_ids: &[i64]) -> Result<()> {
    if connection.capabilities().writers == Writers::OneAtATime {
        return Ok(());
    }
    connection.execute(
        "WITH named AS MATERIALIZED (SELECT DISTINCT run_id FROM jobs WHERE id {in $1})
         SELECT runs.id FROM named CROSS JOIN runs WHERE {by runs.id = named.run_id}
         ORDER BY named.run_id {wait}",
        &[(&json_ids(job_ids)).into()],
    )?;
    Ok(())
}

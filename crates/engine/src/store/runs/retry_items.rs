//! What a retry does with groups: the failed items of some are reset, and others are decided anew, without their old items.

use std::collections::HashSet;

use super::retry::Root;
use crate::store::finish::items::settle_groups;
use crate::store::json_ids;
use windlass_db::error::Result;
use windlass_db::{Connection, all};

/// The jobs that a retry resets.
#[derive(Default)]
pub(super) struct Reset {
    /// Jobs that are reset with all that depends on them, and items that are reset alone.
    pub(super) jobs: Vec<i64>,
    /// Groups that keep their items, and wait for those that are reset.
    pub(super) reopened: Vec<i64>,
}

/// Finds the jobs to reset for these roots, handlers left out.
pub(super) fn find_reset(connection: &mut dyn Connection, roots: &[Root]) -> Result<Reset> {
    let roots: Vec<&Root> = roots.iter().filter(|root| root.phase == 0).collect();
    let mut reopened: HashSet<i64> = roots.iter().filter_map(|root| root.group_id).collect();
    let starts: Vec<i64> = roots
        .iter()
        .filter(|root| root.group_id.is_none() && !reopened.contains(&root.id))
        .map(|root| root.id)
        .collect();
    let jobs = with_descendants(connection, &starts, &reopened.iter().copied().collect::<Vec<_>>())?;
    let anew: HashSet<i64> = jobs.iter().copied().collect();
    reopened.retain(|group_id| !anew.contains(group_id));
    let mut reset = Reset { jobs, reopened: reopened.iter().copied().collect() };
    reset.reopened.sort_unstable();
    reset.jobs.extend(
        roots
            .iter()
            .filter(|root| root.group_id.is_some_and(|group_id| reopened.contains(&group_id)))
            .map(|root| root.id),
    );
    // Items that did not have their turn because another one failed.
    reset.jobs.extend(all(
        connection,
        "SELECT id FROM jobs
         WHERE group_id IS NOT NULL AND group_id {in $1} AND {guard status = 'SKIPPED'} AND upstream_failed = 1",
        &[(&json_ids(&reset.reopened)).into()],
        |row| row.integer(0),
    )?);
    Ok(reset)
}

/// Jobs, and all jobs that depend on them or on these parents, directly or through others.
fn with_descendants(connection: &mut dyn Connection, jobs: &[i64], parents: &[i64]) -> Result<Vec<i64>> {
    all(
        connection,
        "WITH RECURSIVE again (id) AS (
             SELECT id FROM jobs WHERE id {in $1}
             UNION
             SELECT child_id FROM job_dependencies WHERE parent_id {in $2}
             UNION
             SELECT edges.child_id FROM again
             JOIN job_dependencies AS edges ON {by edges.parent_id = again.id}
         )
         SELECT id FROM again",
        &[(&json_ids(jobs)).into(), (&json_ids(parents)).into()],
        |row| row.integer(0),
    )
}

/// Deletes the items of groups that are decided anew: those among the jobs that are reset, and all handlers.
pub(super) fn delete_items(connection: &mut dyn Connection, run_id: i64, reset: &[i64]) -> Result<()> {
    let deleted = connection.execute(
        "DELETE FROM jobs WHERE group_id IS NOT NULL AND group_id {in $1}",
        &[(&json_ids(reset)).into()],
    )? + connection.execute(
        "DELETE FROM jobs WHERE run_id = $1 AND phase > 0 AND group_id IS NOT NULL",
        &[run_id.into()],
    )?;
    if deleted > 0 {
        connection.execute(
            "UPDATE runs SET total_jobs = total_jobs - $2 WHERE id = $1",
            &[run_id.into(), i64::try_from(deleted).unwrap_or(i64::MAX).into()],
        )?;
    }
    Ok(())
}

/// Lets groups wait for their items again.
pub(super) fn reopen_groups(connection: &mut dyn Connection, groups: &[i64], now_ms: i64) -> Result<()> {
    if groups.is_empty() {
        return Ok(());
    }
    connection.execute(
        "UPDATE jobs
         SET status = 'WAITING', waits_for = 'items', cancel_requested_at = NULL, cancel_at_once = 0, last_error = NULL,
             finished_at = NULL, updated_at = $2
         WHERE id {in $1}",
        &[(&json_ids(groups)).into(), now_ms.into()],
    )?;
    Ok(())
}

/// Lets the first of the reset items run.
pub(super) fn release_first_items(connection: &mut dyn Connection, run_id: i64, now_ms: i64) -> Result<()> {
    // Each of these groups has an unfinished item, so none of them ends.
    settle_groups(connection, run_id, now_ms).map(drop)
}

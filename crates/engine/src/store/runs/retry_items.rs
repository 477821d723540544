//! What a retry does with groups: the failed items of some are reset, and others are decided anew, without their old items.

use std::collections::HashSet;

use super::retry::Root;
use crate::decide::Control;
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
pub(super) fn with_descendants(
    connection: &mut dyn Connection,
    jobs: &[i64],
    parents: &[i64],
) -> Result<Vec<i64>> {
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
    // Runs that items have started are kept. They belong to the group then.
    connection.execute(
        "UPDATE runs SET parent_attempt = NULL, parent_job_id = (SELECT group_id FROM jobs WHERE {by jobs.id = runs.parent_job_id})
         WHERE parent_job_id IS NOT NULL AND parent_job_id IN (
             SELECT item.id FROM jobs AS item WHERE item.group_id IS NOT NULL AND item.group_id {in $1}
             UNION ALL
             SELECT item.id FROM jobs AS item WHERE item.run_id = $2 AND item.phase > 0 AND item.group_id IS NOT NULL)",
        &[(&json_ids(reset)).into(), run_id.into()],
    )?;
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
             started_at = $2, finished_at = NULL, deadline_at = NULL, updated_at = $2
         WHERE id {in $1}",
        &[(&json_ids(groups)).into(), now_ms.into()],
    )?;
    Ok(())
}

/// The groups that wait again have as much time as they had at first.
pub(super) fn begin_deadlines_anew(connection: &mut dyn Connection, run_id: i64, now_ms: i64) -> Result<()> {
    let controls = all(
        connection,
        "SELECT id, control FROM jobs WHERE run_id = $1 AND status = 'WAITING' AND waits_for = 'items'",
        &[run_id.into()],
        |row| Ok((row.integer(0)?, row.lossy_text(1)?.unwrap_or_default())),
    )?;
    for (group_id, control) in controls {
        let deadline_ms =
            serde_json::from_str::<Control>(&control).ok().and_then(|control| control.deadline_ms);
        let Some(deadline_ms) = deadline_ms else { continue };
        connection.execute(
            "UPDATE jobs SET deadline_at = $2 WHERE id = $1",
            &[group_id.into(), now_ms.saturating_add(deadline_ms).into()],
        )?;
    }
    Ok(())
}

/// Lets the first of the reset items run.
pub(super) fn release_first_items(connection: &mut dyn Connection, run_id: i64, now_ms: i64) -> Result<()> {
    // Each of these groups has an unfinished item, so none of them ends.
    settle_groups(connection, run_id, now_ms).map(drop)
}

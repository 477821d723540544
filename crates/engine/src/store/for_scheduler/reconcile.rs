//! Reconciliation: repairing runs whose counters do not match their jobs, a few runs at a time.
//!
//! Windlass never leaves such a run behind, and a worker in another language should report only a state (see
//! `reports`). But another program that sets `finished_at` itself must not block a run for ever. Runs that changed
//! recently are skipped, because a run that moves is not stuck.

use crate::status::StopReason;
use crate::store::cancel::{Urgency, stop_run};
use crate::store::evidence::Evidence;
use crate::store::finish::items::settle_groups;
use crate::store::finish::run_end::{RunDelta, count_down};
use crate::store::runs::retry::{skip_jobs_with_broken_parents, unblock};
use crate::store::{ForScheduler, json_ids};
use std::collections::BTreeMap;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, all, first};
use windlass_system::wake_ups::WakeUps;

/// How many unfinished runs one step checks.
const RUNS_MAX: i64 = 20;
/// A run that changed within this time is not checked, in milliseconds.
const QUIET_MS: i64 = 10_000;

/// What one step of reconciliation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reconciled {
    /// Runs that were repaired.
    pub repaired: i64,
    /// The last run that was checked; `None` after the last one of all.
    pub cursor: Option<i64>,
}

impl ForScheduler<'_> {
    /// Checks a few unfinished runs after `cursor`, and repairs those that are stuck.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn reconcile_step(&self, cursor: i64) -> Result<Reconciled> {
        let now_ms = self.store.clock.now_ms();
        let checked = self.store.read(|connection| find_stuck_runs(connection, cursor, now_ms))?;
        let mut repaired = 0;
        for (run_id, is_stuck) in &checked {
            if *is_stuck {
                let run_id = *run_id;
                repaired += self.store.write("reconcile a run", Evidence::Repeat, move |connection| {
                    repair(connection, run_id, now_ms)
                })?;
            }
        }
        let run_ids: Vec<i64> = checked.iter().map(|(run_id, _is_stuck)| *run_id).collect();
        repaired += self.stop_forgotten(run_ids)?;
        let is_last = checked.len() < RUNS_MAX as usize;
        Ok(Reconciled { repaired, cursor: checked.last().map(|(id, _)| *id).filter(|_| !is_last) })
    }
}

impl ForScheduler<'_> {
    /// Stops runs whose jobs no longer wait for them, because another program has ended these jobs.
    fn stop_forgotten(&self, run_ids: Vec<i64>) -> Result<i64> {
        let forgotten = self.store.read(|connection| {
            all(
                connection,
                "SELECT runs.id FROM runs
                 WHERE runs.id {in $1} AND runs.parent_job_id IS NOT NULL AND {guard runs.stop_reason IS NULL}
                   AND NOT EXISTS (SELECT 1 FROM jobs
                                   WHERE {by jobs.id = runs.parent_job_id} AND jobs.attempt = runs.parent_attempt
                                     AND jobs.status = 'WAITING' AND jobs.waits_for = 'run')",
                &[(&json_ids(&run_ids)).into()],
                |row| row.integer(0),
            )
        })?;
        let now_ms = self.store.clock.now_ms();
        for run_id in &forgotten {
            let run_id = *run_id;
            self.store.write("stop a forgotten run", Evidence::Repeat, move |connection| {
                match stop_run(connection, run_id, StopReason::Cancelled, Urgency::WithGrace, now_ms) {
                    Ok(_) | Err(Error::Conflict { .. } | Error::NotFound { .. }) => Ok(()),
                    Err(error) => Err(error),
                }
            })?;
        }
        Ok(forgotten.len() as i64)
    }
}

/// Lists unfinished runs, as (run, whether it is stuck). A run is stuck if its counter differs from its jobs, or if
/// all its unfinished jobs are BLOCKED and one of them has no unfinished parent.
fn find_stuck_runs(connection: &mut dyn Connection, cursor: i64, now_ms: i64) -> Result<Vec<(i64, bool)>> {
    all(
        connection,
        "SELECT id,
                CASE WHEN updated_at > $2 OR waits_for IS NOT NULL THEN 0
                     WHEN unfinished_jobs = 0 THEN 1
                     WHEN unfinished_jobs <> (SELECT count(*) FROM jobs
                                              WHERE jobs.run_id = runs.id AND jobs.phase = runs.phase
                                                AND jobs.finished_at IS NULL)
                     THEN 1
                     WHEN EXISTS (SELECT 1 FROM jobs
                                  WHERE jobs.run_id = runs.id AND jobs.status = 'WAITING' AND jobs.waits_for = 'items'
                                    AND jobs.blocked_by <> (SELECT count(*) FROM jobs AS item
                                                            WHERE item.group_id IS NOT NULL AND item.group_id = jobs.id
                                                              AND item.finished_at IS NULL))
                     THEN 1
                     -- Parents are counted only if nothing else would move the run, because a large run has many edges.
                     WHEN EXISTS (SELECT 1 FROM jobs WHERE jobs.run_id = runs.id AND jobs.finished_at IS NULL
                                                       AND jobs.status <> 'BLOCKED')
                     THEN 0
                     WHEN EXISTS (SELECT 1 FROM jobs
                                  WHERE jobs.run_id = runs.id AND jobs.phase = runs.phase AND jobs.status = 'BLOCKED'
                                    AND NOT EXISTS (SELECT 1 FROM job_dependencies AS edges
                                                    JOIN jobs AS parent ON {by parent.id = edges.parent_id}
                                                    WHERE {by edges.child_id = jobs.id}
                                                      AND parent.finished_at IS NULL))
                     THEN 1 ELSE 0 END
         FROM runs WHERE id > $1 AND status IN ('PENDING', 'RUNNING')
         ORDER BY id LIMIT $3",
        &[cursor.into(), now_ms.saturating_sub(QUIET_MS).into(), RUNS_MAX.into()],
        |row| Ok((row.integer(0)?, row.integer(1)? != 0)),
    )
}

fn repair(connection: &mut dyn Connection, run_id: i64, now_ms: i64) -> Result<i64> {
    let counted = first(
        connection,
        "SELECT unfinished_jobs, failed_jobs FROM runs
         WHERE id = $1 AND status IN ('PENDING', 'RUNNING') {wait}",
        &[run_id.into()],
        |row| Ok((row.integer(0)?, row.integer(1)?)),
    )?;
    let Some((unfinished, failed)) = counted else { return Ok(0) };
    let groups = settle_groups(connection, run_id, now_ms)?;
    skip_jobs_with_broken_parents(connection, run_id, now_ms)?;
    let unblocked = unblock(connection, run_id, now_ms)?;
    let actual = first(
        connection,
        "SELECT coalesce(sum(CASE WHEN finished_at IS NULL
                                   AND phase = (SELECT phase FROM runs WHERE id = $1) THEN 1 ELSE 0 END), 0),
                coalesce(sum(CASE WHEN finished_at IS NOT NULL AND {counts_as_failed} THEN 1 ELSE 0 END), 0)
         FROM jobs WHERE run_id = $1",
        &[run_id.into()],
        |row| Ok((row.integer(0)?, row.integer(1)?)),
    )?;
    let (now_unfinished, now_failed) = actual.unwrap_or_default();
    let delta = RunDelta { finished: unfinished - now_unfinished, failed: now_failed - failed };
    if delta.finished == 0 && unblocked == 0 && groups.is_empty() && now_unfinished > 0 {
        return Ok(0);
    }
    count_down(connection, &BTreeMap::from([(run_id, delta)]), now_ms)?;
    // Jobs that became ready may also wait for a slot of a concurrency key.
    connection.wake(WakeUps::PENDING | WakeUps::PROGRESS | WakeUps::DUE);
    Ok(1)
}

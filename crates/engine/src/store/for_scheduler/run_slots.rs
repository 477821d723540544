//! Concurrency keys of runs: a run gets a free slot of its key, is skipped, or cancels the oldest run that has one.
//!
//! A run with a key waits from its submission on. Only the scheduler lets it go on, in a transaction that holds the lock of the
//! key and then those of the runs in the order of their ids. Whoever ends a run only wakes the scheduler, which finds by the
//! rows what to do. So nothing is lost between two transactions.

use crate::status::StopReason;
use crate::store::ForScheduler;
use crate::store::cancel::{Urgency, stop_run};
use crate::store::evidence::Evidence;
use crate::store::finish::locks::lock_runs;
use crate::store::finish::slot_decision::{Holder, OnFull, SlotDecision, Waiting, decide};
use crate::store::finish::slots::CONCURRENCY_LIMIT_MAX;
use crate::store::json_ids;
use crate::store::runs::retry::start_reopened;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Row, UpdateReturning, all, all_updated, one};
use windlass_system::wake_ups::WakeUps;

/// How many keys the scheduler handles in one step.
const KEYS_MAX: i64 = 200;
/// How many waiting runs of one key a transaction reads, and how many of those with another `on_full` than `wait`.
const WAITING_MAX: i64 = 100;

impl ForScheduler<'_> {
    /// Handles concurrency keys after `cursor` for which runs wait: lets runs go on that get a slot, and skips or cancels runs
    /// as their `on_full` says. Returns the last key handled, or an empty text after the last of all.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn admit_runs(&self, cursor: &str) -> Result<String> {
        let keys = self.store.read(|connection| keys_with_waiting_runs(connection, cursor))?;
        let now_ms = self.store.clock.now_ms();
        for key in keys.iter().filter(|key| key.may_be_decided()) {
            let name = key.name.clone();
            self.store.write("admit runs", Evidence::Repeat, move |connection| {
                carry_out(connection, &name, now_ms)
            })?;
        }
        let is_last = (keys.len() as i64) < KEYS_MAX;
        Ok(keys.into_iter().next_back().filter(|_key| !is_last).map(|key| key.name).unwrap_or_default())
    }
}

/// A key for which runs wait.
struct WaitedKey {
    name: String,
    /// How many runs have a slot.
    taken: i64,
    /// How many slots there are for the first waiting run.
    limit: i64,
    /// Whether a waiting run is skipped, or cancels another, if no slot is free.
    has_on_full: bool,
}

impl WaitedKey {
    fn may_be_decided(&self) -> bool {
        self.has_on_full || self.taken < self.limit
    }
}

/// Lists keys after the cursor for which runs wait, step by step from one key to the next.
fn keys_with_waiting_runs(connection: &mut dyn Connection, cursor: &str) -> Result<Vec<WaitedKey>> {
    all(
        connection,
        "WITH RECURSIVE keys (name) AS (
             SELECT (SELECT concurrency_key FROM runs
                     WHERE waits_for IS NOT NULL AND concurrency_key > $1
                     ORDER BY concurrency_key LIMIT 1)
             UNION ALL
             SELECT (SELECT runs.concurrency_key FROM runs
                     WHERE runs.waits_for IS NOT NULL AND runs.concurrency_key > keys.name
                     ORDER BY runs.concurrency_key LIMIT 1)
             FROM keys WHERE keys.name IS NOT NULL
         ),
         batch (name) AS MATERIALIZED (SELECT name FROM keys WHERE name IS NOT NULL LIMIT $2)
         SELECT name,
                (SELECT count(*) FROM runs
                 WHERE concurrency_key IS NOT NULL AND concurrency_key = batch.name AND waits_for IS NULL
                   AND status IN ('PENDING', 'RUNNING')),
                (SELECT concurrency_limit FROM runs
                 WHERE waits_for IS NOT NULL AND concurrency_key = batch.name
                 ORDER BY concurrency_key, id LIMIT 1),
                (SELECT min(id) FROM runs
                 WHERE waits_for IS NOT NULL AND on_full <> 'wait' AND concurrency_key = batch.name)
         FROM batch ORDER BY name",
        &[cursor.into(), KEYS_MAX.into()],
        |row| {
            Ok(WaitedKey {
                name: row.lossy_text(0)?.unwrap_or_default(),
                taken: row.integer(1)?,
                limit: row.optional_integer(2)?.unwrap_or(1),
                has_on_full: row.optional_integer(3)?.is_some(),
            })
        },
    )
}

/// Decides about the runs of one key and carries the decision out, in a transaction of its own.
fn carry_out(connection: &mut dyn Connection, key: &str, now_ms: i64) -> Result<()> {
    if !lock_key(connection, key)? {
        connection.wake(WakeUps::DUE);
        return Ok(());
    }
    let SlotDecision { admit, skip, cancel } = read_decision(connection, key)?;
    lock_runs(connection, admit.iter().chain(&skip).chain(&cancel).copied().collect())?;
    stop(connection, &skip, StopReason::Skipped, now_ms)?;
    stop(connection, &cancel, StopReason::Cancelled, now_ms)?;
    admit_waiting(connection, &admit, now_ms)?;
    if admit.len() as i64 >= WAITING_MAX {
        connection.wake(WakeUps::DUE);
    }
    Ok(())
}

/// Tries to lock a key of runs until the end of the transaction. `false` if another transaction holds it.
fn lock_key(connection: &mut dyn Connection, key: &str) -> Result<bool> {
    let sql = "SELECT {try_lock 'run key ' || CAST($1 AS TEXT)}";
    Ok(one(connection, sql, &[key.into()], |row| row.integer(0))? == 1)
}

/// Reads the runs of a key and decides about them. The oldest waiting run is the first that gets a slot.
fn read_decision(connection: &mut dyn Connection, key: &str) -> Result<SlotDecision> {
    let holders = all(
        connection,
        "SELECT id, stop_reason FROM runs
         WHERE concurrency_key IS NOT NULL AND concurrency_key = $1 AND waits_for IS NULL
           AND status IN ('PENDING', 'RUNNING')
         ORDER BY concurrency_key, id LIMIT $2",
        &[key.into(), CONCURRENCY_LIMIT_MAX.into()],
        |row| Ok(Holder { id: row.integer(0)?, is_stopping: row.lossy_text(1)?.is_some() }),
    )?;
    let mut waiting = all(
        connection,
        "SELECT id, concurrency_limit, on_full FROM runs
         WHERE waits_for IS NOT NULL AND concurrency_key = $1
         ORDER BY concurrency_key, id LIMIT $2",
        &[key.into(), WAITING_MAX.into()],
        read_waiting_run,
    )?;
    waiting.extend(all(
        connection,
        "SELECT id, concurrency_limit, on_full FROM runs
         WHERE waits_for IS NOT NULL AND on_full <> 'wait' AND concurrency_key = $1
         ORDER BY concurrency_key, id LIMIT $2",
        &[key.into(), WAITING_MAX.into()],
        read_waiting_run,
    )?);
    waiting.sort_by_key(|run| run.id);
    waiting.dedup();
    Ok(decide(&holders, &waiting))
}

fn read_waiting_run(row: &dyn Row) -> Result<Waiting> {
    let (id, on_full) = (row.integer(0)?, row.parsed(2, OnFull::parse)?);
    Ok(Waiting { id, limit: row.integer(1)?.min(CONCURRENCY_LIMIT_MAX), on_full })
}

/// Stops runs. One that has ended or was stopped in between is no error.
fn stop(connection: &mut dyn Connection, run_ids: &[i64], reason: StopReason, now_ms: i64) -> Result<()> {
    for run_id in run_ids {
        match stop_run(connection, *run_id, reason, Urgency::WithGrace, now_ms) {
            Ok(_) | Err(Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Gives slots to waiting runs.
static ADMIT: UpdateReturning = UpdateReturning {
    table: "runs",
    set: &[("waits_for", "NULL"), ("updated_at", "$2")],
    from: None,
    condition: "id {in $1} AND {guard status = 'PENDING'} AND waits_for IS NOT NULL",
    returning: &["id", "unfinished_jobs"],
};

fn admit_waiting(connection: &mut dyn Connection, run_ids: &[i64], now_ms: i64) -> Result<()> {
    if run_ids.is_empty() {
        return Ok(());
    }
    let ids = json_ids(run_ids);
    let parameters = [(&ids).into(), now_ms.into()];
    let mut admitted =
        all_updated(connection, &ADMIT, &parameters, |row| Ok((row.integer(0)?, row.integer(1)?)))?;
    admitted.sort_unstable();
    for (run_id, unfinished) in admitted {
        start_reopened(connection, run_id, unfinished, now_ms)?;
    }
    connection.wake(WakeUps::PENDING | WakeUps::PROGRESS | WakeUps::DUE);
    Ok(())
}

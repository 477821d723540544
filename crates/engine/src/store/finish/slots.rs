//! Slots of concurrency keys: which of the jobs that share a key may run.
//!
//! A ready job with a key is WAITING until a slot of its key is free; claims do not see it. The PENDING and RUNNING jobs
//! of a key hold its slots. Slots are counted from these rows, so a crash can't leak one. A transaction that frees or
//! wants a slot admits waiting jobs itself. If another transaction holds the key's lock, the scheduler does it later.

use crate::store::finish::slot_decision::{Holder, OnFull, SlotDecision, Waiting, decide};
use crate::store::json_ids;
use windlass_db::error::Result;
use windlass_db::{Connection, Row, UpdateReturning, all, all_updated, one};
use windlass_system::wake_ups::WakeUps;

/// The highest limit of a concurrency key. The end of a job counts up to this many jobs of its key.
pub const CONCURRENCY_LIMIT_MAX: i64 = windlass_workflow::limits::CONCURRENCY;
/// How many waiting jobs of one key a transaction reads, and how many of those with another `on_full` than `wait`.
const WAITING_MAX: i64 = 100;

/// Gives free slots of these keys to waiting jobs, and returns the jobs that became claimable. Jobs that must be skipped
/// or cancelled are left to the scheduler, because its transaction holds no other locks.
pub(in crate::store) fn admit(
    connection: &mut dyn Connection,
    keys: &[String],
    now_ms: i64,
) -> Result<Vec<i64>> {
    let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut claimable = Vec::new();
    for key in keys {
        if !lock_key(connection, key)? {
            connection.wake(WakeUps::DUE);
            continue;
        }
        let decision = read_decision(connection, key)?;
        claimable.extend(make_pending(connection, &decision.admit, now_ms)?);
        let is_more = decision.admit.len() as i64 >= WAITING_MAX;
        if is_more || !decision.skip.is_empty() || !decision.cancel.is_empty() {
            connection.wake(WakeUps::DUE);
        }
    }
    Ok(claimable)
}

/// Tries to lock a key until the end of the transaction. `false` if another transaction holds it.
pub(in crate::store) fn lock_key(connection: &mut dyn Connection, key: &str) -> Result<bool> {
    let taken =
        one(connection, "SELECT {try_lock 'key ' || CAST($1 AS TEXT)}", &[key.into()], |row| row.integer(0))?;
    Ok(taken == 1)
}

/// Reads the jobs of a key and decides about them.
pub(in crate::store) fn read_decision(connection: &mut dyn Connection, key: &str) -> Result<SlotDecision> {
    let holders = all(
        connection,
        "SELECT id, cancel_requested_at FROM jobs
         WHERE concurrency_key IS NOT NULL AND concurrency_key = $1 AND status IN ('PENDING', 'RUNNING')
         ORDER BY id LIMIT $2",
        &[key.into(), CONCURRENCY_LIMIT_MAX.into()],
        |row| Ok(Holder { id: row.integer(0)?, is_stopping: row.optional_integer(1)?.is_some() }),
    )?;
    let mut waiting = all(
        connection,
        "SELECT id, {rank}, coalesce(concurrency_limit, 1), on_full, attempt FROM jobs
         WHERE concurrency_key IS NOT NULL AND concurrency_key = $1 AND status = 'WAITING'
           AND waits_for = 'slot'
         ORDER BY {rank}, id LIMIT $2",
        &[key.into(), WAITING_MAX.into()],
        read_waiting_job,
    )?;
    waiting.extend(all(
        connection,
        "SELECT id, {rank}, coalesce(concurrency_limit, 1), on_full, attempt FROM jobs
         WHERE concurrency_key IS NOT NULL AND concurrency_key = $1 AND status = 'WAITING'
           AND waits_for = 'slot'
           AND on_full <> 'wait'
         ORDER BY id LIMIT $2",
        &[key.into(), WAITING_MAX.into()],
        read_waiting_job,
    )?);
    waiting.sort_by_key(|(rank, job)| (*rank, job.id));
    waiting.dedup();
    let waiting: Vec<Waiting> = waiting.into_iter().map(|(_rank, job)| job).collect();
    Ok(decide(&holders, &waiting))
}

/// Reads a waiting job with its rank.
fn read_waiting_job(row: &dyn Row) -> Result<(i64, Waiting)> {
    let has_begun = row.integer(4)? > 0;
    let on_full = match row.parsed(3, OnFull::parse)? {
        // A job that has run before is not skipped.
        OnFull::Skip if has_begun => OnFull::Wait,
        on_full @ (OnFull::Wait | OnFull::Skip | OnFull::CancelOldest) => on_full,
    };
    let limit = row.integer(2)?.min(CONCURRENCY_LIMIT_MAX);
    Ok((row.integer(1)?, Waiting { id: row.integer(0)?, limit, on_full }))
}

/// Makes jobs PENDING that wait for a slot.
static MAKE_PENDING: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[("status", "'PENDING'"), ("waits_for", "NULL"), ("updated_at", "$2"), ("priority", "{priority}")],
    from: None,
    condition: "id {in $1} AND {guard status = 'WAITING'} AND waits_for = 'slot'",
    returning: &["id"],
};

pub(in crate::store) fn make_pending(
    connection: &mut dyn Connection,
    ids: &[i64],
    now_ms: i64,
) -> Result<Vec<i64>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    all_updated(connection, &MAKE_PENDING, &[(&json_ids(ids)).into(), now_ms.into()], |row| row.integer(0))
}

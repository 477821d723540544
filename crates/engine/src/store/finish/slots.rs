//! Slots of concurrency keys: which of the jobs that share a key may run.
//!
//! A ready job with a key is WAITING until a slot of its key is free; claims do not see it. The PENDING and RUNNING jobs
//! of a key hold its slots. Slots are counted from these rows, so a crash can't leak one. A transaction that frees or
//! wants a slot admits waiting jobs itself. If another transaction holds the key's lock, the scheduler does it later.

use crate::store::json_ids;
use windlass_db::error::Result;
use windlass_db::{Connection, Row, UpdateReturning, all, all_updated, one};
use windlass_system::wake_ups::WakeUps;

/// The highest limit of a concurrency key. The end of a job counts up to this many jobs of its key.
pub const CONCURRENCY_LIMIT_MAX: i64 = windlass_workflow::limits::CONCURRENCY;
/// How many waiting jobs of one key a transaction reads, and how many of those with another `on_full` than `wait`.
const WAITING_MAX: i64 = 100;

/// A job that holds a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holder {
    id: i64,
    is_stopping: bool,
}

/// A job that waits for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WaitingJob {
    id: i64,
    limit: i64,
    on_full: OnFull,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnFull {
    Wait,
    Skip,
    CancelOldest,
}

/// What happens to the jobs of a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::store) struct SlotDecision {
    pub(in crate::store) admit: Vec<i64>,
    pub(in crate::store) skip: Vec<i64>,
    pub(in crate::store) cancel: Vec<i64>,
}

impl SlotDecision {
    pub(in crate::store) fn is_empty(&self) -> bool {
        self.admit.is_empty() && self.skip.is_empty() && self.cancel.is_empty()
    }
}

/// Decides about the jobs of a key. The waiting jobs are in the order of claiming.
fn decide(holders: &[Holder], waiting: &[WaitingJob]) -> SlotDecision {
    let cancel = too_old(holders, waiting);
    let staying: Vec<&WaitingJob> = waiting.iter().filter(|job| !cancel.contains(&job.id)).collect();
    // The first job without a free slot stops those behind it, because no job overtakes another.
    let taken = holders.len() as i64;
    let fits = |(index, job): &(usize, &&WaitingJob)| taken + (*index as i64) < job.limit;
    let admitted = staying.iter().enumerate().take_while(fits).count();
    let (admit, left) = staying.split_at(admitted);
    SlotDecision {
        admit: ids_of(admit, |_any| true),
        skip: ids_of(left, |on_full| on_full == OnFull::Skip),
        cancel,
    }
}

/// The jobs to cancel for waiting jobs with `on_full = cancel_oldest`. Of these and the holders only the newest stay, up
/// to the limit. Holders that are stopping already make room and are not counted.
fn too_old(holders: &[Holder], waiting: &[WaitingJob]) -> Vec<i64> {
    let waiting: Vec<&WaitingJob> = waiting.iter().collect();
    let replacing = ids_of(&waiting, |on_full| on_full == OnFull::CancelOldest);
    let Some(newest) = waiting.iter().rev().find(|job| job.on_full == OnFull::CancelOldest) else {
        return Vec::new();
    };
    let mut alive: Vec<i64> =
        holders.iter().filter(|holder| !holder.is_stopping).map(|holder| holder.id).collect();
    alive.extend(replacing);
    // Age goes by id. A waiting job may be older than a holder, because it was blocked, delayed or retried before.
    alive.sort_unstable();
    let may = usize::try_from(newest.limit).unwrap_or(usize::MAX).max(1);
    alive.truncate(alive.len().saturating_sub(may));
    alive
}

fn ids_of(waiting: &[&WaitingJob], is_wanted: fn(OnFull) -> bool) -> Vec<i64> {
    waiting.iter().filter(|job| is_wanted(job.on_full)).map(|job| job.id).collect()
}

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
    let waiting: Vec<WaitingJob> = waiting.into_iter().map(|(_rank, job)| job).collect();
    Ok(decide(&holders, &waiting))
}

/// Reads a waiting job with its rank.
fn read_waiting_job(row: &dyn Row) -> Result<(i64, WaitingJob)> {
    let has_begun = row.integer(4)? > 0;
    let on_full = row.parsed(3, |text| match text {
        "wait" => Some(OnFull::Wait),
        // A job that has run before is not skipped.
        "skip" if has_begun => Some(OnFull::Wait),
        "skip" => Some(OnFull::Skip),
        "cancel_oldest" => Some(OnFull::CancelOldest),
        _ => None,
    })?;
    let limit = row.integer(2)?.min(CONCURRENCY_LIMIT_MAX);
    Ok((row.integer(1)?, WaitingJob { id: row.integer(0)?, limit, on_full }))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn holders(ids: &[i64], stopping: &[i64]) -> Vec<Holder> {
        ids.iter().map(|id| Holder { id: *id, is_stopping: stopping.contains(id) }).collect()
    }

    fn waiting_jobs(ids: &[i64], limit: i64, on_full: OnFull) -> Vec<WaitingJob> {
        ids.iter().map(|id| WaitingJob { id: *id, limit, on_full }).collect()
    }

    fn decision(admit: &[i64], skip: &[i64], cancel: &[i64]) -> SlotDecision {
        SlotDecision { admit: admit.to_vec(), skip: skip.to_vec(), cancel: cancel.to_vec() }
    }

    #[test]
    fn free_slots_are_given_in_order_and_what_is_left_waits_or_goes() {
        use OnFull::{CancelOldest, Skip, Wait};
        let cases = [
            (holders(&[], &[]), waiting_jobs(&[4, 5, 6], 2, Wait), decision(&[4, 5], &[], &[])),
            (holders(&[1], &[]), waiting_jobs(&[4, 5], 2, Wait), decision(&[4], &[], &[])),
            (holders(&[1, 2], &[]), waiting_jobs(&[4], 2, Wait), decision(&[], &[], &[])),
            (holders(&[1, 2, 3], &[]), waiting_jobs(&[4], 2, Wait), decision(&[], &[], &[])),
            (holders(&[1], &[]), waiting_jobs(&[4, 5], 1, Skip), decision(&[], &[4, 5], &[])),
            (holders(&[], &[]), waiting_jobs(&[4, 5], 1, Skip), decision(&[4], &[5], &[])),
            (holders(&[1], &[]), waiting_jobs(&[4], 1, CancelOldest), decision(&[], &[], &[1])),
            (holders(&[1], &[1]), waiting_jobs(&[4], 1, CancelOldest), decision(&[], &[], &[])),
            (holders(&[1], &[1]), waiting_jobs(&[4, 5], 1, CancelOldest), decision(&[], &[], &[4])),
            (holders(&[1, 2], &[]), waiting_jobs(&[4], 2, CancelOldest), decision(&[], &[], &[1])),
            (holders(&[], &[]), waiting_jobs(&[4, 5, 6], 1, CancelOldest), decision(&[6], &[], &[4, 5])),
            (holders(&[5], &[]), waiting_jobs(&[4], 1, CancelOldest), decision(&[], &[], &[4])),
            (holders(&[2, 5], &[]), waiting_jobs(&[4], 2, CancelOldest), decision(&[], &[], &[2])),
        ];
        for (holders, waiting, expected) in cases {
            assert_eq!(decide(&holders, &waiting), expected, "{holders:?} {waiting:?}");
        }
    }

    #[test]
    fn nobody_is_overtaken_by_a_job_with_a_higher_limit() {
        let mut waiting = waiting_jobs(&[4], 1, OnFull::Wait);
        waiting.extend(waiting_jobs(&[5], 9, OnFull::Wait));
        assert_eq!(decide(&holders(&[1], &[]), &waiting), SlotDecision::default());
    }
}

//! Concurrency keys: which of the jobs that share a key may go on.
//!
//! A job with a key that becomes ready is WAITING, out of the claim's sight, until a slot of its key is free.
//! PENDING and RUNNING jobs hold the slots, so a slot is never counted apart from its job and a crash leaks
//! none. Whoever frees or wants slots admits in the same transaction; what could not be admitted there, because
//! another transaction had the key's lock, is left to the scheduler.

use crate::store::json_ids;
use windlass_db::Connection;
use windlass_db::Row;
use windlass_db::all;
use windlass_db::error::Result;
use windlass_db::one;
use windlass_system::wake_ups::WakeUps;

/// The highest limit of a concurrency key: so many of its jobs are counted whenever one of them ends.
pub const CONCURRENCY_LIMIT_MAX: i64 = windlass_workflow::limits::CONCURRENCY;
/// Jobs that wait for a slot of one key, and as many that don't simply wait, that are looked at in one
/// transaction.
const LOOK_MAX: i64 = 100;

/// A job that holds a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holder {
    id: i64,
    is_stopping: bool,
}

/// A job that waits for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Candidate {
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

/// What becomes of the jobs of a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::store) struct Decision {
    pub(in crate::store) admit: Vec<i64>,
    pub(in crate::store) skip: Vec<i64>,
    pub(in crate::store) cancel: Vec<i64>,
}

impl Decision {
    pub(in crate::store) fn is_empty(&self) -> bool {
        self.admit.is_empty() && self.skip.is_empty() && self.cancel.is_empty()
    }
}

/// Decides about the jobs of a key. The candidates come in the order of claiming.
fn decide(holders: &[Holder], candidates: &[Candidate]) -> Decision {
    let cancel = too_old(holders, candidates);
    let staying: Vec<&Candidate> =
        candidates.iter().filter(|candidate| !cancel.contains(&candidate.id)).collect();
    // The first that finds no room holds up those behind it: nobody is overtaken.
    let taken = holders.len() as i64;
    let fits = |(index, candidate): &(usize, &&Candidate)| taken + (*index as i64) < candidate.limit;
    let admitted = staying.iter().enumerate().take_while(fits).count();
    let (admit, left) = staying.split_at(admitted);
    Decision {
        admit: ids_of(admit, |_any| true),
        skip: ids_of(left, |on_full| on_full == OnFull::Skip),
        cancel,
    }
}

/// Who makes room for those that cancel the oldest: of them and the holders the newest stay, as many as may.
/// What is stopping makes room already.
fn too_old(holders: &[Holder], candidates: &[Candidate]) -> Vec<i64> {
    let candidates: Vec<&Candidate> = candidates.iter().collect();
    let impatient = ids_of(&candidates, |on_full| on_full == OnFull::CancelOldest);
    let Some(newest) = candidates.iter().rev().find(|candidate| candidate.on_full == OnFull::CancelOldest)
    else {
        return Vec::new();
    };
    let mut alive: Vec<i64> =
        holders.iter().filter(|holder| !holder.is_stopping).map(|holder| holder.id).collect();
    alive.extend(impatient);
    // By id: a job that waits may be older than one that took a slot while it was blocked, delayed or tried again.
    alive.sort_unstable();
    let may = usize::try_from(newest.limit).unwrap_or(usize::MAX).max(1);
    alive.truncate(alive.len().saturating_sub(may));
    alive
}

fn ids_of(candidates: &[&Candidate], is_wanted: fn(OnFull) -> bool) -> Vec<i64> {
    candidates.iter().filter(|candidate| is_wanted(candidate.on_full)).map(|candidate| candidate.id).collect()
}

/// Gives the free slots of some keys to the jobs that wait for them; returns those that became claimable.
/// What is to be skipped or cancelled is left to the scheduler, whose transaction holds no other locks.
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
        let is_more = decision.admit.len() as i64 >= LOOK_MAX;
        if is_more || !decision.skip.is_empty() || !decision.cancel.is_empty() {
            connection.wake(WakeUps::DUE);
        }
    }
    Ok(claimable)
}

pub(in crate::store) fn lock_key(connection: &mut dyn Connection, key: &str) -> Result<bool> {
    let taken =
        one(connection, "SELECT {try_lock 'key ' || CAST($1 AS TEXT)}", &[key.into()], |row| row.integer(0))?;
    Ok(taken == 1)
}

pub(in crate::store) fn read_decision(connection: &mut dyn Connection, key: &str) -> Result<Decision> {
    let holders = all(
        connection,
        "SELECT id, cancel_requested_at FROM jobs
         WHERE concurrency_key IS NOT NULL AND concurrency_key = $1 AND status IN ('PENDING', 'RUNNING')
         ORDER BY id LIMIT $2",
        &[key.into(), CONCURRENCY_LIMIT_MAX.into()],
        |row| Ok(Holder { id: row.integer(0)?, is_stopping: row.optional_integer(1)?.is_some() }),
    )?;
    let mut candidates = all(
        connection,
        "SELECT id, {rank}, coalesce(concurrency_limit, 1), on_full, attempt FROM jobs
         WHERE concurrency_key IS NOT NULL AND concurrency_key = $1 AND status = 'WAITING'
         ORDER BY {rank}, id LIMIT $2",
        &[key.into(), LOOK_MAX.into()],
        read_candidate,
    )?;
    candidates.extend(all(
        connection,
        "SELECT id, {rank}, coalesce(concurrency_limit, 1), on_full, attempt FROM jobs
         WHERE concurrency_key IS NOT NULL AND concurrency_key = $1 AND status = 'WAITING'
           AND on_full <> 'wait'
         ORDER BY id LIMIT $2",
        &[key.into(), LOOK_MAX.into()],
        read_candidate,
    )?);
    candidates.sort_by_key(|(rank, candidate)| (*rank, candidate.id));
    candidates.dedup();
    let candidates: Vec<Candidate> = candidates.into_iter().map(|(_rank, candidate)| candidate).collect();
    Ok(decide(&holders, &candidates))
}

/// With its place in the order of claiming.
fn read_candidate(row: &dyn Row) -> Result<(i64, Candidate)> {
    let has_begun = row.integer(4)? > 0;
    let on_full = row.parsed(3, |text| match text {
        "wait" => Some(OnFull::Wait),
        // What was accepted once is carried through.
        "skip" if has_begun => Some(OnFull::Wait),
        "skip" => Some(OnFull::Skip),
        "cancel_oldest" => Some(OnFull::CancelOldest),
        _ => None,
    })?;
    let limit = row.integer(2)?.min(CONCURRENCY_LIMIT_MAX);
    Ok((row.integer(1)?, Candidate { id: row.integer(0)?, limit, on_full }))
}

pub(in crate::store) fn make_pending(
    connection: &mut dyn Connection,
    ids: &[i64],
    now_ms: i64,
) -> Result<Vec<i64>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    all(
        connection,
        "UPDATE jobs
         SET status = 'PENDING', updated_at = $2,
             priority = {priority}
         {where} id {in $1} AND {guard status = 'WAITING'} AND concurrency_key IS NOT NULL
         {returning} id",
        &[(&json_ids(ids)).into(), now_ms.into()],
        |row| row.integer(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holders(ids: &[i64], stopping: &[i64]) -> Vec<Holder> {
        ids.iter().map(|id| Holder { id: *id, is_stopping: stopping.contains(id) }).collect()
    }

    fn candidates(ids: &[i64], limit: i64, on_full: OnFull) -> Vec<Candidate> {
        ids.iter().map(|id| Candidate { id: *id, limit, on_full }).collect()
    }

    fn decision(admit: &[i64], skip: &[i64], cancel: &[i64]) -> Decision {
        Decision { admit: admit.to_vec(), skip: skip.to_vec(), cancel: cancel.to_vec() }
    }

    #[test]
    fn free_slots_are_given_in_order_and_what_is_left_waits_or_goes() {
        use OnFull::{CancelOldest, Skip, Wait};
        let cases = [
            (holders(&[], &[]), candidates(&[4, 5, 6], 2, Wait), decision(&[4, 5], &[], &[])),
            (holders(&[1], &[]), candidates(&[4, 5], 2, Wait), decision(&[4], &[], &[])),
            (holders(&[1, 2], &[]), candidates(&[4], 2, Wait), decision(&[], &[], &[])),
            (holders(&[1, 2, 3], &[]), candidates(&[4], 2, Wait), decision(&[], &[], &[])),
            (holders(&[1], &[]), candidates(&[4, 5], 1, Skip), decision(&[], &[4, 5], &[])),
            (holders(&[], &[]), candidates(&[4, 5], 1, Skip), decision(&[4], &[5], &[])),
            (holders(&[1], &[]), candidates(&[4], 1, CancelOldest), decision(&[], &[], &[1])),
            (holders(&[1], &[1]), candidates(&[4], 1, CancelOldest), decision(&[], &[], &[])),
            (holders(&[1], &[1]), candidates(&[4, 5], 1, CancelOldest), decision(&[], &[], &[4])),
            (holders(&[1, 2], &[]), candidates(&[4], 2, CancelOldest), decision(&[], &[], &[1])),
            (holders(&[], &[]), candidates(&[4, 5, 6], 1, CancelOldest), decision(&[6], &[], &[4, 5])),
            (holders(&[5], &[]), candidates(&[4], 1, CancelOldest), decision(&[], &[], &[4])),
            (holders(&[2, 5], &[]), candidates(&[4], 2, CancelOldest), decision(&[], &[], &[2])),
        ];
        for (holders, candidates, expected) in cases {
            assert_eq!(decide(&holders, &candidates), expected, "{holders:?} {candidates:?}");
        }
    }

    #[test]
    fn nobody_is_overtaken_by_a_job_with_a_higher_limit() {
        let mut waiting = candidates(&[4], 1, OnFull::Wait);
        waiting.extend(candidates(&[5], 9, OnFull::Wait));
        assert_eq!(decide(&holders(&[1], &[]), &waiting), Decision::default());
    }
}

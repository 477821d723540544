//! Claiming: which worker takes which jobs.
//!
//! A claim reads a [`snapshot`] (is the worker still alive; the candidate of each claim partition), selects the most
//! urgent jobs that the request and the limits of their queues allow ([`selection`]), and takes them with one statement
//! ([`take()`]). It never sweeps, cleans or counts up.

use std::collections::{HashMap, HashSet};

use candidates::read_candidates;
use partition::ClaimPosition;
use ready::{Ready, release};
use request::{ClaimRequest, Claims, Scope};
use selection::{SelectedJobs, is_for, select_jobs};
use snapshot::ClaimSnapshot;
use take::{ChosenJobs, TakenJob, UnreadableJob, start_runs, take};
use windlass_db::Connection;
use windlass_db::error::Result;
use windlass_system::clock::Clock;
use windlass_system::wake_ups::WakeUps;

use crate::store::queues::rules;

pub(in crate::store) mod candidates;
pub(in crate::store) mod capabilities;
pub(in crate::store) mod job;
pub(in crate::store) mod partition;
pub(in crate::store) mod ready;
pub(in crate::store) mod request;
pub(in crate::store) mod selection;
pub(in crate::store) mod snapshot;
pub(in crate::store) mod take;

/// The outcome of a claim, inside its transaction.
pub(in crate::store) struct ClaimOutcome {
    pub(in crate::store) claims: Claims,
    /// Jobs that were taken and whose rows can't be executed. The caller fails them in the same transaction, so that an
    /// invalid row of another program does not block other jobs.
    pub(in crate::store) unreadable: Vec<UnreadableJob>,
}

impl ClaimOutcome {
    fn none(claims: Claims) -> ClaimOutcome {
        ClaimOutcome { claims, unreadable: Vec::new() }
    }
}

/// Claims inside the caller's transaction. Jobs that became `ready` in it may be claimed as well; those that are not
/// claimed are released. `snapshot` is the caller's, if it has read one.
pub(in crate::store) fn claim(
    connection: &mut dyn Connection,
    request: &ClaimRequest,
    snapshot: Option<ClaimSnapshot>,
    ready: Vec<Ready>,
    clock: &Clock,
) -> Result<ClaimOutcome> {
    let (claimable_now, others): (Vec<Ready>, Vec<Ready>) =
        ready.into_iter().partition(|ready| may_take_directly(request, ready));
    // The others are released first, because limits are counted from rows and these jobs may be in queues with limits.
    release(connection, &others, clock.now_ms())?;
    let snapshot = if others.is_empty() { snapshot } else { snapshot.map(ClaimSnapshot::without_candidates) };
    let positions: Vec<ClaimPosition> = claimable_now.iter().map(|ready| ready.candidate.position).collect();
    let claimed = claim_among(connection, request, snapshot, &positions, clock)?;
    let taken: HashSet<i64> = match &claimed.claims {
        Claims::Jobs(jobs) => jobs.iter().map(|job| job.id).collect(),
        Claims::Fenced => HashSet::new(),
    };
    let left: Vec<Ready> =
        claimable_now.into_iter().filter(|ready| !taken.contains(&ready.candidate.position.id)).collect();
    release(connection, &left, clock.now_ms())?;
    Ok(claimed)
}

/// Whether the request may take a ready job if it is urgent enough: the job is in scope, the worker can execute it, and
/// its queue has no limits that would have to be counted.
fn may_take_directly(request: &ClaimRequest, ready: &Ready) -> bool {
    let is_in_scope = match &request.scope {
        Scope::Everything | Scope::Queues(_) => true,
        Scope::Runs(run_ids) => ready.root_run_id.is_some_and(|run_id| run_ids.contains(&run_id)),
    };
    is_in_scope && !ready.candidate.partition.may_have_rules && is_for(request, &ready.candidate)
}

fn claim_among(
    connection: &mut dyn Connection,
    request: &ClaimRequest,
    snapshot: Option<ClaimSnapshot>,
    ready: &[ClaimPosition],
    clock: &Clock,
) -> Result<ClaimOutcome> {
    let snapshot = match snapshot {
        Some(snapshot) => snapshot,
        None => ClaimSnapshot::after(connection, request, &mut [])?,
    };
    if !snapshot.worker.is_alive() {
        return Ok(ClaimOutcome::none(Claims::Fenced));
    }
    if request.limit == 0 {
        return Ok(ClaimOutcome::none(Claims::Jobs(Vec::new())));
    }
    let candidates = match (snapshot.candidates, &request.scope) {
        (Some(candidates), _) => candidates,
        (None, Scope::Everything | Scope::Queues(_)) => read_candidates(connection)?,
        (None, Scope::Runs(_)) => Vec::new(),
    };
    let counted_at_ms = clock.now_ms();
    let selected = select_jobs(connection, request, ready, candidates, counted_at_ms)?;
    if selected.positions.is_empty() {
        return Ok(ClaimOutcome::none(Claims::Jobs(Vec::new())));
    }
    // The clock may have been set back since the limits were counted. A start must not seem earlier than the end that
    // made room for it.
    let now_ms = clock.now_ms().max(counted_at_ms);
    take_selected(connection, request, &selected, ready, now_ms)
}

fn take_selected(
    connection: &mut dyn Connection,
    request: &ClaimRequest,
    SelectedJobs { positions, limited }: &SelectedJobs,
    ready: &[ClaimPosition],
    now_ms: i64,
) -> Result<ClaimOutcome> {
    let ids: Vec<i64> = positions.iter().map(|position| position.id).collect();
    let blocked: HashSet<i64> = ready.iter().map(|position| position.id).collect();
    // A start counts for its queue's rate from the claim on. So a job that would wait in the worker's memory is left.
    let rated: HashSet<i64> = limited
        .iter()
        .filter(|(rules, _ids)| rules.rate.is_some())
        .flat_map(|(_rules, ids)| ids.iter().copied())
        .collect();
    let taken =
        take(connection, &ChosenJobs { ids: &ids, blocked: &blocked, rated: &rated }, request, now_ms)?;
    let taken_ids: HashSet<i64> = taken.iter().map(|job| job.id).collect();
    for (rules, ids) in limited {
        let ids: Vec<i64> = ids.iter().copied().filter(|id| taken_ids.contains(id)).collect();
        rules::record(connection, rules, &ids, now_ms)?;
    }
    let mut started =
        start_runs(connection, taken.iter().filter_map(|job| job.new_run_id).collect(), now_ms)?;
    // The first job that was left must not wait in memory. Jobs after it have overtaken it.
    let first_left = ids.iter().position(|id| !taken_ids.contains(id));
    let order: HashMap<i64, usize> = ids.iter().enumerate().map(|(index, id)| (*id, index)).collect();
    let (mut jobs, mut unreadable) = (Vec::with_capacity(taken.len()), Vec::new());
    for TakenJob { id, run_id, retry_state, job, .. } in taken {
        match job {
            Ok(mut job) => {
                job.started_run = run_id.and_then(|run_id| started.remove(&run_id));
                job.has_overtaken = first_left.is_some() && order.get(&id).copied() > first_left;
                jobs.push(job);
            }
            Err(error) => unreadable.push(UnreadableJob { id, run_id, retry_state, error }),
        }
    }
    // RETURNING promises no order.
    jobs.sort_by_cached_key(|job| order.get(&job.id).copied());
    connection.wake(WakeUps::PROGRESS);
    Ok(ClaimOutcome { claims: Claims::Jobs(jobs), unreadable })
}

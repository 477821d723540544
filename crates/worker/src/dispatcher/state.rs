//! What the dispatcher knows from one turn to the next.

use std::collections::HashSet;

use super::decided_end::DecidedEnd;
use super::in_flight::InFlight;
use super::outage::Outage;
use super::prefetch_controller::PrefetchController;
use windlass_db::error::Error;

/// Time after which an idle worker looks for jobs by itself, in case a wake-up was lost.
pub(super) const POLL_MS: i64 = 5_000;
/// Time between two comparisons of the attempts in flight with the tables. After an error of the database the next turn
/// compares.
pub(super) const CHECK_INTERVAL_MS: i64 = 30_000;

/// Whether there may be something to claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextClaim {
    /// A wake-up or the poll said so, or the last claim got as many jobs as it asked for.
    Now,
    /// The last claim got fewer jobs than it asked for, and no wake-up came since.
    AfterWakeUp,
}

/// Whether jobs are claimed beyond those that start at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefetching {
    /// As many as the prefetch controller says.
    Allowed,
    /// None, until a thread is idle. A prefetched job has overtaken a more urgent job that may not be prefetched.
    Forbidden,
}

/// What the dispatcher knows from one turn to the next. All instants are of the monotonic clock.
pub(super) struct DispatcherState {
    pub(super) prefetch: PrefetchController,
    /// Attempts that were claimed and are not finished: prefetched, running, or ended and not written.
    pub(super) in_flight: InFlight,
    pub(super) next_claim: NextClaim,
    pub(super) prefetching: Prefetching,
    /// When to look for jobs even if no wake-up came.
    pub(super) poll_at_ms: i64,
    /// When to compare the attempts in flight with the tables.
    pub(super) check_at_ms: i64,
    /// Jobs whose results were refused since the last comparison.
    pub(super) refused: HashSet<i64>,
    /// Ends of attempts whose write failed in the last turn. It may have been committed all the same.
    pub(super) unwritten: Vec<DecidedEnd>,
    /// The database can't be used now.
    pub(super) outage: Option<Outage>,
    /// Why the worker has to end: an executor's turn failed for good.
    pub(super) failure: Option<Error>,
}

impl DispatcherState {
    /// Nothing is claimed.
    pub(super) fn new(now_ms: i64) -> DispatcherState {
        DispatcherState {
            prefetch: PrefetchController::default(),
            in_flight: InFlight::default(),
            next_claim: NextClaim::Now,
            prefetching: Prefetching::Allowed,
            poll_at_ms: now_ms + POLL_MS,
            check_at_ms: now_ms + CHECK_INTERVAL_MS,
            refused: HashSet::new(),
            unwritten: Vec::new(),
            outage: None,
            failure: None,
        }
    }
}

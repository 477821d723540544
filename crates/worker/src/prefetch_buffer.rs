//! Claimed jobs that wait in memory for a free executor.
//!
//! One waiting executor is woken, and each that takes a job while others are left wakes the next: many executors
//! that all wake for jobs which one of them has done meanwhile cost more than the jobs.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::in_flight::Key;
use windlass_engine::store::ClaimedJob;
use windlass_system::clock::Clock;

/// A claimed job in memory, with the identity under which it was claimed.
pub(super) struct OwnedJob {
    pub(super) job: ClaimedJob,
    pub(super) worker_id: i64,
}

impl OwnedJob {
    pub(super) fn key(&self) -> Key {
        (self.job.id, self.job.retry_state.attempt)
    }
}

/// Whose thread adds jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddedBy {
    Dispatcher,
    /// It takes the first of them itself.
    Executor,
}

/// What an executor that waited gets.
#[allow(clippy::large_enum_variant, reason = "a box for each job would cost more than moving one does")]
pub(super) enum Next {
    Job(OwnedJob),
    /// The worker ends.
    End,
}

#[derive(Default)]
pub(super) struct PrefetchBuffer {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<OwnedJob>,
    closed: bool,
    /// Executors that wait for a job,
    waiting: usize,
    /// and whether one of these was woken and has not come yet.
    is_one_coming: bool,
    /// When the oldest began to wait at the head, by the monotonic clock.
    moved_at_ms: i64,
}

impl PrefetchBuffer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, jobs: Vec<ClaimedJob>, worker_id: i64, now_ms: i64, by: AddedBy) {
        let for_others = match by {
            AddedBy::Dispatcher => jobs.len(),
            AddedBy::Executor => jobs.len().saturating_sub(1),
        };
        let mut state = self.lock();
        if state.jobs.is_empty() {
            state.moved_at_ms = now_ms;
        }
        state.jobs.extend(jobs.into_iter().map(|job| OwnedJob { job, worker_id }));
        self.wake_one(state, for_others);
    }

    /// Wakes an executor for so many jobs, unless one is on its way who will wake the next.
    fn wake_one(&self, mut state: MutexGuard<'_, State>, for_others: usize) {
        let wakes = for_others > 0 && !state.is_one_coming && state.waiting > 0;
        state.is_one_coming |= wakes;
        drop(state);
        if wakes {
            self.changed.notify_one();
        }
    }

    /// Waits for the next job to execute.
    pub(super) fn next(&self, clock: &Clock) -> Next {
        let mut state = self.lock();
        loop {
            if state.closed {
                return Next::End;
            }
            if let Some(owned) = state.jobs.pop_front() {
                state.moved_at_ms = clock.monotonic_ms();
                let left = state.jobs.len();
                self.wake_one(state, left);
                return Next::Job(owned);
            }
            state.waiting += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
            state.is_one_coming = false;
        }
    }

    pub(super) fn take_all(&self) -> Vec<OwnedJob> {
        self.lock().jobs.drain(..).collect()
    }

    /// Takes one attempt, if it waits.
    pub(super) fn take_one(&self, key: Key) -> Option<OwnedJob> {
        let mut state = self.lock();
        let place = state.jobs.iter().position(|owned| owned.key() == key)?;
        state.jobs.remove(place)
    }

    /// Takes all when none of them has moved for so long.
    pub(super) fn take_stuck(&self, now_ms: i64, longest_ms: i64) -> Vec<OwnedJob> {
        let mut state = self.lock();
        if now_ms - state.moved_at_ms < longest_ms {
            return Vec::new();
        }
        state.jobs.drain(..).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().jobs.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Nothing is executed any more.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
impl OwnedJob {
    /// The first attempt at a job that stands alone, for tests.
    pub(super) fn sample(job_id: i64, worker_id: i64) -> OwnedJob {
        let retry_state = windlass_engine::transition::RetryState {
            attempt: 1,
            failures: 0,
            max_attempts: 1,
            interruptions: 0,
            max_interruptions: 1,
            on_interrupt: windlass_workflow::OnInterrupt::Rerun,
            backoff: windlass_engine::transition::Backoff::default(),
        };
        let job = ClaimedJob {
            id: job_id,
            created_at: 0,
            token: 0,
            run_id: None,
            name: None,
            kind: "noop".to_owned(),
            payload: "null".to_owned(),
            timeout_ms: None,
            started_run: None,
            has_overtaken: false,
            retry_state,
        };
        OwnedJob { job, worker_id }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn jobs(count: usize) -> Vec<ClaimedJob> {
        (0..count as i64).map(|id| OwnedJob::sample(id, 1).job).collect()
    }

    fn take(owned: &PrefetchBuffer) {
        match owned.next(&Clock::system()) {
            Next::Job(_held) => {}
            Next::End => panic!("there is a job"),
        }
    }

    /// Each of the executors holds its job until all have one: it hangs where some are left asleep.
    #[test]
    fn as_many_executors_wake_as_there_are_jobs() {
        const EXECUTORS: usize = 8;
        let (owned, all_busy) = (PrefetchBuffer::default(), Barrier::new(EXECUTORS));
        std::thread::scope(|scope| {
            for _executor in 0..EXECUTORS {
                scope.spawn(|| {
                    for _round in 0..100 {
                        take(&owned);
                        if all_busy.wait().is_leader() {
                            owned.add(jobs(EXECUTORS), 1, 0, AddedBy::Executor);
                        }
                    }
                });
            }
            owned.add(jobs(EXECUTORS), 1, 0, AddedBy::Dispatcher);
        });
        assert_eq!(owned.len(), EXECUTORS, "the last leader's jobs");
    }
}

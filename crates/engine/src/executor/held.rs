//! Claimed jobs that wait in memory for a free executor.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::outstanding::Key;
use crate::store::ClaimedJob;

/// A claimed job in memory, with the identity under which it was claimed.
pub(super) struct Held {
    pub(super) job: ClaimedJob,
    pub(super) worker_id: i64,
}

impl Held {
    pub(super) fn key(&self) -> Key {
        (self.job.id, self.job.facts.attempt)
    }
}

/// Whose thread adds jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddedBy {
    Dispatcher,
    /// It takes the first of them itself.
    Executor,
}

#[derive(Default)]
pub(super) struct HeldJobs {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Held>,
    closed: bool,
    /// When the oldest began to wait at the head, by the monotonic clock.
    moved_at_ms: i64,
}

impl HeldJobs {
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
        state.jobs.extend(jobs.into_iter().map(|job| Held { job, worker_id }));
        drop(state);
        match for_others {
            0 => {}
            1 => self.changed.notify_one(),
            _ => self.changed.notify_all(),
        }
    }

    /// Waits for the next job to execute; `None` when the worker ends.
    pub(super) fn next(&self, now_ms: impl Fn() -> i64) -> Option<Held> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(held) = state.jobs.pop_front() {
                state.moved_at_ms = now_ms();
                return Some(held);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn take_all(&self) -> Vec<Held> {
        self.lock().jobs.drain(..).collect()
    }

    /// Takes one attempt, if it waits.
    pub(super) fn take_one(&self, key: Key) -> Option<Held> {
        let mut state = self.lock();
        let place = state.jobs.iter().position(|held| held.key() == key)?;
        state.jobs.remove(place)
    }

    /// Takes all when none of them has moved for so long.
    pub(super) fn take_stuck(&self, now_ms: i64, longest_ms: i64) -> Vec<Held> {
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

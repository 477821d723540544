//! The attempts that run now, and everybody's wish that one of them stop.
//!
//! A wish may come before its attempt has begun: the job was claimed and waits in memory. So wishes are
//! kept, and each attempt is told at its beginning; one lock makes that free of gaps.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::held::Held;
use super::output_log::OutputLog;
use super::stop::{Stop, StopCause};
use crate::store::LogLine;

/// An attempt that runs.
pub(super) struct Running {
    pub(super) stop: Stop,
    pub(super) log: Arc<OutputLog>,
    /// By the monotonic clock.
    pub(super) deadline_ms: Option<i64>,
    /// The identity under which it was claimed.
    pub(super) worker_id: i64,
}

#[derive(Default)]
pub(super) struct RunningAttempts {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By job and number of the attempt.
    attempts: HashMap<(i64, i64), Running>,
    /// Identities up to this one were fenced. Ids only grow.
    lost_worker_id: i64,
    is_leaving: bool,
    /// Jobs of this worker that were asked to stop, as last read.
    cancelled: HashSet<i64>,
}

impl RunningAttempts {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers an attempt and tells it what was wished before it began.
    pub(super) fn begin(&self, held: &Held, running: Running) {
        let mut state = self.lock();
        if running.worker_id <= state.lost_worker_id {
            running.stop.request(StopCause::Fenced);
        } else if state.cancelled.contains(&held.job.id) {
            running.stop.request(StopCause::Cancelled);
        } else if state.is_leaving {
            running.stop.request(StopCause::Leaving);
        }
        state.attempts.insert((held.job.id, held.job.facts.attempt), running);
    }

    pub(super) fn end(&self, held: &Held) {
        self.lock().attempts.remove(&(held.job.id, held.job.facts.attempt));
    }

    /// The worker leaves: everything stops, also what begins from now on.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        state.is_leaving = true;
        for running in state.attempts.values() {
            running.stop.request(StopCause::Leaving);
        }
    }

    /// An identity was fenced: what was claimed under it, or an earlier one, stops.
    pub(super) fn lose(&self, worker_id: i64) {
        let mut state = self.lock();
        state.lost_worker_id = state.lost_worker_id.max(worker_id);
        for running in state.attempts.values().filter(|running| running.worker_id <= worker_id) {
            running.stop.request(StopCause::Fenced);
        }
    }

    pub(super) fn is_lost(&self, worker_id: i64) -> bool {
        worker_id <= self.lock().lost_worker_id
    }

    /// These jobs, and no others, were asked to stop.
    pub(super) fn cancel(&self, job_ids: Vec<i64>) {
        let mut state = self.lock();
        state.cancelled = job_ids.into_iter().collect();
        let State { attempts, cancelled, .. } = &*state;
        for ((job_id, _attempt), running) in attempts {
            if cancelled.contains(job_id) {
                running.stop.request(StopCause::Cancelled);
            }
        }
    }

    /// Stops what is over its deadline and returns the next deadline.
    pub(super) fn stop_late(&self, now_ms: i64) -> Option<i64> {
        let state = self.lock();
        let mut next_ms: Option<i64> = None;
        for running in state.attempts.values() {
            match running.deadline_ms {
                Some(deadline_ms) if deadline_ms <= now_ms => running.stop.request(StopCause::TimedOut),
                Some(deadline_ms) => {
                    next_ms = Some(next_ms.map_or(deadline_ms, |next| next.min(deadline_ms)))
                }
                None => {}
            }
        }
        next_ms
    }

    /// Output that may be written and is not yet.
    pub(super) fn unwritten(&self) -> Vec<LogLine> {
        self.lock().attempts.values().flat_map(|running| running.log.unwritten()).collect()
    }

    /// These lines are in the database.
    pub(super) fn written(&self, lines: &[LogLine]) {
        let state = self.lock();
        // Lines come attempt by attempt, in order: the last of each is what counts.
        for chunk in lines.chunk_by(|a, b| (a.job_id, a.attempt) == (b.job_id, b.attempt)) {
            if let Some(last) = chunk.last()
                && let Some(running) = state.attempts.get(&(last.job_id, last.attempt))
            {
                running.log.written(last.line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ClaimedJob;
    use crate::transition::{Backoff, Facts};

    fn held(job_id: i64, worker_id: i64) -> Held {
        let facts = Facts {
            attempt: 1,
            failures: 0,
            max_attempts: 1,
            interruptions: 0,
            max_interruptions: 1,
            on_interrupt: windlass_workflow::OnInterrupt::Rerun,
            backoff: Backoff::default(),
        };
        let job = ClaimedJob {
            id: job_id,
            origin: "test".to_owned(),
            run_id: None,
            name: None,
            kind: "noop".to_owned(),
            payload: "null".to_owned(),
            timeout_ms: None,
            facts,
        };
        Held { job, worker_id }
    }

    fn begin(attempts: &RunningAttempts, held: &Held) -> Stop {
        let stop = Stop::default();
        let log = Arc::new(OutputLog::new(held.job.id, 1));
        let worker_id = held.worker_id;
        attempts.begin(held, Running { stop: stop.clone(), log, deadline_ms: Some(100), worker_id });
        stop
    }

    #[test]
    fn a_wish_that_came_before_the_beginning_is_told_at_the_beginning() {
        let attempts = RunningAttempts::default();
        attempts.cancel(vec![7]);
        attempts.lose(2);
        assert_eq!(begin(&attempts, &held(7, 3)).cause(), Some(StopCause::Cancelled));
        assert_eq!(begin(&attempts, &held(8, 2)).cause(), Some(StopCause::Fenced));
        assert_eq!(begin(&attempts, &held(9, 3)).cause(), None, "neither asked to stop nor fenced");
        attempts.leave();
        assert_eq!(begin(&attempts, &held(10, 3)).cause(), Some(StopCause::Leaving));
    }

    #[test]
    fn a_wish_reaches_whom_it_is_for() {
        let attempts = RunningAttempts::default();
        let old = begin(&attempts, &held(1, 1));
        let new = begin(&attempts, &held(2, 2));
        attempts.lose(1);
        attempts.cancel(vec![5]);
        assert_eq!((old.cause(), new.cause()), (Some(StopCause::Fenced), None));
        assert!(attempts.is_lost(1) && !attempts.is_lost(2));
        assert_eq!(attempts.stop_late(99), Some(100));
        assert_eq!(attempts.stop_late(100), None);
        assert_eq!(new.cause(), Some(StopCause::TimedOut));
    }
}

//! The attempts that run now, and everybody's wish that one of them stop.
//!
//! A wish may come before its attempt has begun: the job was claimed and waits in memory. So wishes are
//! kept, and each attempt is told at its beginning; one lock makes that free of gaps.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::in_flight::Key;
use super::lease::Lease;
use super::output_log::OutputLog;
use super::prefetch_buffer::OwnedJob;
use super::stop::{Stop, StopCause};
use windlass_engine::store::{LogLine, Urgency};

/// An attempt that runs.
pub(super) struct Running {
    pub(super) stop: Stop,
    pub(super) log: Arc<OutputLog>,
    /// By the monotonic clock.
    pub(super) deadline_ms: Option<i64>,
    /// The identity under which it was claimed.
    pub(super) worker_id: i64,
}

pub(super) struct RunningAttempts {
    state: Mutex<State>,
}

struct State {
    /// By job and number of the attempt.
    attempts: HashMap<Key, Running>,
    lease: Lease,
    /// What ran when the lease was over was told to stop.
    has_lapsed: bool,
    /// Identities up to this one were fenced. Ids only grow.
    lost_worker_id: i64,
    is_leaving: bool,
    /// Jobs of this worker that were asked to stop, as last read.
    cancelled: HashMap<i64, StopCause>,
}

impl RunningAttempts {
    pub(super) fn new(lease: Lease) -> RunningAttempts {
        RunningAttempts {
            state: Mutex::new(State {
                attempts: HashMap::new(),
                lease,
                has_lapsed: false,
                lost_worker_id: 0,
                is_leaving: false,
                cancelled: HashMap::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers an attempt and tells it what was wished before it began. None begins when the lease is
    /// over: somebody may own it by now. If nobody does, it is claimed again right away.
    pub(super) fn begin(&self, owned: &OwnedJob, running: Running, now_ms: impl FnOnce() -> i64) {
        let mut state = self.lock();
        if running.worker_id <= state.lost_worker_id || state.lease.is_over(now_ms()) {
            running.stop.request(StopCause::Fenced);
        } else if let Some(cause) = state.cancelled.get(&owned.job.id) {
            running.stop.request(*cause);
        } else if state.is_leaving {
            running.stop.request(StopCause::Leaving);
        }
        state.attempts.insert(owned.key(), running);
    }

    /// Why the attempt that ended was to stop, if it was. When the lease is over, the reaper may have ended
    /// its processes before anybody here could ask it to stop.
    pub(super) fn end(&self, owned: &OwnedJob, now_ms: impl FnOnce() -> i64) -> Option<StopCause> {
        let mut state = self.lock();
        let ended = state.attempts.remove(&owned.key());
        let cause = ended.and_then(|running| running.stop.cause());
        cause.or_else(|| state.lease.is_over(now_ms()).then_some(StopCause::Fenced))
    }

    pub(super) fn lease(&self) -> Lease {
        self.lock().lease
    }

    /// A renewal was confirmed that was sent at `sent_at_ms`. When it came too late, what ran in between is
    /// stopped first: the reaper may have ended it. Returns whether something may start that might not before.
    pub(super) fn renewed(&self, sent_at_ms: i64, now_ms: impl FnOnce() -> i64) -> bool {
        let mut state = self.lock();
        let now_ms = now_ms();
        let was_over = state.lease.is_over(now_ms);
        state.lapse(now_ms);
        state.lease = state.lease.renewed(sent_at_ms);
        state.has_lapsed = state.lease.is_over(now_ms);
        was_over && !state.has_lapsed
    }

    /// Stops everything when the lease is over. Returns how much that was, once for each time.
    pub(super) fn lapse(&self, now_ms: i64) -> Option<usize> {
        self.lock().lapse(now_ms)
    }

    /// An attempt runs.
    pub(super) fn is_any(&self) -> bool {
        !self.lock().attempts.is_empty()
    }

    /// Somebody else may own this attempt.
    pub(super) fn lose_one(&self, key: Key) {
        if let Some(running) = self.lock().attempts.get(&key) {
            running.stop.request(StopCause::Fenced);
        }
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
    pub(super) fn cancel(&self, requests: Vec<(i64, Urgency)>) {
        let cause = |urgency| match urgency {
            Urgency::WithGrace => StopCause::Cancelled,
            Urgency::AtOnce => StopCause::Killed,
        };
        let mut state = self.lock();
        state.cancelled = requests.into_iter().map(|(job_id, urgency)| (job_id, cause(urgency))).collect();
        let State { attempts, cancelled, .. } = &*state;
        for ((job_id, _attempt), running) in attempts {
            if let Some(cause) = cancelled.get(job_id) {
                running.stop.request(*cause);
            }
        }
    }

    /// Stops what is over its deadline and returns the next deadline, the end of the lease included.
    pub(super) fn stop_late(&self, now_ms: i64) -> Option<i64> {
        let state = self.lock();
        let lease_ends_at_ms = Some(state.lease.ends_at_ms());
        let mut next_ms = lease_ends_at_ms.filter(|ends_at_ms| *ends_at_ms > now_ms);
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

    /// Output that may be written and is not yet: that of so many attempts as make about `most_bytes`.
    pub(super) fn unwritten(&self, most_bytes: usize) -> Vec<LogLine> {
        let (mut lines, mut bytes) = (Vec::new(), 0);
        for running in self.lock().attempts.values() {
            let of_one = running.log.unwritten();
            bytes += of_one.iter().map(|line| line.text.len()).sum::<usize>();
            lines.extend(of_one);
            if bytes >= most_bytes {
                break;
            }
        }
        lines
    }

    /// Whether there is output that may be written and is not yet.
    pub(super) fn has_unwritten(&self) -> bool {
        self.lock().attempts.values().any(|running| running.log.has_unwritten())
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

impl State {
    fn lapse(&mut self, now_ms: i64) -> Option<usize> {
        if self.has_lapsed || !self.lease.is_over(now_ms) {
            return None;
        }
        self.has_lapsed = true;
        for running in self.attempts.values() {
            running.stop.request(StopCause::Fenced);
        }
        Some(self.attempts.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Under a lease that goes on until the instant 800.
    fn attempts() -> RunningAttempts {
        RunningAttempts::new(Lease::confirmed(1_000, 0))
    }

    fn begin(attempts: &RunningAttempts, owned: &OwnedJob, now_ms: i64) -> Stop {
        let stop = Stop::default();
        let log = Arc::new(OutputLog::new(owned.job.id, 1));
        let worker_id = owned.worker_id;
        let running = Running { stop: stop.clone(), log, deadline_ms: Some(100), worker_id };
        attempts.begin(owned, running, || now_ms);
        stop
    }

    #[test]
    fn a_wish_that_came_before_the_beginning_is_told_at_the_beginning() {
        let attempts = attempts();
        attempts.cancel(vec![(7, Urgency::WithGrace), (6, Urgency::AtOnce)]);
        attempts.lose(2);
        assert_eq!(begin(&attempts, &OwnedJob::sample(7, 3), 0).cause(), Some(StopCause::Cancelled));
        assert_eq!(begin(&attempts, &OwnedJob::sample(6, 3), 0).cause(), Some(StopCause::Killed));
        assert_eq!(begin(&attempts, &OwnedJob::sample(8, 2), 0).cause(), Some(StopCause::Fenced));
        assert_eq!(
            begin(&attempts, &OwnedJob::sample(9, 3), 0).cause(),
            None,
            "neither asked to stop nor fenced"
        );
        attempts.leave();
        assert_eq!(begin(&attempts, &OwnedJob::sample(10, 3), 0).cause(), Some(StopCause::Leaving));
    }

    #[test]
    fn a_wish_reaches_whom_it_is_for() {
        let attempts = attempts();
        let old = begin(&attempts, &OwnedJob::sample(1, 1), 0);
        let new = begin(&attempts, &OwnedJob::sample(2, 2), 0);
        attempts.lose(1);
        attempts.cancel(vec![(5, Urgency::WithGrace)]);
        attempts.lose_one((2, 7));
        assert_eq!((old.cause(), new.cause()), (Some(StopCause::Fenced), None));
        assert!(attempts.is_lost(1) && !attempts.is_lost(2));
        assert_eq!(attempts.stop_late(99), Some(100));
        assert_eq!(attempts.stop_late(100), Some(800), "only the lease's end is left");
        assert_eq!(new.cause(), Some(StopCause::TimedOut));
        let other = begin(&attempts, &OwnedJob::sample(3, 2), 0);
        attempts.lose_one((3, 1));
        assert_eq!(other.cause(), Some(StopCause::Fenced));
    }

    #[test]
    fn at_the_end_of_the_lease_everything_stops_and_nothing_begins() {
        let attempts = attempts();
        let job = OwnedJob::sample(1, 1);
        let stop = begin(&attempts, &job, 799);
        assert_eq!((attempts.lapse(799), stop.cause()), (None, None));
        assert_eq!((attempts.lapse(800), attempts.lapse(801)), (Some(1), None), "said once");
        assert_eq!(stop.cause(), Some(StopCause::Fenced));
        assert_eq!(attempts.stop_late(900), None, "nothing more will be over");
        assert_eq!(begin(&attempts, &OwnedJob::sample(2, 1), 900).cause(), Some(StopCause::Fenced));
        assert!(!attempts.renewed(50, || 900), "confirmed, and over all the same");
        assert!(attempts.renewed(890, || 900), "from now on jobs may start");
        assert_eq!(begin(&attempts, &OwnedJob::sample(3, 1), 901).cause(), None);
        assert_eq!(attempts.end(&job, || 902), Some(StopCause::Fenced), "it did not become its own again");
        assert!(!attempts.renewed(1_500, || 1_501), "it was never over");
        assert_eq!(attempts.lapse(2_300), Some(2), "and the next time");
    }

    #[test]
    fn a_confirmation_that_came_too_late_saves_nothing_that_ran() {
        let attempts = attempts();
        let job = OwnedJob::sample(1, 1);
        let stop = begin(&attempts, &job, 0);
        // Nobody looked at 800: the process was stopped, and the reaper has ended what ran.
        assert!(attempts.renewed(5_000, || 5_001));
        assert_eq!(stop.cause(), Some(StopCause::Fenced));
        let unseen = OwnedJob::sample(2, 1);
        begin(&attempts, &unseen, 5_002);
        assert_eq!(attempts.end(&unseen, || 9_000), Some(StopCause::Fenced), "ended when it was over again");
    }
}

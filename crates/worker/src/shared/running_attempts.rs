//! The attempts that run now, and the requests that they stop.
//!
//! A request may come before its attempt begins, while the job waits in memory. So requests are kept, and an attempt
//! learns of them when it begins. One lock covers both, so that no request is missed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::lease::Lease;
use super::owned_job::{AttemptKey, OwnedJob};
use crate::handler::{OutputLog, Stop, StopCause};
use windlass_engine::store::{LogLine, Urgency};

/// An attempt that runs.
pub(crate) struct RunningAttempt {
    pub(crate) stop: Stop,
    pub(crate) log: Arc<OutputLog>,
    /// When its timeout is over, by the monotonic clock.
    pub(crate) deadline_ms: Option<i64>,
    /// The worker id under which it was claimed.
    pub(crate) worker_id: i64,
}

pub(crate) struct RunningAttempts {
    state: Mutex<AttemptsState>,
}

struct AttemptsState {
    attempts: HashMap<AttemptKey, RunningAttempt>,
    lease: Lease,
    /// The lease is over, and what ran was told to stop.
    is_expired: bool,
    /// Worker ids up to this one were fenced. A newer id is always larger.
    fenced_worker_id: i64,
    is_leaving: bool,
    /// Jobs of this worker that were cancelled, as they were read last.
    cancelled: HashMap<i64, StopCause>,
}

impl RunningAttempts {
    pub(crate) fn new(lease: Lease) -> RunningAttempts {
        RunningAttempts {
            state: Mutex::new(AttemptsState {
                attempts: HashMap::new(),
                lease,
                is_expired: false,
                fenced_worker_id: 0,
                is_leaving: false,
                cancelled: HashMap::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, AttemptsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an attempt and hands it the requests that came before. If the lease is over, the attempt is told to stop
    /// before it starts, because another worker may own the job by now.
    pub(crate) fn begin(&self, owned: &OwnedJob, running: RunningAttempt, now_ms: impl FnOnce() -> i64) {
        let mut state = self.lock();
        if running.worker_id <= state.fenced_worker_id || state.lease.is_over(now_ms()) {
            running.stop.request(StopCause::Fenced);
        } else if let Some(cause) = state.cancelled.get(&owned.job.id) {
            running.stop.request(*cause);
        } else if state.is_leaving {
            running.stop.request(StopCause::Leaving);
        }
        state.attempts.insert(owned.key(), running);
    }

    /// Removes an attempt that has ended, and returns why it was to stop. If the lease is over, the backstop of its
    /// handler may have ended it before this process could ask it to stop.
    pub(crate) fn end(&self, owned: &OwnedJob, now_ms: impl FnOnce() -> i64) -> Option<StopCause> {
        let mut state = self.lock();
        let ended = state.attempts.remove(&owned.key());
        let cause = ended.and_then(|running| running.stop.cause());
        cause.or_else(|| state.lease.is_over(now_ms()).then_some(StopCause::Fenced))
    }

    pub(crate) fn lease(&self) -> Lease {
        self.lock().lease
    }

    /// Notes a confirmed renewal that was sent at `sent_at_ms`. If the lease was over before, the attempts that ran
    /// are stopped first, because the backstop may have ended them. Returns whether the lease was over and jobs may
    /// start again.
    pub(crate) fn renew_lease(&self, sent_at_ms: i64, now_ms: impl FnOnce() -> i64) -> bool {
        let mut state = self.lock();
        let now_ms = now_ms();
        let was_over = state.lease.is_over(now_ms);
        state.stop_if_lease_is_over(now_ms);
        state.lease = state.lease.renewed(sent_at_ms);
        state.is_expired = state.lease.is_over(now_ms);
        was_over && !state.is_expired
    }

    /// Stops all attempts if the lease is over. Returns how many that were; the next call returns `None` until the
    /// lease was renewed.
    pub(crate) fn stop_if_lease_is_over(&self, now_ms: i64) -> Option<usize> {
        self.lock().stop_if_lease_is_over(now_ms)
    }

    /// Whether an attempt runs.
    pub(crate) fn is_any(&self) -> bool {
        !self.lock().attempts.is_empty()
    }

    /// Stops one attempt, because another worker may own its job.
    pub(crate) fn fence_one(&self, key: AttemptKey) {
        if let Some(running) = self.lock().attempts.get(&key) {
            running.stop.request(StopCause::Fenced);
        }
    }

    /// Stops all attempts, also those that begin later, because the worker leaves.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.is_leaving = true;
        for running in state.attempts.values() {
            running.stop.request(StopCause::Leaving);
        }
    }

    /// Stops the attempts that were claimed under this worker id or an earlier one, because the worker was fenced.
    pub(crate) fn fence(&self, worker_id: i64) {
        let mut state = self.lock();
        state.fenced_worker_id = state.fenced_worker_id.max(worker_id);
        for running in state.attempts.values().filter(|running| running.worker_id <= worker_id) {
            running.stop.request(StopCause::Fenced);
        }
    }

    /// Whether this worker id was fenced.
    pub(crate) fn is_fenced(&self, worker_id: i64) -> bool {
        worker_id <= self.lock().fenced_worker_id
    }

    /// Stops the attempts of these jobs. They replace the requests that were read before.
    pub(crate) fn cancel(&self, requests: Vec<(i64, Urgency)>) {
        let cause = |urgency| match urgency {
            Urgency::WithGrace => StopCause::Cancelled,
            Urgency::AtOnce => StopCause::Killed,
            Urgency::PastDeadline => StopCause::PastDeadline,
        };
        let mut state = self.lock();
        state.cancelled = requests.into_iter().map(|(job_id, urgency)| (job_id, cause(urgency))).collect();
        let AttemptsState { attempts, cancelled, .. } = &*state;
        for ((job_id, _attempt), running) in attempts {
            if let Some(cause) = cancelled.get(job_id) {
                running.stop.request(*cause);
            }
        }
    }

    /// Stops attempts whose deadline has passed. Returns the next deadline; the end of the lease is among them.
    pub(crate) fn stop_late(&self, now_ms: i64) -> Option<i64> {
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

    /// Lines that may be written and are not known to be in the database, of as many attempts as have about
    /// `most_bytes` of text.
    pub(crate) fn unwritten(&self, most_bytes: usize) -> Vec<LogLine> {
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

    /// Whether there are lines that may be written and are not known to be in the database.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.lock().attempts.values().any(|running| running.log.has_unwritten())
    }

    /// Notes that these lines are in the database.
    pub(crate) fn written(&self, lines: &[LogLine]) {
        let state = self.lock();
        // The lines of an attempt stand together and in order: only the last of each attempt matters.
        for chunk in lines.chunk_by(|a, b| (a.job_id, a.attempt) == (b.job_id, b.attempt)) {
            if let Some(last) = chunk.last()
                && let Some(running) = state.attempts.get(&(last.job_id, last.attempt))
            {
                running.log.written(last.line);
            }
        }
    }
}

impl AttemptsState {
    fn stop_if_lease_is_over(&mut self, now_ms: i64) -> Option<usize> {
        if self.is_expired || !self.lease.is_over(now_ms) {
            return None;
        }
        self.is_expired = true;
        for running in self.attempts.values() {
            running.stop.request(StopCause::Fenced);
        }
        Some(self.attempts.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Under a lease that ends at 800 ms.
    fn attempts() -> RunningAttempts {
        RunningAttempts::new(Lease::confirmed(1_000, 0))
    }

    fn begin(attempts: &RunningAttempts, owned: &OwnedJob, now_ms: i64) -> Stop {
        let stop = Stop::default();
        let log = Arc::new(OutputLog::new(owned.job.id, 1));
        let worker_id = owned.worker_id;
        let running = RunningAttempt { stop: stop.clone(), log, deadline_ms: Some(100), worker_id };
        attempts.begin(owned, running, || now_ms);
        stop
    }

    #[test]
    fn an_attempt_learns_of_requests_that_came_before_it_began() {
        let attempts = attempts();
        attempts.cancel(vec![(7, Urgency::WithGrace), (6, Urgency::AtOnce)]);
        attempts.fence(2);
        assert_eq!(begin(&attempts, &OwnedJob::sample(7, 3), 0).cause(), Some(StopCause::Cancelled));
        assert_eq!(begin(&attempts, &OwnedJob::sample(6, 3), 0).cause(), Some(StopCause::Killed));
        assert_eq!(begin(&attempts, &OwnedJob::sample(8, 2), 0).cause(), Some(StopCause::Fenced));
        assert_eq!(
            begin(&attempts, &OwnedJob::sample(9, 3), 0).cause(),
            None,
            "neither cancelled nor fenced"
        );
        attempts.leave();
        assert_eq!(begin(&attempts, &OwnedJob::sample(10, 3), 0).cause(), Some(StopCause::Leaving));
    }

    #[test]
    fn a_request_reaches_the_attempts_that_it_is_for() {
        let attempts = attempts();
        let old = begin(&attempts, &OwnedJob::sample(1, 1), 0);
        let new = begin(&attempts, &OwnedJob::sample(2, 2), 0);
        attempts.fence(1);
        attempts.cancel(vec![(5, Urgency::WithGrace)]);
        attempts.fence_one((2, 7));
        assert_eq!((old.cause(), new.cause()), (Some(StopCause::Fenced), None));
        assert!(attempts.is_fenced(1) && !attempts.is_fenced(2));
        assert_eq!(attempts.stop_late(99), Some(100));
        assert_eq!(attempts.stop_late(100), Some(800), "only the end of the lease is left");
        assert_eq!(new.cause(), Some(StopCause::TimedOut));
        let other = begin(&attempts, &OwnedJob::sample(3, 2), 0);
        attempts.fence_one((3, 1));
        assert_eq!(other.cause(), Some(StopCause::Fenced));
    }

    #[test]
    fn at_the_end_of_the_lease_all_attempts_stop_and_none_begins() {
        let attempts = attempts();
        let job = OwnedJob::sample(1, 1);
        let stop = begin(&attempts, &job, 799);
        assert_eq!((attempts.stop_if_lease_is_over(799), stop.cause()), (None, None));
        assert_eq!(
            (attempts.stop_if_lease_is_over(800), attempts.stop_if_lease_is_over(801)),
            (Some(1), None),
            "returned once"
        );
        assert_eq!(stop.cause(), Some(StopCause::Fenced));
        assert_eq!(attempts.stop_late(900), None, "no deadline is left");
        assert_eq!(begin(&attempts, &OwnedJob::sample(2, 1), 900).cause(), Some(StopCause::Fenced));
        assert!(!attempts.renew_lease(50, || 900), "confirmed, but sent too long ago");
        assert!(attempts.renew_lease(890, || 900), "jobs may start again");
        assert_eq!(begin(&attempts, &OwnedJob::sample(3, 1), 901).cause(), None);
        assert_eq!(
            attempts.end(&job, || 902),
            Some(StopCause::Fenced),
            "the renewal came after it had lost its job"
        );
        assert!(!attempts.renew_lease(1_500, || 1_501), "it was never over");
        assert_eq!(attempts.stop_if_lease_is_over(2_300), Some(2), "returned again after a renewal");
    }

    #[test]
    fn a_confirmation_that_came_too_late_does_not_save_attempts_that_ran() {
        let attempts = attempts();
        let job = OwnedJob::sample(1, 1);
        let stop = begin(&attempts, &job, 0);
        // This process was stopped at 800 ms, and the backstop has ended what ran.
        assert!(attempts.renew_lease(5_000, || 5_001));
        assert_eq!(stop.cause(), Some(StopCause::Fenced));
        let unseen = OwnedJob::sample(2, 1);
        begin(&attempts, &unseen, 5_002);
        assert_eq!(
            attempts.end(&unseen, || 9_000),
            Some(StopCause::Fenced),
            "it ended when the lease was over again"
        );
    }
}

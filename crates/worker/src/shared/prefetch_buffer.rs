//! Claimed jobs that wait in memory for a free executor.
//!
//! The buffer wakes one waiting executor. Each executor that takes a job while others are left wakes the next one.
//! Waking all of them at once would cost more than short jobs take, because one executor may execute them all before
//! the others run.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::owned_job::{AttemptKey, OwnedJob};
use windlass_engine::store::ClaimedJob;
use windlass_system::Clock;

/// Whose thread adds jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddedBy {
    Dispatcher,
    /// It takes the first of the jobs itself.
    Executor,
}

/// What an executor finds in the buffer.
#[allow(clippy::large_enum_variant, reason = "a box for each job would cost more than moving the job does")]
pub(crate) enum NextJob {
    Job(OwnedJob),
    /// No job waits.
    Nothing,
    /// The worker ends.
    End,
}

#[derive(Default)]
pub(crate) struct PrefetchBuffer {
    contents: Mutex<BufferContents>,
    changed: Condvar,
}

#[derive(Default)]
struct BufferContents {
    jobs: VecDeque<OwnedJob>,
    is_closed: bool,
    /// Executors that wait for a job.
    waiting: usize,
    /// One of these was woken and does not run yet.
    is_one_woken: bool,
    /// When the job at the head began to wait there, by the monotonic clock.
    head_since_ms: i64,
}

impl PrefetchBuffer {
    fn lock(&self) -> MutexGuard<'_, BufferContents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, jobs: Vec<ClaimedJob>, worker_id: i64, now_ms: i64, by: AddedBy) {
        let for_others = match by {
            AddedBy::Dispatcher => jobs.len(),
            AddedBy::Executor => jobs.len().saturating_sub(1),
        };
        let mut contents = self.lock();
        if contents.jobs.is_empty() {
            contents.head_since_ms = now_ms;
        }
        contents.jobs.extend(jobs.into_iter().map(|job| OwnedJob { job, worker_id }));
        self.wake_one(contents, for_others);
    }

    /// Wakes an executor if there are jobs for others than the calling thread. If an executor was woken before and does
    /// not run yet, that one wakes the next.
    fn wake_one(&self, mut contents: MutexGuard<'_, BufferContents>, for_others: usize) {
        let wakes = for_others > 0 && !contents.is_one_woken && contents.waiting > 0;
        contents.is_one_woken |= wakes;
        drop(contents);
        if wakes {
            self.changed.notify_one();
        }
    }

    /// Takes the next job without waiting for one.
    pub(crate) fn take_next(&self, clock: &Clock) -> NextJob {
        self.take_head(self.lock(), clock).unwrap_or(NextJob::Nothing)
    }

    /// Waits for the next job, or for the end of the worker.
    pub(crate) fn wait_for_next(&self, clock: &Clock) -> NextJob {
        let mut contents = self.lock();
        while contents.jobs.is_empty() && !contents.is_closed {
            contents.waiting += 1;
            contents = self.changed.wait(contents).unwrap_or_else(PoisonError::into_inner);
            contents.waiting -= 1;
            contents.is_one_woken = false;
        }
        self.take_head(contents, clock).unwrap_or(NextJob::Nothing)
    }

    fn take_head(&self, mut contents: MutexGuard<'_, BufferContents>, clock: &Clock) -> Option<NextJob> {
        if contents.is_closed {
            return Some(NextJob::End);
        }
        let owned = contents.jobs.pop_front()?;
        contents.head_since_ms = clock.monotonic_ms();
        let left = contents.jobs.len();
        self.wake_one(contents, left);
        Some(NextJob::Job(owned))
    }

    pub(crate) fn take_all(&self) -> Vec<OwnedJob> {
        self.lock().jobs.drain(..).collect()
    }

    /// Takes one attempt, if it waits here.
    pub(crate) fn take_one(&self, key: AttemptKey) -> Option<OwnedJob> {
        let mut contents = self.lock();
        let index = contents.jobs.iter().position(|owned| owned.key() == key)?;
        contents.jobs.remove(index)
    }

    /// Takes all jobs if no executor has taken one for this time.
    pub(crate) fn take_stuck(&self, now_ms: i64, longest_ms: i64) -> Vec<OwnedJob> {
        let mut contents = self.lock();
        if now_ms - contents.head_since_ms < longest_ms {
            return Vec::new();
        }
        contents.jobs.drain(..).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().jobs.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends all executors: none of them takes another job.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn jobs(count: usize) -> Vec<ClaimedJob> {
        (0..count as i64).map(|id| OwnedJob::sample(id, 1).job).collect()
    }

    fn take(buffer: &PrefetchBuffer) {
        match buffer.wait_for_next(&Clock::system()) {
            NextJob::Job(_owned) => {}
            NextJob::Nothing | NextJob::End => panic!("there is a job"),
        }
    }

    /// Each executor keeps its job until all have one. The test hangs if some executors are not woken.
    #[test]
    fn as_many_executors_wake_as_there_are_jobs() {
        const EXECUTORS: usize = 8;
        let (buffer, all_busy) = (PrefetchBuffer::default(), Barrier::new(EXECUTORS));
        std::thread::scope(|scope| {
            for _executor in 0..EXECUTORS {
                scope.spawn(|| {
                    for _round in 0..100 {
                        take(&buffer);
                        if all_busy.wait().is_leader() {
                            buffer.add(jobs(EXECUTORS), 1, 0, AddedBy::Executor);
                        }
                    }
                });
            }
            buffer.add(jobs(EXECUTORS), 1, 0, AddedBy::Dispatcher);
        });
        assert_eq!(buffer.len(), EXECUTORS, "the last leader's jobs");
    }

    #[test]
    fn jobs_that_no_executor_takes_in_time_are_stuck() {
        let buffer = PrefetchBuffer::default();
        buffer.add(jobs(3), 1, 100, AddedBy::Dispatcher);
        assert_eq!(buffer.take_stuck(149, 50).len(), 0);
        assert_eq!(buffer.take_stuck(150, 50).len(), 3);
        assert!(matches!(buffer.take_next(&Clock::manual(0)), NextJob::Nothing));
        buffer.close();
        assert!(matches!(buffer.take_next(&Clock::manual(0)), NextJob::End));
    }
}

//! Claiming nothing for a moment where jobs can't be started for want of files, processes, memory or a folder.

use std::time::Duration;

use super::super::shared::Shared;
use super::Dispatcher;
use windlass_db::error::{Error, Result, Unavailable};

impl Dispatcher<'_> {
    /// Nothing is claimed, and prefetched jobs go back: other workers may take them meanwhile.
    pub(super) fn is_pausing(&self) -> bool {
        left(self.shared).is_some()
    }
}

/// Ends a worker when nothing of it runs, and nothing could be started for as long as it has patience.
pub(super) fn check_patience(shared: &Shared, patience_ms: Option<i64>) -> Result<()> {
    let Some(patience_ms) = patience_ms else { return Ok(()) };
    match shared.shortage.unserved_for(patience_ms, shared.store.clock().monotonic_ms()) {
        Some(reason) if !shared.running.is_any() => {
            Err(Error::unavailable("start jobs", Unavailable::OutOfResources(reason)))
        }
        Some(_) | None => Ok(()),
    }
}

/// How long the pause goes on.
pub(super) fn left(shared: &Shared) -> Option<Duration> {
    let now_ms = shared.store.clock().monotonic_ms();
    let claims_at_ms = shared.shortage.claims_at_ms(now_ms)?;
    Some(Duration::from_millis((claims_at_ms - now_ms).unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::super::super::prefetch_buffer::AddedBy;
    use super::super::super::results::Done;
    use super::super::super::sample::Sample;
    use super::super::tests::turn;
    use super::*;
    use windlass_engine::status::JobStatus;
    use windlass_engine::transition::Outcome;

    fn lacking() -> Outcome {
        Outcome::OutOfResources { reason: "no more files".to_owned() }
    }

    /// The next prefetched job can't be started.
    fn refuse(sample: &Sample) {
        let (owned, logs) = (sample.take(), Vec::new());
        sample.shared.refused("no more files");
        sample.shared.results.add(Done { owned, outcome: lacking(), logs }, 0, 0);
    }

    fn count(sample: &Sample, status: JobStatus) -> i64 {
        sample.shared.store.upkeep().stats().expect("it is read").jobs.of(status)
    }

    #[test]
    fn what_can_not_be_started_goes_back_uncounted_and_is_claimed_after_a_pause() {
        let sample = Sample::new(3);
        let clock = sample.shared.store.clock();
        sample.enqueue(3, "null");
        turn(&sample, AddedBy::Dispatcher);
        assert_eq!(count(&sample, JobStatus::Running), 3);
        refuse(&sample);
        turn(&sample, AddedBy::Executor);
        assert_eq!(count(&sample, JobStatus::Pending), 3, "also what was prefetched");
        let job = sample.shared.store.jobs().get(1).expect("it is there");
        assert_eq!((job.attempt, job.failures, job.interruptions), (0, 0, 0));
        assert_eq!(job.last_error.as_deref(), Some("not started: no more files"));
        turn(&sample, AddedBy::Dispatcher);
        assert_eq!(count(&sample, JobStatus::Running), 0, "not yet");
        let pause = left(&sample.shared).expect("it pauses");
        clock.advance_ms(i64::try_from(pause.as_millis()).expect("short"));
        assert_eq!(left(&sample.shared), None);
        turn(&sample, AddedBy::Dispatcher);
        assert_eq!(count(&sample, JobStatus::Running), 3);
    }

    #[test]
    fn a_worker_without_patience_ends_when_nothing_could_be_started_for_so_long() {
        let sample = Sample::new(1);
        let shared = &sample.shared;
        for _refusal in 0..3 {
            shared.refused("no more files");
            shared.store.clock().advance_ms(5_000);
        }
        assert_eq!(check_patience(shared, None), Ok(()));
        assert_eq!(check_patience(shared, Some(15_001)), Ok(()));
        let ended = Error::unavailable("start jobs", Unavailable::OutOfResources("no more files".to_owned()));
        assert_eq!(check_patience(shared, Some(15_000)), Err(ended));
        shared.shortage.served(shared.store.clock().monotonic_ms());
        assert_eq!(check_patience(shared, Some(15_000)), Ok(()), "one was started");
    }
}

//! The pause in claiming after the system refused what jobs need to start, and the end of the worker's patience.

use super::turn::Turn;
use crate::shared::Shared;
use windlass_db::error::{Error, Result, Unavailable};

impl Turn<'_> {
    /// Whether nothing is claimed for a while. Prefetched jobs go back, so that other workers may take them.
    pub(super) fn is_pausing(&self) -> bool {
        left_ms(self.shared).is_some()
    }
}

/// How long the pause goes on, in milliseconds.
pub(super) fn left_ms(shared: &Shared) -> Option<i64> {
    let now_ms = shared.clock().monotonic_ms();
    Some(shared.shortage.claims_at_ms(now_ms)? - now_ms)
}

/// Ends the worker if nothing of it runs and no job could start for as long as the worker has patience.
pub(super) fn check_patience(shared: &Shared) -> Result<()> {
    let Some(patience_ms) = shared.options.patience_ms else { return Ok(()) };
    match shared.shortage.none_started_for(patience_ms, shared.clock().monotonic_ms()) {
        Some(reason) if !shared.running.is_any() => {
            Err(Error::unavailable("start jobs", Unavailable::OutOfResources(reason)))
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::WorkerOptions;
    use crate::shared::{AddedBy, EndedAttempt};
    use crate::test_worker::TestWorker;
    use windlass_engine::status::JobStatus;
    use windlass_engine::transition::Outcome;

    /// The next prefetched job can't be started.
    fn refuse(worker: &TestWorker) {
        let outcome = Outcome::OutOfResources { reason: "no more files".to_owned() };
        let ended = EndedAttempt {
            owned: worker.take(),
            outcome,
            exit_code: None,
            logs: Vec::new(),
            artifacts: Vec::new(),
            variables: Vec::new(),
        };
        worker.shared.note_refusal("no more files");
        worker.shared.results.add(ended, 0, 0);
    }

    #[test]
    fn jobs_that_can_not_be_started_go_back_uncounted_and_are_claimed_after_a_pause() {
        let worker = TestWorker::new(3);
        let clock = worker.shared.clock();
        worker.enqueue(3, "null");
        worker.turn(AddedBy::Dispatcher);
        assert_eq!(worker.count(JobStatus::Running), 3);
        refuse(&worker);
        worker.turn(AddedBy::Executor);
        assert_eq!(worker.count(JobStatus::Pending), 3, "also the prefetched jobs");
        let job = worker.shared.store.jobs().get(1).expect("the job exists");
        assert_eq!((job.attempt, job.failures, job.interruptions), (0, 0, 0));
        assert_eq!(job.last_error.as_deref(), Some("not started: no more files"));
        worker.turn(AddedBy::Dispatcher);
        assert_eq!(worker.count(JobStatus::Running), 0, "the pause goes on");
        clock.advance_ms(left_ms(&worker.shared).expect("the pause goes on"));
        assert_eq!(left_ms(&worker.shared), None);
        worker.turn(AddedBy::Dispatcher);
        assert_eq!(worker.count(JobStatus::Running), 3);
    }

    #[test]
    fn a_worker_ends_when_no_job_could_start_for_as_long_as_it_has_patience() {
        let ended = Error::unavailable("start jobs", Unavailable::OutOfResources("no more files".to_owned()));
        for (patience_ms, expected) in [(None, Ok(())), (Some(15_001), Ok(())), (Some(15_000), Err(ended))] {
            let worker = TestWorker::with_options(WorkerOptions { patience_ms, ..WorkerOptions::default() });
            let shared = &worker.shared;
            for _refusal in 0..3 {
                shared.note_refusal("no more files");
                shared.clock().advance_ms(5_000);
            }
            assert_eq!(check_patience(shared), expected, "{patience_ms:?}");
            shared.shortage.started(shared.clock().monotonic_ms());
            assert_eq!(check_patience(shared), Ok(()), "a job has started");
        }
    }
}

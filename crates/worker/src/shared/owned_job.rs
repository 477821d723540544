//! A claimed job in memory.

use windlass_engine::store::ClaimedJob;

/// Which attempt: the id of the job and the number of the attempt.
pub(crate) type AttemptKey = (i64, i64);

/// A claimed job, with the worker id under which it was claimed. A worker gets a new id after it was fenced.
pub(crate) struct OwnedJob {
    pub(crate) job: ClaimedJob,
    pub(crate) worker_id: i64,
}

impl OwnedJob {
    pub(crate) fn key(&self) -> AttemptKey {
        (self.job.id, self.job.retry_state.attempt)
    }
}

#[cfg(test)]
impl OwnedJob {
    /// The first attempt of a job that was enqueued alone, for tests.
    pub(crate) fn sample(job_id: i64, worker_id: i64) -> OwnedJob {
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
            phase: 0,
            definition: 1,
            item: None,
            id: job_id,
            created_at: 0,
            token: 0,
            run_id: None,
            queue: "default".to_owned(),
            ready_at: 0,
            name: None,
            kind: "noop".to_owned(),
            payload: "null".to_owned(),
            timeout_ms: None,
            started_run: None,
            has_overtaken: false,
            retry_state,
            conditions: None,
        };
        OwnedJob { job, worker_id }
    }
}

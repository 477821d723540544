//! How many claimed jobs to keep in memory beyond those that run.
//!
//! If some jobs are in memory, short jobs do not need a commit each, and no executor waits for a claim. But other workers
//! can't take a job from this worker's memory. So it keeps only as many jobs as start soon.

/// Jobs in memory should start within this time. It is half of the time after which they are given back.
const START_WITHIN_US: i64 = 25_000;
/// Bytes of payloads and results of the jobs in memory, at most, as far as the averages tell.
const BYTES_MAX: i64 = 16 * 1024 * 1024;

/// What is known of the jobs that ran lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PrefetchController {
    /// How long an attempt of the last batch took on average. `None` while nothing is known, and after a long job kept
    /// others waiting.
    average_us: Option<i64>,
    /// The largest recent average of payloads and of results, in bytes per job.
    payload_bytes: i64,
    result_bytes: i64,
}

impl PrefetchController {
    /// Notes how long a number of attempts took together.
    pub(super) fn observe_times(&mut self, attempts: i64, total_us: i64) {
        if attempts > 0 {
            self.average_us = Some(total_us / attempts);
        }
    }

    /// Notes how many bytes of payload a number of claimed jobs have together.
    pub(super) fn observe_payloads(&mut self, jobs: i64, bytes: i64) {
        self.payload_bytes = average_after(self.payload_bytes, jobs, bytes);
    }

    /// Notes how many bytes of results and output a number of attempts had together.
    pub(super) fn observe_results(&mut self, attempts: i64, bytes: i64) {
        self.result_bytes = average_after(self.result_bytes, attempts, bytes);
    }

    /// Forgets how long attempts took, because jobs in memory did not start in time.
    pub(super) fn forget_times(&mut self) {
        self.average_us = None;
    }

    /// How many jobs to keep in memory beyond those that `threads` run, at most one claim of `claim_max` jobs.
    pub(super) fn prefetch(self, threads: i64, claim_max: i64) -> i64 {
        let Some(average_us) = self.average_us else { return 0 };
        let start_in_time = threads * START_WITHIN_US / average_us.max(1);
        let fit_in_memory = BYTES_MAX / (self.payload_bytes + self.result_bytes).max(1);
        start_in_time.min(fit_in_memory).min(claim_max)
    }
}

/// The average size of a job after another batch. A larger size counts at once, a smaller one by half.
fn average_after(average_bytes: i64, jobs: i64, bytes: i64) -> i64 {
    match bytes.checked_div(jobs) {
        Some(newest) => newest.max((average_bytes + newest) / 2),
        None => average_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM_MAX: i64 = 1_000;

    fn after(attempts: i64, average_us: i64) -> PrefetchController {
        let mut controller = PrefetchController::default();
        controller.observe_times(attempts, attempts * average_us);
        controller
    }

    #[test]
    fn as_many_jobs_are_kept_as_start_soon_up_to_one_claim() {
        assert_eq!(PrefetchController::default().prefetch(8, CLAIM_MAX), 0, "nothing is known");
        for (average_us, kept) in
            [(0, 1_000), (2, 1_000), (1_000, 200), (25_000, 8), (50_000, 4), (1_000_000, 0)]
        {
            assert_eq!(after(8, average_us).prefetch(8, CLAIM_MAX), kept, "{average_us} us");
        }
    }

    #[test]
    fn the_last_batch_decides_how_many_jobs_are_kept() {
        let mut controller = after(100, 2);
        controller.observe_times(1, 1_000_000);
        assert_eq!(controller.prefetch(8, CLAIM_MAX), 0);
        controller.observe_times(0, 0);
        assert_eq!(controller.prefetch(8, CLAIM_MAX), 0, "an empty batch changes nothing");
        controller.observe_times(16, 16 * 2);
        assert_eq!(controller.prefetch(8, CLAIM_MAX), 1_000);
        controller.forget_times();
        assert_eq!(controller.prefetch(8, CLAIM_MAX), 0);
    }

    #[test]
    fn large_payloads_or_results_limit_how_many_jobs_are_kept() {
        for observe in [PrefetchController::observe_payloads, PrefetchController::observe_results] {
            let mut controller = after(100, 2);
            for (bytes, kept) in [(4, 1_000), (4_096, 1_000), (100_000, 167), (1 << 20, 16), (1 << 30, 0)] {
                observe(&mut controller, 1, bytes);
                assert_eq!(controller.prefetch(8, CLAIM_MAX), kept, "{bytes} bytes");
            }
            observe(&mut controller, 0, 0);
            observe(&mut controller, 1, 4);
            assert_eq!(controller.prefetch(8, CLAIM_MAX), 0, "one small job changes little");
            (0..30).for_each(|_batch| observe(&mut controller, 1, 4));
            assert_eq!(controller.prefetch(8, CLAIM_MAX), 1_000);
        }
    }
}

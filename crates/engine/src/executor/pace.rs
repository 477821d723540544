//! How many jobs to hold in memory beyond those that run: a pure decision from how long jobs take.
//!
//! Holding some means that short jobs need no commit each. Holding more than starts within a few
//! milliseconds would keep them from other workers.

/// Jobs held in memory are to start within this time.
const HORIZON_US: i64 = 5_000;
/// Jobs held in memory beyond those that run, at most.
const HELD_MAX: i64 = 1_000;
/// Weight of the newest measurement, as a divisor.
const SMOOTHING: i64 = 8;

/// A moving average of how long jobs take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    average_us: i64,
}

impl Pace {
    /// Nothing is known: jobs are taken to be long.
    pub(super) fn unknown() -> Pace {
        Pace { average_us: HORIZON_US * 200 }
    }

    /// Takes a batch of measurements in.
    pub(super) fn observe(&mut self, jobs: i64, total_us: i64) {
        if jobs > 0 {
            let newest = total_us / jobs;
            // One batch of many is as telling as many single measurements.
            let weight = jobs.min(SMOOTHING);
            self.average_us += (newest - self.average_us) * weight / SMOOTHING;
        }
    }

    /// Held jobs did not start in time: something long runs now.
    pub(super) fn slow_down(&mut self) {
        *self = Pace::unknown();
    }

    /// Jobs to hold beyond those that `threads` run.
    pub(super) fn held(self, threads: i64) -> i64 {
        (threads * HORIZON_US / self.average_us.max(1)).min(HELD_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_or_unknown_jobs_are_not_hoarded() {
        let mut pace = Pace::unknown();
        assert_eq!(pace.held(8), 0);
        pace.observe(8, 8 * 50_000);
        assert_eq!(pace.held(8), 0);
    }

    #[test]
    fn short_jobs_are_held_up_to_the_limit_and_one_long_one_ends_it() {
        let mut pace = Pace::unknown();
        for _ in 0..10 {
            pace.observe(100, 100 * 2);
        }
        assert_eq!(pace.held(8), HELD_MAX);
        pace.slow_down();
        assert_eq!(pace.held(8), 0);
    }
}

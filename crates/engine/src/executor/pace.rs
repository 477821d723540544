//! How many jobs to hold in memory beyond those that run: a pure decision from how long jobs take.
//!
//! Holding some means that short jobs need no commit each, and that nobody waits for one. Holding more than
//! starts within a few milliseconds would keep them from other workers.

/// Jobs held in memory are to start within this time,
const HORIZON_US: i64 = 5_000;
/// or before so many more claims could have been written:
const HORIZON_WRITES: i64 = 4;
/// but within this time in any case. It is half of that after which they go back.
const HORIZON_MAX_US: i64 = 25_000;
/// Jobs held in memory beyond those that run, at most: so many full claims. While the ends of one are written beside the
/// claim of the next, the one between them is executed.
const CLAIMS_HELD: i64 = 2;
/// What these jobs weigh together, payloads and results, in bytes, as far as their averages tell: large ones would fill
/// the memory.
const HELD_BYTES_MAX: i64 = 16 * 1024 * 1024;
/// A result waits for others at most so long.
pub(super) const LINGER_MAX_US: i64 = 5_000;
/// Weight of the newest measurement, as a divisor.
const SMOOTHING: i64 = 8;

/// Moving averages: how long jobs take, how long it takes to write their ends and claim others, and how large their
/// payloads and results are. Where jobs keep the processors busy, a write takes many times what it takes on an idle machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// `None` while nothing is known: then jobs are taken to be long.
    average_us: Option<i64>,
    write_us: i64,
    payload_bytes: i64,
    result_bytes: i64,
}

impl Pace {
    /// Nothing is known.
    pub(super) fn unknown() -> Pace {
        Pace { average_us: None, write_us: 0, payload_bytes: 0, result_bytes: 0 }
    }

    /// Takes a batch of measurements in.
    pub(super) fn observe(&mut self, jobs: i64, total_us: i64) {
        if jobs > 0 {
            let newest = total_us / jobs;
            // One batch of many is as telling as many single measurements.
            self.average_us = Some(approach(self.average_us.unwrap_or(newest), newest, jobs.min(SMOOTHING)));
        }
    }

    /// Ends were written, and others claimed.
    pub(super) fn observe_write(&mut self, took_us: i64) {
        self.write_us = approach(self.write_us, took_us, 1);
    }

    /// Jobs were claimed that have so many bytes of payload.
    pub(super) fn observe_payloads(&mut self, jobs: i64, bytes: i64) {
        self.payload_bytes = weigh(self.payload_bytes, jobs, bytes);
    }

    /// Jobs came to so many bytes of results and output.
    pub(super) fn observe_results(&mut self, jobs: i64, bytes: i64) {
        self.result_bytes = weigh(self.result_bytes, jobs, bytes);
    }

    /// Held jobs did not start in time: something long runs now.
    pub(super) fn slow_down(&mut self) {
        self.average_us = None;
    }

    /// Whether so many jobs are over in less than half the time that it takes to write their ends: then waiting for
    /// all of them costs less than another transaction.
    pub(super) fn is_over_soon(self, jobs: i64, threads: i64) -> bool {
        self.average_us.is_some_and(|average_us| jobs * average_us / threads.max(1) <= self.write_us / 2)
    }

    /// For how long the ends of a few jobs that run are worth waiting for, at most: half the time that it takes to
    /// write them, and no longer than results wait for others. `None` when jobs take longer than that.
    pub(super) fn linger_us(self) -> Option<i64> {
        let linger_us = (self.write_us / 2).min(LINGER_MAX_US);
        self.average_us.filter(|average_us| *average_us <= linger_us).map(|_short| linger_us)
    }

    /// Jobs to hold beyond those that `threads` run, where a claim takes `claim_max` at most.
    pub(super) fn held(self, threads: i64, claim_max: i64) -> i64 {
        let horizon_us = (HORIZON_WRITES * self.write_us).clamp(HORIZON_US, HORIZON_MAX_US);
        let job_bytes = (self.payload_bytes + self.result_bytes).max(1);
        let held_max = (CLAIMS_HELD * claim_max).min(HELD_BYTES_MAX / job_bytes);
        self.average_us.map_or(0, |average_us| (threads * horizon_us / average_us.max(1)).min(held_max))
    }
}

/// The average weight of a job after others of so many bytes. Larger ones count at once.
fn weigh(average_bytes: i64, jobs: i64, bytes: i64) -> i64 {
    match bytes.checked_div(jobs) {
        Some(newest) => approach(average_bytes, newest, jobs.min(SMOOTHING)).max(newest),
        None => average_bytes,
    }
}

fn approach(average: i64, newest: i64, weight: i64) -> i64 {
    average + (newest - average) * weight / SMOOTHING
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM_MAX: i64 = 1_000;

    #[test]
    fn long_or_unknown_jobs_are_not_hoarded() {
        let mut pace = Pace::unknown();
        assert_eq!(pace.held(8, CLAIM_MAX), 0);
        pace.observe(8, 8 * 50_000);
        assert_eq!(pace.held(8, CLAIM_MAX), 0);
    }

    #[test]
    fn short_jobs_are_held_up_to_the_limit_and_one_long_one_ends_it() {
        let mut pace = Pace::unknown();
        for _ in 0..10 {
            pace.observe(100, 100 * 2);
        }
        assert_eq!(pace.held(8, CLAIM_MAX), 2_000);
        pace.slow_down();
        assert_eq!(pace.held(8, CLAIM_MAX), 0);
    }

    #[test]
    fn what_is_held_is_limited_by_the_size_of_payloads_and_results() {
        for observe in [Pace::observe_payloads, Pace::observe_results] {
            let mut pace = Pace::unknown();
            pace.observe(100, 100 * 2);
            for (bytes, held) in [(4, 2_000), (4_096, 2_000), (100_000, 167), (1 << 20, 16), (1 << 30, 0)] {
                observe(&mut pace, 1, bytes);
                assert_eq!(pace.held(8, CLAIM_MAX), held, "{bytes} bytes");
            }
            observe(&mut pace, 1, 4);
            assert_eq!(pace.held(8, CLAIM_MAX), 0, "a small one tells little");
            observe(&mut pace, 0, 0);
            observe(&mut pace, 1_000, 1_000 * 4);
            assert_eq!(pace.held(8, CLAIM_MAX), 2_000, "a claim of many tells, an empty one nothing");
        }
    }

    #[test]
    fn the_first_measurement_counts_and_a_long_job_among_short_ones_weighs_most() {
        let mut pace = Pace::unknown();
        pace.observe(1, 4_000);
        assert_eq!(pace.held(8, CLAIM_MAX), 10);
        pace.observe(1, 1_000_000);
        assert_eq!(pace.held(8, CLAIM_MAX), 0);
    }

    #[test]
    fn what_is_over_before_it_could_be_written_is_worth_waiting_for() {
        let mut pace = Pace::unknown();
        assert!(!pace.is_over_soon(0, 8), "nothing is known");
        pace.observe(100, 100 * 20);
        (0..100).for_each(|_write| pace.observe_write(1_000));
        assert!(pace.is_over_soon(100, 8));
        assert!(!pace.is_over_soon(1_000, 8), "they take longer than a write");
        pace.observe(1, 20_000);
        assert!(!pace.is_over_soon(100, 8), "they are long now");
    }

    #[test]
    fn jobs_that_are_shorter_than_half_a_write_are_waited_for_so_long() {
        let mut pace = Pace::unknown();
        (0..100).for_each(|_write| pace.observe_write(1_000));
        let about = |pace: Pace| pace.linger_us().map(|linger_us| linger_us / 100);
        assert_eq!(about(pace), None, "nothing is known");
        pace.observe(100, 100 * 20);
        assert_eq!(about(pace), Some(4));
        pace.observe(100, 100 * 600);
        assert_eq!(about(pace), None, "they are long now");
        pace.observe(100, 100 * 20);
        (0..100).for_each(|_write| pace.observe_write(1_000_000));
        assert_eq!(pace.linger_us(), Some(LINGER_MAX_US), "also where writes take for ever");
    }

    #[test]
    fn where_claims_take_long_more_is_held_up_to_the_limit() {
        let mut pace = Pace::unknown();
        pace.observe(8, 8 * 4_000);
        for (took_us, held) in [(300, 10), (5_000, 40), (1_000_000, 50)] {
            for _ in 0..100 {
                pace.observe_write(took_us);
            }
            let found = pace.held(8, CLAIM_MAX);
            assert!((held - 1..=held).contains(&found), "{took_us} us: {found}");
        }
        pace.observe(1, 100_000);
        assert!(pace.held(8, CLAIM_MAX) < 15, "longer jobs: {}", pace.held(8, CLAIM_MAX));
    }
}

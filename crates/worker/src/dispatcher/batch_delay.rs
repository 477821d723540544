//! The delay of the first result in memory, so that one transaction writes several results.
//!
//! Results are delayed only while prefetched jobs wait for an executor, because then writing a result would start
//! nothing. An executor that finds no prefetched job writes all results at once and claims in the same transaction.

use std::time::Duration;

use crate::shared::{Mode, Shared};
use windlass_system::wake_ups::WakeUps;

/// This number of results is written without a delay.
const RESULTS_ENOUGH: usize = 16;
/// A result waits for others at most this long.
const DELAY_MAX_US: i64 = 5_000;

/// Whether the dispatcher is woken after a result was added; `waiting` is the number of results. The first result starts
/// the delay, and the last result ends it.
pub(super) fn wakes_dispatcher(waiting: usize) -> bool {
    waiting == 1 || waiting == RESULTS_ENOUGH
}

/// How much longer the results that wait are delayed. Any other wake-up than that of a result ends the delay.
pub(super) fn delay_left(shared: &Shared, wake_ups: WakeUps) -> Option<Duration> {
    let has_other_reason = !wake_ups.is_empty() && wake_ups != WakeUps::EXECUTOR;
    if has_other_reason || shared.mode() != Mode::Working || shared.prefetched.is_empty() {
        return None;
    }
    let (waiting, since_us) = shared.results.waiting();
    delay(waiting, shared.clock().monotonic_us() - since_us)
}

/// How much longer a number of results is delayed, given the age of the first.
fn delay(waiting: usize, age_us: i64) -> Option<Duration> {
    let left_us = u64::try_from(DELAY_MAX_US - age_us).ok().filter(|left_us| *left_us > 0)?;
    (1..RESULTS_ENOUGH).contains(&waiting).then(|| Duration::from_micros(left_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_delayed_until_they_are_enough_or_the_first_is_old_enough() {
        for (waiting, age_us, left_us) in [
            (0, 0, None),
            (1, 0, Some(5_000)),
            (15, 4_999, Some(1)),
            (15, 5_000, None),
            (1, 60_000_000, None),
            (16, 0, None),
        ] {
            assert_eq!(delay(waiting, age_us), left_us.map(Duration::from_micros), "{waiting} {age_us}");
        }
    }

    #[test]
    fn the_dispatcher_is_woken_by_the_first_result_and_by_the_last_that_is_needed() {
        let wakes: Vec<usize> = (0..=40).filter(|waiting| wakes_dispatcher(*waiting)).collect();
        assert_eq!(wakes, [1, RESULTS_ENOUGH]);
    }
}

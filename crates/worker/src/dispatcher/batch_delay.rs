//! Results wait a little for each other: one transaction for several costs hardly more than for one.
//!
//! They wait only while claimed jobs wait for an executor, because then writing a result would start nothing. The
//! executor that finds no job left writes all results and claims in the same transaction.

use std::time::Duration;

use super::super::shared::{Mode, Shared};
use windlass_system::wake_ups::WakeUps;

/// So many results are written at once.
const RESULTS_ENOUGH: usize = 16;
/// A result waits for others at most so long.
const DELAY_MAX_US: i64 = 5_000;

/// Whether the dispatcher is woken when a result was added and so many wait now: the first one starts the delay, and the
/// last one ends it.
pub(in super::super) fn wakes_dispatcher(waiting: usize) -> bool {
    waiting == 1 || waiting == RESULTS_ENOUGH
}

/// Waits until the results that wait are to be written, or until something else was heard; returns all that was heard.
pub(super) fn wait(shared: &Shared, mut heard: WakeUps) -> WakeUps {
    // Each result wakes it at most once, and so many results are enough.
    for _wake_up in 0..RESULTS_ENOUGH {
        if heard != WakeUps::EXECUTOR || shared.mode() != Mode::Working || shared.prefetched.is_empty() {
            break;
        }
        let (waiting, since_us) = shared.results.waiting();
        let Some(left) = left(waiting, shared.store.clock().monotonic_us() - since_us) else { break };
        heard = heard | shared.dispatcher.wait(shared.store.clock().until(None, left));
    }
    heard
}

/// For how long so many results, of which the first came so long ago, wait for others.
fn left(waiting: usize, age_us: i64) -> Option<Duration> {
    let left_us = u64::try_from(DELAY_MAX_US - age_us).ok().filter(|left_us| *left_us > 0)?;
    (1..RESULTS_ENOUGH).contains(&waiting).then(|| Duration::from_micros(left_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_wait_until_they_are_enough_or_it_was_long_enough() {
        for (waiting, age_us, left_us) in [
            (0, 0, None),
            (1, 0, Some(5_000)),
            (15, 4_999, Some(1)),
            (15, 5_000, None),
            (1, 60_000_000, None),
            (16, 0, None),
        ] {
            assert_eq!(left(waiting, age_us), left_us.map(Duration::from_micros), "{waiting} {age_us}");
        }
    }

    #[test]
    fn the_dispatcher_is_woken_by_the_first_result_and_by_the_last_that_is_needed() {
        let wakes: Vec<usize> = (0..=40).filter(|waiting| wakes_dispatcher(*waiting)).collect();
        assert_eq!(wakes, [1, RESULTS_ENOUGH]);
    }
}

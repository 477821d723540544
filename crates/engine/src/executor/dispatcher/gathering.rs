//! Results of short jobs wait for each other: one transaction for several costs little more than for one.
//!
//! They wait only while claimed jobs wait for an executor: then a result more makes room for nothing that could
//! start. The executor that finds none left writes all results itself and claims anew. For those that take no time
//! all of these are waited for, for others until they are enough.

use std::time::Duration;

use super::super::pace::Pace;
use super::super::shared::{Mode, Shared};
use crate::signal::Hints;

/// A result waits for others at most so long.
const LONGEST_US: i64 = 5_000;
/// So many are enough, unless the jobs that wait are over soon.
const ENOUGH: usize = 16;
/// The dispatcher looks at most so often before it goes on.
const LOOKS_MAX: usize = 64;

/// Whether the dispatcher is told, by who added a result, that so many wait now.
pub(in super::super) fn is_to_be_told(waiting: usize) -> bool {
    waiting == 1 || waiting == ENOUGH
}

/// Waits as long as that brings results together, when nothing else was heard; returns all that was heard.
pub(super) fn wait(shared: &Shared, pace: Pace, mut heard: Hints) -> Hints {
    for _look in 0..LOOKS_MAX {
        let held = shared.held.len();
        if heard != Hints::EXECUTOR || shared.mode() != Mode::Working || held == 0 {
            break;
        }
        let is_over_soon = pace.is_over_soon(held as i64, shared.options.threads);
        let enough = if is_over_soon { usize::MAX } else { ENOUGH };
        let clock = shared.store.clock();
        let (waiting, since_us) = shared.results.waiting();
        let Some(longest) = longest(waiting, enough, clock.monotonic_us() - since_us) else { break };
        heard = heard | shared.dispatcher.wait(clock.until(None, longest));
    }
    heard
}

/// For how long so many results, of which the first came so long ago, may wait for others until they are enough.
fn longest(waiting: usize, enough: usize, age_us: i64) -> Option<Duration> {
    let left_us = u64::try_from(LONGEST_US - age_us).ok().filter(|left_us| *left_us > 0)?;
    (1..enough).contains(&waiting).then(|| Duration::from_micros(left_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_wait_for_others_until_they_are_enough_or_it_was_long_enough() {
        for (waiting, enough, age_us, left_us) in [
            (0, ENOUGH, 0, None),
            (1, ENOUGH, 0, Some(5_000)),
            (15, ENOUGH, 4_999, Some(1)),
            (15, ENOUGH, 5_000, None),
            (1, ENOUGH, 60_000_000, None),
            (16, ENOUGH, 0, None),
            (16, usize::MAX, 0, Some(5_000)),
            (16, usize::MAX, 5_000, None),
        ] {
            let longest = longest(waiting, enough, age_us);
            assert_eq!(longest, left_us.map(Duration::from_micros), "{waiting} {enough} {age_us}");
        }
    }

    #[test]
    fn the_dispatcher_is_told_of_the_first_and_of_enough() {
        let told: Vec<usize> = (0..=40).filter(|waiting| is_to_be_told(*waiting)).collect();
        assert_eq!(told, [1, ENOUGH]);
    }
}

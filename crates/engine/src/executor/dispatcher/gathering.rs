//! Results of short jobs wait for each other: one transaction for several costs little more than for one.
//!
//! They wait only while claimed jobs wait for an executor: then a result more makes room for nothing that could
//! start. For those that take no time all of these are waited for, up to a full claim of them, for others until they are
//! enough. When none is left, an executor writes all results itself and claims anew: the first that finds none, or,
//! where jobs are over sooner than their ends are written, the last that ends one. It is waited for no longer than half
//! a write.

use std::time::Duration;

use super::super::held::Left;
use super::super::pace::{LINGER_MAX_US, Pace};
use super::super::shared::{Mode, Shared};
use crate::signal::Hints;

/// So many are enough, unless the jobs that wait are over soon.
const ENOUGH: usize = 16;
/// The dispatcher looks at most so often before it goes on.
const LOOKS_MAX: usize = 64;

/// Whether the dispatcher is told, by who added a result, that so many wait now. A claim takes `claim_max` at most.
pub(in super::super) fn is_to_be_told(waiting: usize, claim_max: usize) -> bool {
    waiting == 1 || waiting == ENOUGH || waiting == claim_max
}

/// Waits as long as that brings results together, when nothing else was heard; returns all that was heard.
pub(super) fn wait(shared: &Shared, pace: Pace, mut heard: Hints) -> Hints {
    for _look in 0..LOOKS_MAX {
        let left = shared.held.left();
        if heard != Hints::EXECUTOR || shared.mode() != Mode::Working {
            break;
        }
        let Some(longest) = longest_now(shared, pace, left) else { break };
        let news = shared.dispatcher.wait(shared.store.clock().until(None, longest));
        if news.is_empty() && left.held == 0 {
            shared.held.give_up();
        }
        heard = heard | news;
    }
    heard
}

/// Whether the results that wait are to be left to who executes the last of the jobs that are held.
pub(super) fn is_worth_while(shared: &Shared, pace: Pace) -> bool {
    let left = shared.held.left();
    let is_over_soon = pace.is_over_soon(left.held as i64, shared.options.threads);
    left.held > 0 && is_over_soon && longest_now(shared, pace, left).is_some()
}

/// For how long the results that wait now may wait for others.
fn longest_now(shared: &Shared, pace: Pace, left: Left) -> Option<Duration> {
    let (waiting, since_us) = shared.results.waiting();
    let age_us = shared.store.clock().monotonic_us() - since_us;
    if left.held > 0 {
        let is_over_soon = pace.is_over_soon(left.held as i64, shared.options.threads);
        // With a full claim of them goes a full claim: others are executed meanwhile.
        let enough = if is_over_soon { shared.store.claim_max() } else { ENOUGH };
        return longest(waiting, enough, age_us);
    }
    // Threads are idle, and wait for a few that are not.
    let linger_us = pace.linger_us().filter(|_short| left.awaited > 0)?;
    let linger = Duration::from_micros(u64::try_from(linger_us).ok()?);
    longest(waiting, usize::MAX, age_us).map(|longest| longest.min(linger))
}

/// For how long so many results, of which the first came so long ago, may wait for others until they are enough.
fn longest(waiting: usize, enough: usize, age_us: i64) -> Option<Duration> {
    let left_us = u64::try_from(LINGER_MAX_US - age_us).ok().filter(|left_us| *left_us > 0)?;
    (1..enough).contains(&waiting).then(|| Duration::from_micros(left_us))
}

#[cfg(test)]
mod tests {
    use super::super::super::held::AddedBy;
    use super::super::super::sample::Sample;
    use super::super::tests::turn;
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
            (16, 1_000, 0, Some(5_000)),
            (16, 1_000, 5_000, None),
            (1_000, 1_000, 0, None),
        ] {
            let longest = longest(waiting, enough, age_us);
            assert_eq!(longest, left_us.map(Duration::from_micros), "{waiting} {enough} {age_us}");
        }
    }

    #[test]
    fn the_dispatcher_is_told_of_the_first_and_of_enough() {
        let told: Vec<usize> = (0..=40).filter(|waiting| is_to_be_told(*waiting, 30)).collect();
        assert_eq!(told, [1, ENOUGH, 30]);
    }

    /// Short jobs are held, more than a claim takes, and as many ends wait.
    fn with_ends(ends: usize) -> Sample {
        let sample = Sample::new(1);
        let claim_max = sample.shared.store.claim_max();
        sample.enqueue(claim_max + 2, "null");
        set_pace(&sample, 0);
        turn(&sample, AddedBy::Executor);
        turn(&sample, AddedBy::Executor);
        assert_eq!(sample.shared.held.len(), claim_max + 2);
        for _end in 0..ends {
            sample.add_end(sample.take().0, None);
        }
        sample
    }

    /// Jobs take so long, and writing their ends a second.
    fn set_pace(sample: &Sample, average_us: i64) {
        let mut pace = Pace::unknown();
        pace.observe(1, average_us);
        pace.observe_write(8_000_000);
        sample.shared.desk.lock().expect("nobody panicked").pace = pace;
    }

    #[test]
    fn ends_of_jobs_that_take_no_time_are_left_until_the_others_end_or_it_was_long_enough() {
        const DISPATCHER: AddedBy = AddedBy::Dispatcher;
        let claim_max = Sample::new(1).shared.store.claim_max();
        let nothing: fn(&Sample) = |_sample| {};
        type Case = (&'static str, usize, AddedBy, fn(&Sample), usize);
        let cases: [Case; 7] = [
            ("others are about to end", 1, DISPATCHER, nothing, 1),
            ("nearly as many as a claim", claim_max - 1, DISPATCHER, nothing, claim_max - 1),
            ("a full claim", claim_max, DISPATCHER, nothing, 0),
            ("who executes them all finds none left", 1, AddedBy::Executor, nothing, 0),
            ("they waited", 1, DISPATCHER, |sample| wait_us(sample, LINGER_MAX_US), 0),
            ("jobs are long", 1, DISPATCHER, |sample| set_pace(sample, 10_000_000), 0),
            ("the worker ends", 1, DISPATCHER, |sample| sample.shared.advance_mode(Mode::Draining), 0),
        ];
        for (what, ends, by, before, left) in cases {
            let sample = with_ends(ends);
            before(&sample);
            turn(&sample, by);
            assert_eq!(sample.waiting(), left, "{what}");
            assert_eq!(sample.written(), (ends - left) as i64, "{what}");
        }
    }

    fn wait_us(sample: &Sample, time_us: i64) {
        sample.shared.store.clock().advance_ms(time_us / 1_000);
    }
}

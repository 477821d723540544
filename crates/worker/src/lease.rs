//! The lease as the worker counts it itself. Pure.
//!
//! Others wait for the whole lease, from when they *saw* its last renewal. The worker counts from before it
//! *sent* the last renewal that was confirmed, and stops everything a margin before the end. So what it ran
//! is gone before anybody else may start it, also when it can't reach the database to be told. Why this
//! holds, and what it rests on, is in `docs/decisions/0012-workers-stop-before-their-lease-ends.md`.

/// The part of the lease that the worker does not use: a fifth. It covers the time to kill, threads that run
/// late, and clocks that go at different speeds.
const MARGIN_PART: i64 = 5;
/// The part of the margin after which the reaper acts for an engine that did not: a quarter. An engine that
/// works comes first, and knows then why its processes end.
const REAPER_PART: i64 = 4;
/// Renewals within one lease: four can fail before the worker stops what it runs.
const HEARTBEATS_PER_LEASE: i64 = 6;
/// After a renewal that failed the next is tried this many times sooner.
const HURRY: i64 = 4;

/// A lease that was confirmed. Instants are of the worker's monotonic clock, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lease {
    /// What others wait for.
    length_ms: i64,
    /// Before the renewal was sent that was confirmed.
    sent_at_ms: i64,
}

impl Lease {
    /// A lease of which a renewal was confirmed that was sent at `sent_at_ms`, or later.
    pub(super) fn confirmed(length_ms: i64, sent_at_ms: i64) -> Lease {
        Lease { length_ms, sent_at_ms }
    }

    /// The same, renewed. A confirmation that came late shortens nothing.
    pub(super) fn renewed(self, sent_at_ms: i64) -> Lease {
        Lease { sent_at_ms: self.sent_at_ms.max(sent_at_ms), ..self }
    }

    /// When the worker stops everything.
    pub(super) fn ends_at_ms(self) -> i64 {
        self.sent_at_ms.saturating_add(self.length_ms - self.margin_ms())
    }

    /// When the reaper does, in the place of an engine that is stopped itself.
    pub(super) fn reaper_ends_at_ms(self) -> i64 {
        self.ends_at_ms().saturating_add(self.margin_ms() / REAPER_PART)
    }

    /// Nothing may run: others may take the jobs soon, or have.
    pub(super) fn is_over(self, now_ms: i64) -> bool {
        now_ms >= self.ends_at_ms()
    }

    /// When to renew it.
    pub(super) fn renew_at_ms(self) -> i64 {
        self.sent_at_ms.saturating_add(self.interval_ms())
    }

    /// When to try again after a try at `tried_at_ms` that failed.
    pub(super) fn retry_at_ms(self, tried_at_ms: i64) -> i64 {
        tried_at_ms.saturating_add((self.interval_ms() / HURRY).max(1))
    }

    fn interval_ms(self) -> i64 {
        (self.length_ms / HEARTBEATS_PER_LEASE).max(1)
    }

    fn margin_ms(self) -> i64 {
        self.length_ms / MARGIN_PART
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instants_of_a_lease() {
        // (length, renew, stop, the reaper), after a renewal that was sent at 1,000,000.
        for (length_ms, renew, stop, reaper) in [
            (30_000, 5_000, 24_000, 25_500),
            (5_000, 833, 4_000, 4_250),
            (1_000, 166, 800, 850),
            (100, 16, 80, 85),
            (3_600_000, 600_000, 2_880_000, 3_060_000),
        ] {
            let lease = Lease::confirmed(length_ms, 1_000_000);
            let found = (lease.renew_at_ms(), lease.ends_at_ms(), lease.reaper_ends_at_ms());
            assert_eq!(found, (1_000_000 + renew, 1_000_000 + stop, 1_000_000 + reaper), "{length_ms}");
            assert!(!lease.is_over(lease.ends_at_ms() - 1) && lease.is_over(lease.ends_at_ms()));
            let tries = (1..).take_while(|number| number * renew < stop).count();
            assert_eq!(tries, 4, "renewals that fit in");
            assert!(lease.retry_at_ms(7) > 7 && lease.retry_at_ms(7) - 7 < renew);
        }
    }

    #[test]
    fn a_confirmation_counts_from_its_sending_and_never_backwards() {
        let lease = Lease::confirmed(1_000, 5_000);
        assert_eq!(lease.renewed(5_500).ends_at_ms(), 6_300);
        assert_eq!(lease.renewed(4_000), lease, "an answer that was overtaken");
        assert!(lease.renewed(5_500).is_over(9_000), "it was confirmed, but long ago");
    }

    /// What decision 0012 says: how late the worker may be to act, as a part of the lease, when its clock is
    /// slow by a hundredth and the observer's fast by a hundredth.
    #[test]
    fn two_executions_never_overlap() {
        for length_ms in (100..200_000).step_by(100) {
            let lease = Lease::confirmed(length_ms, 0);
            let really = |own_ms: i64| own_ms as f64 / 0.99;
            let others_ms = length_ms as f64 / 1.01;
            for (who, ends_at_ms, part) in
                [("worker", lease.ends_at_ms(), 0.18), ("reaper", lease.reaper_ends_at_ms(), 0.13)]
            {
                let gone_ms = really(ends_at_ms) + part * length_ms as f64;
                assert!(gone_ms <= others_ms, "the {who} of {length_ms}: {gone_ms} of {others_ms}");
            }
        }
    }
}

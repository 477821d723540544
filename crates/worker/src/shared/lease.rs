//! The lease as the worker counts it itself. Pure.
//!
//! An observer waits for the whole lease, from when it *saw* the last renewal. The worker counts from before it *sent*
//! the last renewal that was confirmed, and stops everything a margin before the end. So the worker's jobs are stopped
//! before any other worker may start them, even if this worker can't reach the database. The proof and its assumptions
//! are in `docs/decisions/0012-workers-stop-before-their-lease-ends.md`.

/// The worker does not use the last fifth of its lease. This margin covers the time to kill processes, threads that
/// are scheduled late, and clocks that run at different speeds.
const MARGIN_PART: i64 = 5;
/// Handlers that can stop their work without this process do so after a quarter of the margin. A worker that runs
/// stops its jobs before that, and knows then why they end.
const BACKSTOP_PART: i64 = 4;
/// Renewals within one lease. Four of them can fail before the worker stops its jobs.
const HEARTBEATS_PER_LEASE: i64 = 6;
/// After a failed renewal the next one is tried this many times sooner.
const RETRY_FACTOR: i64 = 4;

/// A confirmed lease. Instants are milliseconds of the worker's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    /// How long observers wait.
    length_ms: i64,
    /// Taken before the confirmed renewal was sent.
    sent_at_ms: i64,
}

impl Lease {
    /// A lease whose renewal was sent at `sent_at_ms` or later, and was confirmed.
    pub(crate) fn confirmed(length_ms: i64, sent_at_ms: i64) -> Lease {
        Lease { length_ms, sent_at_ms }
    }

    /// The same lease after another renewal. A confirmation that arrives out of order does not shorten it.
    pub(crate) fn renewed(self, sent_at_ms: i64) -> Lease {
        Lease { sent_at_ms: self.sent_at_ms.max(sent_at_ms), ..self }
    }

    /// When the worker stops all its jobs.
    pub(crate) fn ends_at_ms(self) -> i64 {
        self.sent_at_ms.saturating_add(self.length_ms - self.margin_ms())
    }

    /// When handlers stop their work by themselves, because the whole worker may be stopped.
    pub(crate) fn backstop_at_ms(self) -> i64 {
        self.ends_at_ms().saturating_add(self.margin_ms() / BACKSTOP_PART)
    }

    /// Whether nothing may run, because others may take the jobs now or soon.
    pub(crate) fn is_over(self, now_ms: i64) -> bool {
        now_ms >= self.ends_at_ms()
    }

    /// When to renew the lease.
    pub(crate) fn renew_at_ms(self) -> i64 {
        self.sent_at_ms.saturating_add(self.interval_ms())
    }

    /// When to try again after a renewal failed that was tried at `tried_at_ms`.
    pub(crate) fn retry_at_ms(self, tried_at_ms: i64) -> i64 {
        tried_at_ms.saturating_add((self.interval_ms() / RETRY_FACTOR).max(1))
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
    fn when_a_lease_is_renewed_ends_and_is_enforced_by_the_backstop() {
        // (length, renewal, end, backstop), after a renewal that was sent at 1,000,000.
        for (length_ms, renew, stop, backstop) in [
            (30_000, 5_000, 24_000, 25_500),
            (5_000, 833, 4_000, 4_250),
            (1_000, 166, 800, 850),
            (100, 16, 80, 85),
            (3_600_000, 600_000, 2_880_000, 3_060_000),
        ] {
            let lease = Lease::confirmed(length_ms, 1_000_000);
            let found = (lease.renew_at_ms(), lease.ends_at_ms(), lease.backstop_at_ms());
            assert_eq!(found, (1_000_000 + renew, 1_000_000 + stop, 1_000_000 + backstop), "{length_ms}");
            assert!(!lease.is_over(lease.ends_at_ms() - 1) && lease.is_over(lease.ends_at_ms()));
            let tries = (1..).take_while(|number| number * renew < stop).count();
            assert_eq!(tries, 4, "renewals before the end");
            assert!(lease.retry_at_ms(7) > 7 && lease.retry_at_ms(7) - 7 < renew);
        }
    }

    #[test]
    fn a_confirmation_counts_from_when_the_renewal_was_sent_and_never_shortens_the_lease() {
        let lease = Lease::confirmed(1_000, 5_000);
        assert_eq!(lease.renewed(5_500).ends_at_ms(), 6_300);
        assert_eq!(lease.renewed(4_000), lease, "an older answer that arrives late");
        assert!(lease.renewed(5_500).is_over(9_000), "it was sent long ago");
    }

    /// Decision 0012: how late the worker may act, as a part of the lease, if its clock is slow by one percent and the
    /// observer's clock is fast by one percent.
    #[test]
    fn two_executions_never_overlap() {
        for length_ms in (100..200_000).step_by(100) {
            let lease = Lease::confirmed(length_ms, 0);
            let really = |own_ms: i64| own_ms as f64 / 0.99;
            let others_ms = length_ms as f64 / 1.01;
            for (who, ends_at_ms, part) in
                [("worker", lease.ends_at_ms(), 0.18), ("backstop", lease.backstop_at_ms(), 0.13)]
            {
                let gone_ms = really(ends_at_ms) + part * length_ms as f64;
                assert!(gone_ms <= others_ms, "the {who} of {length_ms}: {gone_ms} of {others_ms}");
            }
        }
    }
}

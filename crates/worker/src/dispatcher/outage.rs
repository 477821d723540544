//! How long the dispatcher waits for a database that can't be used for now. Pure.

/// Pauses between two tries, the first and the longest.
const PAUSE_MIN_MS: i64 = 20;
const PAUSE_MAX_MS: i64 = 1_000;

/// The database could not be used when it was tried last. Instants are of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outage {
    /// When the first failed try began.
    pub(super) since_ms: i64,
    pause_ms: i64,
    pub(super) retry_at_ms: i64,
}

impl Outage {
    /// The outage after another try failed.
    pub(super) fn after_failure(before: Option<Outage>, began_ms: i64, now_ms: i64) -> Outage {
        let pause_ms = before.map_or(PAUSE_MIN_MS, |outage| (outage.pause_ms * 2).min(PAUSE_MAX_MS));
        let since_ms = before.map_or(began_ms, |outage| outage.since_ms);
        Outage { since_ms, pause_ms, retry_at_ms: now_ms + pause_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_the_outage_began_with_the_first_failure() {
        let mut outage = None;
        let mut pauses = Vec::new();
        for try_at_ms in [1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000] {
            let failed = Outage::after_failure(outage, try_at_ms, try_at_ms + 7);
            assert_eq!((failed.since_ms, failed.retry_at_ms), (1_000, try_at_ms + 7 + failed.pause_ms));
            pauses.push(failed.pause_ms);
            outage = Some(failed);
        }
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1_000, 1_000]);
    }
}

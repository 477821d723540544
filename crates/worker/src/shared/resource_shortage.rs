//! A worker that can't start jobs because the system has no files, processes, memory or disk space left. It stops
//! claiming for a while, so that other workers may take the jobs. Pure, except for a lock.
//!
//! Each pause is twice as long as the one before, until an attempt gets what it needs.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The first pause, in milliseconds.
const PAUSE_MIN_MS: i64 = 200;
/// The longest pause, in milliseconds.
const PAUSE_MAX_MS: i64 = 5_000;
/// The shortage is over if nothing was refused for this time.
const OVER_MS: i64 = 15_000;

/// What the system refused, and when. Instants are milliseconds of the worker's monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct ResourceShortage {
    state: Mutex<Option<Episode>>,
}

#[derive(Debug, Clone)]
struct Episode {
    /// What was refused last, for people.
    reason: String,
    last_ms: i64,
    /// Since when no attempt could start. `None` if one did after the last refusal.
    none_started_since_ms: Option<i64>,
    pause_ms: i64,
    /// When the pause ends.
    claims_at_ms: i64,
}

impl ResourceShortage {
    fn lock(&self) -> MutexGuard<'_, Option<Episode>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job could not be started. Returns whether a shortage begins now.
    pub(crate) fn refused(&self, reason: &str, now_ms: i64) -> bool {
        let mut state = self.lock();
        let before = state.take().filter(|episode| !episode.is_over(now_ms));
        let begins = before.is_none();
        let (pause_ms, claims_at_ms) = match &before {
            // The pause goes on: this is another job of the same claim.
            Some(episode) if now_ms < episode.claims_at_ms => (episode.pause_ms, episode.claims_at_ms),
            Some(Episode { none_started_since_ms: Some(_), pause_ms, .. }) => {
                let pause_ms = (pause_ms * 2).min(PAUSE_MAX_MS);
                (pause_ms, now_ms + pause_ms)
            }
            Some(_) | None => (PAUSE_MIN_MS, now_ms + PAUSE_MIN_MS),
        };
        let none_started_since_ms = before.and_then(|episode| episode.none_started_since_ms).or(Some(now_ms));
        *state = Some(Episode {
            reason: reason.to_owned(),
            last_ms: now_ms,
            none_started_since_ms,
            pause_ms,
            claims_at_ms,
        });
        begins
    }

    /// An attempt that began at `started_ms` got what it needs.
    pub(crate) fn started(&self, started_ms: i64) {
        if let Some(episode) = self.lock().as_mut()
            && started_ms >= episode.last_ms
        {
            episode.none_started_since_ms = None;
        }
    }

    /// When jobs may be claimed again, if a pause goes on.
    pub(crate) fn claims_at_ms(&self, now_ms: i64) -> Option<i64> {
        self.lock().as_ref().map(|episode| episode.claims_at_ms).filter(|at_ms| *at_ms > now_ms)
    }

    /// What the system refuses, if a shortage goes on.
    pub(crate) fn reason(&self, now_ms: i64) -> Option<String> {
        self.lock().as_ref().filter(|episode| !episode.is_over(now_ms)).map(|episode| episode.reason.clone())
    }

    /// What the system refuses, if no attempt could start for this time.
    pub(crate) fn none_started_for(&self, longest_ms: i64, now_ms: i64) -> Option<String> {
        let state = self.lock();
        let episode = state.as_ref().filter(|episode| !episode.is_over(now_ms))?;
        let since_ms = episode.none_started_since_ms?;
        (now_ms - since_ms >= longest_ms).then(|| episode.reason.clone())
    }
}

impl Episode {
    fn is_over(&self, now_ms: i64) -> bool {
        now_ms - self.last_ms >= OVER_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_an_attempt_starts() {
        let shortage = ResourceShortage::default();
        assert_eq!(shortage.claims_at_ms(0), None);
        let mut now_ms = 0;
        let mut pauses = Vec::new();
        for number in 0..7 {
            assert_eq!(shortage.refused("files", now_ms), number == 0, "the beginning is reported once");
            assert!(!shortage.refused("files", now_ms), "another job of the same claim");
            let claims_at_ms = shortage.claims_at_ms(now_ms).expect("it pauses");
            assert_eq!(shortage.claims_at_ms(claims_at_ms), None);
            pauses.push(claims_at_ms - now_ms);
            now_ms = claims_at_ms;
        }
        assert_eq!(pauses, [200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        shortage.started(now_ms - 5_001);
        assert!(shortage.none_started_for(0, now_ms).is_some(), "it began before the refusal");
        shortage.started(now_ms);
        assert_eq!(shortage.none_started_for(0, now_ms), None);
        assert!(!shortage.refused("files", now_ms), "the same shortage");
        assert_eq!(shortage.claims_at_ms(now_ms), Some(now_ms + PAUSE_MIN_MS));
    }

    #[test]
    fn a_shortage_is_over_when_nothing_was_refused_for_a_while() {
        let shortage = ResourceShortage::default();
        shortage.refused("files", 1_000);
        shortage.refused("memory", 2_000);
        assert_eq!(shortage.none_started_for(1_000, 1_999), None);
        assert_eq!(shortage.none_started_for(1_000, 2_000).as_deref(), Some("memory"));
        assert_eq!(shortage.reason(2_000 + OVER_MS - 1).as_deref(), Some("memory"));
        assert_eq!(shortage.reason(2_000 + OVER_MS), None);
        assert!(shortage.refused("files", 2_000 + OVER_MS), "another one begins");
    }
}

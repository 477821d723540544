//! When a worker that lacked what it needs to start a job claims again, and what it says about it. Pure, but for a lock.
//!
//! Each pause is twice as long as the one before, until an attempt gets what it needs. Other workers may take the jobs
//! meanwhile.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The first pause, in milliseconds.
const PAUSE_MIN_MS: i64 = 200;
/// The longest pause, in milliseconds.
const PAUSE_MAX_MS: i64 = 5_000;
/// When nothing was lacking for so long, the shortage is over.
const OVER_MS: i64 = 15_000;

/// What a worker lacked, and when. Instants are of its monotonic clock, in milliseconds.
#[derive(Debug, Default)]
pub(super) struct Shortage {
    state: Mutex<Option<Episode>>,
}

#[derive(Debug, Clone)]
struct Episode {
    /// What was lacking last.
    reason: String,
    last_ms: i64,
    /// Since when no attempt was served; `None` when one was after the last refusal.
    unserved_since_ms: Option<i64>,
    pause_ms: i64,
    claims_at_ms: i64,
}

impl Shortage {
    fn lock(&self) -> MutexGuard<'_, Option<Episode>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job could not be started. Returns whether a shortage begins with it.
    pub(super) fn refused(&self, reason: &str, now_ms: i64) -> bool {
        let mut state = self.lock();
        let before = state.take().filter(|episode| !episode.is_over(now_ms));
        let begins = before.is_none();
        let (pause_ms, claims_at_ms) = match &before {
            // Another job of the same claim.
            Some(episode) if now_ms < episode.claims_at_ms => (episode.pause_ms, episode.claims_at_ms),
            Some(Episode { unserved_since_ms: Some(_), pause_ms, .. }) => {
                let pause_ms = (pause_ms * 2).min(PAUSE_MAX_MS);
                (pause_ms, now_ms + pause_ms)
            }
            Some(_) | None => (PAUSE_MIN_MS, now_ms + PAUSE_MIN_MS),
        };
        let unserved_since_ms = before.and_then(|episode| episode.unserved_since_ms).or(Some(now_ms));
        *state = Some(Episode {
            reason: reason.to_owned(),
            last_ms: now_ms,
            unserved_since_ms,
            pause_ms,
            claims_at_ms,
        });
        begins
    }

    /// An attempt that started at `started_ms` got what it needs.
    pub(super) fn served(&self, started_ms: i64) {
        if let Some(episode) = self.lock().as_mut()
            && started_ms >= episode.last_ms
        {
            episode.unserved_since_ms = None;
        }
    }

    /// When jobs may be claimed again, if that is not now.
    pub(super) fn claims_at_ms(&self, now_ms: i64) -> Option<i64> {
        self.lock().as_ref().map(|episode| episode.claims_at_ms).filter(|at_ms| *at_ms > now_ms)
    }

    /// What is lacking.
    pub(super) fn reason(&self, now_ms: i64) -> Option<String> {
        self.lock().as_ref().filter(|episode| !episode.is_over(now_ms)).map(|episode| episode.reason.clone())
    }

    /// What is lacking, when no attempt was served for so long.
    pub(super) fn unserved_for(&self, longest_ms: i64, now_ms: i64) -> Option<String> {
        let state = self.lock();
        let episode = state.as_ref().filter(|episode| !episode.is_over(now_ms))?;
        let since_ms = episode.unserved_since_ms?;
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
    fn pauses_grow_until_an_attempt_is_served() {
        let shortage = Shortage::default();
        assert_eq!(shortage.claims_at_ms(0), None);
        let mut now_ms = 0;
        let mut pauses = Vec::new();
        for number in 0..7 {
            assert_eq!(shortage.refused("files", now_ms), number == 0, "it is said once");
            assert!(!shortage.refused("files", now_ms), "another job of the same claim");
            let claims_at_ms = shortage.claims_at_ms(now_ms).expect("it pauses");
            assert_eq!(shortage.claims_at_ms(claims_at_ms), None);
            pauses.push(claims_at_ms - now_ms);
            now_ms = claims_at_ms;
        }
        assert_eq!(pauses, [200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        shortage.served(now_ms - 5_001);
        assert!(shortage.unserved_for(0, now_ms).is_some(), "it had started before");
        shortage.served(now_ms);
        assert_eq!(shortage.unserved_for(0, now_ms), None);
        assert!(!shortage.refused("files", now_ms), "it goes on");
        assert_eq!(shortage.claims_at_ms(now_ms), Some(now_ms + PAUSE_MIN_MS));
    }

    #[test]
    fn it_is_over_when_nothing_was_lacking_for_a_while() {
        let shortage = Shortage::default();
        shortage.refused("files", 1_000);
        shortage.refused("memory", 2_000);
        assert_eq!(shortage.unserved_for(1_000, 1_999), None);
        assert_eq!(shortage.unserved_for(1_000, 2_000).as_deref(), Some("memory"));
        assert_eq!(shortage.reason(2_000 + OVER_MS - 1).as_deref(), Some("memory"));
        assert_eq!(shortage.reason(2_000 + OVER_MS), None);
        assert!(shortage.refused("files", 2_000 + OVER_MS), "and begins anew");
    }
}

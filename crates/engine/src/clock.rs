//! The only source of time. Tests and simulations own it through [`Clock::manual`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A source of wall-clock and monotonic time, cheap to clone.
#[derive(Debug, Clone)]
pub struct Clock {
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    System { started: Instant },
    Manual(Arc<Mutex<ManualTime>>),
}

#[derive(Debug, Clone, Copy)]
struct ManualTime {
    wall_ms: i64,
    monotonic_ms: i64,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Clock {
        Clock { source: Source::System { started: Instant::now() } }
    }

    /// A clock that stands still until [`Clock::advance_ms`] moves it.
    #[must_use]
    pub fn manual(wall_ms: i64) -> Clock {
        Clock { source: Source::Manual(Arc::new(Mutex::new(ManualTime { wall_ms, monotonic_ms: 0 }))) }
    }

    /// Milliseconds since the Unix epoch, UTC. May jump either way.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        match &self.source {
            Source::System { .. } => match SystemTime::now().duration_since(UNIX_EPOCH) {
                Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
                Err(_before_1970) => 0,
            },
            Source::Manual(time) => time.lock().unwrap_or_else(PoisonError::into_inner).wall_ms,
        }
    }

    /// Milliseconds since this clock was made. Never goes back: for leases and elapsed time.
    #[must_use]
    pub fn monotonic_ms(&self) -> i64 {
        match &self.source {
            Source::System { started } => i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX),
            Source::Manual(time) => time.lock().unwrap_or_else(PoisonError::into_inner).monotonic_ms,
        }
    }

    /// Microseconds since this clock was made. Never goes back: for measuring short work.
    #[must_use]
    pub fn monotonic_us(&self) -> i64 {
        match &self.source {
            Source::System { started } => i64::try_from(started.elapsed().as_micros()).unwrap_or(i64::MAX),
            Source::Manual(_) => self.monotonic_ms().saturating_mul(1_000),
        }
    }

    /// Moves a manual clock, wall and monotonic, forward. A system clock does not move.
    pub fn advance_ms(&self, by_ms: i64) {
        if let Source::Manual(time) = &self.source {
            let mut time = time.lock().unwrap_or_else(PoisonError::into_inner);
            time.wall_ms += by_ms;
            time.monotonic_ms += by_ms.max(0);
        }
    }

    /// How long a thread may sleep until `instant_ms` (wall clock), at most `longest`. With a manual
    /// clock a real sleep would wait for nothing, so it is short and the caller looks again.
    #[must_use]
    pub fn until(&self, instant_ms: Option<i64>, longest: Duration) -> Duration {
        const MANUAL_TICK: Duration = Duration::from_millis(2);
        match (&self.source, instant_ms) {
            (Source::Manual(_), _) => MANUAL_TICK.min(longest),
            (Source::System { .. }, None) => longest,
            (Source::System { .. }, Some(instant_ms)) => {
                let wait_ms = instant_ms.saturating_sub(self.now_ms()).max(0);
                Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)).min(longest)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = Clock::manual(1_000);
        let copy = clock.clone();
        clock.advance_ms(500);
        assert_eq!((copy.now_ms(), copy.monotonic_ms()), (1_500, 500));
        clock.advance_ms(-2_000);
        assert_eq!((copy.now_ms(), copy.monotonic_ms()), (-500, 500), "monotonic time never goes back");
    }

    #[test]
    fn a_wait_is_bounded_both_ways() {
        let clock = Clock::system();
        let longest = Duration::from_secs(5);
        assert_eq!(clock.until(Some(0), longest), Duration::ZERO);
        assert_eq!(clock.until(Some(i64::MAX), longest), longest);
        assert_eq!(clock.until(None, longest), longest);
    }
}

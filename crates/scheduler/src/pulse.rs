//! Whether the scheduler makes progress: a turn that does not end is a database that does not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use windlass_engine::Clock;

/// Since when the present turn goes on. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub(crate) struct Pulse {
    clock: Clock,
    began_at_ms: Arc<AtomicI64>,
}

/// No turn goes on.
const RESTING: i64 = i64::MAX;

impl Pulse {
    pub(crate) fn new(clock: &Clock) -> Pulse {
        Pulse { clock: clock.clone(), began_at_ms: Arc::new(AtomicI64::new(RESTING)) }
    }

    /// A turn begins, or a part of it is done.
    pub(crate) fn beat(&self) {
        self.began_at_ms.store(self.clock.monotonic_ms(), Ordering::Release);
    }

    /// The turn is over: waiting for the next is no lack of progress.
    pub(crate) fn rest(&self) {
        self.began_at_ms.store(RESTING, Ordering::Release);
    }

    /// For how long the present turn has made no progress, in milliseconds.
    pub(crate) fn silent_ms(&self) -> i64 {
        self.clock.monotonic_ms().saturating_sub(self.began_at_ms.load(Ordering::Acquire)).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_turn_that_goes_on_is_silent() {
        let clock = Clock::manual(1_000);
        let pulse = Pulse::new(&clock);
        clock.advance_ms(500);
        assert_eq!(pulse.silent_ms(), 0);
        pulse.beat();
        clock.advance_ms(500);
        assert_eq!(pulse.silent_ms(), 500);
        pulse.beat();
        assert_eq!(pulse.silent_ms(), 0);
        clock.advance_ms(500);
        pulse.rest();
        assert_eq!(pulse.silent_ms(), 0);
    }
}

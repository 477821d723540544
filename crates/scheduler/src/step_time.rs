//! The duration of the scheduler's current step. A step that does not end is waiting for the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use windlass_engine::Clock;

/// When the current step began. All clones share it.
#[derive(Debug, Clone)]
pub(crate) struct StepTime {
    clock: Clock,
    began_at_ms: Arc<AtomicI64>,
}

/// The value between two steps.
const NO_STEP: i64 = i64::MAX;

impl StepTime {
    pub(crate) fn new(clock: &Clock) -> StepTime {
        StepTime { clock: clock.clone(), began_at_ms: Arc::new(AtomicI64::new(NO_STEP)) }
    }

    /// Records that a step begins.
    pub(crate) fn begin(&self) {
        self.began_at_ms.store(self.clock.monotonic_ms(), Ordering::Release);
    }

    /// Records that the step has ended.
    pub(crate) fn end(&self) {
        self.began_at_ms.store(NO_STEP, Ordering::Release);
    }

    /// The duration of the current step so far, in milliseconds. 0 between two steps.
    pub(crate) fn elapsed_ms(&self) -> i64 {
        self.clock.monotonic_ms().saturating_sub(self.began_at_ms.load(Ordering::Acquire)).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_only_during_a_step() {
        let clock = Clock::manual(1_000);
        let step_time = StepTime::new(&clock);
        clock.advance_ms(500);
        assert_eq!(step_time.elapsed_ms(), 0);
        step_time.begin();
        clock.advance_ms(500);
        assert_eq!(step_time.elapsed_ms(), 500);
        step_time.end();
        assert_eq!(step_time.elapsed_ms(), 0);
        step_time.begin();
        assert_eq!(step_time.elapsed_ms(), 0, "another step");
    }
}

//! For how long the scheduler's present step has gone on. A step that does not end waits for the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use windlass_engine::Clock;

/// When the present step began. Clones are cheap and share it.
#[derive(Debug, Clone)]
pub(crate) struct StepTime {
    clock: Clock,
    began_at_ms: Arc<AtomicI64>,
}

/// No step goes on.
const RESTING: i64 = i64::MAX;

impl StepTime {
    pub(crate) fn new(clock: &Clock) -> StepTime {
        StepTime { clock: clock.clone(), began_at_ms: Arc::new(AtomicI64::new(RESTING)) }
    }

    /// Notes that a step begins.
    pub(crate) fn begin(&self) {
        self.began_at_ms.store(self.clock.monotonic_ms(), Ordering::Release);
    }

    /// Notes that the step is over.
    pub(crate) fn end(&self) {
        self.began_at_ms.store(RESTING, Ordering::Release);
    }

    /// For how long the present step has gone on, in milliseconds. 0 between two steps.
    pub(crate) fn elapsed_ms(&self) -> i64 {
        self.clock.monotonic_ms().saturating_sub(self.began_at_ms.load(Ordering::Acquire)).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_only_while_a_step_goes_on() {
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

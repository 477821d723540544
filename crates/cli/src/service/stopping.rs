//! The deadline of a service that is stopping.

use std::time::{Duration, Instant};

/// When jobs that still run are stopped.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Deadline {
    /// No stop was requested, or the deadline has passed and was reported.
    None,
    At(Instant),
}

impl Deadline {
    pub(crate) fn after(grace: Duration) -> Deadline {
        Instant::now().checked_add(grace).map_or(Deadline::None, Deadline::At)
    }

    /// The time left. Without a deadline, the longest duration.
    pub(crate) fn left(self) -> Duration {
        match self {
            Deadline::None => Duration::MAX,
            Deadline::At(at) => at.saturating_duration_since(Instant::now()),
        }
    }

    /// Whether the deadline has passed. Returns true once.
    pub(crate) fn has_passed(&mut self) -> bool {
        let passed = self.left().is_zero();
        if passed {
            *self = Deadline::None;
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes_once() {
        assert!(!Deadline::None.has_passed());
        assert!(!Deadline::after(Duration::from_secs(3_600)).has_passed());
        let mut deadline = Deadline::after(Duration::ZERO);
        assert!(deadline.has_passed());
        assert!(!deadline.has_passed());
    }
}

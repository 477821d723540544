//! The end of what is told by signals to stop.

use std::time::{Duration, Instant};

/// When what still runs is given up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Deadline {
    /// Nobody asked for the end, or it was acted upon.
    None,
    At(Instant),
}

impl Deadline {
    pub(crate) fn after(grace: Duration) -> Deadline {
        Instant::now().checked_add(grace).map_or(Deadline::None, Deadline::At)
    }

    /// Time until then, or for ever.
    pub(crate) fn left(self) -> Duration {
        match self {
            Deadline::None => Duration::MAX,
            Deadline::At(at) => at.saturating_duration_since(Instant::now()),
        }
    }

    /// Whether it has passed; that is told once.
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

//! The only source of chance: seeded, so that a run of a test or simulation can be repeated.

use std::sync::{Arc, Mutex, PoisonError};

/// A seeded generator shared by the threads of a process, cheap to clone.
#[derive(Debug, Clone)]
pub struct Random {
    generator: Arc<Mutex<fastrand::Rng>>,
}

impl Random {
    /// The same seed gives the same sequence.
    #[must_use]
    pub fn from_seed(seed: u64) -> Random {
        Random { generator: Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))) }
    }

    /// A seed from the operating system.
    #[must_use]
    pub fn from_entropy() -> Random {
        Random::from_seed(fastrand::u64(..))
    }

    /// A share in [0, 1).
    #[must_use]
    pub fn share(&self) -> f64 {
        self.generator.lock().unwrap_or_else(PoisonError::into_inner).f64()
    }
}

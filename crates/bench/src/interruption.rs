//! Ends a measurement early, for example after Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::BenchError;

/// A flag that a signal handler sets. All clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct Interruption {
    is_raised: Arc<AtomicBool>,
}

impl Interruption {
    /// The flag that interrupts the measurement when it is set.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_raised)
    }

    /// Checks the flag.
    ///
    /// # Errors
    /// [`BenchError::Interrupted`] when the flag is set.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        if self.is_raised.load(Ordering::Relaxed) { Err(BenchError::Interrupted) } else { Ok(()) }
    }
}

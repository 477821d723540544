//! The wish of somebody that a measurement ends before it is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::BenchError;

/// Raised once, from a signal; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Interruption {
    is_raised: Arc<AtomicBool>,
}

impl Interruption {
    /// What is to be set when somebody wants the end.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_raised)
    }

    /// # Errors
    /// [`BenchError::Interrupted`] when somebody wants the end.
    pub(crate) fn go_on(&self) -> Result<(), BenchError> {
        if self.is_raised.load(Ordering::Relaxed) { Err(BenchError::Interrupted) } else { Ok(()) }
    }
}

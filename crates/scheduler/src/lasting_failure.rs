//! The error because of which the threads of a scheduler gave up.

use std::sync::{Arc, OnceLock};

use windlass_engine::Error;

/// The first error that waiting can't repair. All clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastingFailure(Arc<OnceLock<Error>>);

impl LastingFailure {
    /// Keeps the error if waiting can't repair it. Returns whether this is so.
    pub(crate) fn keep_if_lasting(&self, error: &Error) -> bool {
        if error.is_permanent() {
            let _an_earlier_error = self.0.set(error.clone());
        }
        error.is_permanent()
    }

    pub(crate) fn get(&self) -> Option<&Error> {
        self.0.get()
    }
}

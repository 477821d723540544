//! Why the threads of a scheduler gave up.

use std::sync::{Arc, OnceLock};

use windlass_engine::Error;

/// The first error that says that the database can't be used and never will be. Clones are cheap and share the error.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastingFailure(Arc<OnceLock<Error>>);

impl LastingFailure {
    /// Keeps an error if it is a lasting one. Returns whether it is.
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

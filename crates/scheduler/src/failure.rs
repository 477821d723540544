//! Why the threads of a scheduler gave up.

use std::sync::{Arc, OnceLock};

use windlass_engine::Error;

/// The first error that says that the database can't be used any more. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure(Arc<OnceLock<Error>>);

impl Failure {
    /// Takes note of an error that will not go away. Returns whether it is one.
    pub(crate) fn heed(&self, error: &Error) -> bool {
        if error.is_lasting() {
            let _an_earlier_one = self.0.set(error.clone());
        }
        error.is_lasting()
    }

    pub(crate) fn get(&self) -> Option<&Error> {
        self.0.get()
    }
}

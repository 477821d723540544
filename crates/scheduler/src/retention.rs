//! How long finished runs and jobs are kept.

use std::sync::{Arc, Mutex, PoisonError};

/// What may be deleted. `None` means never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Finished runs and jobs are deleted when they are older than this, in milliseconds.
    pub max_age_ms: Option<i64>,
    /// How many finished runs of each workflow are kept. The oldest are deleted first.
    pub max_runs_per_workflow: Option<i64>,
}

/// The present retention. It may be changed while the scheduler works.
#[derive(Debug, Clone, Default)]
pub(crate) struct PresentRetention {
    value: Arc<Mutex<Retention>>,
}

impl PresentRetention {
    pub(crate) fn new(retention: Retention) -> PresentRetention {
        PresentRetention { value: Arc::new(Mutex::new(retention)) }
    }

    pub(crate) fn get(&self) -> Retention {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, retention: Retention) {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = retention;
    }
}

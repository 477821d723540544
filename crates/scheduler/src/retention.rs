//! How long what is over is kept.

use std::sync::{Arc, Mutex, PoisonError};

/// What may be deleted. `None` keeps for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Runs and jobs that were over for longer than this go, in milliseconds.
    pub max_age_ms: Option<i64>,
    /// Of each workflow so many runs that are over are kept, the newest.
    pub max_runs_per_workflow: Option<i64>,
}

/// The present retention, which may be changed while the scheduler works.
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

//! How long finished runs and jobs are kept.

use std::sync::{Arc, Mutex, PoisonError};

/// Which finished runs and jobs are kept, and which events. Without a limit all runs and jobs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Runs and jobs that finished longer ago than this are deleted.
    pub max_age_ms: Option<i64>,
    /// The newest finished runs of each workflow are kept, up to this number. Older ones are deleted.
    pub max_runs_per_workflow: Option<i64>,
    /// Events are kept for so long, in milliseconds; `None` for a week.
    pub keep_events_ms: Option<i64>,
}

/// The current retention, which may be changed while the scheduler works. All clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedRetention {
    value: Arc<Mutex<Retention>>,
}

impl SharedRetention {
    pub(crate) fn new(retention: Retention) -> SharedRetention {
        SharedRetention { value: Arc::new(Mutex::new(retention)) }
    }

    pub(crate) fn get(&self) -> Retention {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, retention: Retention) {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = retention;
    }
}

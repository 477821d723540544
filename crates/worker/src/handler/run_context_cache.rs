//! The run that was read last: its workflow, parameters and environment, which never change.
//!
//! Jobs of one run follow each other, so one run is enough.

use std::sync::{Arc, Mutex, PoisonError};

use windlass_db::error::Result;
use windlass_engine::store::{RunContext, Store};

#[derive(Default)]
pub(crate) struct RunContextCache {
    latest: Mutex<Option<Arc<RunContext>>>,
}

impl RunContextCache {
    /// The context of a run. It is read unless the same run was asked for last.
    pub(super) fn of(&self, store: &Store, run_id: i64) -> Result<Arc<RunContext>> {
        if let Some(cached) = self.cached(run_id) {
            return Ok(cached);
        }
        // The lock is not held meanwhile, because the database may not answer for minutes.
        let read = Arc::new(store.runs().context(run_id)?);
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&read));
        Ok(read)
    }

    /// Empties the cache. The database may have been restored, and an id may belong to another run now.
    pub(crate) fn clear(&self) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn cached(&self, run_id: i64) -> Option<Arc<RunContext>> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.as_ref().filter(|run| run.id == run_id).cloned()
    }
}

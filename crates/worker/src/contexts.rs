//! What the jobs of a run know of it. It never changes, and jobs of one run follow each other: so the last one
//! that was read is kept.

use std::sync::{Arc, Mutex, PoisonError};

use windlass_db::error::Result;
use windlass_engine::store::{RunContext, Store};

#[derive(Default)]
pub(super) struct RunContexts {
    latest: Mutex<Option<Arc<RunContext>>>,
}

impl RunContexts {
    /// The context of a run, read if another one was asked for last.
    pub(super) fn of(&self, store: &Store, run_id: i64) -> Result<Arc<RunContext>> {
        if let Some(kept) = self.kept(run_id) {
            return Ok(kept);
        }
        // Without the lock: the database may not answer.
        let read = Arc::new(store.runs().context(run_id)?);
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&read));
        Ok(read)
    }

    /// Ids may mean other runs from now on: the database was restored, and the worker registers anew.
    pub(super) fn forget(&self) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn kept(&self, run_id: i64) -> Option<Arc<RunContext>> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.as_ref().filter(|run| run.id == run_id).cloned()
    }
}

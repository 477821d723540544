//! The run that was read last: its workflow, parameters and environment, which change only with its definition. And the variables that no job
//! may see unless it names them.
//!
//! Jobs of one run follow each other, so one run is enough.

use std::sync::{Arc, Mutex, PoisonError};

use windlass_db::error::Result;
use windlass_engine::store::{RunContext, SecretVariables, Store};

#[derive(Default)]
pub(crate) struct RunContextCache {
    latest: Mutex<Option<Arc<RunContext>>>,
    /// Read with the first job that needs them, and again after a run shows that there are newer ones.
    secret_variables: Mutex<Option<SecretVariables>>,
}

impl RunContextCache {
    /// The context of a run, for a job with this definition. It is read unless the same one was asked for last.
    pub(super) fn of(&self, store: &Store, run_id: i64, definition: i64) -> Result<Arc<RunContext>> {
        if let Some(cached) = self.cached(run_id, definition) {
            return Ok(cached);
        }
        // The lock is not held meanwhile, because the database may not answer for minutes.
        let read = Arc::new(store.runs().context(run_id)?);
        self.forget_older_variables(read.newest_with_secrets);
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&read));
        Ok(read)
    }

    /// The variables of this process that may have values of secrets.
    pub(super) fn secret_variables(&self, store: &Store) -> Result<Arc<[String]>> {
        if let Some(known) = &*self.secret_variables.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(&known.names));
        }
        let read = store.for_workers().secret_variables()?;
        let names = Arc::clone(&read.names);
        *self.secret_variables.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
        Ok(names)
    }

    /// A run was read. `newest` is the newest definition with secrets at that time.
    fn forget_older_variables(&self, newest: Option<i64>) {
        let mut known = self.secret_variables.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(known_at) if known_at.newest >= newest => {}
            None if newest.is_none() => *known = Some(SecretVariables::default()),
            Some(_) | None => *known = None,
        }
    }

    /// Empties the cache. The database may have been restored, and an id may belong to another run now.
    pub(crate) fn clear(&self) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = None;
        *self.secret_variables.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn cached(&self, run_id: i64, definition: i64) -> Option<Arc<RunContext>> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.as_ref().filter(|run| (run.id, run.definition) == (run_id, definition)).cloned()
    }
}

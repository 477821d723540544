//! The worker's row in the table of workers.

use crate::options::WorkerOptions;
use windlass_db::error::Result;
use windlass_engine::store::{NewWorker, Store, WorkerCapabilities};
use windlass_system::process::ProcessIdentity;

/// A worker id, and when it was asked for by the monotonic clock. Its lease begins no earlier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registration {
    pub(crate) worker_id: i64,
    pub(crate) sent_at_ms: i64,
}

/// Registers a worker that executes these kinds.
pub(crate) fn register(store: &Store, kinds: Vec<String>, options: &WorkerOptions) -> Result<Registration> {
    let ProcessIdentity { host, pid, process } = ProcessIdentity::current();
    let sent_at_ms = store.clock().monotonic_ms();
    let worker_id = store.for_workers().register(NewWorker {
        host,
        pid,
        process,
        scope: options.scope.clone(),
        worker_capabilities: worker_capabilities(kinds, options),
        threads: options.threads,
        lease_ms: options.lease_ms,
    })?;
    Ok(Registration { worker_id, sent_at_ms })
}

/// What a worker that executes these kinds can execute.
pub(crate) fn worker_capabilities(kinds: Vec<String>, options: &WorkerOptions) -> WorkerCapabilities {
    WorkerCapabilities {
        kinds,
        capabilities: options.capabilities.clone(),
        code_version: options.code_version,
    }
}

//! How a worker works.

use std::sync::Arc;

use crate::handler::{DEFAULT_CONTAINER_PROGRAM, LinkLocal};
use windlass_db::error::{Error, Result};
use windlass_engine::store::Scope;

/// Executor threads of one worker, at most.
pub const THREADS_MAX: i64 = 1_024;

/// A shorter lease is refused, because a fifth of it must be enough to end processes.
const LEASE_MIN_MS: i64 = 100;

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Which jobs it takes.
    pub scope: Scope,
    /// The capabilities that it has. Jobs may require some.
    pub capabilities: Vec<String>,
    /// The version of its code. It gets no jobs that require a later one.
    pub code_version: i64,
    /// How many jobs it executes at once, 1 to [`THREADS_MAX`].
    pub threads: i64,
    /// How long other workers leave it its jobs without a sign of life, in milliseconds. If it can't renew the lease,
    /// it stops its jobs itself when four fifths of this time are over.
    pub lease_ms: i64,
    /// How long a process may take to end after SIGTERM before it gets SIGKILL, in milliseconds.
    pub grace_ms: i64,
    /// How long it waits for a database that can't be used, in milliseconds. `None` means for ever.
    pub patience_ms: Option<i64>,
    /// Whether jobs of the kind `http` may connect to link-local addresses.
    pub link_local: LinkLocal,
    /// The program that runs the containers of jobs, `docker` or `podman`, by its name or its path.
    pub container_program: Arc<str>,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        WorkerOptions {
            scope: Scope::Everything,
            capabilities: Vec::new(),
            code_version: 0,
            threads: i64::try_from(cores).unwrap_or(1).clamp(8, THREADS_MAX),
            lease_ms: 30_000,
            grace_ms: 5_000,
            patience_ms: None,
            link_local: LinkLocal::Refused,
            container_program: DEFAULT_CONTAINER_PROGRAM.into(),
        }
    }
}

impl WorkerOptions {
    /// Refuses options that are out of bounds.
    pub(crate) fn check(&self) -> Result<()> {
        const OPERATION: &str = "start a worker";
        if !(1..=THREADS_MAX).contains(&self.threads) {
            let reason = format!("threads is {}: use a number from 1 to {THREADS_MAX}", self.threads);
            return Err(Error::invalid(OPERATION, reason));
        }
        if self.lease_ms < LEASE_MIN_MS {
            let reason = format!("the lease is {} ms: use {LEASE_MIN_MS} ms or more", self.lease_ms);
            return Err(Error::invalid(OPERATION, reason));
        }
        Ok(())
    }
}

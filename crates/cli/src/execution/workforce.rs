//! What executes jobs in this process.

use std::time::Duration;

use windlass::store::Scope;
use windlass::{Engine, Handlers, WorkerOptions};

use super::ThreadOptions;
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;

/// A running engine.
pub(crate) struct Workforce {
    engine: Engine,
    kinds: Vec<String>,
}

impl Workforce {
    /// Starts to execute. `patience` is how long a database that cannot be used is waited for.
    pub(crate) fn start(
        global: &GlobalOptions,
        database: &Database,
        scope: Scope,
        threads: &ThreadOptions,
        patience: Option<Duration>,
    ) -> Result<Workforce, Failure> {
        let defaults = WorkerOptions::default();
        let options = WorkerOptions {
            scope,
            threads: threads.threads.unwrap_or(defaults.threads),
            lease_ms: milliseconds(global.lease),
            patience_ms: patience.map(milliseconds),
            ..defaults
        };
        let handlers = Handlers::with_shell();
        let kinds = handlers.kinds();
        let started = database.windlass().start(handlers, options);
        let engine = started.map_err(|error| database.failure(error))?;
        Ok(Workforce { engine, kinds })
    }

    /// The number of the worker.
    pub(crate) fn worker_id(&self) -> i64 {
        self.engine.worker_id()
    }

    /// The kinds of jobs that it can execute.
    pub(crate) fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// Jobs that run may finish, no others start.
    pub(crate) fn drain(&self) {
        self.engine.drain();
    }

    /// Jobs that run are stopped.
    pub(crate) fn leave(&self) {
        self.engine.leave();
    }

    /// It works no more, because it was told so or gave up.
    pub(crate) fn has_ended(&self) -> bool {
        self.engine.has_ended()
    }

    /// Waits for the end, and tells why it gave up if it did.
    pub(crate) fn join(self, database: &Database) -> Result<(), Failure> {
        self.engine.join().map_err(|error| database.failure(error))
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

//! What executes jobs in this process.

use std::time::Duration;

use windlass::store::{Scope, WorkerCapabilities};
use windlass::{Engine, Handlers, Retention, WorkerOptions, open_files};

use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::execution::WorkOptions;

/// A running engine.
pub(crate) struct Workforce {
    engine: Engine,
    worker_capabilities: WorkerCapabilities,
}

/// What a process takes upon itself.
#[derive(Debug, Clone)]
pub(crate) struct Duties {
    /// Which jobs it executes.
    pub(crate) scope: Scope,
    /// How many at once; by default one for each processor, and 8 at least.
    pub(crate) threads: Option<i64>,
    /// What it has that jobs may require.
    pub(crate) capabilities: Vec<String>,
    /// The version of its code.
    pub(crate) version: i64,
    /// What it deletes when it has been over for long.
    pub(crate) retention: Retention,
    /// How long a database that cannot be used is waited for; `None` is for ever.
    pub(crate) patience: Option<Duration>,
}

impl Duties {
    /// Executing jobs, and nothing else.
    pub(crate) fn executing(scope: Scope, work: &WorkOptions) -> Duties {
        Duties {
            scope,
            threads: work.threads,
            capabilities: work.capabilities.clone().unwrap_or_default(),
            version: work.version.unwrap_or(0),
            retention: Retention::default(),
            patience: None,
        }
    }
}

impl Workforce {
    /// Starts to execute.
    pub(crate) fn start(
        global: &GlobalOptions,
        database: &Database,
        duties: Duties,
    ) -> Result<Workforce, Failure> {
        let defaults = WorkerOptions::default();
        let threads = duties.threads.unwrap_or(defaults.threads);
        let served = reserve_files(threads, database)?;
        if served < threads {
            tracing::warn!(
                "{threads} threads are wanted, and this process may open files for {served}: it goes on with these; \
                 a higher hard limit serves more (`ulimit -Hn`, LimitNOFILE= of a systemd unit)"
            );
        }
        let options = WorkerOptions {
            scope: duties.scope,
            threads: served,
            capabilities: duties.capabilities,
            version: duties.version,
            lease_ms: milliseconds(global.lease()),
            patience_ms: duties.patience.map(milliseconds),
            ..defaults
        };
        let handlers = Handlers::with_shell();
        let worker_capabilities = WorkerCapabilities {
            kinds: handlers.kinds(),
            capabilities: options.capabilities.clone(),
            version: options.version,
        };
        let started = database.windlass().start_with_retention(handlers, options, duties.retention);
        let engine = started.map_err(|error| database.failure(error))?;
        Ok(Workforce { engine, worker_capabilities })
    }

    /// The number of the worker.
    pub(crate) fn worker_id(&self) -> i64 {
        self.engine.worker_id()
    }

    /// What it can execute.
    pub(crate) fn worker_capabilities(&self) -> &WorkerCapabilities {
        &self.worker_capabilities
    }

    /// For how long it has waited for an answer of the database, in milliseconds.
    pub(crate) fn unanswered_ms(&self) -> i64 {
        self.engine.unanswered_ms()
    }

    /// Changes how long what is over is kept.
    pub(crate) fn set_retention(&self, retention: Retention) {
        self.engine.set_retention(retention);
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

/// Makes sure that the system gives files for so many threads. Returns for how many it does: one at least.
fn reserve_files(threads: i64, database: &Database) -> Result<i64, Failure> {
    open_files::reserve(threads).map_err(|error| database.failure(error))
}

/// Refuses before anything is accepted where not even one job could be executed.
pub(crate) fn check_files(database: &Database) -> Result<(), Failure> {
    reserve_files(1, database).map(|_one| ())
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

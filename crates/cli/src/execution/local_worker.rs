//! The worker of this process.

use std::sync::Arc;
use std::time::Duration;

use windlass::Engine;
use windlass_engine::store::{Scope, WorkerCapabilities};
use windlass_scheduler::Retention;
use windlass_worker::{Handlers, LinkLocal, WorkerOptions, open_files};

use crate::arguments::{GlobalOptions, WorkOptions};
use crate::database::Database;
use crate::error::Failure;

/// A running worker.
pub(crate) struct LocalWorker {
    engine: Engine,
    worker_capabilities: WorkerCapabilities,
}

/// The options of the worker.
#[derive(Debug, Clone)]
pub(crate) struct LocalWorkerOptions {
    /// Which jobs the worker executes.
    pub(crate) scope: Scope,
    /// How many jobs run at once. The default is one per processor, and at least 8.
    pub(crate) threads: Option<i64>,
    /// The capabilities that jobs may require.
    pub(crate) capabilities: Vec<String>,
    /// The version of the code.
    pub(crate) code_version: i64,
    /// When ended runs are deleted.
    pub(crate) retention: Retention,
    /// Whether requests of jobs may go to link-local addresses.
    pub(crate) link_local: LinkLocal,
    /// The program that runs containers, if the configuration names one.
    pub(crate) container_program: Option<String>,
    /// How long the worker waits for an unavailable database. `None` means for ever.
    pub(crate) patience: Option<Duration>,
}

impl LocalWorkerOptions {
    /// The options of a worker without retention.
    pub(crate) fn executing(global: &GlobalOptions, scope: Scope, work: &WorkOptions) -> LocalWorkerOptions {
        LocalWorkerOptions {
            scope,
            threads: work.threads,
            capabilities: work.capabilities.clone().unwrap_or_default(),
            code_version: work.code_version.unwrap_or(0),
            retention: Retention::default(),
            link_local: global.link_local(),
            container_program: global.container_program(),
            patience: None,
        }
    }
}

impl LocalWorker {
    /// Starts the worker.
    pub(crate) fn start(
        global: &GlobalOptions,
        database: &Database,
        worker_options: LocalWorkerOptions,
    ) -> Result<LocalWorker, Failure> {
        let defaults = WorkerOptions::default();
        let threads = worker_options.threads.unwrap_or(defaults.threads);
        let usable_threads = reserve_files(threads, database)?;
        if usable_threads < threads {
            tracing::warn!(
                "using {usable_threads} threads instead of {threads}, because the limit of open files is too low; raise the hard \
                 limit (`ulimit -Hn`, or LimitNOFILE= in a systemd unit)"
            );
        }
        let options = WorkerOptions {
            scope: worker_options.scope,
            threads: usable_threads,
            capabilities: worker_options.capabilities,
            code_version: worker_options.code_version,
            lease_ms: milliseconds(global.lease()),
            link_local: worker_options.link_local,
            container_program: worker_options.container_program.map_or(defaults.container_program, Arc::from),
            patience_ms: worker_options.patience.map(milliseconds),
            ..defaults
        };
        let handlers = Handlers::with_built_in_kinds();
        let worker_capabilities = WorkerCapabilities {
            kinds: handlers.kinds(),
            capabilities: options.capabilities.clone(),
            code_version: options.code_version,
        };
        let started = database.windlass().start_with_retention(handlers, options, worker_options.retention);
        let engine = started.map_err(|error| database.failure(error))?;
        Ok(LocalWorker { engine, worker_capabilities })
    }

    /// The number of the worker.
    pub(crate) fn worker_id(&self) -> i64 {
        self.engine.worker_id()
    }

    /// The jobs that the worker can execute.
    pub(crate) fn worker_capabilities(&self) -> &WorkerCapabilities {
        &self.worker_capabilities
    }

    /// How long the worker has waited for an answer of the database.
    pub(crate) fn unanswered_ms(&self) -> i64 {
        self.engine.unanswered_ms()
    }

    /// Changes how long ended runs are kept.
    pub(crate) fn set_retention(&self, retention: Retention) {
        self.engine.set_retention(retention);
    }

    /// Lets running jobs finish and starts no others.
    pub(crate) fn drain(&self) {
        self.engine.drain();
    }

    /// Stops running jobs.
    pub(crate) fn leave(&self) {
        self.engine.leave();
    }

    /// Whether the worker has stopped or given up.
    pub(crate) fn has_ended(&self) -> bool {
        self.engine.has_ended()
    }

    /// Waits for the end. Returns the reason if the worker gave up.
    pub(crate) fn join(self, database: &Database) -> Result<(), Failure> {
        self.engine.join().map_err(|error| database.failure(error))
    }
}

/// Reserves open files for the threads. Returns for how many threads they suffice: at least one.
fn reserve_files(threads: i64, database: &Database) -> Result<i64, Failure> {
    open_files::reserve(threads).map_err(|error| database.failure(error))
}

/// Fails if the process cannot open enough files for one job. Called before a run is accepted.
pub(crate) fn check_files(database: &Database) -> Result<(), Failure> {
    reserve_files(1, database).map(|_one| ())
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

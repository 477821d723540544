//! A worker: registers, starts its threads, drains, leaves.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::handler::Handlers;
use super::shared::{Mode, Shared};
use super::{dispatcher, pool, upkeep, warden};
use crate::error::{Error, Result};
use crate::process::ProcessIdentity;
use crate::status::WorkerStatus;
use crate::store::{NewWorker, Scope, Store};

/// Executor threads of one worker at most.
pub const THREADS_MAX: i64 = 1_024;

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Which jobs it takes.
    pub scope: Scope,
    /// How many jobs it executes at once, 1 to [`THREADS_MAX`].
    pub threads: i64,
    /// How long it keeps its jobs without a sign of life, in milliseconds.
    pub lease_ms: i64,
    /// How long a process may take to end after SIGTERM before SIGKILL, in milliseconds.
    pub grace_ms: i64,
    /// How long it waits for a database that can't be used, in milliseconds; `None` is for ever.
    pub patience_ms: Option<i64>,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        WorkerOptions {
            scope: Scope::Everything,
            threads: i64::try_from(cores).unwrap_or(1).clamp(8, THREADS_MAX),
            lease_ms: 30_000,
            grace_ms: 5_000,
            patience_ms: None,
        }
    }
}

/// A running worker. Dropping it leaves: what runs is stopped and can be carried on by others.
pub struct Worker {
    shared: Arc<Shared>,
    dispatcher: Option<JoinHandle<Result<()>>>,
    others: Vec<JoinHandle<()>>,
}

impl Worker {
    /// Registers a worker and starts its threads.
    ///
    /// # Errors
    /// [`Error::Invalid`] for options out of bounds, and the database's.
    pub fn start(store: &Store, handlers: Handlers, options: WorkerOptions) -> Result<Worker> {
        check(&options)?;
        store.watch();
        let instance: Arc<str> = Arc::from(store.instance()?);
        let worker_id = register(store, &handlers, &options)?;
        let threads = options.threads;
        let shared = Arc::new(Shared::new(store.clone(), handlers, options, instance, worker_id));
        let mut worker = Worker { shared, dispatcher: None, others: Vec::new() };
        for number in 0..threads {
            worker.spawn(format!("windlass-executor-{number}"), pool::serve)?;
        }
        worker.spawn("windlass-warden".to_owned(), warden::serve)?;
        worker.spawn("windlass-upkeep".to_owned(), upkeep::serve)?;
        let shared = Arc::clone(&worker.shared);
        let dispatcher = std::thread::Builder::new()
            .name("windlass-dispatcher".to_owned())
            .spawn(move || dispatcher::serve(&shared))
            .map_err(|error| Error::internal("start a worker", error.to_string()))?;
        worker.dispatcher = Some(dispatcher);
        Ok(worker)
    }

    fn spawn(&mut self, name: String, serve: fn(&Shared)) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || serve(&shared))
            .map_err(|error| Error::internal("start a worker", error.to_string()))?;
        self.others.push(thread);
        Ok(())
    }

    /// Its present id: a new one after it was fenced.
    #[must_use]
    pub fn id(&self) -> i64 {
        self.shared.worker_id()
    }

    /// It has ended by itself or was told to.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.shared.has_ended()
    }

    /// Finishes what runs, claims nothing, then ends.
    pub fn drain(&self) {
        if self.shared.mode() == Mode::Working {
            self.shared.advance_mode(Mode::Draining);
            let marked = self.shared.store.set_worker_status(self.id(), WorkerStatus::Draining);
            if let Err(error) = marked {
                tracing::debug!(%error, "the worker could not be marked as draining");
            }
        }
    }

    /// Stops what runs and ends. What was stopped counts as interrupted.
    pub fn leave(&self) {
        self.shared.advance_mode(Mode::Leaving);
    }

    /// Waits for the end after [`Worker::drain`] or [`Worker::leave`].
    ///
    /// # Errors
    /// Why the worker gave up, if it did.
    pub fn join(mut self) -> Result<()> {
        self.join_threads()
    }

    fn join_threads(&mut self) -> Result<()> {
        let result = match self.dispatcher.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(result)) => result,
            Some(Err(_panic)) => Err(Error::internal("run a worker", "the dispatcher panicked")),
        };
        self.shared.end();
        for thread in self.others.drain(..) {
            let _panicked = thread.join();
        }
        result
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.leave();
        let _said_before = self.join_threads();
    }
}

fn check(options: &WorkerOptions) -> Result<()> {
    const WHAT: &str = "start a worker";
    if !(1..=THREADS_MAX).contains(&options.threads) {
        let reason = format!("threads is {}, and 1 to {THREADS_MAX} are possible", options.threads);
        return Err(Error::invalid(WHAT, reason));
    }
    if options.lease_ms < 100 {
        return Err(Error::invalid(WHAT, format!("a lease of {} ms is too short", options.lease_ms)));
    }
    Ok(())
}

pub(super) fn register(store: &Store, handlers: &Handlers, options: &WorkerOptions) -> Result<i64> {
    let ProcessIdentity { host, pid, process } = ProcessIdentity::current();
    store.register_worker(NewWorker {
        host,
        pid,
        process,
        scope: options.scope.clone(),
        kinds: handlers.kinds(),
        threads: options.threads,
        lease_ms: options.lease_ms,
    })
}

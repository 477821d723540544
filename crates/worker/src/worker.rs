//! A worker: registers, starts its threads, drains, leaves.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::handler::Handlers;
use super::shared::{Mode, Shared};
use super::threads::Threads;
use super::{cancellation_poller, deadline_monitor, dispatcher, heartbeat, log_writer, pool};
use windlass_db::error::{Error, Result, Unavailable};
use windlass_engine::status::WorkerStatus;
use windlass_engine::store::{NewWorker, Scope, Store, WorkerCapabilities};
use windlass_system::process::ProcessIdentity;

/// Executor threads of one worker at most.
pub const THREADS_MAX: i64 = 1_024;

/// Shorter leases than this are refused: a fifth of it must be enough to end processes.
const LEASE_MIN_MS: i64 = 100;
/// A worker that leaves waits so long for a database that does not answer with what it asked last.
const LAST_ANSWER_MS: i64 = 5_000;
/// And so long for its other threads, which have nothing to tell any more.
const LAST_THREAD_MS: i64 = 1_000;

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Which jobs it takes.
    pub scope: Scope,
    /// What it has that jobs may require.
    pub capabilities: Vec<String>,
    /// The version of its code: jobs that ask for a later one are kept away from it.
    pub version: i64,
    /// How many jobs it executes at once, 1 to [`THREADS_MAX`].
    pub threads: i64,
    /// How long others leave it its jobs without a sign of life, in milliseconds. When it can't give one, it
    /// stops them itself a fifth of that time before.
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
            capabilities: Vec::new(),
            version: 0,
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
    dispatcher: Threads,
    /// Why the dispatcher ended.
    conclusion: Receiver<Result<()>>,
    executors: Threads,
    others: Threads,
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
        let registration = register(store, &handlers, &options)?;
        let threads = options.threads;
        let shared = Arc::new(Shared::new(store.clone(), handlers, options, instance, registration));
        let (conclude, conclusion) = channel();
        let (dispatcher, executors, others) = (Threads::new(), Threads::new(), Threads::new());
        let mut worker = Worker { shared, dispatcher, conclusion, executors, others };
        if let Err(error) = worker.start_threads(threads, conclude) {
            // It claimed nothing: nobody has to wait for the end of its lease.
            let _ends_by_itself = store.for_workers().set_status(worker.id(), WorkerStatus::Stopped);
            return Err(error);
        }
        Ok(worker)
    }

    fn start_threads(&mut self, threads: i64, conclude: Sender<Result<()>>) -> Result<()> {
        let Worker { shared, dispatcher, executors, others, .. } = self;
        for number in 0..threads {
            executors.spawn(format!("windlass-executor-{number}"), shared, pool::serve)?;
        }
        others.spawn("windlass-deadline".to_owned(), shared, deadline_monitor::serve)?;
        others.spawn("windlass-cancel".to_owned(), shared, cancellation_poller::serve)?;
        others.spawn("windlass-heartbeat".to_owned(), shared, heartbeat::serve)?;
        others.spawn("windlass-log-writer".to_owned(), shared, log_writer::serve)?;
        dispatcher.spawn("windlass-dispatcher".to_owned(), shared, move |shared| {
            let _nobody_asks = conclude.send(dispatcher::serve(shared));
        })
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

    /// What it lacks to start jobs: they go back uncounted until there is room.
    #[must_use]
    pub fn shortage(&self) -> Option<String> {
        self.shared.lacks()
    }

    /// For how long it has waited for an answer of the database, in milliseconds; 0 when it does not wait.
    #[must_use]
    pub fn unanswered_ms(&self) -> i64 {
        self.shared.has_asked_for_ms()
    }

    /// Finishes what runs, claims nothing, then ends. Waits for nothing. While the database can't be used, it
    /// waits with the results for as long as [`WorkerOptions::patience_ms`] says.
    pub fn drain(&self) {
        self.shared.advance_mode(Mode::Draining);
    }

    /// Stops what runs and ends. What was stopped counts as interrupted. Waits for nothing, and for a
    /// database that can't be used no more than some seconds: others take the jobs back then.
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
        // Also set when the dispatcher ends by itself.
        self.shared.leaving.wait();
        let shared = &self.shared;
        let has_concluded = self.dispatcher.join_while(|| shared.has_asked_for_ms() < LAST_ANSWER_MS);
        shared.end();
        let clock = shared.store.clock();
        let began_ms = clock.monotonic_ms();
        let is_early = || clock.monotonic_ms() - began_ms < LAST_THREAD_MS;
        // Nobody renews the lease any more: after it nothing of theirs runs on. Who only has a result to write
        // runs nothing.
        self.executors.join_while(|| is_early() || (shared.running.is_any() && !shared.lease_is_over()));
        self.others.join_while(is_early);
        if !has_concluded {
            let reason = Unavailable::InputOutput(format!("no answer within {LAST_ANSWER_MS} ms"));
            return Err(Error::unavailable("end a worker", reason));
        }
        let panicked = || Err(Error::internal("run a worker", "the dispatcher panicked"));
        self.conclusion.try_recv().unwrap_or_else(|_none| panicked())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.leave();
        let _said_before = self.join_threads();
        if Arc::strong_count(&self.shared) > 1 {
            // A thread waits for the database, and the reaper would go on with it.
            self.shared.reaper.close();
        }
    }
}

fn check(options: &WorkerOptions) -> Result<()> {
    const WHAT: &str = "start a worker";
    if !(1..=THREADS_MAX).contains(&options.threads) {
        let reason = format!("threads is {}, and 1 to {THREADS_MAX} are possible", options.threads);
        return Err(Error::invalid(WHAT, reason));
    }
    if options.lease_ms < LEASE_MIN_MS {
        return Err(Error::invalid(WHAT, format!("a lease of {} ms is too short", options.lease_ms)));
    }
    Ok(())
}

/// What a worker with these handlers and options can execute.
pub(super) fn worker_capabilities(handlers: &Handlers, options: &WorkerOptions) -> WorkerCapabilities {
    WorkerCapabilities {
        kinds: handlers.kinds(),
        capabilities: options.capabilities.clone(),
        version: options.version,
    }
}

/// An identity, and when it was asked for by the monotonic clock: its lease is no older.
#[derive(Debug, Clone, Copy)]
pub(super) struct Registration {
    pub(super) worker_id: i64,
    pub(super) sent_at_ms: i64,
}

pub(super) fn register(store: &Store, handlers: &Handlers, options: &WorkerOptions) -> Result<Registration> {
    let ProcessIdentity { host, pid, process } = ProcessIdentity::current();
    let sent_at_ms = store.clock().monotonic_ms();
    let worker_id = store.for_workers().register(NewWorker {
        host,
        pid,
        process,
        scope: options.scope.clone(),
        worker_capabilities: worker_capabilities(handlers, options),
        threads: options.threads,
        lease_ms: options.lease_ms,
    })?;
    Ok(Registration { worker_id, sent_at_ms })
}

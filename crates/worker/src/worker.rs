//! A worker: registers, starts its threads, drains, leaves.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::handler::Handlers;
use crate::options::WorkerOptions;
use crate::shared::{Mode, Shared};
use crate::steps::WorkerSteps;
use crate::threads::{Thread, ThreadGroup};
use windlass_db::error::{Error, Result, Unavailable};
use windlass_engine::status::WorkerStatus;
use windlass_engine::store::Store;

/// How long a worker that leaves waits for the answer to its last question to the database.
const LAST_ANSWER_MS: i64 = 5_000;
/// How long it then waits for its other threads, which have nothing left to write.
const LAST_THREAD_MS: i64 = 1_000;

/// A running worker. If it is dropped, it leaves: running jobs are stopped, and other workers can go on with them.
pub struct Worker {
    shared: Arc<Shared>,
    dispatcher: ThreadGroup,
    /// Why the dispatcher ended.
    dispatcher_result: Receiver<Result<()>>,
    executors: ThreadGroup,
    others: ThreadGroup,
}

impl Worker {
    /// Registers a worker and starts its threads.
    ///
    /// # Errors
    /// [`Error::Invalid`] for options out of bounds, and those of the database.
    pub fn start(store: &Store, handlers: Handlers, options: WorkerOptions) -> Result<Worker> {
        options.check()?;
        store.watch();
        let steps = WorkerSteps::register(store, &handlers, options)?;
        let (result_sender, dispatcher_result) = channel();
        let (dispatcher, executors, others) = (ThreadGroup::new(), ThreadGroup::new(), ThreadGroup::new());
        let shared = Arc::clone(&steps.shared);
        let mut worker = Worker { shared, dispatcher, dispatcher_result, executors, others };
        if let Err(error) = worker.start_threads(steps, result_sender) {
            // It claimed nothing, so nobody has to wait for the end of its lease.
            let _ends_with_the_lease = store.for_workers().set_status(worker.id(), WorkerStatus::Stopped);
            return Err(error);
        }
        Ok(worker)
    }

    /// Starts the dispatcher last, because it claims jobs for the others.
    fn start_threads(&mut self, steps: WorkerSteps, result_sender: Sender<Result<()>>) -> Result<()> {
        let WorkerSteps {
            shared: _,
            dispatcher,
            executors,
            heartbeat,
            deadline_monitor,
            cancellation_poller,
            log_writer,
        } = steps;
        for (number, executor) in (0..).zip(executors) {
            self.executors.spawn(Thread::Executor(number), move || executor.run())?;
        }
        self.others.spawn(Thread::DeadlineMonitor, move || deadline_monitor.run())?;
        self.others.spawn(Thread::CancellationPoller, move || cancellation_poller.run())?;
        self.others.spawn(Thread::Heartbeat, move || heartbeat.run())?;
        self.others.spawn(Thread::LogWriter, move || log_writer.run())?;
        self.dispatcher.spawn(Thread::Dispatcher, move || {
            let _nobody_asks = result_sender.send(dispatcher.run());
        })
    }

    /// The present worker id. It changes after the worker was fenced.
    #[must_use]
    pub fn id(&self) -> i64 {
        self.shared.worker_id()
    }

    /// Whether it has ended by itself or was told to end.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.shared.has_ended()
    }

    /// What the system refuses to this worker's jobs, such as open files. Jobs that can't start for that reason go back
    /// and are not counted as failed.
    #[must_use]
    pub fn shortage(&self) -> Option<String> {
        self.shared.shortage_reason()
    }

    /// For how long it has waited for an answer of the database, in milliseconds. 0 if it does not wait.
    #[must_use]
    pub fn unanswered_ms(&self) -> i64 {
        self.shared.unanswered_ms()
    }

    /// Finishes running jobs, claims nothing, and ends then. Returns at once. While the database can't be used, the
    /// worker keeps the results and waits as long as [`WorkerOptions::patience_ms`] says.
    pub fn drain(&self) {
        self.shared.advance_mode(Mode::Draining);
    }

    /// Stops running jobs and ends. Their attempts count as interrupted. Returns at once. If the database can't be
    /// used, the worker waits some seconds at most; other workers take the jobs back later.
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
        // The dispatcher sets this too when it ends by itself.
        self.shared.leaving.wait();
        let shared = &self.shared;
        let has_ended = self.dispatcher.join_while(|| shared.unanswered_ms() < LAST_ANSWER_MS);
        shared.end();
        let clock = shared.clock();
        let began_ms = clock.monotonic_ms();
        let is_early = || clock.monotonic_ms() - began_ms < LAST_THREAD_MS;
        // Nobody renews the lease any more. An executor that runs a job is waited for until the lease is over, because
        // the job is stopped then. An executor that only has a result to write runs nothing.
        self.executors.join_while(|| is_early() || (shared.running.is_any() && !shared.lease_is_over()));
        self.others.join_while(is_early);
        if !has_ended {
            let reason = Unavailable::InputOutput(format!("no answer within {LAST_ANSWER_MS} ms"));
            return Err(Error::unavailable("end a worker", reason));
        }
        let panicked = || Err(Error::internal("run a worker", "the dispatcher panicked"));
        self.dispatcher_result.try_recv().unwrap_or_else(|_none| panicked())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.leave();
        let _returned_by_join = self.join_threads();
        if Arc::strong_count(&self.shared) > 1 {
            // A thread still waits for the database. What its handlers started must not go on.
            self.shared.handlers.abandon();
        }
    }
}

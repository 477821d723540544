//! A worker and a scheduler in one process.

use windlass_engine::{Result, Store};
use windlass_scheduler::{FailureDetector, Retention, Scheduler};
use windlass_worker::{Handlers, Worker, WorkerOptions};

/// A running worker and a running scheduler. Dropping it stops running jobs, and a worker executes them again later.
pub struct Engine {
    worker: Worker,
    scheduler: Scheduler,
}

impl Engine {
    pub(crate) fn start(
        store: &Store,
        handlers: Handlers,
        options: WorkerOptions,
        retention: Retention,
    ) -> Result<Engine> {
        // Rescue jobs of dead workers before the first claim, so that it can take them.
        FailureDetector::default().rescue_dead_workers(store)?;
        let worker = Worker::start(store, handlers, options)?;
        let scheduler = Scheduler::start(store, retention)?;
        Ok(Engine { worker, scheduler })
    }

    /// The id of the worker. It changes when the worker registers again.
    #[must_use]
    pub fn worker_id(&self) -> i64 {
        self.worker.id()
    }

    /// How long the threads that claim and schedule have waited for an answer of the database, in milliseconds. 0 if they
    /// are not waiting.
    #[must_use]
    pub fn unanswered_ms(&self) -> i64 {
        self.worker.unanswered_ms().max(self.scheduler.unanswered_ms())
    }

    /// Changes the retention of finished runs and jobs from now on.
    pub fn set_retention(&self, retention: Retention) {
        self.scheduler.set_retention(retention);
    }

    /// Whether it has ended, by itself or because it was asked to. [`Engine::join`] returns the reason.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.worker.has_ended() || self.scheduler.failure().is_some()
    }

    /// Lets running jobs finish, claims no others, and then ends.
    pub fn drain(&self) {
        self.worker.drain();
    }

    /// Stops running jobs and ends.
    pub fn leave(&self) {
        self.worker.leave();
    }

    /// Waits for the end after [`Engine::drain`] or [`Engine::leave`].
    ///
    /// # Errors
    /// Returns the reason if the worker or the scheduler gave up.
    pub fn join(self) -> Result<()> {
        let Engine { worker, scheduler } = self;
        match scheduler.failure() {
            None => worker.join(),
            Some(failure) => {
                worker.leave();
                let _the_same_reason = worker.join();
                Err(failure)
            }
        }
    }
}

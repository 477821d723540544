//! A worker and a scheduler in one process.

use windlass_engine::{Result, Store};
use windlass_scheduler::{FailureDetector, Retention, Scheduler};
use windlass_worker::{Handlers, Worker, WorkerOptions};

/// A running engine. Dropping it leaves: what runs is stopped and can be carried on later.
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
        // Before the first claim: what a dead process left is part of what can be claimed.
        FailureDetector::default().look(store)?;
        let worker = Worker::start(store, handlers, options)?;
        let scheduler = Scheduler::start(store, retention)?;
        Ok(Engine { worker, scheduler })
    }

    /// The worker's present id.
    #[must_use]
    pub fn worker_id(&self) -> i64 {
        self.worker.id()
    }

    /// For how long the threads that claim and schedule have waited for the database, in milliseconds: 0 when
    /// they have their answers.
    #[must_use]
    pub fn unanswered_ms(&self) -> i64 {
        self.worker.unanswered_ms().max(self.scheduler.silent_ms())
    }

    /// Changes how long what is over is kept, from now on.
    pub fn set_retention(&self, retention: Retention) {
        self.scheduler.set_retention(retention);
    }

    /// It has ended by itself or was told to; [`Engine::join`] tells why.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.worker.has_ended() || self.scheduler.failure().is_some()
    }

    /// Finishes what runs, claims nothing, then ends.
    pub fn drain(&self) {
        self.worker.drain();
    }

    /// Stops what runs and ends.
    pub fn leave(&self) {
        self.worker.leave();
    }

    /// Waits for the end after [`Engine::drain`] or [`Engine::leave`].
    ///
    /// # Errors
    /// Why the worker gave up, if it did.
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

//! A worker and a scheduler in one process.

use windlass_engine::db::Reach;
use windlass_engine::executor::{Handlers, Worker, WorkerOptions};
use windlass_engine::store::Scope;
use windlass_engine::{Result, Store};
use windlass_scheduler::{Scheduler, Watchman};

/// Threads from which on a process is two workers where transactions run side by side: one claims while the
/// other finishes, and a server has more than one core. With fewer a second stream would only make the sets
/// that both move smaller.
const THREADS_FOR_TWO: i64 = 8;

/// A running engine. Dropping it leaves: what runs is stopped and can be carried on later.
pub struct Engine {
    /// One, or two that share the threads.
    workers: Vec<Worker>,
    _scheduler: Scheduler,
}

impl Engine {
    pub(crate) fn start(store: &Store, handlers: Handlers, options: WorkerOptions) -> Result<Engine> {
        // Before the first claim: what a dead process left is part of what can be claimed.
        Watchman::default().look(store)?;
        let workers = shares(store.reach(), &options)
            .into_iter()
            .map(|threads| {
                Worker::start(store, handlers.clone(), WorkerOptions { threads, ..options.clone() })
            })
            .collect::<Result<Vec<Worker>>>()?;
        let scheduler = Scheduler::start(store)?;
        Ok(Engine { workers, _scheduler: scheduler })
    }

    /// The worker's present id; of two, the first one's.
    #[must_use]
    pub fn worker_id(&self) -> i64 {
        self.workers.first().map_or(0, Worker::id)
    }

    /// A worker has ended by itself, or all were told to.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.workers.iter().any(Worker::has_ended)
    }

    /// Finishes what runs, claims nothing, then ends.
    pub fn drain(&self) {
        self.workers.iter().for_each(Worker::drain);
    }

    /// Stops what runs and ends.
    pub fn leave(&self) {
        self.workers.iter().for_each(Worker::leave);
    }

    /// Waits for the end after [`Engine::drain`] or [`Engine::leave`].
    ///
    /// # Errors
    /// Why the worker gave up, if it did.
    pub fn join(self) -> Result<()> {
        let mut workers = self.workers.into_iter();
        let first = workers.next().map_or(Ok(()), Worker::join);
        if first.is_err() {
            // What one can't do the other can't either.
            workers.as_slice().iter().for_each(Worker::leave);
        }
        workers.fold(first, |result, worker| result.and(worker.join()))
    }
}

/// How the threads are shared out.
fn shares(reach: Reach, options: &WorkerOptions) -> Vec<i64> {
    let threads = options.threads;
    let is_for_runs = match options.scope {
        // The jobs of a run are finished one set after the other anyway.
        Scope::Runs(_) => true,
        Scope::Everything | Scope::Queues(_) => false,
    };
    match reach {
        Reach::ManyHosts if threads >= THREADS_FOR_TWO && !is_for_runs => {
            vec![threads - threads / 2, threads / 2]
        }
        Reach::ManyHosts | Reach::OneKernel => vec![threads],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_shared_where_transactions_run_side_by_side() {
        let options = |threads, scope| WorkerOptions { threads, scope, ..WorkerOptions::default() };
        let everything = |threads| options(threads, Scope::Everything);
        assert_eq!(shares(Reach::ManyHosts, &everything(9)), [5, 4]);
        assert_eq!(shares(Reach::ManyHosts, &everything(7)), [7]);
        assert_eq!(shares(Reach::ManyHosts, &options(9, Scope::Runs(vec![1]))), [9]);
        assert_eq!(shares(Reach::OneKernel, &everything(9)), [9]);
        assert_eq!(shares(Reach::ManyHosts, &everything(0)), [0], "refused by the worker, with its reason");
    }
}

//! A worker without threads: every step is made by the caller, in the order that the caller chooses.
//!
//! This is for tests and simulations. With a manual clock nothing happens unless the caller makes it happen.

use std::sync::Arc;

use crate::cancellation_poller::CancellationPoller;
use crate::deadline_monitor::DeadlineMonitor;
use crate::dispatcher::Dispatcher;
use crate::executor::{BegunAttempt, Executor};
use crate::handler::Handlers;
use crate::heartbeat::Heartbeat;
use crate::log_writer::LogWriter;
use crate::options::WorkerOptions;
use crate::registration::register;
use crate::shared::{Mode, Shared};
use windlass_db::error::Result;
use windlass_engine::store::Store;
use windlass_system::steps::NextStep;
use windlass_system::wake_ups::WakeUps;

/// The bodies of a worker's threads.
pub struct WorkerSteps {
    pub(crate) shared: Arc<Shared>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) executors: Vec<Executor>,
    pub(crate) heartbeat: Heartbeat,
    pub(crate) deadline_monitor: DeadlineMonitor,
    pub(crate) cancellation_poller: CancellationPoller,
    pub(crate) log_writer: LogWriter,
}

impl WorkerSteps {
    /// Registers a worker and starts no thread.
    ///
    /// # Errors
    /// [`windlass_db::Error::Invalid`] for options out of bounds, and those of the database.
    pub fn register(store: &Store, handlers: &Handlers, options: WorkerOptions) -> Result<WorkerSteps> {
        options.check()?;
        let instance: Arc<str> = Arc::from(store.instance()?);
        let registration = register(store, handlers.kinds(), &options)?;
        let threads = options.threads;
        let shared = Arc::new(Shared::new(store.clone(), handlers, options, instance, registration));
        let dispatcher = Arc::new(Dispatcher::new(Arc::clone(&shared)));
        let executor = |_number| Executor::new(Arc::clone(&shared), Arc::clone(&dispatcher));
        Ok(WorkerSteps {
            executors: (0..threads).map(executor).collect(),
            heartbeat: Heartbeat::new(Arc::clone(&shared)),
            deadline_monitor: DeadlineMonitor::new(Arc::clone(&shared)),
            cancellation_poller: CancellationPoller::new(Arc::clone(&shared)),
            log_writer: LogWriter::new(Arc::clone(&shared)),
            dispatcher,
            shared,
        })
    }

    /// The present worker id. It changes after the worker was fenced.
    #[must_use]
    pub fn id(&self) -> i64 {
        self.shared.worker_id()
    }

    /// The dispatcher writes results and claims jobs. It gets the wake-ups since its last step.
    ///
    /// # Errors
    /// Why the worker has to end.
    pub fn dispatch(&mut self) -> Result<NextStep> {
        let wake_ups = self.shared.dispatcher.wait(std::time::Duration::ZERO);
        self.dispatcher.step(wake_ups)
    }

    /// An executor executes the next prefetched job, writes its result and claims further jobs. Returns whether there
    /// was a job.
    pub fn execute(&mut self) -> bool {
        self.executors.first().is_some_and(Executor::step)
    }

    /// An executor begins the next prefetched job, if there is one. The attempt runs until [`WorkerSteps::end`] gets it.
    pub fn begin(&mut self) -> Option<BegunAttempt> {
        self.executors.first()?.begin_next()
    }

    /// The handler of an attempt ends now: it is called, and what it returns is written.
    pub fn end(&mut self, begun: BegunAttempt) {
        if let Some(executor) = self.executors.first() {
            executor.end(begun);
        }
    }

    /// The heartbeat renews the lease if it is time.
    pub fn renew_lease(&mut self) -> NextStep {
        self.heartbeat.step()
    }

    /// The deadline monitor stops attempts whose time is over.
    pub fn stop_late_attempts(&mut self) -> NextStep {
        self.deadline_monitor.step()
    }

    /// The cancellation poller reads which jobs were cancelled.
    pub fn poll_cancellations(&mut self) -> NextStep {
        self.cancellation_poller.step()
    }

    /// The log writer writes output if it is time.
    pub fn write_logs(&mut self) -> NextStep {
        let wake_ups: WakeUps = self.shared.log_writer.wait(std::time::Duration::ZERO);
        self.log_writer.step(wake_ups)
    }

    /// Finishes what runs and claims nothing from now on. The dispatcher's last step is [`NextStep::Never`].
    pub fn drain(&mut self) {
        self.shared.advance_mode(Mode::Draining);
    }
}

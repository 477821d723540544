//! Everything that happens because time passes: due jobs become claimable, runs are stopped at their deadlines, schedules
//! fire, jobs of dead workers are rescued, and old runs and jobs are deleted.
//!
//! Any number of schedulers may work on one database. Every change is a guarded update, so only one of them makes it.

mod failure_detector;
mod files;
mod firing;
mod lasting_failure;
mod promotion;
mod reconcile;
mod refusals;
mod retention;
mod step_time;
mod steps;
#[cfg(test)]
mod test_store;
mod threads;
mod upkeep;
mod wall_clock;

use std::sync::Arc;

use windlass_engine::{Error, Result, Store};
use windlass_system::wake_ups::WakeUps;

pub use failure_detector::{FailureDetector, MachineProcesses, WorkerProcesses, gone_workers};
pub use files::settle_files;
use lasting_failure::LastingFailure;
pub use retention::Retention;
use retention::SharedRetention;
use step_time::StepTime;
pub use steps::SchedulerSteps;
use threads::SteppingThread;
pub use threads::Thread;
pub use upkeep::UpkeepSteps;

/// A running scheduler. Dropping it ends its threads.
pub struct Scheduler {
    step_time: StepTime,
    retention: SharedRetention,
    failure: LastingFailure,
    _threads: [SteppingThread; 2],
}

impl Scheduler {
    /// Starts the scheduler's threads.
    ///
    /// # Errors
    /// Returns an error if the system has no thread left.
    pub fn start(store: &Store, retention: Retention) -> Result<Scheduler> {
        store.watch();
        let clock = store.clock();
        let listener = store.listen(WakeUps::DUE | WakeUps::STOP);
        let retention = SharedRetention::new(retention);
        let failure = LastingFailure::default();
        let mut upkeep = UpkeepSteps::sharing(store, retention.clone(), failure.clone());
        let upkeep =
            SteppingThread::start(Thread::Upkeep, clock, store.listen(WakeUps::STOP), move || upkeep.step())?;
        let step_time = StepTime::new(clock);
        let mut steps = SchedulerSteps::new(store, Arc::new(MachineProcesses)).with_failure(failure.clone());
        let timed = step_time.clone();
        let scheduler = SteppingThread::start(Thread::Scheduler, clock, listener, move || {
            timed.begin();
            let next = steps.step();
            timed.end();
            next
        })?;
        Ok(Scheduler { step_time, retention, failure, _threads: [scheduler, upkeep] })
    }

    /// How long the current step has been waiting for the database, in milliseconds. 0 between two steps.
    #[must_use]
    pub fn unanswered_ms(&self) -> i64 {
        self.step_time.elapsed_ms()
    }

    /// The error because of which it gave up: the database can't be used, and waiting can't repair that.
    #[must_use]
    pub fn failure(&self) -> Option<Error> {
        self.failure.get().cloned()
    }

    /// Changes the retention from now on.
    pub fn set_retention(&self, retention: Retention) {
        self.retention.set(retention);
    }
}

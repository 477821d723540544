//! What time does in Windlass: makes due jobs claimable, stops runs whose time is over, fires schedules, takes back the
//! jobs of dead workers, deletes what is old.
//!
//! Any number of schedulers may work on one database. Every change is a guarded update, so the others find it done.

mod failure_detector;
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
use lasting_failure::LastingFailure;
use retention::PresentRetention;
pub use retention::Retention;
use step_time::StepTime;
pub use steps::SchedulerSteps;
use threads::SteppingThread;
pub use threads::Thread;
pub use upkeep::UpkeepSteps;

/// A running scheduler. Dropping it ends its threads.
pub struct Scheduler {
    step_time: StepTime,
    retention: PresentRetention,
    failure: LastingFailure,
    _threads: [SteppingThread; 2],
}

impl Scheduler {
    /// Starts the scheduler's threads.
    ///
    /// # Errors
    /// The system's, if it has no thread to give.
    pub fn start(store: &Store, retention: Retention) -> Result<Scheduler> {
        store.watch();
        let clock = store.clock();
        let listener = store.listen(WakeUps::DUE | WakeUps::STOP);
        let retention = PresentRetention::new(retention);
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

    /// For how long its present step has gone on, in milliseconds. 0 if it has nothing to do.
    #[must_use]
    pub fn silent_ms(&self) -> i64 {
        self.step_time.elapsed_ms()
    }

    /// Why it gave up: the database can't be used, and waiting does not help.
    #[must_use]
    pub fn failure(&self) -> Option<Error> {
        self.failure.get().cloned()
    }

    /// Changes the retention from now on.
    pub fn set_retention(&self, retention: Retention) {
        self.retention.set(retention);
    }
}

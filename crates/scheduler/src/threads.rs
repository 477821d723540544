//! The threads of a scheduler.

use std::thread::JoinHandle;

use windlass_db::error::{Result, no_thread};
use windlass_system::Clock;
use windlass_system::steps::{NextStep, run_steps};
use windlass_system::wake_ups::{WakeUpListener, WakeUps};

/// A thread of a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thread {
    /// Makes due jobs claimable, stops runs at their deadlines, fires schedules, rescues jobs of dead workers.
    Scheduler,
    /// Deletes runs and jobs that the retention does not keep.
    Upkeep,
}

impl Thread {
    /// All of them.
    pub const ALL: [Thread; 2] = [Thread::Scheduler, Thread::Upkeep];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Thread::Scheduler => "scheduler",
            Thread::Upkeep => "upkeep",
        }
    }

    /// The name that the operating system shows.
    #[must_use]
    pub fn system_name(self) -> String {
        format!("windlass-{}", self.name())
    }
}

/// A thread that makes steps. Dropping it ends the thread after its current step.
pub(crate) struct SteppingThread {
    listener: WakeUpListener,
    handle: Option<JoinHandle<()>>,
}

impl SteppingThread {
    /// Starts a thread that makes steps until a step returns [`NextStep::Never`] or [`WakeUps::STOP`] is raised.
    pub(crate) fn start(
        thread: Thread,
        clock: &Clock,
        listener: WakeUpListener,
        mut step: impl FnMut() -> NextStep + Send + 'static,
    ) -> Result<SteppingThread> {
        let (clock, inbox) = (clock.clone(), listener.clone());
        let handle = std::thread::Builder::new()
            .name(thread.system_name())
            .spawn(move || {
                run_steps(&clock, &inbox, |wake_ups| {
                    if wake_ups.intersects(WakeUps::STOP) { NextStep::Never } else { step() }
                });
            })
            .map_err(|error| no_thread("start the scheduler", &error))?;
        Ok(SteppingThread { listener, handle: Some(handle) })
    }
}

impl Drop for SteppingThread {
    fn drop(&mut self) {
        self.listener.raise(WakeUps::STOP);
        if let Some(handle) = self.handle.take() {
            let _panicked = handle.join();
        }
    }
}

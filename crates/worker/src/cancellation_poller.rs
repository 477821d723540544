//! The cancellation poller reads which running jobs were cancelled, and stops them. It only reads, so a database that
//! accepts no writes does not delay it.

use std::sync::Arc;
use std::time::Duration;

use crate::shared::Shared;
use windlass_system::steps::{NextStep, run_steps};

/// Time between two reads without a wake-up, in case one was lost.
const POLL: Duration = Duration::from_secs(5);
/// Time until the next try after a failed one.
const RETRY: Duration = Duration::from_millis(200);

/// The cancellation poller of one worker.
pub(crate) struct CancellationPoller {
    shared: Arc<Shared>,
    /// The last read failed, and that was logged.
    is_failing: bool,
}

impl CancellationPoller {
    pub(crate) fn new(shared: Arc<Shared>) -> CancellationPoller {
        CancellationPoller { shared, is_failing: false }
    }

    /// What the cancellation poller's thread does until the worker ends.
    pub(crate) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        run_steps(shared.clock(), &shared.cancellation_poller, |_wake_ups| self.step());
    }

    /// Reads the requests once and hands them to the running attempts.
    pub(crate) fn step(&mut self) -> NextStep {
        if self.shared.has_ended() {
            return NextStep::Never;
        }
        match self.shared.store.for_workers().cancel_requests(self.shared.worker_id()) {
            Ok(requests) => {
                self.shared.running.cancel(requests);
                self.is_failing = false;
                NextStep::After(POLL)
            }
            Err(error) => {
                self.shared.end_if_lasting(&error);
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(%error, "cancellations could not be read; trying again");
                }
                NextStep::After(RETRY)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::{OutputLog, Stop, StopCause};
    use crate::shared::{AddedBy, RunningAttempt};
    use crate::test_worker::TestWorker;

    #[test]
    fn an_attempt_of_a_cancelled_job_is_asked_to_stop() {
        let worker = TestWorker::new(1);
        let shared = &worker.shared;
        let mut poller = CancellationPoller::new(Arc::clone(shared));
        worker.enqueue(1, "null");
        worker.turn(AddedBy::Dispatcher);
        let owned = worker.take();
        let (stop, log) = (Stop::default(), Arc::new(OutputLog::new(owned.job.id, 1)));
        let worker_id = owned.worker_id;
        let running = RunningAttempt { stop: stop.clone(), log, deadline_ms: None, worker_id };
        shared.running.begin(&owned, running, || 0);
        assert_eq!((poller.step(), stop.cause()), (NextStep::After(POLL), None));
        worker.execute_sql("UPDATE jobs SET cancel_requested_at = 1");
        assert_eq!((poller.step(), stop.cause()), (NextStep::After(POLL), Some(StopCause::Cancelled)));
        shared.end();
        assert_eq!(poller.step(), NextStep::Never);
    }
}

//! The deadline monitor stops attempts whose timeout is over, and all attempts when the lease is over.
//!
//! It never touches the database. A call into the database may block for minutes, and that is when the end of the lease
//! must be noticed.

use std::sync::Arc;

use crate::shared::Shared;
use windlass_system::steps::{NextStep, run_steps};

/// The longest time between two checks. While a machine is suspended, timers do not run, and leases end all the same.
const TICK_MS: i64 = 1_000;

/// The deadline monitor of one worker.
pub(crate) struct DeadlineMonitor {
    shared: Arc<Shared>,
}

impl DeadlineMonitor {
    pub(crate) fn new(shared: Arc<Shared>) -> DeadlineMonitor {
        DeadlineMonitor { shared }
    }

    /// What the deadline monitor's thread does until the worker ends.
    pub(crate) fn run(self) {
        run_steps(self.shared.clock(), &self.shared.deadline_monitor, |_wake_ups| self.step());
    }

    /// Stops the attempts whose time is over.
    pub(crate) fn step(&self) -> NextStep {
        if self.shared.has_ended() {
            return NextStep::Never;
        }
        let clock = self.shared.clock();
        let now_ms = clock.monotonic_ms();
        if let Some(stopped) = self.shared.running.stop_if_lease_is_over(now_ms) {
            tracing::warn!(
                worker_id = self.shared.worker_id(),
                stopped,
                "the lease could not be renewed in time: running jobs were stopped, and none starts"
            );
        }
        let next_ms = self.shared.running.stop_late(now_ms).unwrap_or(i64::MAX);
        NextStep::at_ms(clock, next_ms.min(now_ms + TICK_MS))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::handler::{OutputLog, Stop, StopCause};
    use crate::shared::{OwnedJob, RunningAttempt};
    use crate::test_worker::TestWorker;

    #[test]
    fn attempts_stop_at_their_deadline_or_at_the_end_of_the_lease() {
        let worker = TestWorker::new(2);
        let (shared, clock) = (&worker.shared, worker.shared.clock());
        let monitor = DeadlineMonitor::new(Arc::clone(shared));
        let begin = |job_id, deadline_ms| {
            let owned = OwnedJob::sample(job_id, shared.worker_id());
            let (stop, log) = (Stop::default(), Arc::new(OutputLog::new(job_id, 1)));
            let running = RunningAttempt { stop: stop.clone(), log, deadline_ms, worker_id: owned.worker_id };
            shared.running.begin(&owned, running, || clock.monotonic_ms());
            stop
        };
        let (with_timeout, without) = (begin(1, Some(700)), begin(2, None));
        assert_eq!(monitor.step(), NextStep::After(Duration::from_millis(700)));
        clock.advance_ms(700);
        assert_eq!(monitor.step(), NextStep::After(Duration::from_millis(1_000)));
        assert_eq!((with_timeout.cause(), without.cause()), (Some(StopCause::TimedOut), None));
        clock.advance_ms(shared.running.lease().ends_at_ms() - 700);
        monitor.step();
        assert_eq!(without.cause(), Some(StopCause::Fenced));
        shared.end();
        assert_eq!(monitor.step(), NextStep::Never);
    }
}

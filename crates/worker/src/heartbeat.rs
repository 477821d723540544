//! The heartbeat renews the lease. It does nothing that could delay that for long.

use std::sync::Arc;

use crate::shared::{Mode, Shared};
use windlass_engine::status::WorkerStatus;
use windlass_system::steps::{NextStep, run_steps};

/// The heartbeat of one worker.
pub(crate) struct Heartbeat {
    shared: Arc<Shared>,
    /// When to try again, if the last renewal failed.
    retry_at_ms: Option<i64>,
    /// The tables say that the worker is draining.
    is_marked_as_draining: bool,
    /// The shortage of resources that the tables show.
    shown_shortage: Option<String>,
}

impl Heartbeat {
    pub(crate) fn new(shared: Arc<Shared>) -> Heartbeat {
        Heartbeat { shared, retry_at_ms: None, is_marked_as_draining: false, shown_shortage: None }
    }

    /// What the heartbeat's thread does until the worker ends.
    pub(crate) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        run_steps(shared.clock(), &shared.heartbeat, |_wake_ups| self.step());
    }

    /// Renews the lease if it is time.
    pub(crate) fn step(&mut self) -> NextStep {
        if self.shared.has_ended() {
            return NextStep::Never;
        }
        // Taken before the renewal is sent, so that the lease really is at least as long.
        let now_ms = self.shared.clock().monotonic_ms();
        let lease = self.shared.running.lease();
        if now_ms >= self.retry_at_ms.unwrap_or(lease.renew_at_ms()) {
            let is_renewed = self.renew(now_ms);
            self.retry_at_ms = (!is_renewed).then(|| lease.retry_at_ms(now_ms));
        }
        self.show_draining();
        self.show_shortage();
        let next_at_ms = self.retry_at_ms.unwrap_or_else(|| self.shared.running.lease().renew_at_ms());
        NextStep::at_ms(self.shared.clock(), next_at_ms)
    }

    fn renew(&self, sent_at_ms: i64) -> bool {
        let worker_id = self.shared.worker_id();
        match self.shared.store.for_workers().heartbeat(worker_id) {
            Ok(true) => {
                if self.shared.renew_lease(sent_at_ms) {
                    tracing::warn!(worker_id, "the lease is confirmed again: jobs may start");
                }
                true
            }
            Ok(false) => {
                self.shared.fence(worker_id);
                false
            }
            Err(error) => {
                self.shared.end_if_lasting(&error);
                if self.retry_at_ms.is_none() {
                    tracing::warn!(worker_id, %error, "the lease could not be renewed; trying again");
                }
                false
            }
        }
    }

    /// Writes into the tables that the worker is draining. Only people read it.
    fn show_draining(&mut self) {
        if self.shared.mode() != Mode::Draining || self.is_marked_as_draining {
            return;
        }
        match self.shared.store.for_workers().set_status(self.shared.worker_id(), WorkerStatus::Draining) {
            Ok(_marked_or_fenced) => self.is_marked_as_draining = true,
            Err(error) => tracing::debug!(%error, "the worker could not be marked as draining yet"),
        }
    }

    /// Writes into the tables what the system refuses to this worker's jobs. Only people read it.
    fn show_shortage(&mut self) {
        let reason = self.shared.shortage_reason();
        if reason == self.shown_shortage {
            return;
        }
        if reason.is_none() {
            tracing::info!("the system has enough resources again: jobs start as before");
        }
        match self.shared.store.for_workers().set_shortage(self.shared.worker_id(), reason.clone()) {
            Ok(()) => self.shown_shortage = reason,
            Err(error) => tracing::debug!(%error, "the worker's shortage could not be noted yet"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_worker::TestWorker;

    #[test]
    fn the_lease_is_renewed_when_it_is_time_and_a_fenced_worker_stops_its_jobs() {
        let worker = TestWorker::new(1);
        let (shared, clock) = (&worker.shared, worker.shared.clock());
        let mut heartbeat = Heartbeat::new(Arc::clone(shared));
        let ends_at_ms = || shared.running.lease().ends_at_ms();
        let first_end_ms = ends_at_ms();
        let NextStep::After(wait) = heartbeat.step() else { panic!("the lease is to be renewed") };
        assert_eq!(ends_at_ms(), first_end_ms, "not yet");
        let wait_ms = i64::try_from(wait.as_millis()).expect("short");
        clock.advance_ms(wait_ms);
        heartbeat.step();
        assert_eq!(ends_at_ms(), first_end_ms + wait_ms);
        worker.execute_sql("UPDATE workers SET status = 'DEAD'");
        clock.advance_ms(wait_ms);
        heartbeat.step();
        assert!(shared.running.is_fenced(shared.worker_id()));
        shared.end();
        assert_eq!(heartbeat.step(), NextStep::Never);
    }
}

//! The heartbeat: renews the lease, and does nothing that could hold it up.

use std::time::Duration;

use super::shared::{Mode, Shared};
use windlass_engine::status::WorkerStatus;

/// What the heartbeat's thread does until the worker ends.
pub(super) fn serve(shared: &Shared) {
    let clock = shared.store.clock();
    let mut heartbeat = Heartbeat { retry_at_ms: None, is_marked: false, shortage: None };
    while !shared.has_ended() {
        let next_ms = heartbeat.turn(shared);
        let wait_ms = u64::try_from(next_ms - clock.monotonic_ms()).unwrap_or(0);
        shared.heartbeat.wait(clock.until(None, Duration::from_millis(wait_ms)));
    }
}

struct Heartbeat {
    /// The last renewal failed, which was said; when to try again.
    retry_at_ms: Option<i64>,
    /// The worker is known to be draining.
    is_marked: bool,
    /// What it is known to lack.
    shortage: Option<String>,
}

impl Heartbeat {
    /// Does what is due and returns when to look again.
    fn turn(&mut self, shared: &Shared) -> i64 {
        // Before it is sent: the lease can only be longer than we think.
        let now_ms = shared.store.clock().monotonic_ms();
        let lease = shared.running.lease();
        if now_ms >= self.retry_at_ms.unwrap_or(lease.renew_at_ms()) {
            let renewed = self.renew(shared, now_ms);
            self.retry_at_ms = (!renewed).then(|| lease.retry_at_ms(now_ms));
        }
        if shared.mode() == Mode::Draining && !self.is_marked {
            self.mark(shared);
        }
        self.tell_of_shortage(shared);
        self.retry_at_ms.unwrap_or_else(|| shared.running.lease().renew_at_ms())
    }

    fn renew(&self, shared: &Shared, sent_at_ms: i64) -> bool {
        let worker_id = shared.worker_id();
        match shared.store.for_workers().heartbeat(worker_id) {
            Ok(true) => {
                if shared.lease_renewed(sent_at_ms) {
                    tracing::warn!(worker_id, "the lease is confirmed again: jobs may start");
                }
                true
            }
            Ok(false) => {
                shared.lose(worker_id);
                false
            }
            Err(error) => {
                shared.heed(&error);
                if self.retry_at_ms.is_none() {
                    tracing::warn!(worker_id, %error, "the lease could not be renewed; trying on");
                }
                false
            }
        }
    }

    /// For people who look: nothing depends on it.
    fn tell_of_shortage(&mut self, shared: &Shared) {
        let lacks = shared.lacks();
        if lacks == self.shortage {
            return;
        }
        if lacks.is_none() {
            tracing::info!("nothing is lacking any more: jobs start as before");
        }
        match shared.store.for_workers().set_shortage(shared.worker_id(), lacks.clone()) {
            Ok(()) => self.shortage = lacks,
            Err(error) => tracing::debug!(%error, "the worker's shortage could not be noted yet"),
        }
    }

    /// For people who look: nothing depends on it.
    fn mark(&mut self, shared: &Shared) {
        match shared.store.for_workers().set_status(shared.worker_id(), WorkerStatus::Draining) {
            Ok(_marked_or_fenced) => self.is_marked = true,
            Err(error) => tracing::debug!(%error, "the worker could not be marked as draining yet"),
        }
    }
}

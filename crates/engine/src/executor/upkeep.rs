//! What a worker writes beside results: its lease, and the output that is still coming.

use std::sync::Arc;
use std::time::Duration;

use super::shared::Shared;
use crate::signal::Hints;

/// Renewals within one lease: several may fail before it is over.
const HEARTBEATS_PER_LEASE: i64 = 4;
/// Output waits at most this long before it can be read by others.
const FLUSH_MS: i64 = 200;
/// After a failure it is tried again so much later. The output is kept meanwhile: it is bounded for
/// each attempt, and what is left at an attempt's end goes with its result.
const FLUSH_RETRY_MS: i64 = 1_000;

/// What this thread does until the worker ends.
pub(super) fn serve(shared: &Shared) {
    // The dispatcher registered the worker a moment ago: the first renewal can wait.
    let heartbeat_at_ms = shared.store.clock().monotonic_ms() + interval_ms(shared);
    let mut upkeep = Upkeep { heartbeat_at_ms, flush_at_ms: None, is_failing: false };
    let mut hints = Hints::NONE;
    while !shared.has_ended() {
        let wait = upkeep.turn(shared, hints);
        hints = shared.upkeep.wait(wait);
    }
}

struct Upkeep {
    heartbeat_at_ms: i64,
    flush_at_ms: Option<i64>,
    /// Renewing failed and it was said.
    is_failing: bool,
}

impl Upkeep {
    /// Does what is due and returns how long nothing will be.
    fn turn(&mut self, shared: &Shared, hints: Hints) -> Duration {
        let now_ms = shared.store.clock().monotonic_ms();
        if now_ms >= self.heartbeat_at_ms {
            self.renew(shared, now_ms);
        }
        if hints.intersects(Hints::EXECUTOR) && self.flush_at_ms.is_none() {
            self.flush_at_ms = Some(now_ms + FLUSH_MS);
        }
        if self.flush_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            self.flush_at_ms = flush(shared).then_some(now_ms + FLUSH_RETRY_MS);
        }
        let next_ms = self.flush_at_ms.map_or(self.heartbeat_at_ms, |at_ms| at_ms.min(self.heartbeat_at_ms));
        let wait_ms = u64::try_from(next_ms - shared.store.clock().monotonic_ms()).unwrap_or(0);
        shared.store.clock().until(None, Duration::from_millis(wait_ms))
    }

    fn renew(&mut self, shared: &Shared, now_ms: i64) {
        let worker_id = shared.worker_id();
        self.heartbeat_at_ms = now_ms + interval_ms(shared);
        match shared.store.heartbeat(worker_id) {
            Ok(true) => {
                shared.lease_renewed(now_ms);
                self.is_failing = false;
            }
            Ok(false) => shared.lose(worker_id),
            Err(error) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(worker_id, %error, "the lease could not be renewed; trying on");
                }
                self.heartbeat_at_ms = now_ms + interval_ms(shared) / 4;
            }
        }
    }
}

fn interval_ms(shared: &Shared) -> i64 {
    (shared.options.lease_ms / HEARTBEATS_PER_LEASE).max(1)
}

/// Writes the output that has come; returns whether it must be tried again.
fn flush(shared: &Shared) -> bool {
    let lines = Arc::new(shared.running.unwritten());
    if lines.is_empty() {
        return false;
    }
    match shared.store.append_logs(Arc::clone(&lines)) {
        Ok(()) => {
            shared.running.written(&lines);
            false
        }
        Err(error) => {
            tracing::warn!(lines = lines.len(), %error, "output could not be written yet; it is kept");
            true
        }
    }
}

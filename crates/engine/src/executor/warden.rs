//! The warden: renews the lease, watches deadlines and stop requests, writes output as it comes.

use std::sync::Arc;
use std::time::Duration;

use super::shared::Shared;
use super::stop::StopCause;
use crate::signal::Hints;
use crate::store::LogLine;

/// Renewals within one lease: several may fail before it is over.
const HEARTBEATS_PER_LEASE: i64 = 4;
/// Output waits at most this long before it can be read by others.
const LOG_FLUSH_MS: i64 = 200;
/// After a failure output is kept and tried again so much later.
const FLUSH_RETRY_MS: i64 = 1_000;
/// Lines that are kept while the database takes none.
const UNWRITTEN_MAX_LINES: usize = 100_000;

/// What the warden's thread does until the worker ends.
pub(super) fn serve(shared: &Shared) {
    let mut warden = Warden { heartbeat_at_ms: 0, flush_at_ms: None, silent: false, unwritten: Vec::new() };
    // The dispatcher registered the worker a moment ago: the first renewal can wait.
    warden.heartbeat_at_ms = shared.store.clock().monotonic_ms() + interval_ms(shared);
    let mut hints = Hints::NONE;
    while !shared.has_ended() {
        let wait = warden.turn(shared, hints);
        hints = shared.warden.wait(wait);
    }
    warden.flush(shared, shared.store.clock().monotonic_ms());
}

struct Warden {
    heartbeat_at_ms: i64,
    flush_at_ms: Option<i64>,
    /// Renewing failed and it was said.
    silent: bool,
    /// Output that could not be written yet.
    unwritten: Vec<LogLine>,
}

impl Warden {
    /// Does what is due and returns how long nothing will be.
    fn turn(&mut self, shared: &Shared, hints: Hints) -> Duration {
        let now_ms = shared.store.clock().monotonic_ms();
        if now_ms >= self.heartbeat_at_ms {
            self.renew(shared, now_ms);
        }
        if hints.intersects(Hints::CANCEL) {
            relay_cancellations(shared);
        }
        let deadline_ms = shared.stop_late(now_ms);
        if hints.intersects(Hints::EXECUTOR) && self.flush_at_ms.is_none() {
            self.flush_at_ms = Some(now_ms + LOG_FLUSH_MS);
        }
        if self.flush_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            self.flush_at_ms = None;
            self.flush(shared, now_ms);
        }
        let next_ms = [Some(self.heartbeat_at_ms), deadline_ms, self.flush_at_ms].into_iter().flatten().min();
        let wait_ms = next_ms.map_or(LOG_FLUSH_MS, |next_ms| next_ms - now_ms).max(0);
        let longest = Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0));
        shared.store.clock().until(None, longest)
    }

    /// Writes the output that has come. What the database does not take for now is kept, also after its
    /// attempt has ended, up to a limit.
    fn flush(&mut self, shared: &Shared, now_ms: i64) {
        let mut lines = std::mem::take(&mut self.unwritten);
        lines.extend(shared.take_logs());
        if lines.is_empty() {
            return;
        }
        let sent = Arc::new(lines);
        let Err(error) = shared.store.append_logs(Arc::clone(&sent)) else { return };
        let mut lines = Arc::unwrap_or_clone(sent);
        if lines.len() > UNWRITTEN_MAX_LINES {
            let lost = lines.len() - UNWRITTEN_MAX_LINES;
            tracing::warn!(lost, %error, "output of running jobs could not be written: the oldest is lost");
            lines.drain(..lost);
        }
        self.unwritten = lines;
        self.flush_at_ms = Some(now_ms + FLUSH_RETRY_MS);
    }

    fn renew(&mut self, shared: &Shared, now_ms: i64) {
        let worker_id = shared.worker_id();
        self.heartbeat_at_ms = now_ms + interval_ms(shared);
        match shared.store.heartbeat(worker_id) {
            Ok(true) => {
                shared.lease_renewed(now_ms);
                self.silent = false;
            }
            Ok(false) => {
                // Stop first, register anew after: no process of ours may outlive the claim.
                if worker_id == shared.worker_id() {
                    shared.stop_running(StopCause::Fenced);
                    shared.dispatcher.raise(Hints::FENCED);
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut self.silent, true) {
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

fn relay_cancellations(shared: &Shared) {
    match shared.store.cancel_requests(shared.worker_id()) {
        Ok(job_ids) => {
            for job_id in job_ids {
                shared.stop_job(job_id, StopCause::Cancelled);
            }
        }
        Err(error) => tracing::warn!(%error, "cancel requests could not be read"),
    }
}

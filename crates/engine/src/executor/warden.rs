//! The warden: tells attempts to stop when their time is over or somebody asked for it. It only reads,
//! so a database that takes no writes holds it up in nothing.

use std::time::Duration;

use super::shared::Shared;
use crate::signal::Hints;

/// How often stop requests are read without a hint: the net under the signals.
const LOOK_MS: i64 = 5_000;
/// After a failure they are read again so much later.
const RETRY_MS: i64 = 200;

/// What the warden's thread does until the worker ends.
pub(super) fn serve(shared: &Shared) {
    let mut look_at_ms = 0;
    let mut hints = Hints::CANCEL;
    while !shared.has_ended() {
        let now_ms = shared.store.clock().monotonic_ms();
        if hints.intersects(Hints::CANCEL) || now_ms >= look_at_ms {
            look_at_ms = now_ms + relay_cancellations(shared);
        }
        let deadline_ms = shared.running.stop_late(now_ms);
        let next_ms = deadline_ms.map_or(look_at_ms, |deadline_ms| deadline_ms.min(look_at_ms));
        let wait_ms = u64::try_from(next_ms - now_ms).unwrap_or(0);
        hints = shared.warden.wait(shared.store.clock().until(None, Duration::from_millis(wait_ms)));
    }
}

/// Reads what was asked to stop, and returns when to read again.
fn relay_cancellations(shared: &Shared) -> i64 {
    match shared.store.cancel_requests(shared.worker_id()) {
        Ok(job_ids) => {
            shared.running.cancel(job_ids);
            LOOK_MS
        }
        Err(error) => {
            tracing::warn!(%error, "stop requests could not be read; trying on");
            RETRY_MS
        }
    }
}

//! The cancellation_poller: reads what was asked to stop and hands it on. It only reads, so a database that takes no
//! writes holds it up in nothing.

use std::time::Duration;

use super::shared::Shared;
use windlass_system::wake_ups::WakeUps;

/// How often stop requests are read without a hint: the net under the wake_ups.
const LOOK: Duration = Duration::from_secs(5);
/// After a failure they are read again so much later.
const RETRY: Duration = Duration::from_millis(200);

/// What the cancellation poller's thread does until the worker ends.
pub(super) fn serve(shared: &Shared) {
    let mut is_failing = false;
    while !shared.has_ended() {
        let wait = match shared.store.for_workers().cancel_requests(shared.worker_id()) {
            Ok(requests) => {
                shared.running.cancel(requests);
                is_failing = false;
                LOOK
            }
            Err(error) => {
                shared.heed(&error);
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!(%error, "stop requests could not be read; trying on");
                }
                RETRY
            }
        };
        pause(shared, wait);
    }
}

/// Waits for a hint or so long.
fn pause(shared: &Shared, longest: Duration) {
    let clock = shared.store.clock();
    let until_ms = clock.monotonic_ms() + i64::try_from(longest.as_millis()).unwrap_or(i64::MAX);
    loop {
        let left_ms = until_ms - clock.monotonic_ms();
        if left_ms <= 0 {
            return;
        }
        let wait = Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
        if shared
            .cancellation_poller
            .wait(clock.until(None, wait))
            .intersects(WakeUps::CANCEL | WakeUps::STOP)
        {
            return;
        }
    }
}

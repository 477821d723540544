//! The deadline monitor: tells attempts to stop when their time is over, or the worker's own. It knows nothing but
//! time and what others have read: it never touches the database, because a call into one may block
//! for minutes, and then above all it is needed.

use std::time::Duration;

use super::shared::Shared;

/// It looks at least so often: timers stand still while a machine is suspended, and leases do not.
const LOOK_MS: i64 = 1_000;

/// What the deadline monitor's thread does until the worker ends.
pub(super) fn serve(shared: &Shared) {
    let clock = shared.store.clock();
    while !shared.has_ended() {
        let now_ms = clock.monotonic_ms();
        if let Some(stopped) = shared.running.lapse(now_ms) {
            tracing::warn!(
                worker_id = shared.worker_id(),
                stopped,
                "the lease could not be renewed in time: what runs was stopped, and nothing starts"
            );
        }
        let next_ms = shared.running.stop_late(now_ms).unwrap_or(i64::MAX).min(now_ms + LOOK_MS);
        let wait_ms = u64::try_from(next_ms - now_ms).unwrap_or(0);
        shared.deadline_monitor.wait(clock.until(None, Duration::from_millis(wait_ms)));
    }
}

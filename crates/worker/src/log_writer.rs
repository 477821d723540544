//! Writes output that is still coming, so that it can be read while its job runs.

use std::sync::Arc;
use std::time::Duration;

use super::shared::Shared;
use windlass_system::wake_ups::WakeUps;

/// Output waits at most this long before it can be read by others.
const FLUSH_MS: i64 = 200;
/// After a failure it is tried again so much later. The output is kept meanwhile: it is bounded for
/// each attempt, and what is left at an attempt's end goes with its result.
const RETRY_MS: i64 = 1_000;
/// Bytes of text in one transaction, about: a lease must not wait for many megabytes of output.
const FLUSH_MAX_BYTES: usize = 4 * 1024 * 1024;
/// How long it sleeps when no output waits: whoever has some wakes it.
const IDLE_MS: i64 = 3_600_000;

/// What came of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flushed {
    /// Nothing waits.
    All,
    /// Output came meanwhile, or it was too much for once.
    Part,
    /// The database could not be written to.
    Nothing,
}

/// What this thread does until the worker ends.
pub(super) fn serve(shared: &Shared) {
    let clock = shared.store.clock();
    let mut flush_at_ms: Option<i64> = None;
    let mut is_failing = false;
    while !shared.has_ended() {
        if flush_at_ms.is_some_and(|at_ms| at_ms <= clock.monotonic_ms()) {
            let flushed = flush(shared, &mut is_failing);
            flush_at_ms = match flushed {
                Flushed::All => None,
                Flushed::Part => Some(clock.monotonic_ms() + FLUSH_MS),
                Flushed::Nothing => Some(clock.monotonic_ms() + RETRY_MS),
            };
        }
        let wait_ms = flush_at_ms.map_or(IDLE_MS, |at_ms| at_ms - clock.monotonic_ms());
        let wait = Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0));
        let wake_ups = shared.log_writer.wait(clock.until(None, wait));
        if wake_ups.intersects(WakeUps::EXECUTOR) && flush_at_ms.is_none() {
            flush_at_ms = Some(clock.monotonic_ms() + FLUSH_MS);
        }
    }
}

fn flush(shared: &Shared, is_failing: &mut bool) -> Flushed {
    let lines = Arc::new(shared.running.unwritten(FLUSH_MAX_BYTES));
    if lines.is_empty() {
        return Flushed::All;
    }
    match shared.store.for_workers().append_logs(Arc::clone(&lines)) {
        Ok(()) => {
            *is_failing = false;
            shared.running.written(&lines);
            if shared.running.has_unwritten() { Flushed::Part } else { Flushed::All }
        }
        Err(error) => {
            shared.heed(&error);
            if !std::mem::replace(is_failing, true) {
                tracing::warn!(%error, "output could not be written yet; it is kept");
            }
            Flushed::Nothing
        }
    }
}

//! The chance by which an occurrence starts later.

use sha2::{Digest, Sha256};

/// How much later than its nominal time an occurrence starts: 0 to `jitter_ms` milliseconds.
///
/// A hash of the schedule and the time, so every process comes to the same result, and schedules that are due
/// at the same time are spread.
#[must_use]
pub fn jitter(schedule_key: &str, at_ms: i64, jitter_ms: i64) -> i64 {
    let Ok(most) = u64::try_from(jitter_ms) else { return 0 };
    let digest = Sha256::new().chain_update(at_ms.to_be_bytes()).chain_update(schedule_key).finalize();
    let number = digest.iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    i64::try_from(number % (most + 1)).unwrap_or(jitter_ms)
}

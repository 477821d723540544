//! The delay by which schedules that are due at the same time are spread.

use sha2::{Digest, Sha256};

/// The delay between an occurrence and the start of its run: 0 to `jitter_ms` milliseconds.
///
/// The delay is a hash of the schedule and the time. So every process computes the same delay, and schedules that are due
/// at the same time get different delays.
#[must_use]
pub fn jitter(schedule_key: &str, at_ms: i64, jitter_ms: i64) -> i64 {
    let Ok(longest) = u64::try_from(jitter_ms) else { return 0 };
    let digest = Sha256::new().chain_update(at_ms.to_be_bytes()).chain_update(schedule_key).finalize();
    let number = digest.iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    i64::try_from(number % (longest + 1)).unwrap_or(jitter_ms)
}

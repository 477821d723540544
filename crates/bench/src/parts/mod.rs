//! What is measured: one file a part. Each takes turns between Windlass and its references, round by round.

pub(crate) mod chain;
pub(crate) mod drain;
pub(crate) mod enqueue;
pub(crate) mod fan;
pub(crate) mod latency;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod scale;

use std::time::Duration;

use windlass_db::Durability;

/// How a durability is called in names of figures.
pub(crate) fn name_of(durability: Durability) -> &'static str {
    match durability {
        Durability::Full => "full",
        Durability::Normal => "normal",
    }
}

/// So many in this time, as a rate.
pub(crate) fn per_second(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// What one of so many took, in milliseconds.
pub(crate) fn ms_each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1_000.0 / count as f64
}

/// What one of so many took, in microseconds.
pub(crate) fn us_each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1_000_000.0 / count as f64
}

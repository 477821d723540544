//! The parts of a measurement, one file for each. A part measures Windlass and its references alternately, in rounds.

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

/// The name of a durability in names of figures.
pub(crate) fn name_of(durability: Durability) -> &'static str {
    match durability {
        Durability::Full => "full",
        Durability::Normal => "normal",
    }
}

/// The rate of this many in this time.
pub(crate) fn per_second(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// The time for each of this many, in milliseconds.
pub(crate) fn ms_each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1_000.0 / count as f64
}

/// The time for each of this many, in microseconds.
pub(crate) fn us_each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1_000_000.0 / count as f64
}

//! What this process has measured since it started: counters and times in memory, which the web server shows. All threads
//! write them, and none waits for another.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::transition::AttemptOutcome;

/// How many queues have times of their own. The others share one.
pub const MEASURED_QUEUES_MAX: usize = 100;
/// The name under which all other queues are measured.
pub const OTHER_QUEUES: &str = "other";

/// Upper bounds for what should take milliseconds, in seconds.
pub const SHORT_BOUNDS_S: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Upper bounds for what may take hours, in seconds.
pub const LONG_BOUNDS_S: &[f64] =
    &[0.01, 0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0];

/// How often something took how long.
#[derive(Debug)]
pub struct Histogram {
    bounds_s: &'static [f64],
    /// One for each bound, and one for what is above all of them.
    counts: Vec<AtomicU64>,
    sum_us: AtomicU64,
}

/// What a histogram has counted so far.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramValues {
    /// The upper bounds in seconds, each with the number of values up to it.
    pub buckets: Vec<(f64, u64)>,
    /// The number of all values.
    pub count: u64,
    /// Their sum in seconds.
    pub sum_s: f64,
}

impl Histogram {
    /// An empty histogram with these upper bounds, in growing order.
    #[must_use]
    pub fn new(bounds_s: &'static [f64]) -> Histogram {
        let counts = (0..=bounds_s.len()).map(|_bound| AtomicU64::new(0)).collect();
        Histogram { bounds_s, counts, sum_us: AtomicU64::new(0) }
    }

    /// Counts a duration. A negative one is of a clock that went back, and counts as none.
    pub fn observe_us(&self, duration_us: i64) {
        let duration_us = u64::try_from(duration_us).unwrap_or(0);
        let seconds = duration_us as f64 / 1e6;
        let index = self.bounds_s.partition_point(|bound| *bound < seconds);
        self.counts[index].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(duration_us, Ordering::Relaxed);
    }

    /// The same in milliseconds.
    pub fn observe_ms(&self, duration_ms: i64) {
        self.observe_us(duration_ms.saturating_mul(1_000));
    }

    /// What was counted so far.
    #[must_use]
    pub fn values(&self) -> HistogramValues {
        let mut count = 0;
        let mut counted = self.counts.iter().map(|bucket| {
            count += bucket.load(Ordering::Relaxed);
            count
        });
        let buckets = self.bounds_s.iter().copied().zip(counted.by_ref()).collect();
        let _above_all = counted.last();
        HistogramValues { buckets, count, sum_s: self.sum_us.load(Ordering::Relaxed) as f64 / 1e6 }
    }
}

/// How an attempt of this process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasuredOutcome {
    /// With success.
    Successful,
    /// As it is recorded.
    Recorded(AttemptOutcome),
    /// Its job was skipped.
    Skipped,
}

impl MeasuredOutcome {
    /// All of them.
    pub const ALL: [MeasuredOutcome; 6] = [
        MeasuredOutcome::Successful,
        MeasuredOutcome::Recorded(AttemptOutcome::Failed),
        MeasuredOutcome::Recorded(AttemptOutcome::TimedOut),
        MeasuredOutcome::Recorded(AttemptOutcome::Interrupted),
        MeasuredOutcome::Recorded(AttemptOutcome::Cancelled),
        MeasuredOutcome::Skipped,
    ];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            MeasuredOutcome::Successful => "successful",
            MeasuredOutcome::Recorded(outcome) => outcome.as_str(),
            MeasuredOutcome::Skipped => "skipped",
        }
    }
}

/// Everything that a process measures.
#[derive(Debug)]
pub struct Measurements {
    /// How long a write transaction took until it was durable.
    pub commits: Histogram,
    /// How long claimed jobs could have been claimed before.
    pub job_waits: Histogram,
    /// How late occurrences of schedules were decided.
    pub late_schedules: Histogram,
    attempts: [AtomicU64; MeasuredOutcome::ALL.len()],
    job_runs: Mutex<BTreeMap<String, Arc<Histogram>>>,
}

impl Default for Measurements {
    fn default() -> Measurements {
        Measurements {
            commits: Histogram::new(SHORT_BOUNDS_S),
            job_waits: Histogram::new(LONG_BOUNDS_S),
            late_schedules: Histogram::new(LONG_BOUNDS_S),
            attempts: Default::default(),
            job_runs: Mutex::default(),
        }
    }
}

impl Measurements {
    /// Counts the end of an attempt.
    pub fn count_attempt(&self, outcome: MeasuredOutcome) {
        let index = MeasuredOutcome::ALL.iter().position(|known| *known == outcome);
        if let Some(counter) = index.and_then(|index| self.attempts.get(index)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many attempts have ended in each way.
    #[must_use]
    pub fn attempts(&self) -> Vec<(MeasuredOutcome, u64)> {
        let counts = self.attempts.iter().map(|counter| counter.load(Ordering::Relaxed));
        MeasuredOutcome::ALL.into_iter().zip(counts).collect()
    }

    /// The times of the attempts of a queue.
    #[must_use]
    pub fn job_runs_of(&self, queue: &str) -> Arc<Histogram> {
        let mut queues = self.job_runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = queues.get(queue) {
            return Arc::clone(known);
        }
        // One place is left for the others.
        let name = if queues.len() < MEASURED_QUEUES_MAX - 1 { queue } else { OTHER_QUEUES };
        let histogram =
            queues.entry(name.to_owned()).or_insert_with(|| Arc::new(Histogram::new(LONG_BOUNDS_S)));
        Arc::clone(histogram)
    }

    /// The times of the attempts of all queues.
    #[must_use]
    pub fn job_runs(&self) -> Vec<(String, HistogramValues)> {
        let queues = self.job_runs.lock().unwrap_or_else(PoisonError::into_inner);
        queues.iter().map(|(queue, times)| (queue.clone(), times.values())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_counted_up_to_its_bound() {
        let histogram = Histogram::new(&[0.001, 0.01, 1.0]);
        for duration_us in [-5, 0, 1_000, 1_001, 10_000, 999_999, 1_000_001, i64::MAX] {
            histogram.observe_us(duration_us);
        }
        let values = histogram.values();
        assert_eq!(values.buckets, [(0.001, 3), (0.01, 5), (1.0, 6)]);
        assert_eq!(values.count, 8);
    }

    #[test]
    fn the_number_of_measured_queues_is_bounded() {
        let measurements = Measurements::default();
        for number in 0..MEASURED_QUEUES_MAX * 2 {
            measurements.job_runs_of(&format!("queue {number:04}")).observe_ms(1);
        }
        let queues = measurements.job_runs();
        assert_eq!(queues.len(), MEASURED_QUEUES_MAX);
        let other = queues.iter().find(|(queue, _)| queue == OTHER_QUEUES).map(|(_, values)| values.count);
        assert_eq!(other, Some(MEASURED_QUEUES_MAX as u64 + 1));
    }

    #[test]
    fn each_outcome_has_a_counter() {
        let measurements = Measurements::default();
        for (index, outcome) in MeasuredOutcome::ALL.into_iter().enumerate() {
            (0..=index).for_each(|_time| measurements.count_attempt(outcome));
        }
        let counts: Vec<u64> = measurements.attempts().into_iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [1, 2, 3, 4, 5, 6]);
    }
}

//! What executors hand back, until the dispatcher writes it.

use std::sync::{Mutex, PoisonError};

use super::prefetch_buffer::OwnedJob;
use windlass_engine::store::LogLine;
use windlass_engine::transition::Outcome;

/// The end of one attempt.
pub(super) struct Done {
    pub(super) owned: OwnedJob,
    pub(super) outcome: Outcome,
    pub(super) logs: Vec<LogLine>,
}

impl Done {
    /// Of what it adds to the job: its output or error, and lines that are not written.
    fn bytes(&self) -> usize {
        let result = match &self.outcome {
            Outcome::Successful { output } => output.as_ref().map_or(0, String::len),
            Outcome::Failed { error, .. }
            | Outcome::TimedOut { error }
            | Outcome::Cancelled { error }
            | Outcome::Interrupted { error } => error.len(),
            Outcome::Unstarted | Outcome::OutOfResources { .. } => 0,
        };
        result + self.logs.iter().map(|line| line.text.len()).sum::<usize>()
    }
}

/// Several ends, and how long the attempts took.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) done: Vec<Done>,
    /// When the first of them came, by the monotonic clock.
    since_us: i64,
    /// Attempts that were executed, not only given back.
    pub(super) executed: i64,
    pub(super) total_us: i64,
    /// Of what they came to.
    pub(super) total_bytes: i64,
}

#[derive(Default)]
pub(super) struct Results {
    batch: Mutex<Batch>,
}

impl Results {
    /// Adds an end; returns how many wait now.
    pub(super) fn add(&self, done: Done, elapsed_us: i64, now_us: i64) -> usize {
        let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        if batch.done.is_empty() {
            batch.since_us = now_us;
        }
        if done.outcome.has_begun() {
            batch.executed += 1;
            batch.total_us += elapsed_us;
            batch.total_bytes += done.bytes() as i64;
        }
        batch.done.push(done);
        batch.done.len()
    }

    /// How many wait, and since when the first of them does.
    pub(super) fn waiting(&self) -> (usize, i64) {
        let batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        (batch.done.len(), batch.since_us)
    }

    pub(super) fn take(&self) -> Batch {
        std::mem::take(&mut *self.batch.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

//! What executors hand back, until the dispatcher writes it.

use std::sync::{Mutex, PoisonError};

use super::held::Held;
use crate::store::LogLine;
use crate::transition::Outcome;

/// The end of one attempt.
pub(super) struct Done {
    pub(super) held: Held,
    pub(super) outcome: Outcome,
    pub(super) logs: Vec<LogLine>,
}

/// Several ends, and how long the attempts took.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) done: Vec<Done>,
    /// Attempts that were executed, not only given back.
    pub(super) executed: i64,
    pub(super) total_us: i64,
}

#[derive(Default)]
pub(super) struct Results {
    batch: Mutex<Batch>,
}

impl Results {
    /// Adds an end; returns whether it is the first that waits.
    pub(super) fn add(&self, done: Done, elapsed_us: i64) -> bool {
        let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        if done.outcome != Outcome::Unstarted {
            batch.executed += 1;
            batch.total_us += elapsed_us;
        }
        batch.done.push(done);
        batch.done.len() == 1
    }

    pub(super) fn take(&self) -> Batch {
        std::mem::take(&mut *self.batch.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

//! Ended attempts that wait to be written by the dispatcher.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::owned_job::OwnedJob;
use windlass_engine::set_variables::SetVariable;
use windlass_engine::store::{Artifact, LogLine};
use windlass_engine::transition::Outcome;

/// An attempt that has ended, or that was given back unstarted.
pub(crate) struct EndedAttempt {
    pub(crate) owned: OwnedJob,
    pub(crate) outcome: Outcome,
    /// The exit code of its process, if it had one and no signal ended it.
    pub(crate) exit_code: Option<i64>,
    /// Lines that are not known to be in the database.
    pub(crate) logs: Vec<LogLine>,
    /// The files that the job keeps.
    pub(crate) artifacts: Vec<Artifact>,
    /// The variables that the job sets.
    pub(crate) variables: Vec<SetVariable>,
}

impl EndedAttempt {
    pub(crate) fn unstarted(owned: OwnedJob) -> EndedAttempt {
        EndedAttempt {
            owned,
            outcome: Outcome::Unstarted,
            exit_code: None,
            logs: Vec::new(),
            artifacts: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// Bytes of its output or error, and of its lines.
    fn bytes(&self) -> usize {
        let result = match &self.outcome {
            Outcome::Successful { output } => output.as_ref().map_or(0, String::len),
            Outcome::Failed { error, .. }
            | Outcome::TimedOut { error, .. }
            | Outcome::Skipped { reason: error }
            | Outcome::Again { reason: error, .. }
            | Outcome::Cancelled { error }
            | Outcome::Interrupted { error } => error.len(),
            Outcome::Unstarted | Outcome::OutOfResources { .. } => 0,
        };
        let variables = self.variables.iter().map(|variable| variable.value.len()).sum::<usize>();
        result + variables + self.logs.iter().map(|line| line.text.len()).sum::<usize>()
    }
}

/// Ended attempts, and what they took together.
#[derive(Default)]
pub(crate) struct ResultBatch {
    pub(crate) ended: Vec<EndedAttempt>,
    /// When the first of them was added, by the monotonic clock.
    since_us: i64,
    /// How many of them were executed and not only given back.
    pub(crate) executed: i64,
    /// How long these took together.
    pub(crate) total_us: i64,
    /// Bytes of their results and output together.
    pub(crate) total_bytes: i64,
}

#[derive(Default)]
pub(crate) struct Results {
    batch: Mutex<ResultBatch>,
}

impl Results {
    fn lock(&self) -> MutexGuard<'_, ResultBatch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an ended attempt. Returns how many wait now.
    pub(crate) fn add(&self, ended: EndedAttempt, elapsed_us: i64, now_us: i64) -> usize {
        let mut batch = self.lock();
        if batch.ended.is_empty() {
            batch.since_us = now_us;
        }
        if ended.outcome.has_begun() {
            batch.executed += 1;
            batch.total_us += elapsed_us;
            batch.total_bytes += ended.bytes() as i64;
        }
        batch.ended.push(ended);
        batch.ended.len()
    }

    /// How many wait, and since when the first of them does.
    pub(crate) fn waiting(&self) -> (usize, i64) {
        let batch = self.lock();
        (batch.ended.len(), batch.since_us)
    }

    /// Takes all that wait.
    pub(crate) fn take(&self) -> ResultBatch {
        std::mem::take(&mut *self.lock())
    }
}

//! The recorded attempts of a job: those that did not succeed, and those that a retry has replaced.

use crate::store::Jobs;
use windlass_db::all;
use windlass_db::error::Result;

/// An attempt that did not succeed, or that succeeded before its run was retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Its number.
    pub attempt: i64,
    /// The worker that executed it.
    pub worker_id: Option<i64>,
    /// `failed`, `timed_out`, `interrupted`, `cancelled`, or `successful`.
    pub outcome: String,
    /// What went wrong.
    pub error: Option<String>,
    /// When the job became claimable for it.
    pub ready_at: Option<i64>,
    /// When it was claimed.
    pub started_at: Option<i64>,
    /// When its end was written.
    pub finished_at: i64,
    /// When its run was retried, if this was the last attempt before.
    pub retried_at: Option<i64>,
}

impl Jobs<'_> {
    /// Lists the attempts of a job that did not succeed, and those that a retry of the run has replaced, in order.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn attempts(&self, job_id: i64) -> Result<Vec<Attempt>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT attempt, worker_id, outcome, error, ready_at, started_at, finished_at, retried_at
                 FROM job_attempts WHERE job_id = $1 ORDER BY attempt",
                &[job_id.into()],
                |row| {
                    Ok(Attempt {
                        attempt: row.integer(0)?,
                        worker_id: row.optional_integer(1)?,
                        outcome: row.text(2)?,
                        error: row.optional_text(3)?,
                        ready_at: row.optional_integer(4)?,
                        started_at: row.optional_integer(5)?,
                        finished_at: row.integer(6)?,
                        retried_at: row.optional_integer(7)?,
                    })
                },
            )
        })
    }
}

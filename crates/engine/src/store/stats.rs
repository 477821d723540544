//! Counts over everything, for people and monitors.

use crate::status::{JobStatus, RunStatus};
use crate::store::Upkeep;
use crate::store::runs::JobCounts;
use windlass_db::all;
use windlass_db::error::Result;

/// Counts over everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Jobs by state.
    pub jobs: JobCounts,
    /// Runs by state, every state once.
    pub runs: Vec<(RunStatus, i64)>,
}

impl Upkeep<'_> {
    /// Counts over everything. Reads every row of `jobs` and `runs`.
    ///
    /// # Errors
    /// The database's.
    pub fn stats(&self) -> Result<Stats> {
        self.store.read(|connection| {
            let mut jobs = JobCounts::default();
            connection.query("SELECT status, jobs FROM job_stats", &[], &mut |row| {
                jobs.add(row.parsed(0, JobStatus::parse)?, row.integer(1)?);
                Ok(())
            })?;
            let counted = all(connection, "SELECT status, count(*) FROM runs GROUP BY status", &[], |row| {
                Ok((row.parsed(0, RunStatus::parse)?, row.integer(1)?))
            })?;
            let count = |status| {
                counted.iter().find(|(counted, _)| *counted == status).map_or(0, |(_, count)| *count)
            };
            Ok(Stats { jobs, runs: RunStatus::ALL.map(|status| (status, count(status))).to_vec() })
        })
    }
}

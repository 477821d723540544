//! What lists of runs say about the jobs of all their runs at once.

use std::collections::{BTreeMap, BTreeSet};

use crate::status::{JobStatus, RunStatus};
use crate::store::runs::JobCounts;
use crate::store::{Runs, json_ids};
use windlass_db::error::Result;
use windlass_db::{Row, all};

impl Runs<'_> {
    /// How many jobs of each run are in each state. A run without jobs is left out.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn job_counts_of(&self, run_ids: &[i64]) -> Result<BTreeMap<i64, JobCounts>> {
        let mut counts: BTreeMap<i64, JobCounts> = BTreeMap::new();
        self.store.read(|connection| {
            connection.query(
                "SELECT jobs.run_id, jobs.status, count(*), sum(CASE WHEN jobs.allow_failure = 1 THEN 1 ELSE 0 END)
                 FROM runs JOIN jobs ON {by jobs.run_id = runs.id}
                 WHERE runs.id {in $1} GROUP BY jobs.run_id, jobs.status",
                &[(&json_ids(run_ids)).into()],
                &mut |row| add_counted(&mut counts, row),
            )
        })?;
        Ok(counts)
    }

    /// The states of some runs, by id. A run that does not exist is left out.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn statuses_of(&self, run_ids: &[i64]) -> Result<BTreeMap<i64, RunStatus>> {
        let found = self.store.read(|connection| {
            all(
                connection,
                "SELECT id, status FROM runs WHERE id {in $1}",
                &[(&json_ids(run_ids)).into()],
                |row| Ok((row.integer(0)?, row.parsed(1, RunStatus::parse)?)),
            )
        })?;
        Ok(found.into_iter().collect())
    }

    /// Those of some runs that are unfinished and that no living worker executes.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn interrupted_of(&self, run_ids: &[i64]) -> Result<BTreeSet<i64>> {
        let found = self.store.read(|connection| {
            all(
                connection,
                "SELECT runs.id FROM runs
                 WHERE runs.id {in $1} AND {guard runs.status IN ('PENDING', 'RUNNING')}
                   AND NOT EXISTS (SELECT 1 FROM workers
                                   WHERE workers.status IN ('ALIVE', 'DRAINING')
                                     AND (workers.run_ids IS NULL
                                          OR coalesce(runs.root_run_id, runs.id) {in workers.run_ids}))",
                &[(&json_ids(run_ids)).into()],
                |row| row.integer(0),
            )
        })?;
        Ok(found.into_iter().collect())
    }
}

/// Adds a row of (run, state, jobs, jobs that may fail) to the counts of its run.
pub(super) fn add_counted(counts: &mut BTreeMap<i64, JobCounts>, row: &dyn Row) -> Result<()> {
    let counted = counts.entry(row.integer(0)?).or_default();
    let status = row.parsed(1, JobStatus::parse)?;
    counted.add(status, row.integer(2)?);
    if status == JobStatus::Failed {
        counted.add_allowed_failures(row.integer(3)?);
    }
    Ok(())
}

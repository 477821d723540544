//! The jobs around one job of a run: those that are a few edges away.

use std::collections::BTreeSet;

use super::of_run::read_job_of_run;
use crate::store::{JobOfRun, Jobs, json_ids};
use windlass_db::error::Result;
use windlass_db::{Connection, all};

/// Edges that are read for one step away from the job.
const EDGES_OF_STEP_MAX: i64 = 1_000;

/// Some jobs of a run, and what they need of each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobsAround {
    /// The jobs, in the order of the definition.
    pub jobs: Vec<JobOfRun>,
    /// The edges between them: (parent, child) by job id.
    pub edges: Vec<(i64, i64)>,
}

impl Jobs<'_> {
    /// A job with the `most` jobs that are nearest to it, along what they need. What a job needs comes before what needs it.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn around(&self, job_id: i64, most: usize) -> Result<JobsAround> {
        self.store.read(|connection| {
            let mut near = BTreeSet::from([job_id]);
            let mut edge = vec![job_id];
            // Each step finds at least one job, or is the last one.
            while !edge.is_empty() && near.len() < most {
                let next = neighbours(connection, &edge)?;
                edge = next.into_iter().filter(|id| near.len() < most && near.insert(*id)).collect();
            }
            let ids: Vec<i64> = near.into_iter().collect();
            let ids = json_ids(&ids);
            let jobs = all(
                connection,
                "SELECT {job_of_run} FROM jobs WHERE jobs.id {in $1} ORDER BY jobs.id",
                &[(&ids).into()],
                read_job_of_run,
            )?;
            let edges = all(
                connection,
                "SELECT parent_id, child_id FROM job_dependencies
                 WHERE child_id {in $1} AND parent_id {in $2} ORDER BY child_id, parent_id",
                &[(&ids).into(), (&ids).into()],
                |row| Ok((row.integer(0)?, row.integer(1)?)),
            )?;
            Ok(JobsAround { jobs, edges })
        })
    }
}

/// What some jobs need, and then what needs them.
fn neighbours(connection: &mut dyn Connection, job_ids: &[i64]) -> Result<Vec<i64>> {
    let ids = json_ids(job_ids);
    let mut found = all(
        connection,
        "SELECT parent_id FROM job_dependencies WHERE child_id {in $1} ORDER BY child_id, parent_id LIMIT $2",
        &[(&ids).into(), EDGES_OF_STEP_MAX.into()],
        |row| row.integer(0),
    )?;
    found.extend(all(
        connection,
        "SELECT child_id FROM job_dependencies WHERE parent_id {in $1} ORDER BY parent_id, child_id LIMIT $2",
        &[(&ids).into(), EDGES_OF_STEP_MAX.into()],
        |row| row.integer(0),
    )?);
    Ok(found)
}

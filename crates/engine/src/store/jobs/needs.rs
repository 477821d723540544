//! What some jobs need, and a part of the jobs of a run: for lists that show a page.

use super::{Job, read_job};
use crate::store::{Jobs, json_ids};
use windlass_db::all;
use windlass_db::error::Result;

/// A job that another one needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededJob {
    /// The job that needs it.
    pub needed_by: i64,
    /// Its id.
    pub id: i64,
    /// Its name in the run.
    pub name: Option<String>,
}

impl Jobs<'_> {
    /// What some jobs need, by these jobs.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn needed_by(&self, job_ids: &[i64]) -> Result<Vec<NeededJob>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT edges.child_id, needed.id, needed.name FROM job_dependencies AS edges
                 JOIN jobs AS needed ON needed.id = edges.parent_id
                 WHERE edges.child_id {in $1} ORDER BY edges.child_id, needed.id",
                &[(&json_ids(job_ids)).into()],
                |row| {
                    Ok(NeededJob {
                        needed_by: row.integer(0)?,
                        id: row.integer(1)?,
                        name: row.optional_text(2)?,
                    })
                },
            )
        })
    }

    /// The next jobs of a run after one, in the order of its definition.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn of_run_after(&self, run_id: i64, after_id: i64, limit: i64) -> Result<Vec<Job>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT {job_columns}
                 FROM (SELECT id AS found_id FROM jobs WHERE run_id = $1 AND +id > $2 ORDER BY +id LIMIT $3) AS found
                 JOIN jobs ON {by jobs.id = found.found_id} ORDER BY id LIMIT $3",
                &[run_id.into(), after_id.into(), limit.into()],
                read_job,
            )
        })
    }
}

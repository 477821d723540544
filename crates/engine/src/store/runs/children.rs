//! The runs that jobs have started, and what they give to these jobs.

use serde_json::Value as Json;

use crate::status::RunStatus;
use crate::store::Runs;
use crate::store::for_scheduler::decisions::ended_calls::read_outputs;
use crate::store::registrations::versions::definition;
use windlass_db::error::Result;
use windlass_db::{all, first, one};

/// A run that a job has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildRun {
    /// Its id.
    pub run_id: i64,
    /// The name of its workflow.
    pub workflow: String,
    /// Its state.
    pub status: RunStatus,
    /// The job that has started it.
    pub parent_job_id: i64,
    /// The attempt of the job. `None` if an item started it that a retry has made anew: then the job is the group.
    pub parent_attempt: Option<i64>,
    /// The run of the job.
    pub parent_run_id: Option<i64>,
    /// The name of the job.
    pub parent_name: Option<String>,
}

impl Runs<'_> {
    /// The run that an attempt of a job has started: its id, its workflow and its state.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn started_by(&self, job_id: i64, attempt: i64) -> Result<Option<(i64, String, RunStatus)>> {
        self.store.read(|connection| {
            first(
                connection,
                "SELECT id, workflow, status FROM runs
                 WHERE parent_job_id IS NOT NULL AND parent_job_id = $1 AND parent_attempt = $2",
                &[job_id.into(), attempt.into()],
                |row| {
                    let workflow = row.lossy_text(1)?.unwrap_or_default();
                    Ok((row.integer(0)?, workflow, row.parsed(2, RunStatus::parse)?))
                },
            )
        })
    }

    /// The runs below a run, over all depths, the oldest first: at most `limit` after the run `after`.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn below(&self, run_id: i64, after: i64, limit: i64) -> Result<Vec<ChildRun>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT runs.id, runs.workflow, runs.status, runs.parent_job_id, runs.parent_attempt, jobs.run_id, jobs.name
                 FROM runs LEFT JOIN jobs ON {by jobs.id = runs.parent_job_id}
                 WHERE runs.root_run_id IS NOT NULL AND runs.root_run_id = $1 AND runs.id > $2
                 ORDER BY runs.id LIMIT $3",
                &[run_id.into(), after.into(), limit.into()],
                |row| {
                    Ok(ChildRun {
                        run_id: row.integer(0)?,
                        workflow: row.lossy_text(1)?.unwrap_or_default(),
                        status: row.parsed(2, RunStatus::parse)?,
                        parent_job_id: row.integer(3)?,
                        parent_attempt: row.optional_integer(4)?,
                        parent_run_id: row.optional_integer(5)?,
                        parent_name: row.lossy_text(6)?,
                    })
                },
            )
        })
    }

    /// The outputs of a run that succeeded, or why they have no value. `None` if its workflow has none, or if it did not
    /// succeed.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) and the database's.
    pub fn outputs(&self, run_id: i64) -> Result<Option<std::result::Result<Json, String>>> {
        self.store.read(|connection| {
            let (status, workflow_id) = one(
                connection,
                "SELECT status, workflow_id FROM runs WHERE id = $1",
                &[run_id.into()],
                |row| Ok((row.parsed(0, RunStatus::parse)?, row.optional_integer(1)?)),
            )?;
            let Some(workflow_id) = workflow_id.filter(|_id| status == RunStatus::Successful) else {
                return Ok(None);
            };
            let workflow = definition(connection, workflow_id)?;
            let outputs = read_outputs(connection, run_id, &workflow)?;
            Ok(match outputs {
                Ok(None) => None,
                Ok(Some(text)) => Some(serde_json::from_str(&text).map_err(|error| error.to_string())),
                Err(reason) => Some(Err(reason)),
            })
        })
    }
}

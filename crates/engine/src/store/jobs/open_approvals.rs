//! The approvals that wait for a person, for people.

use crate::store::Jobs;
use crate::store::jobs::approvals::approval_in;
use crate::store::stats::Count;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, all, one};
use windlass_workflow::kinds::approval::{Approval, prompt_of};

/// The most approvals that one call returns.
pub const OPEN_APPROVALS_MAX: i64 = 200;
/// Where the count stops.
const COUNTED_MAX: i64 = 99;

/// A job that waits for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenApproval {
    /// Its id.
    pub job_id: i64,
    /// Its run.
    pub run_id: Option<i64>,
    /// The workflow of the run.
    pub workflow: String,
    /// Its name in the run.
    pub job: String,
    /// The question, with the values that its template names.
    pub prompt: String,
    /// What the definition says: the fields, and what happens when the time is over.
    pub approval: Option<Approval>,
    /// Since when it waits.
    pub since: i64,
    /// When it ends without a decision.
    pub ends_at: Option<i64>,
}

impl Jobs<'_> {
    /// The approvals that wait for a person, in the order of their jobs: at most `limit` after the job `after`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a limit that is not from 1 to [`OPEN_APPROVALS_MAX`], and the database's.
    pub fn open_approvals(&self, after: i64, limit: i64) -> Result<Vec<OpenApproval>> {
        if !(1..=OPEN_APPROVALS_MAX).contains(&limit) {
            let reason = format!("a page has 1 to {OPEN_APPROVALS_MAX} of them");
            return Err(Error::invalid("list open approvals", reason));
        }
        self.store.read(|connection| open_between(connection, after, i64::MAX, limit))
    }

    /// The approval of a job; `None` if the job does not wait for a person.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn open_approval(&self, job_id: i64) -> Result<Option<OpenApproval>> {
        let found = self.store.read(|connection| open_between(connection, job_id - 1, job_id, 1))?;
        Ok(found.into_iter().next())
    }

    /// How many approvals wait for a person, up to 99.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn count_open_approvals(&self) -> Result<Count> {
        let sql = "SELECT count(*) FROM (SELECT id FROM jobs WHERE waits_for = 'approval' ORDER BY id LIMIT $1) AS counted";
        let counted = self
            .store
            .read(|connection| one(connection, sql, &[(COUNTED_MAX + 1).into()], |row| row.integer(0)))?;
        Ok(Count::up_to(COUNTED_MAX, counted))
    }
}

/// The approvals of the jobs after an id and up to another one.
fn open_between(
    connection: &mut dyn Connection,
    after: i64,
    last: i64,
    limit: i64,
) -> Result<Vec<OpenApproval>> {
    all(
        connection,
        "SELECT jobs.id, jobs.run_id, runs.workflow, jobs.name, jobs.payload, jobs.control,
                coalesce(jobs.started_at, jobs.updated_at), jobs.wait_ends_at
         FROM (SELECT id AS found_id FROM jobs WHERE waits_for = 'approval' AND id > $1 AND id <= $2
               ORDER BY id LIMIT $3) AS found
         JOIN jobs ON {by jobs.id = found.found_id}
         LEFT JOIN runs ON {by runs.id = jobs.run_id}
         ORDER BY jobs.id LIMIT $3",
        &[after.into(), last.into(), limit.into()],
        |row| {
            Ok(OpenApproval {
                job_id: row.integer(0)?,
                run_id: row.optional_integer(1)?,
                workflow: row.lossy_text(2)?.unwrap_or_default(),
                job: row.lossy_text(3)?.unwrap_or_default(),
                prompt: row.lossy_text(4)?.and_then(|payload| prompt_of(&payload)).unwrap_or_default(),
                approval: row.lossy_text(5)?.and_then(|control| approval_in(&control)),
                since: row.integer(6)?,
                ends_at: row.optional_integer(7)?,
            })
        },
    )
}

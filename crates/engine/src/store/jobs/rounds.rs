//! The rounds of a job with `repeat`. They are counted in the JSON of `jobs.retry`, so that other jobs have no column for them.

use crate::store::Jobs;
use crate::store::claim::job::read_conditions;
use windlass_db::error::Result;
use windlass_db::first;

/// The rounds of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rounds {
    /// How many rounds have ended without what the job repeats for.
    pub ended: i64,
    /// How many there may be.
    pub max: i64,
    /// The condition that ends them.
    pub until: String,
}

impl Jobs<'_> {
    /// The rounds of a job; `None` if it has no `repeat`.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn rounds(&self, job_id: i64) -> Result<Option<Rounds>> {
        let conditions = self.store.read(|connection| {
            first(connection, "SELECT retry FROM jobs WHERE id = $1", &[job_id.into()], |row| {
                Ok(read_conditions(row, 0))
            })
        })?;
        let Some(Ok(Some(conditions))) = conditions else { return Ok(None) };
        Ok(conditions.repeat.as_ref().map(|repeat| Rounds {
            ended: conditions.rounds,
            max: repeat.max,
            until: repeat.until.text().to_owned(),
        }))
    }
}

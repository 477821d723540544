//! Retrying jobs that stand alone: one, or all that match, batch by batch. Deleting all that match.

use std::collections::HashSet;

use crate::status::JobStatus;
use crate::store::evidence::Evidence;
use crate::store::jobs::change::{OtherState, other_state};
use crate::store::page::search_text;
use crate::store::{Jobs, artifacts, json_ids, json_list};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Fragment, Value, all, one};
use windlass_system::wake_ups::WakeUps;

/// Jobs that one call of [`Jobs::retry_next`] or [`Jobs::delete_next`] looks at.
pub const DEAD_LETTERS_BATCH: i64 = 1_000;
/// What [`Jobs::count_dead_letters`] counts at most.
pub const DEAD_LETTERS_COUNTED_MAX: i64 = 1_000_000;
const RETRY: &str = "retry jobs";
const DELETE: &str = "delete jobs";

/// Which jobs to retry or to delete, of those that stand alone and have ended without success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetters {
    /// In one of these states: FAILED, CANCELLED.
    pub statuses: Vec<JobStatus>,
    /// Of this kind.
    pub kind: Option<String>,
    /// Of this queue.
    pub queue: Option<String>,
    /// With this text in the last error. The case of ASCII letters does not matter.
    pub error: Option<String>,
    /// That ended before this instant, in milliseconds since the Unix epoch. A job that fails again meanwhile is not
    /// taken twice.
    pub before_ms: i64,
}

/// Where the way through many jobs goes on: the end and the id of the last job that was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeadLetterCursor {
    finished_at: i64,
    job_id: i64,
}

/// What one call of [`Jobs::retry_next`] or [`Jobs::delete_next`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadLetterBatch {
    /// How many jobs are ready to run again, or are deleted.
    pub jobs: i64,
    /// Where the next call goes on; `None` if no job is left.
    pub next: Option<DeadLetterCursor>,
}

/// The conditions of [`DeadLetters`], with parameters 1 to 5.
pub(crate) const DEAD_LETTER: Fragment = Fragment {
    name: "dead_letter",
    sql: "run_id IS NULL AND finished_at < $1
          AND status IN (SELECT value FROM {texts $2} AS statuses)
          AND (CAST($3 AS TEXT) IS NULL OR kind = $3)
          AND (CAST($4 AS TEXT) IS NULL OR queue = $4)
          AND (CAST($5 AS TEXT) IS NULL OR {position}(lower(last_error), $5) > 0)",
};

impl Jobs<'_> {
    /// Makes a job ready to run again that stands alone and did not succeed. Its attempts keep counting, but failures and
    /// interruptions start from zero.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] if it belongs to a run, succeeded or has not ended, or if an unfinished job has
    /// its unique key; and the database's.
    pub fn retry(&self, job_id: i64) -> Result<()> {
        let now_ms = self.store.clock.now_ms();
        self.store.write("retry a job", Evidence::Token, move |connection| {
            match reset(connection, &[job_id], now_ms)? {
                0 => Err(why_not_retried(connection, job_id)?),
                _one => Ok(()),
            }
        })
    }

    /// How many jobs match, up to [`DEAD_LETTERS_COUNTED_MAX`].
    ///
    /// # Errors
    /// [`Error::Invalid`] for a text or a state that can't be looked for, and the database's.
    pub fn count_dead_letters(&self, which: &DeadLetters) -> Result<i64> {
        let parameters = Parameters::of(RETRY, which)?;
        self.store.read(|connection| {
            let [before, statuses, kind, queue, error] = parameters.values();
            let most = DEAD_LETTERS_COUNTED_MAX.into();
            one(
                connection,
                "SELECT count(*) FROM (
                     SELECT id FROM jobs
                     WHERE (status = 'FAILED' OR status = 'CANCELLED') AND finished_at IS NOT NULL AND {dead_letter}
                     LIMIT $6) AS counted",
                &[before, statuses, kind, queue, error, most],
                |row| row.integer(0),
            )
        })
    }

    /// Makes the next of the jobs that match ready to run again, at most [`DEAD_LETTERS_BATCH`], the one that ended first
    /// before the others. Jobs whose unique key an unfinished job has are left out. Call it again until
    /// [`DeadLetterBatch::next`] is `None`: a crash between two calls leaves whole batches, and the rest as it was.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a text or a state that can't be looked for; [`Error::Conflict`] if another process took a unique
    /// key at the same time; and the database's.
    pub fn retry_next(&self, which: &DeadLetters, after: DeadLetterCursor) -> Result<DeadLetterBatch> {
        let (ids, next) = self.next_dead_letters(RETRY, which, after)?;
        if ids.is_empty() {
            return Ok(DeadLetterBatch { jobs: 0, next });
        }
        let now_ms = self.store.clock.now_ms();
        let jobs =
            self.store.write(RETRY, Evidence::Token, move |connection| reset(connection, &ids, now_ms))?;
        Ok(DeadLetterBatch { jobs, next })
    }

    /// Deletes the next of the jobs that match, with their outputs and attempts, in the same way as [`Jobs::retry_next`].
    ///
    /// # Errors
    /// [`Error::Invalid`] for a text or a state that can't be looked for, and the database's.
    pub fn delete_next(&self, which: &DeadLetters, after: DeadLetterCursor) -> Result<DeadLetterBatch> {
        let (ids, next) = self.next_dead_letters(DELETE, which, after)?;
        if ids.is_empty() {
            return Ok(DeadLetterBatch { jobs: 0, next });
        }
        let jobs = self.store.write(DELETE, Evidence::Token, move |connection| delete(connection, &ids))?;
        Ok(DeadLetterBatch { jobs, next })
    }

    /// The next jobs that match, and where the batch after them begins.
    fn next_dead_letters(
        &self,
        operation: &'static str,
        which: &DeadLetters,
        after: DeadLetterCursor,
    ) -> Result<(Vec<i64>, Option<DeadLetterCursor>)> {
        let parameters = Parameters::of(operation, which)?;
        let found = self.store.read(|connection| {
            let [before, statuses, kind, queue, error] = parameters.values();
            let DeadLetterCursor { finished_at, job_id } = after;
            let position = [finished_at.into(), job_id.into(), DEAD_LETTERS_BATCH.into()];
            all(
                connection,
                "SELECT id, finished_at FROM jobs
                 WHERE run_id IS NULL AND finished_at IS NOT NULL AND (finished_at, id) > ($6, $7)
                   AND (status = 'FAILED' OR status = 'CANCELLED') AND {dead_letter}
                 ORDER BY finished_at, id LIMIT $8",
                &[&[before, statuses, kind, queue, error][..], &position].concat(),
                |row| Ok(DeadLetterCursor { job_id: row.integer(0)?, finished_at: row.integer(1)? }),
            )
        })?;
        let next = found.last().copied().filter(|_last| found.len() as i64 == DEAD_LETTERS_BATCH);
        Ok((found.into_iter().map(|found| found.job_id).collect(), next))
    }
}

/// The parameters of [`DEAD_LETTER`].
struct Parameters<'d> {
    which: &'d DeadLetters,
    statuses: String,
    error: Option<String>,
}

impl Parameters<'_> {
    fn of<'d>(operation: &'static str, which: &'d DeadLetters) -> Result<Parameters<'d>> {
        let is_taken = |status: &JobStatus| [JobStatus::Failed, JobStatus::Cancelled].contains(status);
        if let Some(other) = which.statuses.iter().find(|status| !is_taken(status)) {
            let reason = format!("{other} jobs are not taken; only FAILED and CANCELLED ones are");
            return Err(Error::invalid(operation, reason));
        }
        let statuses: Vec<&str> = which.statuses.iter().map(|status| status.as_str()).collect();
        let error = which.error.as_ref().map(|error| search_text(operation, error)).transpose()?;
        Ok(Parameters { which, statuses: json_list(operation, &statuses)?, error })
    }

    fn values(&self) -> [Value<'_>; 5] {
        let DeadLetters { statuses: _, kind, queue, error: _, before_ms } = self.which;
        [(*before_ms).into(), (&self.statuses).into(), kind.into(), queue.into(), (&self.error).into()]
    }
}

/// Makes those of the jobs ready that have ended without success. Of several jobs with one unique key the oldest is taken.
fn reset(connection: &mut dyn Connection, job_ids: &[i64], now_ms: i64) -> Result<i64> {
    let ids = json_ids(job_ids);
    let mut ended = all(
        connection,
        "SELECT id, unique_key FROM jobs
         WHERE id {in $1} AND {guard run_id IS NULL} AND {guard finished_at IS NOT NULL}
           AND {guard status IN ('FAILED', 'CANCELLED', 'SKIPPED')}
           AND (unique_key IS NULL
                OR NOT EXISTS (SELECT 1 FROM jobs AS other
                               WHERE other.unique_key IS NOT NULL AND other.unique_key = jobs.unique_key
                                 AND other.finished_at IS NULL))
         ORDER BY id {lock}",
        &[(&ids).into()],
        |row| Ok((row.integer(0)?, row.lossy_text(1)?)),
    )?;
    let mut keys = HashSet::new();
    ended.retain(|(_id, key)| key.as_ref().is_none_or(|key| keys.insert(key.clone())));
    let free: Vec<i64> = ended.into_iter().map(|(id, _key)| id).collect();
    if free.is_empty() {
        return Ok(0);
    }
    artifacts::delete(connection, &free)?;
    let reset = connection.execute(
        "UPDATE jobs
         SET status = 'SCHEDULED', {as_before_its_first_attempt}, execute_after = $2, delay_ms = NULL, updated_at = $2
         WHERE id {in $1} AND {guard finished_at IS NOT NULL}",
        &[(&json_ids(&free)).into(), now_ms.into()],
    )?;
    connection.wake(WakeUps::PENDING | WakeUps::DUE | WakeUps::PROGRESS);
    Ok(i64::try_from(reset).unwrap_or(i64::MAX))
}

/// Deletes those of the jobs that have ended without success.
fn delete(connection: &mut dyn Connection, job_ids: &[i64]) -> Result<i64> {
    let deleted = connection.execute(
        "DELETE FROM jobs
         WHERE id {in $1} AND {guard run_id IS NULL} AND {guard finished_at IS NOT NULL}
           AND {guard status IN ('FAILED', 'CANCELLED')}",
        &[(&json_ids(job_ids)).into()],
    )?;
    connection.wake(WakeUps::PROGRESS);
    Ok(i64::try_from(deleted).unwrap_or(i64::MAX))
}

fn why_not_retried(connection: &mut dyn Connection, job_id: i64) -> Result<Error> {
    let OtherState { status, run_id, label, .. } = other_state(connection, job_id)?;
    let reason = match (run_id, status) {
        (Some(run_id), _) => format!("it belongs to run {run_id}; retry the run"),
        (None, JobStatus::Successful) => "it is SUCCESSFUL; enqueue another one".to_owned(),
        (None, JobStatus::Failed | JobStatus::Cancelled | JobStatus::Skipped) => {
            "another process changes it, or an unfinished job has its unique key".to_owned()
        }
        (
            None,
            JobStatus::Blocked
            | JobStatus::Scheduled
            | JobStatus::Pending
            | JobStatus::Running
            | JobStatus::Waiting,
        ) => format!("it is {status}, and has not ended"),
    };
    Ok(Error::conflict(format!("retry job {label}"), reason))
}

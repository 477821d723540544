//! Changing jobs that wait: when they start, their priority, their queue. And deleting jobs that stand alone.

use crate::status::JobStatus;
use crate::store::evidence::Evidence;
use crate::store::finish::locks::lock_runs_of;
use crate::store::finish::slots::admit;
use crate::store::jobs::{label, read_job};
use crate::store::{Job, Jobs};
use crate::transition::DELAY_MAX_MS;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, first};
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::limits;

/// When a job starts at the earliest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartTime {
    /// At this instant, in milliseconds since the Unix epoch.
    At(i64),
    /// After this time, in milliseconds. It keeps its length when the clock is set.
    After(i64),
}

/// What to change of a job that waits. Nothing means that it stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobChange {
    /// When it starts at the earliest.
    pub start: Option<StartTime>,
    /// Its priority.
    pub priority: Option<i64>,
    /// Its queue.
    pub queue: Option<String>,
}

impl Jobs<'_> {
    /// Changes a job that is PENDING, SCHEDULED, or WAITING for a slot. Returns the job as it is then. A job of a queue that
    /// keeps the order of arrival has no priority.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Invalid`] for values out of bounds, or if nothing is to change; [`Error::Conflict`] if the
    /// job is in another state; and the database's.
    pub fn change(&self, job_id: i64, change: JobChange) -> Result<Job> {
        check(job_id, &change)?;
        let now_ms = self.store.clock.now_ms();
        self.store.write("change a job", Evidence::Token, move |connection| {
            change_job(connection, job_id, &change, now_ms)
        })
    }

    /// Deletes a job that stands alone, with its output and its attempts: one that has ended, or one that waits.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] if it is running, or if it belongs to a run; and the database's.
    pub fn delete(&self, job_id: i64) -> Result<()> {
        self.store.write("delete a job", Evidence::Token, move |connection| delete_job(connection, job_id))
    }
}

fn check(job_id: i64, change: &JobChange) -> Result<()> {
    let invalid = |reason: String| Err(Error::invalid(format!("change job j{job_id}"), reason));
    if *change == JobChange::default() {
        return invalid("there is nothing to change".to_owned());
    }
    let allowed = -limits::PRIORITY..=limits::PRIORITY;
    if let Some(priority) = change.priority.filter(|priority| !allowed.contains(priority)) {
        let (lowest, highest) = (allowed.start(), allowed.end());
        return invalid(format!("priority is {priority}; it must be {lowest} to {highest}"));
    }
    if change.queue.as_ref().is_some_and(String::is_empty) {
        return invalid("the queue is empty".to_owned());
    }
    match change.start {
        Some(StartTime::After(delay_ms)) if !(0..=DELAY_MAX_MS).contains(&delay_ms) => {
            invalid("its delay must be 0 to 100 years".to_owned())
        }
        Some(StartTime::After(_) | StartTime::At(_)) | None => Ok(()),
    }
}

fn change_job(connection: &mut dyn Connection, job_id: i64, change: &JobChange, now_ms: i64) -> Result<Job> {
    lock_runs_of(connection, &[job_id])?;
    let JobChange { start, priority, queue } = change;
    let (at_ms, delay_ms) = match start {
        None => (None, None),
        Some(StartTime::At(at_ms)) => (Some(*at_ms), None),
        Some(StartTime::After(delay_ms)) => {
            (Some(now_ms.saturating_add(*delay_ms)), Some(*delay_ms).filter(|delay_ms| *delay_ms > 0))
        }
    };
    // A job that gets another time is SCHEDULED, also if the time has come: the scheduler makes it claimable. A job with a
    // condition that was not asked yet sleeps, or waits for its decision.
    let changed = first(
        connection,
        "UPDATE jobs
         SET status = CASE WHEN CAST($2 AS {integer}) IS NULL THEN status ELSE 'SCHEDULED' END,
             waits_for = CASE WHEN CAST($2 AS {integer}) IS NULL THEN waits_for END,
             execute_after = coalesce(CAST($2 AS {integer}), execute_after),
             delay_ms = CASE WHEN CAST($2 AS {integer}) IS NULL THEN delay_ms ELSE CAST($3 AS {integer}) END,
             queue = coalesce(CAST($5 AS TEXT), queue),
             priority = CASE WHEN coalesce(CAST($5 AS TEXT), queue) IN (SELECT queues.name FROM queues WHERE fifo = 1) THEN 0
                             ELSE coalesce(CAST($4 AS {integer}), priority) END,
             updated_at = $6
         WHERE id = $1 AND finished_at IS NULL
           AND (status IN ('PENDING', 'SCHEDULED') OR (status = 'WAITING' AND waits_for = 'slot'))
           AND (control IS NULL OR decided_at IS NOT NULL)
         RETURNING {job_columns}",
        &[
            job_id.into(),
            at_ms.into(),
            delay_ms.into(),
            (*priority).into(),
            queue.into(),
            now_ms.into(),
        ],
        read_job,
    )?;
    let Some(job) = changed else { return Err(why_not_changed(connection, job_id)?) };
    // A job that does not wait for its slot any more leaves it to the next one.
    let keys: Vec<String> = job.concurrency_key.iter().cloned().collect();
    admit(connection, &keys, now_ms)?;
    connection.wake(WakeUps::PENDING | WakeUps::DUE | WakeUps::PROGRESS);
    Ok(job)
}

fn delete_job(connection: &mut dyn Connection, job_id: i64) -> Result<()> {
    let deleted = first(
        connection,
        "DELETE FROM jobs
         WHERE id = $1 AND run_id IS NULL
           AND (finished_at IS NOT NULL OR status IN ('PENDING', 'SCHEDULED', 'WAITING'))
         RETURNING id",
        &[job_id.into()],
        |row| row.integer(0),
    )?;
    if deleted.is_none() {
        return Err(why_not_deleted(connection, job_id)?);
    }
    connection.wake(WakeUps::DUE | WakeUps::PROGRESS);
    Ok(())
}

/// What is known of a job that a verb did not find in the state that it needs.
pub(super) struct OtherState {
    pub(super) status: JobStatus,
    pub(super) run_id: Option<i64>,
    pub(super) label: String,
    is_reported: bool,
}

pub(super) fn other_state(connection: &mut dyn Connection, job_id: i64) -> Result<OtherState> {
    let found = first(
        connection,
        "SELECT status, run_id, name, CASE WHEN finished_at IS NULL THEN 1 ELSE 0 END FROM jobs WHERE id = $1",
        &[job_id.into()],
        |row| {
            let (run_id, name) = (row.optional_integer(1)?, row.lossy_text(2)?);
            Ok(OtherState {
                status: row.parsed(0, JobStatus::parse)?,
                run_id,
                label: label(job_id, run_id, name.as_deref()),
                is_reported: row.integer(3)? != 0,
            })
        },
    )?;
    found.ok_or_else(|| Error::not_found(format!("job j{job_id}")))
}

fn why_not_changed(connection: &mut dyn Connection, job_id: i64) -> Result<Error> {
    let OtherState { status, label, .. } = other_state(connection, job_id)?;
    let reason = match status {
        JobStatus::Pending | JobStatus::Scheduled | JobStatus::Waiting => {
            "it waits for something that is no worker, slot or time of its own".to_owned()
        }
        JobStatus::Blocked => "it is BLOCKED: jobs that it needs have not ended".to_owned(),
        JobStatus::Running
        | JobStatus::Successful
        | JobStatus::Failed
        | JobStatus::Skipped
        | JobStatus::Cancelled => format!("it is {status}, and does not wait"),
    };
    Ok(Error::conflict(format!("change job {label}"), reason))
}

fn why_not_deleted(connection: &mut dyn Connection, job_id: i64) -> Result<Error> {
    let OtherState { status, run_id, label, is_reported } = other_state(connection, job_id)?;
    let reason = match run_id {
        Some(run_id) => {
            format!("it belongs to run {run_id}, which is deleted as a whole by `windlass db prune`")
        }
        None if is_reported && status != JobStatus::Running => {
            format!("it was reported as {status}, and what follows is not written yet; try again")
        }
        None => format!("it is {status}; cancel it first"),
    };
    Ok(Error::conflict(format!("delete job {label}"), reason))
}

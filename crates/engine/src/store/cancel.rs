//! Cancelling runs and jobs. Jobs that have not started are cancelled at once, and running jobs are asked to stop.

use crate::join_rule::EndColumns;
use crate::status::{JobStatus, RunStatus, StopReason};
use crate::store::claim::ready::release;
use crate::store::evidence::Evidence;
use crate::store::finish::items::{Stop, settle_groups, stop_items};
use crate::store::finish::locks::lock_runs_of;
use crate::store::finish::propagation::{Belonging, Ended, propagate};
use crate::store::finish::run_end::{RunDelta, count_down};
use crate::store::jobs::label;
use crate::store::{Jobs, Runs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Fragment, first};
use windlass_system::wake_ups::WakeUps;

/// The phase of the handlers that run always.
const LAST_PHASE: i64 = 2;

/// Whether an unfinished job goes on after it was asked to stop: until its process is gone, its items have ended, or the run
/// that it has started is over.
pub(crate) const IS_STOPPED_LATER: Fragment = Fragment {
    name: "is_stopped_later",
    sql: "(status IN ('RUNNING', 'FAILED') OR (status = 'WAITING' AND waits_for IN ('run', 'items')))",
};

/// What a cancellation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancellation {
    /// Jobs that ended at once.
    pub cancelled: i64,
    /// Running jobs that were asked to stop.
    pub stopping: i64,
}

impl Runs<'_> {
    /// Cancels a run.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] if it is finished or being stopped already; and the database's.
    pub fn cancel(&self, run_id: i64) -> Result<Cancellation> {
        let now_ms = self.store.clock.now_ms();
        self.store.write("cancel a run", Evidence::Token, move |connection| {
            stop_run(connection, run_id, StopReason::Cancelled, Urgency::WithGrace, now_ms)
        })
    }
}

impl Jobs<'_> {
    /// Cancels a job. Its children are skipped.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] if it is finished or being stopped already; and the database's.
    pub fn cancel(&self, job_id: i64) -> Result<Cancellation> {
        let now_ms = self.store.clock.now_ms();
        self.store
            .write("cancel a job", Evidence::Token, move |connection| cancel_job(connection, job_id, now_ms))
    }
}

/// How much time a running job gets to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// The grace time of its worker.
    WithGrace,
    /// None: its processes are killed at once.
    AtOnce,
    /// The grace time of its worker. The deadline of the job is over, so it fails.
    PastDeadline,
}

/// Stops a run in the caller's transaction.
pub(super) fn stop_run(
    connection: &mut dyn Connection,
    run_id: i64,
    reason: StopReason,
    urgency: Urgency,
    now_ms: i64,
) -> Result<Cancellation> {
    let stopped = first(
        connection,
        "UPDATE runs SET stop_reason = $2, updated_at = $3
         WHERE id = $1 AND status IN ('PENDING', 'RUNNING') AND stop_reason IS NULL
         RETURNING phase, waits_for",
        &[run_id.into(), reason.as_str().into(), now_ms.into()],
        |row| Ok((row.integer(0)?, row.lossy_text(1)?.is_some())),
    )?;
    let (phase, last_phase) = match stopped {
        // A run that has no slot of its concurrency key runs no handlers beside those that have one.
        Some((phase, true)) => {
            connection.execute("UPDATE runs SET waits_for = NULL WHERE id = $1", &[run_id.into()])?;
            (phase, LAST_PHASE)
        }
        // The handlers of later phases still run.
        Some((phase, false)) => (phase, phase),
        None => match phase_of_handlers(connection, run_id, now_ms)? {
            Some(phase) => (phase, LAST_PHASE),
            None => return Err(why_run_not_stopped(connection, run_id)?),
        },
    };
    let at_once = i64::from(match urgency {
        Urgency::WithGrace | Urgency::PastDeadline => false,
        Urgency::AtOnce => true,
    });
    let error = match reason {
        StopReason::Cancelled => "the run was cancelled",
        StopReason::TimedOut => "the run reached its timeout",
        StopReason::Skipped => "the run was skipped: its concurrency key had no free slot",
    };
    // One statement changes waiting and running jobs. Between two statements another connection could claim a waiting
    // job, and neither statement would see the job. A job that was reported as FAILED would be retried, so it is
    // asked to stop too.
    let (mut cancelled, mut stopping, mut counted, mut has_groups) = (0, 0, 0, false);
    connection.query(
        "UPDATE jobs
         SET cancel_requested_at = CASE WHEN {is_stopped_later} THEN $2 ELSE cancel_requested_at END,
             cancel_at_once = $4,
             last_error = CASE WHEN {is_stopped_later} THEN last_error ELSE $3 END,
             finished_at = CASE WHEN {is_stopped_later} THEN finished_at ELSE $2 END,
             updated_at = $2,
             status = CASE WHEN {is_stopped_later} THEN status ELSE 'CANCELLED' END,
             waits_for = CASE WHEN {is_stopped_later} THEN waits_for END
         WHERE run_id = $1 AND phase >= $5 AND phase <= $6
           AND (status IN ('BLOCKED', 'SCHEDULED', 'PENDING', 'RUNNING', 'WAITING')
                OR (status = 'FAILED' AND finished_at IS NULL))
           AND NOT ({is_stopped_later} AND cancel_requested_at IS NOT NULL)
         RETURNING status, phase, CASE WHEN waits_for = 'items' THEN 1 ELSE 0 END",
        &[run_id.into(), now_ms.into(), error.into(), at_once.into(), phase.into(), last_phase.into()],
        &mut |row| {
            let status = row.parsed(0, JobStatus::parse)?;
            // A group ends with its items.
            let is_group = status == JobStatus::Waiting && row.integer(2)? != 0;
            has_groups |= is_group;
            let is_over = status == JobStatus::Cancelled;
            cancelled += i64::from(is_over);
            stopping += i64::from(!is_over && !is_group);
            // The run counts the jobs of its present phase.
            counted += i64::from(is_over && row.integer(1)? == phase);
            Ok(())
        },
    )?;
    let groups = if has_groups { settle_groups(connection, run_id, now_ms)?.len() as i64 } else { 0 };
    cancelled += groups;
    let delta = RunDelta { finished: counted + groups, failed: counted };
    count_down(connection, &BTreeMap::from([(run_id, delta)]), now_ms)?;
    wake_after_cancel(connection);
    Ok(Cancellation { cancelled, stopping })
}

/// Returns the phase of a run that was stopped before and runs its handlers now. A second cancellation ends these too.
fn phase_of_handlers(connection: &mut dyn Connection, run_id: i64, now_ms: i64) -> Result<Option<i64>> {
    first(
        connection,
        "UPDATE runs SET updated_at = $2
         WHERE id = $1 AND status IN ('PENDING', 'RUNNING') AND phase > 0
         RETURNING phase",
        &[run_id.into(), now_ms.into()],
        |row| row.integer(0),
    )
}

fn why_run_not_stopped(connection: &mut dyn Connection, run_id: i64) -> Result<Error> {
    let status = first(connection, "SELECT status FROM runs WHERE id = $1", &[run_id.into()], |row| {
        row.parsed(0, RunStatus::parse)
    })?;
    Ok(match status {
        None => Error::not_found(format!("run {run_id}")),
        Some(status) if status.is_terminal() => {
            Error::conflict(format!("cancel run {run_id}"), format!("it is {status} already"))
        }
        Some(_) => Error::conflict(format!("cancel run {run_id}"), "it is being stopped already"),
    })
}

/// Cancels a job in the caller's transaction.
pub(super) fn cancel_job(connection: &mut dyn Connection, job_id: i64, now_ms: i64) -> Result<Cancellation> {
    lock_runs_of(connection, &[job_id])?;
    if let Some(reason) = why_not_begun(connection, job_id)? {
        return Err(Error::conflict(format!("cancel job j{job_id}"), reason));
    }
    let cancelled = first(
        connection,
        "UPDATE jobs
         SET status = 'CANCELLED', waits_for = NULL, last_error = 'it was cancelled', updated_at = $2, finished_at = $2
         WHERE id = $1 AND status IN ('BLOCKED', 'SCHEDULED', 'PENDING', 'WAITING') AND NOT {is_stopped_later}
         RETURNING run_id, name, allow_failure, group_id",
        &[job_id.into(), now_ms.into()],
        |row| {
            Ok(Ended {
                job_id,
                run_id: row.optional_integer(0)?,
                name: row.lossy_text(1)?,
                columns: EndColumns {
                    status: JobStatus::Cancelled,
                    allow_failure: row.integer(2)? != 0,
                    upstream_failed: false,
                },
                belonging: Belonging::of(row.optional_integer(3)?),
            })
        },
    )?;
    wake_after_cancel(connection);
    if let Some(ended) = cancelled {
        let propagated = propagate(connection, &[ended], None, now_ms)?;
        // The children of a cancelled job are skipped. Only those of the group of a cancelled item can be ready.
        release(connection, &propagated.promoted.ready, now_ms)?;
        return Ok(Cancellation { cancelled: 1, stopping: 0 });
    }
    if let Some(cancelled) = stop_group(connection, job_id, "it was cancelled", now_ms)? {
        return Ok(cancelled);
    }
    let asked_to_stop = connection.execute(
        "UPDATE jobs SET cancel_requested_at = $2, updated_at = $2
         WHERE id = $1 AND {is_stopped_later} AND finished_at IS NULL
           AND cancel_requested_at IS NULL",
        &[job_id.into(), now_ms.into()],
    )?;
    if asked_to_stop == 1 {
        return Ok(Cancellation { cancelled: 0, stopping: 1 });
    }
    Err(why_job_not_cancelled(connection, job_id)?)
}

/// A group that waits for its items.
pub(crate) const WAITS_FOR_ITEMS: Fragment =
    Fragment { name: "waits_for_items", sql: "(status = 'WAITING' AND waits_for = 'items')" };

/// Stops the items of a group, which ends with the last of them. `None` if the job is no group with items, or if it is being
/// stopped already.
pub(super) fn stop_group(
    connection: &mut dyn Connection,
    job_id: i64,
    reason: &str,
    now_ms: i64,
) -> Result<Option<Cancellation>> {
    let run_id = first(
        connection,
        "UPDATE jobs SET cancel_requested_at = $2, updated_at = $2
         WHERE id = $1 AND {waits_for_items} AND cancel_requested_at IS NULL
         RETURNING run_id",
        &[job_id.into(), now_ms.into()],
        |row| row.integer(0),
    )?;
    let Some(run_id) = run_id else { return Ok(None) };
    let stopped = stop_items(connection, job_id, Stop::Cancelled, reason, now_ms)?;
    count_down(connection, &BTreeMap::from([(run_id, stopped.delta)]), now_ms)?;
    let groups = settle_groups(connection, run_id, now_ms)?;
    let propagated = propagate(connection, &groups, None, now_ms)?;
    release(connection, &propagated.promoted.ready, now_ms)?;
    let cancelled = stopped.delta.finished + groups.len() as i64;
    Ok(Some(Cancellation { cancelled, stopping: stopped.stopping }))
}

/// Why a single job can't be cancelled yet: it is a handler of a phase that has not begun, which its run does not count yet, or
/// its run waits for a slot of its concurrency key.
fn why_not_begun(connection: &mut dyn Connection, job_id: i64) -> Result<Option<&'static str>> {
    let found = first(
        connection,
        "SELECT CASE WHEN phase > (SELECT runs.phase FROM runs WHERE runs.id = jobs.run_id) THEN 1 ELSE 0 END,
                (SELECT runs.waits_for FROM runs WHERE runs.id = jobs.run_id)
         FROM jobs WHERE id = $1",
        &[job_id.into()],
        |row| Ok((row.integer(0)? != 0, row.lossy_text(1)?.is_some())),
    )?;
    Ok(match found {
        Some((_is_of_later_phase, true)) => {
            Some("its run waits for a slot of its concurrency key; cancel the run")
        }
        Some((true, false)) => {
            Some("it is a handler, and the jobs of its run have not ended; cancel the run")
        }
        Some((false, false)) | None => None,
    })
}

fn why_job_not_cancelled(connection: &mut dyn Connection, job_id: i64) -> Result<Error> {
    let known =
        first(connection, "SELECT status, run_id, name FROM jobs WHERE id = $1", &[job_id.into()], |row| {
            Ok((
                row.parsed(0, JobStatus::parse)?,
                label(job_id, row.optional_integer(1)?, row.lossy_text(2)?.as_deref()),
            ))
        })?;
    Ok(match known {
        None => Error::not_found(format!("job j{job_id}")),
        Some((JobStatus::Running | JobStatus::Waiting, label)) => {
            Error::conflict(format!("cancel job {label}"), "it is being stopped already")
        }
        Some((status, label)) => {
            Error::conflict(format!("cancel job {label}"), format!("it is {status} already"))
        }
    })
}

/// Wakes all threads that may have to act: a cancellation may free a slot of a concurrency key, let a schedule start its
/// next run, or give the turn of a queue to the next job.
fn wake_after_cancel(connection: &mut dyn Connection) {
    connection.wake(WakeUps::CANCEL | WakeUps::PROGRESS | WakeUps::DUE | WakeUps::PENDING);
}

//! Deadlines of jobs: a job that is not over at its deadline fails. One that runs is asked to stop first, and so are the items
//! of a group and the run that a job has started.
//!
//! A running job is asked to stop like one that is cancelled. It was stopped at its deadline if the request came at the deadline
//! or later: then its end is FAILED, and it is not tried again.

use crate::join_rule::EndColumns;
use crate::status::JobStatus;
use crate::store::cancel::stop_group;
use crate::store::claim::ready::release;
use crate::store::evidence::Evidence;
use crate::store::finish::locks::lock_runs_of;
use crate::store::finish::propagation::{Belonging, Ended, propagate};
use crate::store::finish::slots::admit;
use crate::store::for_scheduler::clock_steps::steps;
use crate::store::{ForScheduler, json_ids};
use windlass_db::error::Result;
use windlass_db::{Connection, UpdateReturning, all};
use windlass_system::wake_ups::WakeUps;

/// How many jobs one transaction stops.
const STOP_MAX: i64 = 200;

impl ForScheduler<'_> {
    /// Stops jobs that reached their deadline, one batch of them. Returns how many.
    pub(super) fn stop_late_jobs(&self, now_ms: i64, clock_steps: Option<i64>) -> Result<i64> {
        let late = self.store.read(|connection| {
            all(
                connection,
                "SELECT id FROM jobs
                 WHERE deadline_at IS NOT NULL AND finished_at IS NULL AND cancel_requested_at IS NULL
                   AND deadline_at <= $1
                 ORDER BY deadline_at LIMIT $2",
                &[now_ms.into(), STOP_MAX.into()],
                |row| row.integer(0),
            )
        })?;
        if late.is_empty() {
            return Ok(0);
        }
        self.store.write("stop jobs at their deadlines", Evidence::Repeat, move |connection| {
            if let Some(known) = clock_steps
                && steps(connection)? != known
            {
                return Ok(0);
            }
            stop(connection, &late, now_ms)
        })
    }
}

/// Fails jobs that do not run.
static FAIL: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        ("status", "'FAILED'"),
        ("waits_for", "NULL"),
        (
            "last_error",
            "'it was not over at its deadline'
             || CASE WHEN last_error IS NULL THEN ', and was not started' ELSE ': ' || last_error END",
        ),
        ("updated_at", "$2"),
        ("finished_at", "$2"),
    ],
    from: None,
    condition: "id {in $1} AND deadline_at <= $2
                AND (status = 'PENDING' OR status = 'SCHEDULED' OR (status = 'WAITING' AND waits_for = 'slot'))",
    returning: &["id", "run_id", "name", "allow_failure", "concurrency_key", "group_id"],
};

fn stop(connection: &mut dyn Connection, job_ids: &[i64], now_ms: i64) -> Result<i64> {
    lock_runs_of(connection, job_ids)?;
    let ids = json_ids(job_ids);
    let parameters = [(&ids).into(), now_ms.into()];
    let (mut ended, mut freed_keys) = (Vec::new(), Vec::new());
    connection.update_returning(&FAIL, &parameters, &mut |row| {
        freed_keys.extend(row.lossy_text(4)?);
        ended.push(Ended {
            job_id: row.integer(0)?,
            run_id: row.optional_integer(1)?,
            name: row.lossy_text(2)?,
            columns: EndColumns {
                status: JobStatus::Failed,
                allow_failure: row.integer(3)? != 0,
                upstream_failed: false,
            },
            belonging: Belonging::of(row.optional_integer(5)?),
        });
        Ok(())
    })?;
    // A job that was claimed since the statement before is found by the next step.
    let stopping = connection.execute(
        "UPDATE jobs SET cancel_requested_at = $2, updated_at = $2
         WHERE id {in $1} AND deadline_at <= $2 AND cancel_requested_at IS NULL
           AND (status = 'RUNNING' OR (status = 'FAILED' AND finished_at IS NULL)
                OR (status = 'WAITING' AND waits_for = 'run'))",
        &parameters,
    )?;
    let groups = stop_groups(connection, &ids, now_ms)?;
    let propagated = propagate(connection, &ended, None, now_ms)?;
    release(connection, &propagated.promoted.ready, now_ms)?;
    admit(connection, &freed_keys, now_ms)?;
    connection.wake(WakeUps::CANCEL | WakeUps::PROGRESS | WakeUps::DUE | WakeUps::PENDING);
    Ok(ended.len() as i64 + groups + i64::try_from(stopping).unwrap_or(i64::MAX))
}

/// Stops the items of groups. Returns how many groups.
fn stop_groups(connection: &mut dyn Connection, ids: &str, now_ms: i64) -> Result<i64> {
    let groups = all(
        connection,
        "SELECT id FROM jobs WHERE id {in $1} AND deadline_at <= $2 AND {waits_for_items} ORDER BY id",
        &[ids.into(), now_ms.into()],
        |row| row.integer(0),
    )?;
    let mut stopped = 0;
    for group_id in groups {
        let reason = "the deadline of all items is over";
        stopped += i64::from(stop_group(connection, group_id, reason, now_ms)?.is_some());
    }
    Ok(stopped)
}

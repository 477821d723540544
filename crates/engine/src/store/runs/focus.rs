//! The job that a person looks at first in each run of a list: the one that failed, the one that runs, or the one that waits.

use std::collections::BTreeMap;

use super::focus_large::look_at_all_jobs;
use super::of_many::add_counted;
use crate::decide::parts_of_event;
use crate::status::{JobStatus, WaitsFor};
use crate::store::runs::JobCounts;
use crate::store::{Runs, json_ids};
use windlass_db::error::Result;
use windlass_db::{Connection, Row, all};

/// The jobs of one run that are all looked at, in the order of their names. In a run with more of them, indexes find one that
/// failed, runs, waits, or can run.
pub(super) const JOBS_OF_RUN_MAX: i64 = 1_000;

/// A job that was found, by what it is compared with others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) id: i64,
    pub(super) status: JobStatus,
    pub(super) allow_failure: bool,
}

/// The job that says most about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FocusedJob {
    /// Its id.
    pub id: i64,
    /// Its run.
    pub run_id: i64,
    /// Its name.
    pub name: String,
    /// Its state.
    pub status: JobStatus,
    /// What it waits for, if it is WAITING.
    pub waits_for: Option<WaitsFor>,
    /// Claims so far.
    pub attempt: i64,
    /// Failures so far.
    pub failures: i64,
    /// When its last attempt was claimed.
    pub started_at: Option<i64>,
    /// Not claimed before this instant.
    pub execute_after: i64,
    /// The queue it waits in.
    pub queue: String,
    /// Whether this queue is paused.
    pub queue_is_paused: bool,
    /// Its concurrency key.
    pub concurrency_key: Option<String>,
    /// A job that holds a slot of this key: its run, or itself if it stands alone.
    pub key_holder: Option<KeyHolder>,
    /// The event that it waits for.
    pub event_name: Option<String>,
    /// Why its last attempt did not succeed: the first [`crate::store::ERROR_MAX`] characters.
    pub error: Option<String>,
}

/// A job that holds a slot of a concurrency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHolder {
    /// A job of this run.
    Run(i64),
    /// This job, which stands alone.
    Job(i64),
}

impl Runs<'_> {
    /// The job of each run that says most about it: the first that failed, else one that runs, else one that waits. Jobs of a
    /// run with more than a thousand are found among the first ten thousand of all runs that are in the same state.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn focused_jobs(&self, run_ids: &[i64]) -> Result<BTreeMap<i64, FocusedJob>> {
        let jobs = self.store.read(|connection| {
            let mut found = among_the_first_jobs(connection, run_ids)?;
            look_at_all_jobs(connection, run_ids, &mut found)?;
            let ids: Vec<i64> = found.values().map(|found| found.id).collect();
            all(
                connection,
                "SELECT id, run_id, name, status, waits_for, attempt, failures, started_at, execute_after, queue,
                        CASE WHEN status = 'PENDING'
                             THEN (SELECT paused_at FROM queues WHERE queues.name = jobs.queue) END,
                        concurrency_key,
                        CASE WHEN status = 'WAITING' AND waits_for = 'slot'
                             THEN (SELECT min(holder.id) FROM jobs AS holder
                                   WHERE holder.concurrency_key = jobs.concurrency_key
                                     AND holder.status IN ('PENDING', 'RUNNING')) END,
                        event, substr(last_error, 1, 500)
                 FROM jobs WHERE id {in $1}",
                &[(&json_ids(&ids)).into()],
                read_focused,
            )
        })?;
        let holders: Vec<i64> = jobs.iter().filter_map(|(_job, holder)| *holder).collect();
        let runs_of_holders = match holders.is_empty() {
            true => BTreeMap::new(),
            false => self.runs_of_jobs(&holders)?,
        };
        Ok(jobs
            .into_iter()
            .map(|(job, holder_id)| {
                let key_holder = holder_id.map(|id| match runs_of_holders.get(&id).copied().flatten() {
                    Some(run_id) => KeyHolder::Run(run_id),
                    None => KeyHolder::Job(id),
                });
                (job.run_id, FocusedJob { key_holder, ..job })
            })
            .collect())
    }

    /// How many jobs of each run are in each state. Runs of more than a thousand jobs are left out.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn job_counts_of_small(&self, run_ids: &[i64]) -> Result<BTreeMap<i64, JobCounts>> {
        let mut counts: BTreeMap<i64, JobCounts> = BTreeMap::new();
        self.store.read(|connection| {
            connection.query(
                "SELECT jobs.run_id, jobs.status, count(*), sum(CASE WHEN jobs.allow_failure = 1 THEN 1 ELSE 0 END)
                 FROM runs JOIN jobs ON {by jobs.run_id = runs.id}
                 WHERE runs.id {in $1} AND {guard runs.total_jobs <= $2} GROUP BY jobs.run_id, jobs.status",
                &[(&json_ids(run_ids)).into(), JOBS_OF_RUN_MAX.into()],
                &mut |row| add_counted(&mut counts, row),
            )
        })?;
        Ok(counts)
    }

    /// The runs of some jobs, by the id of the job.
    fn runs_of_jobs(&self, job_ids: &[i64]) -> Result<BTreeMap<i64, Option<i64>>> {
        let rows = self.store.read(|connection| {
            let sql = "SELECT id, run_id FROM jobs WHERE id {in $1}";
            all(connection, sql, &[(&json_ids(job_ids)).into()], |row| {
                Ok((row.integer(0)?, row.optional_integer(1)?))
            })
        })?;
        Ok(rows.into_iter().collect())
    }
}

/// The job that says most about each run, among its first jobs.
fn among_the_first_jobs(connection: &mut dyn Connection, run_ids: &[i64]) -> Result<BTreeMap<i64, Found>> {
    let rows = all(
        connection,
        "SELECT jobs.run_id, jobs.id, jobs.status, jobs.allow_failure
         FROM (SELECT (SELECT seen.id
                       FROM (SELECT id, status, allow_failure, finished_at, started_at, execute_after
                             FROM jobs WHERE jobs.run_id = runs.id ORDER BY jobs.name LIMIT $2) AS seen
                       WHERE seen.status NOT IN ('SUCCESSFUL', 'SKIPPED', 'BLOCKED')
                       ORDER BY CASE WHEN seen.status = 'FAILED' AND seen.allow_failure = 0 THEN 0
                                     WHEN seen.status = 'RUNNING' THEN 1
                                     WHEN seen.status = 'WAITING' THEN 2
                                     WHEN seen.status = 'PENDING' THEN 3
                                     WHEN seen.status = 'SCHEDULED' THEN 4
                                     WHEN seen.status = 'CANCELLED' THEN 5 ELSE 6 END,
                                coalesce(seen.finished_at, seen.started_at, seen.execute_after), seen.id
                       LIMIT 1) AS found_id
               FROM runs WHERE runs.id {in $1}) AS found
         JOIN jobs ON {by jobs.id = found.found_id}",
        &[(&json_ids(run_ids)).into(), JOBS_OF_RUN_MAX.into()],
        |row| {
            let status = row.parsed(2, JobStatus::parse)?;
            Ok((row.integer(0)?, Found { id: row.integer(1)?, status, allow_failure: row.integer(3)? != 0 }))
        },
    )?;
    Ok(rows.into_iter().collect())
}

/// A job, and the id of a holder of its concurrency key.
fn read_focused(row: &dyn Row) -> Result<(FocusedJob, Option<i64>)> {
    let status = row.parsed(3, JobStatus::parse)?;
    let waits_for = row.optional_text(4)?.as_deref().and_then(WaitsFor::parse);
    let job = FocusedJob {
        id: row.integer(0)?,
        run_id: row.integer(1)?,
        name: row.optional_text(2)?.unwrap_or_default(),
        status,
        waits_for: waits_for.filter(|_| status == JobStatus::Waiting),
        attempt: row.integer(5)?,
        failures: row.integer(6)?,
        started_at: row.optional_integer(7)?,
        execute_after: row.integer(8)?,
        queue: row.text(9)?,
        queue_is_paused: row.optional_integer(10)?.is_some(),
        concurrency_key: row.optional_text(11)?,
        key_holder: None,
        event_name: row.optional_text(13)?.map(|event| parts_of_event(&event).0.to_owned()),
        error: row.optional_text(14)?,
    };
    Ok((job, row.optional_integer(12)?))
}

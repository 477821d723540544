//! The jobs of one run for people: a window of them, and what a picture of the run needs.

use std::collections::BTreeMap;

use crate::status::{JobStatus, WaitsFor};
use crate::store::page::search_text;
use crate::store::{Attempt, Jobs, json_ids, json_list};
use windlass_db::error::{Error, Result};
use windlass_db::{Row, all, one};

/// The most jobs of a window.
pub const WINDOW_MAX: i64 = 1_000;
const WINDOW: &str = "read a window of the jobs of a run";

/// Which jobs of a run to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobWindow {
    /// In one of these states; in any if there is none.
    pub statuses: Vec<JobStatus>,
    /// With this text in their names. The case of ASCII letters does not matter.
    pub name: Option<String>,
    /// Whether items of groups are among them.
    pub part: JobPart,
    /// The order of the jobs.
    pub order: JobOrder,
    /// So many jobs before the window are left out.
    pub offset: i64,
    /// The most jobs of the window, from 1 to [`WINDOW_MAX`].
    pub limit: i64,
}

/// A part of the jobs of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobPart {
    /// All jobs.
    All,
    /// The jobs that the definition names, without the items of those with `for_each`.
    WithoutItems,
    /// The items of this job.
    ItemsOf(i64),
}

impl JobPart {
    /// The group of the jobs: 0 stands for none.
    fn group_id(self) -> Option<i64> {
        match self {
            JobPart::All => None,
            JobPart::WithoutItems => Some(0),
            JobPart::ItemsOf(group_id) => Some(group_id),
        }
    }
}

/// The order of the jobs of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobOrder {
    /// As the definition has them.
    Definition,
    /// Jobs that failed first, then those that run, then those that wait.
    Attention,
}

/// A job of a run, without its payload and output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOfRun {
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// What executes it.
    pub kind: String,
    /// Its queue.
    pub queue: String,
    /// Its state.
    pub status: JobStatus,
    /// What it waits for, if it is WAITING.
    pub waits_for: Option<WaitsFor>,
    /// Claims so far.
    pub attempt: i64,
    /// How many attempts may fail.
    pub max_attempts: i64,
    /// Its failure does not matter to the run.
    pub allow_failure: bool,
    /// It was skipped because a job before it failed or was cancelled.
    pub upstream_failed: bool,
    /// That of its last attempt.
    pub exit_code: Option<i64>,
    /// The beginning of its last error.
    pub error: Option<String>,
    /// Not claimed before this instant.
    pub execute_after: i64,
    /// When it was accepted.
    pub created_at: i64,
    /// When it became claimable for its last attempt, or for its next one if it is PENDING.
    pub ready_at: Option<i64>,
    /// When its last attempt was claimed.
    pub started_at: Option<i64>,
    /// When it finished.
    pub finished_at: Option<i64>,
    /// When the last of the jobs that it needs ended; for a handler that needs none, the last job before its phase.
    pub needed_until: Option<i64>,
    /// The job with `for_each` of which it is an item.
    pub group_id: Option<i64>,
}

/// A window of the jobs of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobsOfRun {
    /// The jobs of the window.
    pub rows: Vec<JobOfRun>,
    /// How many jobs match, in all windows.
    pub matching: i64,
}

/// A job of one of several runs that are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobInGrid {
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Its state.
    pub status: JobStatus,
    /// Its failure does not matter to the run.
    pub allow_failure: bool,
    /// When its last attempt was claimed.
    pub started_at: Option<i64>,
    /// When it finished.
    pub finished_at: Option<i64>,
}

/// One statement for all runs, because a server plans each statement again.
const FIRST_OF_EACH: &str =
    "SELECT jobs.run_id, jobs.id, jobs.name, jobs.status, jobs.allow_failure, jobs.started_at, jobs.finished_at
     FROM (SELECT CAST(value AS {integer}) AS run_id FROM {texts $1} AS runs) AS wanted CROSS JOIN jobs
     WHERE jobs.id {in SELECT own.id FROM jobs AS own
                       WHERE own.run_id = wanted.run_id AND own.group_id IS NULL ORDER BY +own.id LIMIT $2}
     ORDER BY jobs.run_id, jobs.id";

const BY_DEFINITION: &str = "SELECT {job_of_run} FROM (SELECT id AS found_id FROM jobs WHERE {in_window}
                           ORDER BY +id LIMIT $5 OFFSET $6) AS found
     JOIN jobs ON {by jobs.id = found.found_id} ORDER BY jobs.id LIMIT $5";
const BY_ATTENTION: &str = "SELECT {job_of_run}
     FROM (SELECT id AS found_id,
                  CASE WHEN status = 'FAILED' AND allow_failure = 0 THEN 0 WHEN status = 'RUNNING' THEN 1
                       WHEN status = 'FAILED' THEN 2 WHEN status IN ('WAITING', 'PENDING', 'SCHEDULED') THEN 3
                       WHEN status = 'CANCELLED' THEN 4 ELSE 5 END AS place
           FROM jobs WHERE {in_window} ORDER BY 2, 1 LIMIT $5 OFFSET $6) AS found
     JOIN jobs ON {by jobs.id = found.found_id} ORDER BY found.place, jobs.id LIMIT $5";

/// The columns of [`JobOfRun`].
pub(crate) const JOB_OF_RUN: windlass_db::Fragment = windlass_db::Fragment {
    name: "job_of_run",
    sql: "jobs.id, jobs.name, jobs.kind, jobs.queue, jobs.status, jobs.waits_for, jobs.attempt, jobs.max_attempts,
          jobs.allow_failure, jobs.upstream_failed, jobs.exit_code, substr(jobs.last_error, 1, 500),
          jobs.execute_after, jobs.created_at, jobs.started_at, jobs.finished_at,
          coalesce((SELECT max(needed.finished_at) FROM job_dependencies JOIN jobs AS needed ON needed.id = parent_id
                    WHERE child_id = jobs.id),
                   CASE WHEN jobs.phase > 0
                        THEN (SELECT max(earlier.finished_at) FROM jobs AS earlier
                              WHERE earlier.run_id = jobs.run_id AND earlier.phase < jobs.phase) END),
          jobs.group_id,
          CASE WHEN jobs.status = 'PENDING' THEN jobs.updated_at ELSE jobs.ready_at END",
};
/// The conditions of a [`JobWindow`], with parameters 1 to 4. A run is read whole by its index, and not along the ids.
pub(crate) const IN_WINDOW: windlass_db::Fragment = windlass_db::Fragment {
    name: "in_window",
    sql: "run_id = $1
          AND (CAST($2 AS TEXT) IS NULL OR status IN (SELECT value FROM {texts $2} AS statuses))
          AND (CAST($3 AS TEXT) IS NULL OR {position}(lower(name), $3) > 0)
          AND (CAST($4 AS {integer}) IS NULL OR coalesce(group_id, 0) = $4)",
};

impl Jobs<'_> {
    /// A window of the jobs of a run.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a limit or a text that is out of bounds, and the database's.
    pub fn window(&self, run_id: i64, window: &JobWindow) -> Result<JobsOfRun> {
        if !(1..=WINDOW_MAX).contains(&window.limit) || window.offset < 0 {
            let reason = format!("a window has 1 to {WINDOW_MAX} jobs, and begins at 0 or later");
            return Err(Error::invalid(WINDOW, reason));
        }
        let name = window.name.as_ref().map(|name| search_text(WINDOW, name)).transpose()?;
        let statuses: Vec<&str> = window.statuses.iter().map(|status| status.as_str()).collect();
        let statuses = (!statuses.is_empty()).then(|| json_list(WINDOW, &statuses)).transpose()?;
        let sql = match window.order {
            JobOrder::Definition => BY_DEFINITION,
            JobOrder::Attention => BY_ATTENTION,
        };
        let group_id = window.part.group_id();
        let which = [run_id.into(), statuses.as_deref().into(), name.as_deref().into(), group_id.into()];
        let part = [window.limit.into(), window.offset.into()];
        self.store.read(|connection| {
            let rows = all(connection, sql, &[&which[..], &part[..]].concat(), read_job_of_run)?;
            let count = "SELECT count(*) FROM jobs WHERE {in_window}";
            let is_last = (rows.len() as i64) < window.limit && (window.offset == 0 || !rows.is_empty());
            let matching = match is_last {
                true => window.offset + rows.len() as i64,
                false => one(connection, count, &which, |row| row.integer(0))?,
            };
            Ok(JobsOfRun { rows, matching })
        })
    }

    /// The first jobs of some runs as the definition has them, without items, by run: at most `limit` of each.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn first_of_each(&self, run_ids: &[i64], limit: i64) -> Result<BTreeMap<i64, Vec<JobInGrid>>> {
        let mut jobs: BTreeMap<i64, Vec<JobInGrid>> = BTreeMap::new();
        self.store.read(|connection| {
            connection.query(FIRST_OF_EACH, &[(&json_ids(run_ids)).into(), limit.into()], &mut |row| {
                let job = JobInGrid {
                    id: row.integer(1)?,
                    name: row.optional_text(2)?.unwrap_or_default(),
                    status: row.parsed(3, JobStatus::parse)?,
                    allow_failure: row.integer(4)? != 0,
                    started_at: row.optional_integer(5)?,
                    finished_at: row.optional_integer(6)?,
                };
                jobs.entry(row.integer(0)?).or_default().push(job);
                Ok(())
            })
        })?;
        Ok(jobs)
    }

    /// The attempts of some jobs that did not succeed, or that a retry has replaced, in order, by job.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn attempts_of_each(&self, job_ids: &[i64]) -> Result<BTreeMap<i64, Vec<Attempt>>> {
        let mut attempts: BTreeMap<i64, Vec<Attempt>> = BTreeMap::new();
        self.store.read(|connection| {
            connection.query(
                "SELECT job_id, attempt, worker_id, outcome, substr(error, 1, 500), ready_at, started_at, finished_at,
                        retried_at
                 FROM job_attempts WHERE job_id {in $1} ORDER BY job_id, attempt",
                &[(&json_ids(job_ids)).into()],
                &mut |row| {
                    let attempt = Attempt {
                        attempt: row.integer(1)?,
                        worker_id: row.optional_integer(2)?,
                        outcome: row.text(3)?,
                        error: row.optional_text(4)?,
                        ready_at: row.optional_integer(5)?,
                        started_at: row.optional_integer(6)?,
                        finished_at: row.integer(7)?,
                        retried_at: row.optional_integer(8)?,
                    };
                    attempts.entry(row.integer(0)?).or_default().push(attempt);
                    Ok(())
                },
            )
        })?;
        Ok(attempts)
    }
}

pub(super) fn read_job_of_run(row: &dyn Row) -> Result<JobOfRun> {
    let status = row.parsed(4, JobStatus::parse)?;
    let waits_for = row.optional_text(5)?.as_deref().and_then(WaitsFor::parse);
    Ok(JobOfRun {
        id: row.integer(0)?,
        name: row.optional_text(1)?.unwrap_or_default(),
        kind: row.text(2)?,
        queue: row.text(3)?,
        status,
        waits_for: waits_for.filter(|_| status == JobStatus::Waiting),
        attempt: row.integer(6)?,
        max_attempts: row.integer(7)?,
        allow_failure: row.integer(8)? != 0,
        upstream_failed: row.integer(9)? != 0,
        exit_code: row.optional_integer(10)?,
        error: row.optional_text(11)?,
        execute_after: row.integer(12)?,
        created_at: row.integer(13)?,
        started_at: row.optional_integer(14)?,
        finished_at: row.optional_integer(15)?,
        needed_until: row.optional_integer(16)?,
        group_id: row.optional_integer(17)?,
        ready_at: row.optional_integer(18)?,
    })
}

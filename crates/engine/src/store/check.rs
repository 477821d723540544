//! The invariants of the design as queries: each finds rows that break a rule.

use super::Store;
use crate::db::{Connection, all};
use crate::error::Result;

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The rule.
    pub check: &'static str,
    /// Where it is broken.
    pub detail: String,
}

/// Rows shown for each rule at most.
const SHOWN_MAX: i64 = 20;

/// (rule, query for a text about each row that breaks it)
const INVARIANTS: &[(&str, &str)] = &[
    ("the storage is sound", "SELECT detail FROM {damage} AS damage LIMIT $1"),
    (
        "a job that runs has an owner that was registered",
        "SELECT 'job j' || id || ' is RUNNING, and worker ' || worker_id || ' is unknown' FROM jobs
         WHERE status = 'RUNNING' AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.id = jobs.worker_id)
         LIMIT $1",
    ),
    (
        "no job has started before its parents were over",
        "SELECT 'job j' || child.id || ' is ' || child.status || ', and its parent j' || parent.id
                || ' is ' || parent.status
         FROM job_dependencies AS edges
         JOIN jobs AS parent ON parent.id = edges.parent_id
         JOIN jobs AS child ON child.id = edges.child_id
         WHERE child.status IN ('SCHEDULED', 'PENDING', 'RUNNING', 'WAITING', 'SUCCESSFUL', 'FAILED')
           AND parent.status <> 'SUCCESSFUL' AND NOT (parent.status = 'FAILED' AND parent.allow_failure = 1)
         LIMIT $1",
    ),
    (
        "a blocked job counts its unfinished parents",
        "SELECT 'job j' || id || ' counts ' || blocked_by || ' unfinished parents, and has ' || unfinished
         FROM (SELECT jobs.id, jobs.blocked_by,
                      (SELECT count(*) FROM job_dependencies AS edges
                       JOIN jobs AS parent ON parent.id = edges.parent_id
                       WHERE edges.child_id = jobs.id
                         AND parent.status IN ('BLOCKED', 'SCHEDULED', 'PENDING', 'RUNNING', 'WAITING'))
                      AS unfinished
               FROM jobs WHERE jobs.status = 'BLOCKED') AS blocked
         WHERE blocked_by <> unfinished OR unfinished = 0
         LIMIT $1",
    ),
    (
        "a run counts its unfinished jobs",
        "SELECT 'run ' || id || ' counts ' || unfinished_jobs || ' unfinished jobs, and has ' || unfinished
         FROM (SELECT runs.id, runs.unfinished_jobs,
                      (SELECT count(*) FROM jobs WHERE jobs.run_id = runs.id
                         AND jobs.status IN ('BLOCKED', 'SCHEDULED', 'PENDING', 'RUNNING', 'WAITING'))
                      AS unfinished
               FROM runs) AS counted
         WHERE unfinished_jobs <> unfinished
         LIMIT $1",
    ),
    (
        "a run is over exactly when its last job is",
        "SELECT 'run ' || id || ' is ' || status || ' with ' || unfinished_jobs || ' unfinished jobs'
         FROM runs
         WHERE (status IN ('PENDING', 'RUNNING')) <> (unfinished_jobs > 0)
         LIMIT $1",
    ),
    (
        "a run is successful exactly when no job that matters failed",
        "SELECT 'run ' || id || ' is ' || status || ' with ' || failed || ' failed jobs' FROM (
             SELECT runs.id, runs.status, (SELECT count(*) FROM jobs WHERE jobs.run_id = runs.id
                 AND (jobs.status = 'CANCELLED'
                      OR (jobs.status = 'FAILED' AND jobs.allow_failure = 0))) AS failed
             FROM runs WHERE runs.stop_reason IS NULL) AS judged
         WHERE (status = 'SUCCESSFUL' AND failed > 0) OR (status = 'FAILED' AND failed = 0)
         LIMIT $1",
    ),
    (
        "what is over has an end, what is not has none",
        "SELECT 'job j' || id || ' is ' || status FROM jobs
         WHERE (status IN ('SUCCESSFUL', 'FAILED', 'SKIPPED', 'CANCELLED')) <> (finished_at IS NOT NULL)
         LIMIT $1",
    ),
    (
        "failures and interruptions stay within their bounds",
        "SELECT 'job j' || id || ' has ' || failures || ' failures of ' || max_attempts || ' and '
                || interruptions || ' interruptions of ' || max_interruptions
         FROM jobs
         WHERE failures > max_attempts OR interruptions > max_interruptions + 1
         LIMIT $1",
    ),
];

impl Store {
    /// Checks every invariant, on one snapshot. An empty list is a sound database.
    ///
    /// # Errors
    /// The database's.
    pub fn check(&self) -> Result<Vec<Problem>> {
        self.read(|connection| broken_rules(connection))
    }
}

/// Checks every invariant inside the caller's transaction.
pub(super) fn broken_rules(connection: &mut dyn Connection) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for (check, sql) in INVARIANTS {
        let details = all(connection, sql, &[SHOWN_MAX.into()], |row| row.text(0))?;
        problems.extend(details.into_iter().map(|detail| Problem { check, detail }));
    }
    Ok(problems)
}

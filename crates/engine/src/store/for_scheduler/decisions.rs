//! Jobs that wait for a decision: reading what the decision needs, and writing what was decided.
//!
//! The rows are read and changed in one transaction that holds the locks of their runs. So nothing that a decision depends
//! on can change in between, and of two schedulers the second one finds no row that waits.

use std::collections::HashMap;

use crate::decide::{Decision, Undecided, decide};
use crate::join_rule::{EndColumns, JobEnd, JoinRule, ParentEnds};
use crate::status::JobStatus;
use crate::store::evidence::Evidence;
use crate::store::finish::locks::lock_runs_of;
use crate::store::finish::propagation::{Ended, propagate};
use crate::store::finish::slots::admit;
use crate::store::{ForScheduler, json_ids};
use windlass_db::error::Result;
use windlass_db::{Connection, UpdateReturning, Value, all, all_updated};
use windlass_system::wake_ups::WakeUps;

/// How many jobs one transaction decides.
const DECISIONS_MAX: i64 = 200;

/// A job that waits for a decision.
struct WaitingJob {
    id: i64,
    undecided: Undecided,
}

impl ForScheduler<'_> {
    /// Decides about jobs that wait for a decision, one batch of them. Returns how many. Call it again until it returns 0.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn decide_waiting(&self) -> Result<i64> {
        let waiting = self.store.read(|connection| {
            all(
                connection,
                "SELECT id FROM jobs WHERE status = 'WAITING' AND waits_for = 'decision' ORDER BY id LIMIT $1",
                &[DECISIONS_MAX.into()],
                |row| row.integer(0),
            )
        })?;
        if waiting.is_empty() {
            return Ok(0);
        }
        let now_ms = self.store.clock.now_ms();
        self.store.write("decide about jobs", Evidence::Repeat, move |connection| {
            lock_runs_of(connection, &waiting)?;
            let jobs = read_waiting(connection, &waiting)?;
            let decided = jobs.len() as i64;
            carry_out(connection, jobs, now_ms)?;
            Ok(decided)
        })
    }
}

/// Reads those of the jobs that still wait for a decision.
fn read_waiting(connection: &mut dyn Connection, job_ids: &[i64]) -> Result<Vec<WaitingJob>> {
    let mut parents = read_parents(connection, job_ids)?;
    all(
        connection,
        "SELECT id, join_rule FROM jobs
         WHERE id {in $1} AND {guard status = 'WAITING'} AND waits_for = 'decision' ORDER BY id",
        &[(&json_ids(job_ids)).into()],
        |row| {
            let id = row.integer(0)?;
            let join_rule = match row.lossy_text(1)? {
                Some(_rule) => row.parsed(1, JoinRule::parse)?,
                None => JoinRule::AllSuccessful,
            };
            let parents = parents.remove(&id).unwrap_or_default();
            Ok(WaitingJob { id, undecided: Undecided { join_rule, parents } })
        },
    )
}

/// Counts how the parents of each job ended.
fn read_parents(connection: &mut dyn Connection, job_ids: &[i64]) -> Result<HashMap<i64, ParentEnds>> {
    let mut ends: HashMap<i64, ParentEnds> = HashMap::new();
    connection.query(
        "SELECT edges.child_id, parent.status, parent.allow_failure, parent.upstream_failed, count(*)
         FROM job_dependencies AS edges
         JOIN jobs AS parent ON {by parent.id = edges.parent_id}
         WHERE edges.child_id {in $1}
         GROUP BY edges.child_id, parent.status, parent.allow_failure, parent.upstream_failed",
        &[(&json_ids(job_ids)).into()],
        &mut |row| {
            let columns = EndColumns {
                status: row.parsed(1, JobStatus::parse)?,
                allow_failure: row.integer(2)? != 0,
                upstream_failed: row.integer(3)? != 0,
            };
            let counted = ends.entry(row.integer(0)?).or_default();
            match columns.end() {
                Some(JobEnd::Passed) => counted.passed += row.integer(4)?,
                Some(JobEnd::Broken) => counted.broken += row.integer(4)?,
                Some(JobEnd::NotNeeded) => counted.not_needed += row.integer(4)?,
                // Another program has changed the parent. The job waits until the run is reconciled.
                None => {}
            }
            Ok(())
        },
    )?;
    Ok(ends)
}

fn carry_out(connection: &mut dyn Connection, jobs: Vec<WaitingJob>, now_ms: i64) -> Result<()> {
    let (mut go_on, mut skip) = (Vec::new(), Vec::new());
    for WaitingJob { id, undecided } in jobs {
        match decide(&undecided) {
            Decision::GoOn => go_on.push(id),
            Decision::Skip { upstream_failed, reason } => skip.push((id, upstream_failed, reason)),
        }
    }
    let keys = let_go_on(connection, &go_on, now_ms)?;
    admit(connection, &keys, now_ms)?;
    let ended = write_skipped(connection, &skip, now_ms)?;
    // The children of a skipped job wait for a decision or are skipped too, so none of them becomes ready.
    propagate(connection, &ended, None, now_ms)?;
    connection.wake(WakeUps::PENDING | WakeUps::PROGRESS);
    Ok(())
}

/// Moves decided jobs on.
static LET_GO_ON: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        ("status", "CASE WHEN concurrency_key IS NULL THEN 'PENDING' ELSE 'WAITING' END"),
        ("waits_for", "CASE WHEN concurrency_key IS NOT NULL THEN 'slot' END"),
        ("priority", "{priority}"),
        ("updated_at", "$2"),
    ],
    from: None,
    condition: "id {in $1} AND {guard status = 'WAITING'} AND waits_for = 'decision'",
    returning: &["concurrency_key"],
};

/// Lets jobs go on. Returns the concurrency keys that they want a slot of.
fn let_go_on(connection: &mut dyn Connection, ids: &[i64], now_ms: i64) -> Result<Vec<String>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let keys = all_updated(connection, &LET_GO_ON, &[(&json_ids(ids)).into(), now_ms.into()], |row| {
        row.lossy_text(0)
    })?;
    Ok(keys.into_iter().flatten().collect())
}

/// Skips decided jobs.
static SKIP: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        ("status", "'SKIPPED'"),
        ("upstream_failed", "news.upstream_failed"),
        ("last_error", "news.reason"),
        ("updated_at", "$2"),
        ("finished_at", "$2"),
    ],
    from: Some("{rows $1: id integer, upstream_failed integer, reason text} AS news"),
    condition: "{by jobs.id = news.id} AND {guard jobs.status = 'WAITING'} AND jobs.waits_for = 'decision'",
    returning: &["jobs.id", "jobs.run_id", "jobs.name", "jobs.allow_failure", "jobs.upstream_failed"],
};

fn write_skipped(
    connection: &mut dyn Connection,
    skipped: &[(i64, bool, String)],
    now_ms: i64,
) -> Result<Vec<Ended>> {
    if skipped.is_empty() {
        return Ok(Vec::new());
    }
    let news: Vec<[Value<'_>; 3]> = skipped
        .iter()
        .map(|(id, upstream_failed, reason)| {
            [(*id).into(), i64::from(*upstream_failed).into(), reason.into()]
        })
        .collect();
    all_updated(connection, &SKIP, &[Value::rows(&news), now_ms.into()], |row| {
        Ok(Ended {
            job_id: row.integer(0)?,
            run_id: row.optional_integer(1)?,
            name: row.lossy_text(2)?,
            columns: EndColumns {
                status: JobStatus::Skipped,
                allow_failure: row.integer(3)? != 0,
                upstream_failed: row.integer(4)? != 0,
            },
        })
    })
}

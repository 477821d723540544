//! The job to look at first in runs with many jobs, of which not all are read.

use std::collections::BTreeMap;

use super::focus::{Found, JOBS_OF_RUN_MAX};
use crate::status::JobStatus;
use crate::store::json_ids;
use crate::store::round_trip::{PlainQuery, rows_of_each};
use windlass_db::error::Result;
use windlass_db::{Connection, all};

/// So many jobs that failed since a run began, or that run now, are looked at, of all runs together.
const JOBS_SEEN_MAX: i64 = 10_000;

/// The first job that failed since the run began, along the index of failed jobs.
const FAILED: &str = "SELECT id FROM (SELECT id, run_id, allow_failure, finished_at FROM jobs
                                      WHERE status = 'FAILED' AND finished_at >= $2
                                      ORDER BY finished_at LIMIT $3) AS failed
                      WHERE run_id = $1 AND allow_failure = 0 ORDER BY finished_at, id LIMIT 1";
const RUNNING: &str =
    "SELECT id FROM (SELECT id, run_id FROM jobs WHERE worker_id IS NOT NULL AND status = 'RUNNING'
                                       ORDER BY worker_id, id LIMIT $3) AS running
                       WHERE run_id = $1 AND $2 >= 0 ORDER BY id LIMIT 1";
const PENDING: &str = "SELECT id FROM (SELECT id, run_id FROM jobs
                                       WHERE run_id IS NOT NULL AND status = 'PENDING'
                                         AND coalesce(root_run_id, run_id) = (SELECT coalesce(root_run_id, id) FROM runs
                                                                              WHERE id = $1)
                                       ORDER BY {rank}, id LIMIT $3) AS pending
                       WHERE run_id = $1 AND $2 >= 0 ORDER BY id LIMIT 1";
/// Jobs that wait for a person, an event or the like, and those whose time has not come. Their indexes have the jobs of all runs.
const WAITING: &str = "SELECT id FROM (SELECT id, run_id FROM jobs WHERE waits_for IS NOT NULL
                                       ORDER BY waits_for, id LIMIT $3) AS waiting
                       WHERE run_id = $1 AND $2 >= 0 ORDER BY id LIMIT 1";
const SCHEDULED: &str =
    "SELECT id FROM (SELECT id, run_id, execute_after FROM jobs WHERE status = 'SCHEDULED'
                                         ORDER BY execute_after, id LIMIT $3) AS scheduled
                         WHERE run_id = $1 AND $2 >= 0 ORDER BY execute_after, id LIMIT 1";

/// Replaces what was found among the first jobs of large runs by what the indexes of all jobs find.
pub(super) fn look_at_all_jobs(
    connection: &mut dyn Connection,
    run_ids: &[i64],
    found: &mut BTreeMap<i64, Found>,
) -> Result<()> {
    let large = all(
        connection,
        "SELECT id, coalesce(started_at, created_at) FROM runs
         WHERE id {in $1} AND {guard total_jobs > $2} AND {guard status <> 'SUCCESSFUL'}",
        &[(&json_ids(run_ids)).into(), JOBS_OF_RUN_MAX.into()],
        |row| Ok((row.integer(0)?, row.integer(1)?)),
    )?;
    let queries: Vec<PlainQuery<'_>> = large
        .iter()
        .flat_map(|(run_id, since)| {
            let values = vec![(*run_id).into(), (*since).into(), JOBS_SEEN_MAX.into()];
            [FAILED, RUNNING, WAITING, PENDING, SCHEDULED].map(|sql| (sql, values.clone()))
        })
        .collect();
    let rows = rows_of_each(connection, &queries, |row| row.integer(0))?;
    for ((run_id, _since), by_state) in large.iter().zip(rows.chunks_exact(5)) {
        let first = |state: usize| by_state[state].first().copied();
        let seen = found.get(run_id).copied();
        if let Some(chosen) = choose(seen, [first(0), first(1), first(2), first(3), first(4)]) {
            found.insert(*run_id, chosen);
        }
    }
    Ok(())
}

/// The job to look at: the one that failed, else one that runs, else what was seen among the first jobs, else one that waits, can
/// run, or will.
fn choose(
    seen: Option<Found>,
    [failed, running, waiting, pending, scheduled]: [Option<i64>; 5],
) -> Option<Found> {
    let of = |id: Option<i64>, status| id.map(|id| Found { id, status, allow_failure: false });
    let has_failed = |found: &Found| found.status == JobStatus::Failed && !found.allow_failure;
    let is_over = |found: &Found| found.status.is_terminal();
    of(failed, JobStatus::Failed)
        .or(seen.filter(has_failed))
        .or(of(running, JobStatus::Running))
        .or(seen.filter(|found| !is_over(found)))
        .or(of(waiting, JobStatus::Waiting))
        .or(of(pending, JobStatus::Pending))
        .or(of(scheduled, JobStatus::Scheduled))
        .or(seen)
}

//! Reading claimable jobs in the order of claiming.
//!
//! A *claim partition* is a range of the claim index that is already in the order of claiming: the jobs of one queue, one
//! kind, one version and the same requirements. The first job of a partition is its *candidate*. A claim reads one
//! candidate for each partition and then reads partitions in the order of their candidates. It stops when it has enough
//! jobs and the next candidate is less urgent than all of them. So it finds the most urgent jobs whatever the number of
//! partitions is, and it reads only partitions from which it takes jobs.

use crate::store::claim::partition::{Candidate, ClaimPosition, read_candidate, read_position};
use crate::store::claim::request::ClaimRequest;
use crate::store::{json_ids, json_list};
use windlass_db::error::Result;
use windlass_db::{Connection, all};

/// The candidate of each claim partition, one row for [`read_candidate`] each. The statement steps from partition to
/// partition with one index seek each and never reads over the rows of a partition.
///
/// Two details are for SQLite. It uses an index for a comparison of several columns only if the other side has no column
/// affinity, so each value is wrapped in `coalesce`. It also starts at rows that are equal, whatever the operator is, so
/// the comparison is `>=` with the next version.
pub(in crate::store) const CANDIDATES: &str = "WITH RECURSIVE candidates (id) AS (
             SELECT (SELECT id FROM jobs WHERE status = 'PENDING' AND kind > ''
                     ORDER BY queue, kind, requires, code_version, {rank}, id LIMIT 1)
             UNION ALL
             SELECT (SELECT next.id FROM jobs AS next
                     WHERE next.status = 'PENDING' AND next.kind > ''
                       AND (next.queue, next.kind, next.requires, next.code_version)
                           >= (coalesce(candidate.queue, ''), coalesce(candidate.kind, ''),
                               coalesce(candidate.requires, ''), coalesce(candidate.code_version, 0) + 1)
                     ORDER BY next.queue, next.kind, next.requires, next.code_version, {rank}, next.id LIMIT 1)
             FROM candidates JOIN jobs AS candidate ON {by candidate.id = candidates.id}
         ),
         found (id) AS MATERIALIZED (SELECT id FROM candidates WHERE id IS NOT NULL)
         SELECT jobs.id, {rank}, queue, kind, requires, code_version,
                (SELECT count(*) FROM queues
                 WHERE name = jobs.queue AND {ruled})
         FROM found CROSS JOIN jobs WHERE {by jobs.id = found.id}";

/// The same of some partitions, from the queue $1 on and not more than $2 of them.
const CANDIDATES_FROM: &str = "WITH RECURSIVE candidates (id) AS (
             SELECT (SELECT id FROM jobs WHERE status = 'PENDING' AND kind > '' AND queue >= $1
                     ORDER BY queue, kind, requires, code_version, {rank}, id LIMIT 1)
             UNION ALL
             SELECT (SELECT next.id FROM jobs AS next
                     WHERE next.status = 'PENDING' AND next.kind > ''
                       AND (next.queue, next.kind, next.requires, next.code_version)
                           >= (coalesce(candidate.queue, ''), coalesce(candidate.kind, ''),
                               coalesce(candidate.requires, ''), coalesce(candidate.code_version, 0) + 1)
                     ORDER BY next.queue, next.kind, next.requires, next.code_version, {rank}, next.id LIMIT 1)
             FROM candidates JOIN jobs AS candidate ON {by candidate.id = candidates.id}
         ),
         found (id) AS MATERIALIZED (SELECT id FROM candidates WHERE id IS NOT NULL LIMIT $2)
         SELECT jobs.id, {rank}, queue, kind, requires, code_version,
                (SELECT count(*) FROM queues
                 WHERE name = jobs.queue AND {ruled})
         FROM found CROSS JOIN jobs WHERE {by jobs.id = found.id}";

/// The candidate of each claim partition, the most urgent first.
pub(in crate::store) fn read_candidates(connection: &mut dyn Connection) -> Result<Vec<Candidate>> {
    let mut candidates = all(connection, CANDIDATES, &[], read_candidate)?;
    candidates.sort_unstable_by_key(|candidate| candidate.position);
    Ok(candidates)
}

/// The candidates of some claim partitions, the most urgent first: as many as are asked for, in the order of the names of their
/// queues, from a name on.
pub(in crate::store) fn read_candidates_from(
    connection: &mut dyn Connection,
    queue: &str,
    partitions: i64,
) -> Result<Vec<Candidate>> {
    let mut candidates =
        all(connection, CANDIDATES_FROM, &[queue.into(), partitions.into()], read_candidate)?;
    candidates.sort_unstable_by_key(|candidate| candidate.position);
    Ok(candidates)
}

/// The first job of a queue in the order of claiming, whichever worker it is for.
pub(in crate::store) fn first_of_queue<'c>(
    all_candidates: &'c [Candidate],
    queue: &str,
) -> Option<&'c Candidate> {
    all_candidates
        .iter()
        .filter(|candidate| candidate.partition.queue == queue)
        .min_by_key(|candidate| candidate.position)
}

/// Locks and returns the first jobs of the candidate's partition.
pub(in crate::store) fn read_partition(
    connection: &mut dyn Connection,
    candidate: &Candidate,
    limit: usize,
) -> Result<Vec<ClaimPosition>> {
    // The columns are compared in SQL, because their texts may not be UTF-8.
    all(
        connection,
        "SELECT id, {rank} FROM jobs
         WHERE status = 'PENDING' AND kind > '' AND queue = (SELECT queue FROM jobs WHERE id = $1)
           AND kind = (SELECT kind FROM jobs WHERE id = $1)
           AND requires = (SELECT requires FROM jobs WHERE id = $1)
           AND code_version = (SELECT code_version FROM jobs WHERE id = $1)
         ORDER BY {rank}, id LIMIT $2 {lock}",
        &[candidate.position.id.into(), (limit as i64).into()],
        read_position,
    )
}

/// The jobs with these ids that are PENDING.
pub(in crate::store) fn read_jobs(connection: &mut dyn Connection, ids: &[i64]) -> Result<Vec<Candidate>> {
    all(
        connection,
        "SELECT id, {rank}, queue, kind, requires, code_version, 1 FROM jobs
         WHERE id {in $1} AND {guard status = 'PENDING'}",
        &[(&json_ids(ids)).into()],
        read_candidate,
    )
}

/// The jobs of a run, and of the runs below it, with these ids that are PENDING.
pub(in crate::store) fn read_jobs_of_run(
    connection: &mut dyn Connection,
    run_id: i64,
    ids: &[i64],
) -> Result<Vec<Candidate>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    all(
        connection,
        "SELECT id, {rank}, queue, kind, requires, code_version, 1 FROM jobs
         WHERE id {in $2} AND {guard coalesce(root_run_id, run_id) = $1} AND {guard status = 'PENDING'}",
        &[run_id.into(), (&json_ids(ids)).into()],
        read_candidate,
    )
}

/// Locks and returns the jobs with these ids that are PENDING and that no other transaction has locked.
pub(in crate::store) fn lock_jobs(
    connection: &mut dyn Connection,
    ids: &[i64],
) -> Result<Vec<ClaimPosition>> {
    all(
        connection,
        "SELECT id, {rank} FROM jobs WHERE id {in $1} AND {guard status = 'PENDING'} {lock}",
        &[(&json_ids(ids)).into()],
        read_position,
    )
}

/// The first PENDING jobs of a run and of the runs below it, without those in the queues `full` and those with the requirements `unfit`.
pub(in crate::store) fn read_candidates_of_run(
    connection: &mut dyn Connection,
    request: &ClaimRequest,
    run_id: i64,
    full: &[String],
    unfit: &[String],
    limit: usize,
) -> Result<Vec<Candidate>> {
    let texts = |texts: &[String]| json_list("claim jobs", texts);
    all(
        connection,
        "SELECT id, {rank}, queue, kind, requires, code_version, 1 FROM jobs
         WHERE status = 'PENDING' AND run_id IS NOT NULL AND coalesce(root_run_id, run_id) = $1
           AND kind IN (SELECT value FROM {texts $2} AS kinds)
           AND code_version <= $3
           AND queue NOT IN (SELECT value FROM {texts $4} AS full_queues)
           AND requires NOT IN (SELECT value FROM {texts $5} AS unfit)
         ORDER BY {rank}, id LIMIT $6",
        &[
            run_id.into(),
            (&texts(&request.worker_capabilities.kinds)?).into(),
            request.worker_capabilities.code_version.into(),
            (&texts(full)?).into(),
            (&texts(unfit)?).into(),
            (limit as i64).into(),
        ],
        read_candidate,
    )
}

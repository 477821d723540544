//! What monitors ask of a database, in a time that grows neither with the tables nor with the number of queues.

use std::collections::BTreeMap;

use crate::measurements::{MEASURED_QUEUES_MAX, OTHER_QUEUES};
use crate::status::{RunStatus, WorkerStatus};
use crate::store::round_trip::{PlainQuery, rows_of_each};
use crate::store::stats::Count;
use crate::store::{Upkeep, json_list};
use windlass_db::error::Result;
use windlass_db::{Connection, all};

/// How many claim partitions are looked at, for the names of queues and their oldest jobs.
const PARTITIONS_MAX: i64 = 1_000;
/// How many PENDING jobs are counted for each queue in any case.
const PENDING_OF_EACH: i64 = 1_000;
/// How many PENDING jobs of one queue are counted at most.
pub const PENDING_OF_ONE_MAX: i64 = 20_000;
/// How many more PENDING jobs are counted for all queues together.
const PENDING_OF_ALL_MAX: i64 = 100_000;
/// How many RUNNING, SCHEDULED and WAITING jobs are counted, of each state.
pub const OTHER_STATES_MAX: i64 = 5_000;
/// How many ends of runs are read at a time.
const ENDS_MAX: i64 = 10_000;
/// Ends of runs are read after this time, because a transaction commits later than its rows say.
const ENDS_DELAY_MS: i64 = 5_000;

/// Unfinished jobs of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueMetrics {
    /// PENDING jobs, up to [`PENDING_OF_ONE_MAX`].
    pub pending: i64,
    /// RUNNING jobs.
    pub running: i64,
    /// SCHEDULED jobs.
    pub scheduled: i64,
    /// WAITING jobs.
    pub waiting: i64,
    /// Since when the jobs wait that are claimed next: the earliest of them.
    pub oldest_pending_at: Option<i64>,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseMetrics {
    /// At most [`MEASURED_QUEUES_MAX`] queues by name, one of them for all others.
    pub queues: BTreeMap<String, QueueMetrics>,
    /// Workers that live, by state.
    pub workers: Vec<(WorkerStatus, i64)>,
    /// Runs that ended since the last time, by state.
    pub ended_runs: Vec<(RunStatus, i64)>,
    /// Where the next reading begins.
    pub ends_until: i64,
}

impl Upkeep<'_> {
    /// Reads what monitors show. `ends_from` is what the last reading gave as `ends_until`, `None` for the first one.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn metrics(&self, ends_from: Option<i64>) -> Result<DatabaseMetrics> {
        let now_ms = self.store.clock.now_ms();
        self.store.read(|connection| {
            let mut queues = read_pending(connection)?;
            read_other_states(connection, &mut queues)?;
            let workers = all(
                connection,
                "SELECT status, count(*) FROM workers WHERE status IN ('ALIVE', 'DRAINING') GROUP BY status",
                &[],
                |row| Ok((row.parsed(0, WorkerStatus::parse)?, row.integer(1)?)),
            )?;
            let until = now_ms - ENDS_DELAY_MS;
            let (ended_runs, ends_until) = match ends_from {
                Some(from) => read_ends(connection, from, until)?,
                None => (Vec::new(), until),
            };
            Ok(DatabaseMetrics { queues: bounded(queues), workers, ended_runs, ends_until })
        })
    }
}

/// The first job of each claim partition, as in a claim, and not more than $1 of them.
const PARTITIONS: &str = "WITH RECURSIVE candidates (id, number) AS (
         SELECT (SELECT id FROM jobs WHERE status = 'PENDING' AND kind > ''
                 ORDER BY queue, kind, requires, code_version, {rank}, id LIMIT 1), 1
         UNION ALL
         SELECT (SELECT next.id FROM jobs AS next
                 WHERE next.status = 'PENDING' AND next.kind > ''
                   AND (next.queue, next.kind, next.requires, next.code_version)
                       >= (coalesce(candidate.queue, ''), coalesce(candidate.kind, ''),
                           coalesce(candidate.requires, ''), coalesce(candidate.code_version, 0) + 1)
                 ORDER BY next.queue, next.kind, next.requires, next.code_version, {rank}, next.id LIMIT 1),
                candidates.number + 1
         FROM candidates JOIN jobs AS candidate ON {by candidate.id = candidates.id}
         WHERE candidates.number < $1
     ),
     found (id, number) AS MATERIALIZED (SELECT id, number FROM candidates WHERE id IS NOT NULL)
     SELECT queue, CASE WHEN execute_after > updated_at THEN execute_after ELSE updated_at END
     FROM found CROSS JOIN jobs WHERE {by jobs.id = found.id} ORDER BY found.number";

/// One statement for all queues, because a server plans each statement.
const PENDING: &str = "SELECT names.name,
         (SELECT count(*) FROM (SELECT id FROM jobs
                                WHERE status = 'PENDING' AND kind > '' AND queue = names.name
                                ORDER BY queue, kind, requires, code_version, {rank}, id LIMIT $2) AS counted)
     FROM (SELECT value AS name FROM {texts $1} AS wanted) AS names";

const PENDING_AFTER: &str = "SELECT count(*) FROM (SELECT id FROM jobs
         WHERE status = 'PENDING' AND kind > '' AND queue > $1
         ORDER BY queue, kind, requires, code_version, {rank}, id LIMIT $2) AS counted";

fn read_pending(connection: &mut dyn Connection) -> Result<BTreeMap<String, QueueMetrics>> {
    let partitions = all(connection, PARTITIONS, &[PARTITIONS_MAX.into()], |row| {
        Ok((row.lossy_text(0)?.unwrap_or_default(), row.integer(1)?))
    })?;
    let is_cut = partitions.len() as i64 == PARTITIONS_MAX;
    // In the order of the database, which compares the names below.
    let mut found: Vec<(String, i64)> = Vec::new();
    for (queue, since) in partitions {
        match found.last_mut() {
            Some((last, oldest)) if *last == queue => *oldest = since.min(*oldest),
            Some(_) | None => found.push((queue, since)),
        }
    }
    let rest = found.split_off(found.len().min(MEASURED_QUEUES_MAX - 1));
    let names: Vec<&str> = found.iter().map(|(queue, _since)| queue.as_str()).collect();
    let mut queues: BTreeMap<String, QueueMetrics> = BTreeMap::new();
    for ((queue, since), pending) in found.iter().zip(count_pending(connection, &names)?) {
        let pending = pending.number;
        let metrics = QueueMetrics { pending, oldest_pending_at: Some(*since), ..QueueMetrics::default() };
        queues.insert(queue.clone(), metrics);
    }
    if let (Some(last), true) = (names.last(), is_cut || !rest.is_empty()) {
        let limit = PENDING_OF_ONE_MAX.into();
        let counted = all(connection, PENDING_AFTER, &[(*last).into(), limit], |row| row.integer(0))?;
        let other = queues.entry(OTHER_QUEUES.to_owned()).or_default();
        other.pending += counted.into_iter().sum::<i64>();
        let oldest = rest.iter().map(|(_queue, since)| *since);
        other.oldest_pending_at = other.oldest_pending_at.into_iter().chain(oldest).min();
    }
    Ok(queues)
}

/// Counts a few PENDING jobs of each queue, and then more of those that have more.
pub(in crate::store) fn count_pending(
    connection: &mut dyn Connection,
    queues: &[&str],
) -> Result<Vec<Count>> {
    let mut counts = count_up_to(connection, queues, PENDING_OF_EACH)?;
    let large: Vec<usize> =
        counts.iter().enumerate().filter(|(_, count)| !count.is_exact).map(|(at, _)| at).collect();
    if large.is_empty() {
        return Ok(counts);
    }
    let limit = (PENDING_OF_ALL_MAX / large.len() as i64).clamp(PENDING_OF_EACH, PENDING_OF_ONE_MAX);
    let names: Vec<&str> = large.iter().map(|at| queues[*at]).collect();
    for (at, count) in large.iter().zip(count_up_to(connection, &names, limit)?) {
        counts[*at] = count;
    }
    Ok(counts)
}

fn count_up_to(connection: &mut dyn Connection, queues: &[&str], limit: i64) -> Result<Vec<Count>> {
    let names = json_list("count pending jobs", queues)?;
    let counted: BTreeMap<String, i64> = all(connection, PENDING, &[(&names).into(), limit.into()], |row| {
        Ok((row.lossy_text(0)?.unwrap_or_default(), row.integer(1)?))
    })?
    .into_iter()
    .collect();
    let count = |queue: &&str| {
        let number = counted.get(*queue).copied().unwrap_or(0);
        Count { number, is_exact: number < limit }
    };
    Ok(queues.iter().map(count).collect())
}

/// One statement for each state, in the order of its index.
const OTHER_STATES: [&str; 3] = [
    "SELECT queue, count(*) FROM (SELECT queue FROM jobs WHERE worker_id IS NOT NULL AND status = 'RUNNING' ORDER BY worker_id, id LIMIT $1) AS counted
     GROUP BY queue",
    "SELECT queue, count(*) FROM (SELECT queue FROM jobs WHERE status = 'SCHEDULED' ORDER BY execute_after, id LIMIT $1)
         AS counted GROUP BY queue",
    "SELECT queue, count(*) FROM (SELECT queue FROM jobs WHERE waits_for IS NOT NULL ORDER BY waits_for, id LIMIT $1)
         AS counted GROUP BY queue",
];

/// How many jobs of each queue are RUNNING, SCHEDULED and WAITING, among the first [`OTHER_STATES_MAX`] of each state.
pub(in crate::store) fn other_states(connection: &mut dyn Connection) -> Result<[BTreeMap<String, i64>; 3]> {
    let asked: Vec<PlainQuery<'_>> =
        OTHER_STATES.iter().map(|sql| (*sql, vec![OTHER_STATES_MAX.into()])).collect();
    let counted = rows_of_each(connection, &asked, |row| {
        Ok((row.lossy_text(0)?.unwrap_or_default(), row.integer(1)?))
    })?;
    let mut states: [BTreeMap<String, i64>; 3] = Default::default();
    for (state, rows) in states.iter_mut().zip(counted) {
        state.extend(rows);
    }
    Ok(states)
}

fn read_other_states(
    connection: &mut dyn Connection,
    queues: &mut BTreeMap<String, QueueMetrics>,
) -> Result<()> {
    let [running, scheduled, waiting] = other_states(connection)?;
    for (queue, count) in running {
        queues.entry(queue).or_default().running = count;
    }
    for (queue, count) in scheduled {
        queues.entry(queue).or_default().scheduled = count;
    }
    for (queue, count) in waiting {
        queues.entry(queue).or_default().waiting = count;
    }
    Ok(())
}

/// Adds up what is above the most queues.
fn bounded(queues: BTreeMap<String, QueueMetrics>) -> BTreeMap<String, QueueMetrics> {
    if queues.len() <= MEASURED_QUEUES_MAX {
        return queues;
    }
    let mut kept = BTreeMap::new();
    let mut other = QueueMetrics::default();
    for (queue, metrics) in queues {
        if queue != OTHER_QUEUES && kept.len() < MEASURED_QUEUES_MAX - 1 {
            kept.insert(queue, metrics);
            continue;
        }
        other.pending += metrics.pending;
        other.running += metrics.running;
        other.scheduled += metrics.scheduled;
        other.waiting += metrics.waiting;
        other.oldest_pending_at = other.oldest_pending_at.into_iter().chain(metrics.oldest_pending_at).min();
    }
    kept.insert(OTHER_QUEUES.to_owned(), other);
    kept
}

/// The runs that ended in a range of time, by state, and where the next range begins. If there are too many, the range ends
/// earlier.
fn read_ends(connection: &mut dyn Connection, from: i64, until: i64) -> Result<(Vec<(RunStatus, i64)>, i64)> {
    let ends = all(
        connection,
        "SELECT status, finished_at FROM runs
         WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND finished_at >= $1 AND finished_at < $2
         ORDER BY finished_at LIMIT $3",
        &[from.into(), until.into(), ENDS_MAX.into()],
        |row| Ok((row.parsed(0, RunStatus::parse)?, row.integer(1)?)),
    )?;
    let last = ends.last().filter(|_| ends.len() as i64 == ENDS_MAX).map(|(_, finished_at)| *finished_at);
    // More runs may have ended in the last millisecond that was read.
    let next = match last {
        None => until.max(from),
        Some(last) if last > from => last,
        Some(last) => last + 1,
    };
    let of = |status| ends.iter().filter(|(ended, at)| *ended == status && *at < next).count() as i64;
    let counts =
        RunStatus::ALL.into_iter().filter(|status| status.is_terminal()).map(|status| (status, of(status)));
    Ok((counts.collect(), next))
}

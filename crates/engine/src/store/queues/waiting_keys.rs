//! Concurrency keys for which jobs or runs wait, and the oldest jobs of queues, for people.

use std::collections::BTreeMap;

use crate::store::Queues;
use crate::store::claim::candidates::{read_candidates, read_candidates_from};
use crate::store::claim::partition::Candidate;
use crate::store::round_trip::{PlainQuery, rows_of_each};
use crate::store::stats::Count;
use windlass_db::error::Result;
use windlass_db::{Connection, all};

/// How many keys of jobs, and how many of runs, are listed.
pub const WAITING_KEYS_MAX: i64 = 100;
/// How many holders of a key are named.
const HOLDERS_MAX: i64 = 5;
/// Where the number of those that wait for a key stops.
const COUNTED_MAX: i64 = 999;
/// How many claim partitions are looked at for the oldest jobs, and how many jobs of each.
const PARTITIONS_MAX: usize = 200;
const JOBS_OF_PARTITION_MAX: i64 = 1_000;

/// What waits for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOf {
    /// Jobs.
    Jobs,
    /// Runs.
    Runs,
}

/// A job or a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyUser {
    /// The job, if it is one.
    pub job_id: Option<i64>,
    /// The run, or that of the job.
    pub run_id: Option<i64>,
}

/// A concurrency key for which something waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingKey {
    /// The key.
    pub name: String,
    /// What waits for it. The keys of runs and those of jobs are apart.
    pub of: KeyOf,
    /// How many slots there are for the first that waits.
    pub limit: i64,
    /// How many wait.
    pub waiting: Count,
    /// The one whose turn is next.
    pub first: Option<KeyUser>,
    /// Since when it waits.
    pub since: Option<i64>,
    /// Those that hold a slot, the oldest first, at most a few.
    pub holders: Vec<KeyUser>,
}

/// The oldest job of a queue that can be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldestJob {
    /// Its id.
    pub job_id: i64,
    /// Its run.
    pub run_id: Option<i64>,
    /// Since when it could be claimed.
    pub since: i64,
}

impl Queues<'_> {
    /// The first concurrency keys for which jobs or runs wait, by name.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn waiting_keys(&self) -> Result<Vec<WaitingKey>> {
        self.store.read(|connection| {
            let mut keys = keys(connection, KEYS_OF_JOBS, KeyOf::Jobs)?;
            keys.extend(self::keys(connection, KEYS_OF_RUNS, KeyOf::Runs)?);
            let queries: Vec<PlainQuery<'_>> = keys
                .iter()
                .map(|key| {
                    let sql = match key.of {
                        KeyOf::Jobs => HOLDERS_OF_JOBS,
                        KeyOf::Runs => HOLDERS_OF_RUNS,
                    };
                    (sql, vec![key.name.as_str().into(), HOLDERS_MAX.into()])
                })
                .collect();
            let holders = rows_of_each(connection, &queries, |row| {
                Ok(KeyUser { job_id: row.optional_integer(0)?, run_id: row.optional_integer(1)? })
            })?;
            for (key, holders) in keys.iter_mut().zip(holders) {
                key.holders = holders;
            }
            Ok(keys)
        })
    }

    /// The oldest job of each queue that can be claimed. The first thousand jobs of each claim partition are looked at.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn oldest_jobs(&self) -> Result<BTreeMap<String, OldestJob>> {
        self.store.read(|connection| {
            let candidates = read_candidates(connection)?;
            oldest_of(connection, candidates)
        })
    }

    /// The same of a page of queues, which begins at this name: at most 200 claim partitions are looked at.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn oldest_jobs_from(&self, queue: &str) -> Result<BTreeMap<String, OldestJob>> {
        self.store.read(|connection| {
            let candidates = read_candidates_from(connection, queue, PARTITIONS_MAX as i64)?;
            oldest_of(connection, candidates)
        })
    }
}

fn oldest_of(
    connection: &mut dyn Connection,
    mut candidates: Vec<Candidate>,
) -> Result<BTreeMap<String, OldestJob>> {
    candidates.truncate(PARTITIONS_MAX);
    let queries: Vec<PlainQuery<'_>> = candidates
        .iter()
        .map(|candidate| {
            (OLDEST_OF_PARTITION, vec![candidate.position.id.into(), JOBS_OF_PARTITION_MAX.into()])
        })
        .collect();
    let rows = rows_of_each(connection, &queries, |row| {
        let (job_id, run_id) = (row.integer(0)?, row.optional_integer(1)?);
        Ok(OldestJob { job_id, run_id, since: row.integer(2)? })
    })?;
    let mut oldest: BTreeMap<String, OldestJob> = BTreeMap::new();
    for (candidate, job) in candidates.iter().zip(rows.into_iter().flat_map(|rows| rows.into_iter())) {
        let known = oldest.entry(candidate.partition.queue.clone()).or_insert(job);
        if job.since < known.since {
            *known = job;
        }
    }
    Ok(oldest)
}

fn keys(connection: &mut dyn Connection, sql: &'static str, of: KeyOf) -> Result<Vec<WaitingKey>> {
    all(connection, sql, &[WAITING_KEYS_MAX.into(), (COUNTED_MAX + 1).into()], |row| {
        let user = KeyUser { job_id: row.optional_integer(3)?, run_id: row.optional_integer(4)? };
        Ok(WaitingKey {
            name: row.lossy_text(0)?.unwrap_or_default(),
            of,
            waiting: Count::up_to(COUNTED_MAX, row.integer(1)?),
            limit: row.optional_integer(2)?.unwrap_or(1),
            first: (user.job_id.is_some() || user.run_id.is_some()).then_some(user),
            since: row.optional_integer(5)?,
            holders: Vec::new(),
        })
    })
}

const KEYS_OF_JOBS: &str = "WITH RECURSIVE keys (name, place) AS (
         SELECT (SELECT concurrency_key FROM jobs
                 WHERE concurrency_key IS NOT NULL AND waits_for = 'slot' ORDER BY concurrency_key LIMIT 1), 1
         UNION ALL
         SELECT (SELECT jobs.concurrency_key FROM jobs
                 WHERE jobs.concurrency_key IS NOT NULL AND jobs.waits_for = 'slot' AND jobs.concurrency_key > keys.name
                 ORDER BY jobs.concurrency_key LIMIT 1), keys.place + 1
         FROM keys WHERE keys.name IS NOT NULL AND keys.place <= $1
     ),
     batch (name, first_id) AS MATERIALIZED (
         SELECT name, (SELECT id FROM jobs WHERE concurrency_key IS NOT NULL AND concurrency_key = keys.name
                         AND waits_for = 'slot' ORDER BY {rank}, id LIMIT 1)
         FROM keys WHERE name IS NOT NULL AND place <= $1)
     SELECT batch.name,
            (SELECT count(*) FROM (SELECT id FROM jobs AS waiting
                                   WHERE waiting.concurrency_key IS NOT NULL AND waiting.concurrency_key = batch.name
                                     AND waiting.waits_for = 'slot' LIMIT $2) AS counted),
            jobs.concurrency_limit, jobs.id, jobs.run_id, jobs.execute_after
     FROM batch JOIN jobs ON {by jobs.id = batch.first_id} ORDER BY batch.name";

const KEYS_OF_RUNS: &str = "WITH RECURSIVE keys (name, place) AS (
         SELECT (SELECT concurrency_key FROM runs WHERE waits_for IS NOT NULL ORDER BY concurrency_key LIMIT 1), 1
         UNION ALL
         SELECT (SELECT runs.concurrency_key FROM runs
                 WHERE runs.waits_for IS NOT NULL AND runs.concurrency_key > keys.name
                 ORDER BY runs.concurrency_key LIMIT 1), keys.place + 1
         FROM keys WHERE keys.name IS NOT NULL AND keys.place <= $1
     ),
     batch (name, first_id) AS MATERIALIZED (
         SELECT name, (SELECT id FROM runs WHERE waits_for IS NOT NULL AND concurrency_key = keys.name
                       ORDER BY concurrency_key, id LIMIT 1)
         FROM keys WHERE name IS NOT NULL AND place <= $1)
     SELECT batch.name,
            (SELECT count(*) FROM (SELECT id FROM runs AS waiting
                                   WHERE waiting.waits_for IS NOT NULL AND waiting.concurrency_key = batch.name
                                   LIMIT $2) AS counted),
            runs.concurrency_limit, CAST(NULL AS {integer}), runs.id, runs.created_at
     FROM batch JOIN runs ON {by runs.id = batch.first_id} ORDER BY batch.name";

const HOLDERS_OF_JOBS: &str = "SELECT id, run_id FROM jobs
     WHERE concurrency_key IS NOT NULL AND concurrency_key = $1 AND status IN ('PENDING', 'RUNNING')
     ORDER BY concurrency_key, id LIMIT $2";

const HOLDERS_OF_RUNS: &str = "SELECT CAST(NULL AS {integer}), id FROM runs
     WHERE concurrency_key IS NOT NULL AND concurrency_key = $1 AND waits_for IS NULL
       AND status IN ('PENDING', 'RUNNING')
     ORDER BY concurrency_key, id LIMIT $2";

const OLDEST_OF_PARTITION: &str = "SELECT id, run_id, execute_after
     FROM (SELECT id, run_id, execute_after FROM jobs
           WHERE status = 'PENDING' AND kind > '' AND queue = (SELECT queue FROM jobs WHERE id = $1)
             AND kind = (SELECT kind FROM jobs WHERE id = $1)
             AND requires = (SELECT requires FROM jobs WHERE id = $1)
             AND code_version = (SELECT code_version FROM jobs WHERE id = $1)
           ORDER BY {rank}, id LIMIT $2) AS first_of_partition
     ORDER BY execute_after, id LIMIT 1";

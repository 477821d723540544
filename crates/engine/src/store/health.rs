//! The health of the whole database at one moment, for people who want to know whether anything is wrong. It is read from
//! the indexes of unfinished jobs, so that the time does not grow with the number of finished jobs.

use crate::store::claim::candidates::{read_candidates, read_candidates_from};
use crate::store::claim::partition::Candidate;
use crate::store::evidence::Evidence;
use crate::store::stats::Count;
use crate::store::{Upkeep, json_ids};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, all, one};

/// How many claim partitions with old PENDING jobs, workers or queues are named.
const ROWS_MAX: i64 = 50;
/// Where a count of jobs stops.
pub const JOBS_COUNTED_MAX: i64 = 10_000;
/// How many jobs of one claim partition are read.
const JOBS_OF_PARTITION_MAX: i64 = 1_000;
/// How many claim partitions are looked at for a page. A server takes a tenth of a second for some thousands.
const PARTITIONS_OF_PAGE_MAX: i64 = 1_000;
/// How many late schedules are named.
const SCHEDULES_MAX: i64 = 5;
/// Jobs, schedules and reports that are due for longer than this are late, in milliseconds.
const LATE_MS: i64 = 10_000;
/// PENDING jobs that could be claimed for longer than this are old, in milliseconds.
const OLD_PENDING_MS: i64 = 60_000;

/// Counts and names from which people see whether anything is wrong. Jobs are counted up to [`JOBS_COUNTED_MAX`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The version of SQLite or of the server.
    pub version: String,
    /// The newest version of the tables that was applied.
    pub schema_version: i64,
    /// The database's clock, in milliseconds since the Unix epoch.
    pub database_now_ms: i64,
    /// The latest instant that is recorded in the newest rows.
    pub latest_ms: Option<i64>,
    /// Workers that count as alive.
    pub live_workers: i64,
    /// Of these, workers that have not renewed their lease in time.
    pub silent_workers: Vec<i64>,
    /// Of these, workers that can't start jobs: the id, the host, and what is lacking there.
    pub short_workers: Vec<(i64, String, String)>,
    /// RUNNING jobs whose worker is not alive.
    pub orphans: Count,
    /// RUNNING jobs.
    pub running: Count,
    /// Jobs that can be claimed.
    pub pending: Count,
    /// Jobs that can be claimed for a minute or more, for each claim partition that has some.
    pub old_pending: Vec<OldPending>,
    /// Jobs whose time came ten seconds ago or more, and that no scheduler has made claimable.
    pub overdue: Count,
    /// Jobs that wait for a concurrency key.
    pub waiting: Count,
    /// Ends that were reported ten seconds ago or more, and that no scheduler has applied.
    pub reported: Count,
    /// Schedules that can fire.
    pub schedules: i64,
    /// Schedules that are paused.
    pub paused_schedules: i64,
    /// Schedules that are ten seconds late or more: the name, and when they were due. The latest first.
    pub late_schedules: Vec<(String, i64)>,
    /// Queues that are paused.
    pub paused_queues: Vec<String>,
}

/// Jobs of one claim partition that can be claimed for a minute or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldPending {
    /// The one with the lowest id.
    pub first_id: i64,
    /// How many of the first thousand in claiming order.
    pub jobs: Count,
}

/// The name of the write that [`Upkeep::try_write`] rolls back.
const TRY_WRITE: &str = "try to write";
const ROLLED_BACK: &str = "it is rolled back";
/// How much it writes. The server needs space in a file for it, because the text is random and can't be compressed.
const TRY_WRITE_BYTES: usize = 256 * 1024;

impl Upkeep<'_> {
    /// Writes a row and rolls it back, so that nobody sees it.
    ///
    /// # Errors
    /// Returns the database's error when it takes no writes now.
    pub fn try_write(&self) -> Result<()> {
        let mut text = String::with_capacity(TRY_WRITE_BYTES + 16);
        while text.len() < TRY_WRITE_BYTES {
            // A fraction has 52 random bits.
            text.push_str(&format!("{:013x}", (self.store.random.fraction() * (1_u64 << 52) as f64) as u64));
        }
        let rolled_back = self.store.write(TRY_WRITE, Evidence::Repeat, move |connection| -> Result<()> {
            connection.execute(
                "INSERT INTO workflows (id, name, hash, definition) VALUES (-1, $1, $1, $2)",
                &[TRY_WRITE.into(), (&text).into()],
            )?;
            Err(Error::conflict(TRY_WRITE, ROLLED_BACK))
        });
        match rolled_back {
            Err(Error::Conflict { reason, .. }) if reason == ROLLED_BACK => Ok(()),
            other => other,
        }
    }

    /// The schedules that are ten seconds late or more: the name, and when they were due. At most five.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn late_schedules(&self) -> Result<Vec<(String, i64)>> {
        let late_ms = self.store.clock.now_ms().saturating_sub(LATE_MS);
        self.store.read(|connection| late_schedules(connection, late_ms))
    }

    /// Reads the health of the database.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn health(&self) -> Result<Health> {
        let now_ms = self.store.clock.now_ms();
        self.store.read(|connection| {
            let candidates = read_candidates(connection)?;
            health(connection, now_ms, candidates)
        })
    }

    /// The same for pages, which are read often. If there are PENDING jobs in more than 1,000 claim partitions, it looks for old
    /// ones only in the first 1,000, by the names of their queues.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn health_for_pages(&self) -> Result<Health> {
        let now_ms = self.store.clock.now_ms();
        self.store.read(|connection| {
            let candidates = read_candidates_from(connection, "", PARTITIONS_OF_PAGE_MAX)?;
            health(connection, now_ms, candidates)
        })
    }
}

fn health(connection: &mut dyn Connection, now_ms: i64, candidates: Vec<Candidate>) -> Result<Health> {
    let late_ms = now_ms.saturating_sub(LATE_MS);
    let jobs = count_jobs(connection, late_ms)?;
    Ok(Health {
        version: one(connection, "SELECT {version}", &[], |row| row.text(0))?,
        schema_version: count(connection, "SELECT max(version) FROM schema_migrations")?,
        database_now_ms: count(connection, "SELECT {now_ms}")?,
        latest_ms: latest(connection)?,
        live_workers: count(
            connection,
            "SELECT count(*) FROM workers WHERE status IN ('ALIVE', 'DRAINING')",
        )?,
        silent_workers: silent_workers(connection, now_ms)?,
        short_workers: short_workers(connection)?,
        orphans: jobs[0],
        running: jobs[1],
        pending: jobs[2],
        waiting: jobs[3],
        old_pending: old_pending(connection, candidates, now_ms.saturating_sub(OLD_PENDING_MS))?,
        overdue: jobs[4],
        reported: jobs[5],
        schedules: count(
            connection,
            "SELECT count(*) FROM schedules WHERE paused_at IS NULL AND removed_at IS NULL
               AND workflow IN (SELECT name FROM registrations WHERE paused_at IS NULL)",
        )?,
        paused_schedules: count(
            connection,
            "SELECT count(*) FROM schedules WHERE paused_at IS NOT NULL AND removed_at IS NULL",
        )?,
        late_schedules: late_schedules(connection, late_ms)?,
        paused_queues: paused_queues(connection)?,
    })
}

fn count(connection: &mut dyn Connection, sql: &'static str) -> Result<i64> {
    one(connection, sql, &[], |row| row.integer(0))
}

/// Orphans, then jobs that are running, pending, waiting, overdue and reported: each in the order of its index and up to a
/// bound, because there may be a million of them.
fn count_jobs(connection: &mut dyn Connection, late_ms: i64) -> Result<[Count; 6]> {
    const OF_JOBS: &str = "SELECT
        (SELECT count(*) FROM (SELECT id FROM jobs WHERE worker_id IS NOT NULL AND status = 'RUNNING'
                                 AND worker_id NOT IN (SELECT id FROM workers WHERE status IN ('ALIVE', 'DRAINING'))
                               LIMIT $1) AS orphans),
        (SELECT count(*) FROM (SELECT id FROM jobs WHERE worker_id IS NOT NULL AND status = 'RUNNING' ORDER BY worker_id, id LIMIT $1) AS running),
        (SELECT count(*) FROM (SELECT id FROM jobs WHERE status = 'PENDING' AND kind > ''
                               ORDER BY queue, kind LIMIT $1) AS pending),
        (SELECT count(*) FROM (SELECT id FROM jobs WHERE waits_for = 'slot' ORDER BY waits_for, id LIMIT $1) AS waiting),
        (SELECT count(*) FROM (SELECT id FROM jobs WHERE status = 'SCHEDULED' AND execute_after < $2
                               ORDER BY execute_after, id LIMIT $1) AS overdue),
        (SELECT count(*) FROM (SELECT id FROM jobs WHERE {is_reported} AND updated_at < $2 LIMIT $1) AS reported)";
    one(connection, OF_JOBS, &[(JOBS_COUNTED_MAX + 1).into(), late_ms.into()], |row| {
        let mut counts = [Count::up_to(JOBS_COUNTED_MAX, 0); 6];
        for (column, count) in counts.iter_mut().enumerate() {
            *count = Count::up_to(JOBS_COUNTED_MAX, row.integer(column)?);
        }
        Ok(counts)
    })
}

fn silent_workers(connection: &mut dyn Connection, now_ms: i64) -> Result<Vec<i64>> {
    all(
        connection,
        "SELECT id FROM workers
         WHERE status IN ('ALIVE', 'DRAINING') AND heartbeat_at + lease_ms < $1 ORDER BY id",
        &[now_ms.into()],
        |row| row.integer(0),
    )
}

fn short_workers(connection: &mut dyn Connection) -> Result<Vec<(i64, String, String)>> {
    all(
        connection,
        "SELECT id, host, shortage FROM workers
         WHERE status IN ('ALIVE', 'DRAINING') AND shortage IS NOT NULL ORDER BY id LIMIT $1",
        &[ROWS_MAX.into()],
        |row| {
            let text = |column| Ok(row.lossy_text(column)?.unwrap_or_default());
            Ok((row.integer(0)?, text(1)?, text(2)?))
        },
    )
}

fn late_schedules(connection: &mut dyn Connection, late_ms: i64) -> Result<Vec<(String, i64)>> {
    all(
        connection,
        "SELECT workflow || '/' || name, next_at FROM schedules
         WHERE next_at < $1 AND paused_at IS NULL AND removed_at IS NULL
           AND workflow IN (SELECT name FROM registrations WHERE paused_at IS NULL)
         ORDER BY next_at LIMIT $2",
        &[late_ms.into(), SCHEDULES_MAX.into()],
        |row| Ok((row.text(0)?, row.integer(1)?)),
    )
}

fn paused_queues(connection: &mut dyn Connection) -> Result<Vec<String>> {
    all(
        connection,
        "SELECT name FROM queues WHERE paused_at IS NOT NULL ORDER BY name LIMIT $1",
        &[ROWS_MAX.into()],
        |row| row.text(0),
    )
}

/// Of the first jobs of each partition, as numbers with spaces between them: the lowest id of the old ones or 0, their number, and
/// how many jobs were read. $1 are the first jobs of the partitions. Counted one partition after the other, in the order of the
/// index: a list of all their jobs would be as long as there are PENDING jobs.
const OLD_OF_PARTITIONS: &str = "SELECT (
        SELECT coalesce(min(CASE WHEN execute_after < $2 AND updated_at < $2 THEN id END), 0)
               || ' ' || count(CASE WHEN execute_after < $2 AND updated_at < $2 THEN 1 END) || ' ' || count(*)
        FROM (SELECT id, execute_after, updated_at FROM jobs
              WHERE status = 'PENDING' AND kind > ''
                AND queue = (SELECT queue FROM jobs WHERE id = CAST(wanted.value AS {integer}))
                AND kind = (SELECT kind FROM jobs WHERE id = CAST(wanted.value AS {integer}))
                AND requires = (SELECT requires FROM jobs WHERE id = CAST(wanted.value AS {integer}))
                AND code_version = (SELECT code_version FROM jobs WHERE id = CAST(wanted.value AS {integer}))
              ORDER BY {rank}, id LIMIT $3) AS first_of_partition)
     FROM {texts $1} AS wanted";

/// Reads the partitions with the most urgent jobs.
fn old_pending(
    connection: &mut dyn Connection,
    mut candidates: Vec<Candidate>,
    before_ms: i64,
) -> Result<Vec<OldPending>> {
    candidates.truncate(ROWS_MAX as usize);
    let first_ids: Vec<i64> = candidates.iter().map(|candidate| candidate.position.id).collect();
    let first_ids = json_ids(&first_ids);
    let parameters = [(&first_ids).into(), before_ms.into(), (JOBS_OF_PARTITION_MAX + 1).into()];
    let counted = all(connection, OLD_OF_PARTITIONS, &parameters, |row| row.text(0).map(of_numbers))?;
    let mut partitions: Vec<OldPending> = counted.into_iter().flatten().collect();
    partitions.sort_unstable_by_key(|partition| partition.first_id);
    Ok(partitions)
}

/// The old jobs of a partition; `None` if it has none.
fn of_numbers(text: String) -> Option<OldPending> {
    let numbers: Vec<i64> = text.split(' ').map_while(|number| number.parse().ok()).collect();
    let [first_id, number, read] = numbers.try_into().ok()?;
    let jobs = Count { number, is_exact: read <= JOBS_OF_PARTITION_MAX };
    (number > 0).then_some(OldPending { first_id, jobs })
}

/// The latest instant among the newest rows, because there is no index by time.
pub(super) fn latest(connection: &mut dyn Connection) -> Result<Option<i64>> {
    let instants = one(
        connection,
        "SELECT (SELECT max(updated_at) FROM (SELECT updated_at FROM jobs ORDER BY id DESC LIMIT 1000) AS jobs),
                (SELECT max(updated_at) FROM (SELECT updated_at FROM runs ORDER BY id DESC LIMIT 1000) AS runs),
                (SELECT max(heartbeat_at) FROM (SELECT heartbeat_at FROM workers ORDER BY id DESC LIMIT 1000)
                                               AS workers)",
        &[],
        |row| Ok([row.optional_integer(0)?, row.optional_integer(1)?, row.optional_integer(2)?]),
    )?;
    Ok(instants.into_iter().flatten().max())
}

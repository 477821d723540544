//! The state of the whole database at one moment, for people who want to know whether anything is wrong. The indexes of
//! unfinished jobs answer, so that the time does not grow with the finished ones.

use crate::store::Upkeep;
use crate::store::claim::candidates::read_candidates;
use crate::store::evidence::Evidence;
use crate::store::round_trip::{Asked, rows_of_each};
use crate::store::stats::Count;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, all, one};

/// Claim partitions of old PENDING jobs that are reported, and rows of other kinds.
const GROUPS_MAX: i64 = 50;
/// Jobs of one claim partition that are looked at.
const OF_A_GROUP_MAX: i64 = 1_000;
/// Schedules that are named.
const SCHEDULES_MAX: i64 = 5;
/// What is due for longer than this is late, in milliseconds.
const LATE_MS: i64 = 10_000;
/// A job that can be claimed for longer than this is looked at, in milliseconds.
const WAITING_MS: i64 = 60_000;

/// What tells whether anything is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The version of SQLite or of the server.
    pub version: String,
    /// The newest version of the tables that was applied.
    pub schema_version: i64,
    /// The database's clock, in milliseconds since the Unix epoch.
    pub database_now_ms: i64,
    /// The latest instant that something in the tables happened at.
    pub latest_ms: Option<i64>,
    /// Workers that count as alive.
    pub live_workers: i64,
    /// Of these, workers that have not renewed their lease in time.
    pub silent_workers: Vec<i64>,
    /// Of these, workers that can't start jobs: the id, the host, and what is lacking there.
    pub short_workers: Vec<(i64, String, String)>,
    /// Jobs that run under workers that are gone.
    pub orphans: i64,
    /// Jobs that run.
    pub running: i64,
    /// Jobs that can be claimed.
    pub pending: i64,
    /// Jobs that can be claimed for a minute or more, for each claim partition that has some.
    pub old_pending: Vec<OldPending>,
    /// Jobs whose time came ten seconds ago or more, and that nobody made claimable.
    pub overdue: i64,
    /// Jobs that wait for a concurrency key.
    pub waiting: i64,
    /// Ends that were reported ten seconds ago or more, and that nobody took up.
    pub reported: i64,
    /// Schedules that can fire.
    pub schedules: i64,
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

/// The operation of [`Upkeep::try_write`], which is always rolled back.
const TRY: &str = "try to write";
const TAKEN_BACK: &str = "it is taken back";
/// How much it writes. The server has to find room for it in a file, and compresses nothing of it.
const TRY_BYTES: usize = 256 * 1024;

impl Upkeep<'_> {
    /// Writes a row, and takes it back: nobody sees it.
    ///
    /// # Errors
    /// Returns the database's error when it takes no writes now.
    pub fn try_write(&self) -> Result<()> {
        let mut text = String::with_capacity(TRY_BYTES + 16);
        while text.len() < TRY_BYTES {
            // As many bits as a fraction has.
            text.push_str(&format!("{:013x}", (self.store.random.fraction() * (1_u64 << 52) as f64) as u64));
        }
        let taken_back = self.store.write(TRY, Evidence::Repeat, move |connection| -> Result<()> {
            connection.execute(
                "INSERT INTO workflows (id, name, hash, definition) VALUES (-1, $1, $1, $2)",
                &[TRY.into(), (&text).into()],
            )?;
            Err(Error::conflict(TRY, TAKEN_BACK))
        });
        match taken_back {
            Err(Error::Conflict { reason, .. }) if reason == TAKEN_BACK => Ok(()),
            other => other,
        }
    }

    /// Looks at what tells whether anything is wrong.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn health(&self) -> Result<Health> {
        let now_ms = self.store.clock.now_ms();
        self.store.read(|connection| health(connection, now_ms))
    }
}

fn health(connection: &mut dyn Connection, now_ms: i64) -> Result<Health> {
    let late_ms = now_ms.saturating_sub(LATE_MS);
    let mut count = |sql: &'static str| one(connection, sql, &[], |row| row.integer(0));
    let schema_version = count("SELECT max(version) FROM schema_migrations")?;
    let database_now_ms = count("SELECT {now_ms}")?;
    let live_workers = count("SELECT count(*) FROM workers WHERE status IN ('ALIVE', 'DRAINING')")?;
    let orphans = count(
        "SELECT count(*) FROM jobs WHERE status = 'RUNNING'
           AND worker_id NOT IN (SELECT id FROM workers WHERE status IN ('ALIVE', 'DRAINING'))",
    )?;
    let running = count("SELECT count(*) FROM jobs WHERE status = 'RUNNING'")?;
    // With the conditions of their indexes: without them every row would be read.
    let pending = count("SELECT count(*) FROM jobs WHERE status = 'PENDING' AND kind > ''")?;
    let waiting =
        count("SELECT count(*) FROM jobs WHERE concurrency_key IS NOT NULL AND status = 'WAITING'")?;
    let schedules = count(
        "SELECT count(*) FROM schedules WHERE paused_at IS NULL AND removed_at IS NULL
           AND workflow IN (SELECT name FROM registrations WHERE paused_at IS NULL)",
    )?;
    let mut count_late = |sql: &'static str| one(connection, sql, &[late_ms.into()], |row| row.integer(0));
    let overdue = count_late("SELECT count(*) FROM jobs WHERE status = 'SCHEDULED' AND execute_after < $1")?;
    let reported = count_late(
        "SELECT count(*) FROM jobs
         WHERE finished_at IS NULL AND (status = 'SUCCESSFUL' OR status = 'FAILED' OR status = 'CANCELLED') AND updated_at < $1",
    )?;
    Ok(Health {
        version: one(connection, "SELECT {version}", &[], |row| row.text(0))?,
        schema_version,
        database_now_ms,
        latest_ms: latest(connection)?,
        live_workers,
        silent_workers: all(
            connection,
            "SELECT id FROM workers
             WHERE status IN ('ALIVE', 'DRAINING') AND heartbeat_at + lease_ms < $1 ORDER BY id",
            &[now_ms.into()],
            |row| row.integer(0),
        )?,
        short_workers: all(
            connection,
            "SELECT id, host, shortage FROM workers
             WHERE status IN ('ALIVE', 'DRAINING') AND shortage IS NOT NULL ORDER BY id LIMIT $1",
            &[GROUPS_MAX.into()],
            |row| {
                let text = |column| Ok(row.lossy_text(column)?.unwrap_or_default());
                Ok((row.integer(0)?, text(1)?, text(2)?))
            },
        )?,
        orphans,
        running,
        pending,
        old_pending: old_pending(connection, now_ms.saturating_sub(WAITING_MS))?,
        overdue,
        waiting,
        reported,
        schedules,
        late_schedules: all(
            connection,
            "SELECT workflow || '/' || name, next_at FROM schedules
             WHERE next_at < $1 AND paused_at IS NULL AND removed_at IS NULL
               AND workflow IN (SELECT name FROM registrations WHERE paused_at IS NULL)
             ORDER BY next_at LIMIT $2",
            &[late_ms.into(), SCHEDULES_MAX.into()],
            |row| Ok((row.text(0)?, row.integer(1)?)),
        )?,
        paused_queues: all(
            connection,
            "SELECT name FROM queues WHERE paused_at IS NOT NULL ORDER BY name LIMIT $1",
            &[GROUPS_MAX.into()],
            |row| row.text(0),
        )?,
    })
}

/// Of the first jobs of a partition: the lowest id of the old ones, their number, and how many were looked at.
const OLD_OF_PARTITION: &str = "SELECT min(CASE WHEN execute_after < $2 AND updated_at < $2 THEN id END),
        count(CASE WHEN execute_after < $2 AND updated_at < $2 THEN 1 END), count(*)
     FROM (SELECT id, execute_after, updated_at FROM jobs
           WHERE status = 'PENDING' AND kind > '' AND queue = (SELECT queue FROM jobs WHERE id = $1)
             AND kind = (SELECT kind FROM jobs WHERE id = $1)
             AND requires = (SELECT requires FROM jobs WHERE id = $1)
             AND version = (SELECT version FROM jobs WHERE id = $1)
           ORDER BY {rank}, id LIMIT $3) AS first_of_partition";

/// The partitions whose most urgent job comes first are looked at, one by one: a single statement over all PENDING jobs
/// would read each of their rows.
fn old_pending(connection: &mut dyn Connection, before_ms: i64) -> Result<Vec<OldPending>> {
    let mut candidates = read_candidates(connection)?;
    candidates.truncate(GROUPS_MAX as usize);
    let asked: Vec<Asked<'_>> = candidates
        .iter()
        .map(|candidate| {
            let id = candidate.position.id;
            (OLD_OF_PARTITION, vec![id.into(), before_ms.into(), (OF_A_GROUP_MAX + 1).into()])
        })
        .collect();
    let counted = rows_of_each(connection, &asked, |row| {
        let jobs = Count { number: row.integer(1)?, is_exact: row.integer(2)? <= OF_A_GROUP_MAX };
        Ok(row.optional_integer(0)?.map(|first_id| OldPending { first_id, jobs }))
    })?;
    let mut groups: Vec<OldPending> = counted.into_iter().flatten().flatten().collect();
    groups.sort_unstable_by_key(|group| group.first_id);
    Ok(groups)
}

/// Among the newest rows: there is no index by time.
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

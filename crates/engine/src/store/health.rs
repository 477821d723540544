//! What tells whether anything is wrong, read at one moment: for people, so it may read much.

use crate::store::Upkeep;
use crate::store::evidence::Evidence;
use windlass_db::Connection;
use windlass_db::all;
use windlass_db::error::Error;
use windlass_db::error::Result;
use windlass_db::one;

/// Groups of waiting jobs that are looked at.
const GROUPS_MAX: i64 = 50;
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
    /// Jobs that can be claimed for a minute or more: for each queue and kind the first, and how many.
    pub old_pending: Vec<(i64, i64)>,
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

/// What [`Store::try_write`] takes back.
const TRY: &str = "try to write";
const TAKEN_BACK: &str = "it is taken back";
/// How much it writes. The server has to find room for it in a file, and compresses nothing of it.
const TRY_BYTES: usize = 256 * 1024;

impl Upkeep<'_> {
    /// Writes a row, and takes it back: nobody sees it.
    ///
    /// # Errors
    /// The database's, when it takes no writes now.
    pub fn try_write(&self) -> Result<()> {
        let mut text = String::with_capacity(TRY_BYTES + 16);
        while text.len() < TRY_BYTES {
            // As many bits as a fraction has.
            text.push_str(&format!("{:013x}", (self.store.random.share() * (1_u64 << 52) as f64) as u64));
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
    /// The database's.
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
    let pending = count("SELECT count(*) FROM jobs WHERE status = 'PENDING'")?;
    let waiting = count("SELECT count(*) FROM jobs WHERE status = 'WAITING'")?;
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
        old_pending: all(
            connection,
            "SELECT min(id), count(*) FROM jobs
             WHERE status = 'PENDING' AND execute_after < $1 AND updated_at < $1
             GROUP BY queue, kind, requires, version ORDER BY min(id) LIMIT $2",
            &[now_ms.saturating_sub(WAITING_MS).into(), GROUPS_MAX.into()],
            |row| Ok((row.integer(0)?, row.integer(1)?)),
        )?,
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

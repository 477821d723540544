//! Makes a restored backup safe to use: its workers are fenced, and its schedules are paused until somebody resumes
//! them.

use crate::store::ForRestore;
use crate::store::evidence::Evidence;
use crate::store::jobs::label;
use crate::store::workers::Worker;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, all, one};
use windlass_system::wake_ups::WakeUps;

const OPERATION: &str = "restore the database";
/// How many labels of interrupted jobs are returned.
const LABELS_MAX: i64 = 20;

/// What was done to a restored database, and what may run in it again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restored {
    /// Workers that were alive when the backup was made, and are fenced now.
    pub fenced_workers: i64,
    /// Schedules that are paused now.
    pub paused_schedules: i64,
    /// Labels of jobs that were running when the backup was made: the first twenty.
    pub interrupted: Vec<String>,
    /// How many jobs were running when the backup was made.
    pub interrupted_jobs: i64,
    /// How many runs are unfinished.
    pub unfinished_runs: i64,
    /// Their ids: the first twenty.
    pub unfinished: Vec<i64>,
    /// Events and ends of runs that were not dispatched when the backup was made: a scheduler starts what triggers make of them.
    pub undispatched: i64,
    /// Jobs that a worker may claim at once.
    pub pending_jobs: i64,
    /// Jobs that wait for their time, their parents or a concurrency key.
    pub waiting_jobs: i64,
}

impl ForRestore<'_> {
    /// Refuses to replace a database that live workers use.
    ///
    /// # Errors
    /// [`Error::Conflict`] that names a live worker, and the database's.
    pub fn refuse_while_used(&self) -> Result<()> {
        let alive = self.store.workers().live()?;
        let Some(first) = alive.first() else { return Ok(()) };
        let others = match alive.len() - 1 {
            0 => String::new(),
            others => format!(", and {others} more"),
        };
        let Worker { id, pid, host, .. } = first;
        let reason = format!("worker {id} is alive (process {pid} on {host}){others}");
        Err(Error::conflict(OPERATION, reason))
    }

    /// Fences every worker, takes back the running jobs, pauses every schedule, and gives the database a new name.
    /// Because of the new name, processes that belong to the original database are not mistaken for processes of this
    /// one. Calling this again does no harm.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn finish_restore(&self) -> Result<Restored> {
        let now_ms = self.store.clock.now_ms();
        let instance = uuid::Uuid::now_v7().simple().to_string();
        let mut restored = self.store.write(OPERATION, Evidence::Token, move |connection| {
            let restored = fence_and_pause(connection, now_ms)?;
            connection.execute("UPDATE instance SET name = $1", &[(&instance).into()])?;
            connection.wake(WakeUps::DUE | WakeUps::CANCEL | WakeUps::PROGRESS);
            Ok(restored)
        })?;
        while self.store.for_scheduler().rescue(Vec::new())?.jobs > 0 {}
        self.store.read(|connection| count_unfinished(connection, &mut restored))?;
        Ok(restored)
    }
}

fn fence_and_pause(connection: &mut dyn Connection, now_ms: i64) -> Result<Restored> {
    let interrupted = all(
        connection,
        "SELECT id, run_id, name FROM jobs WHERE worker_id IS NOT NULL AND status = 'RUNNING' ORDER BY id LIMIT $1",
        &[LABELS_MAX.into()],
        |row| Ok(label(row.integer(0)?, row.optional_integer(1)?, row.lossy_text(2)?.as_deref())),
    )?;
    let interrupted_jobs = one(
        connection,
        "SELECT count(*) FROM jobs WHERE worker_id IS NOT NULL AND status = 'RUNNING'",
        &[],
        |row| row.integer(0),
    )?;
    let fenced = connection.execute(
        "UPDATE workers SET status = 'DEAD', stopped_at = $1 WHERE status IN ('ALIVE', 'DRAINING')",
        &[now_ms.into()],
    )?;
    // What the backup had still to tell happened long ago, and was told since then.
    connection.execute(
        "UPDATE notifications SET status = 'FAILED', finished_at = $1, last_error = 'the database was restored from a backup'
         WHERE status = 'PENDING'",
        &[now_ms.into()],
    )?;
    let paused = connection.execute(
        "UPDATE schedules SET paused_at = $1, updated_at = $1 WHERE paused_at IS NULL AND removed_at IS NULL",
        &[now_ms.into()],
    )?;
    let count = |rows: u64| i64::try_from(rows).unwrap_or(i64::MAX);
    Ok(Restored {
        fenced_workers: count(fenced),
        paused_schedules: count(paused),
        interrupted,
        interrupted_jobs,
        ..Restored::default()
    })
}

fn count_unfinished(connection: &mut dyn Connection, restored: &mut Restored) -> Result<()> {
    restored.unfinished = all(
        connection,
        "SELECT id FROM runs WHERE status IN ('PENDING', 'RUNNING') ORDER BY id LIMIT $1",
        &[LABELS_MAX.into()],
        |row| row.integer(0),
    )?;
    restored.undispatched = one(
        connection,
        "SELECT (SELECT count(*) FROM events WHERE dispatched_at IS NULL) + (SELECT count(*) FROM run_ends)",
        &[],
        |row| row.integer(0),
    )?;
    let [runs, pending, waiting] = one(
        connection,
        "SELECT (SELECT count(*) FROM runs WHERE status IN ('PENDING', 'RUNNING')),
                (SELECT count(*) FROM jobs WHERE status = 'PENDING'),
                (SELECT count(*) FROM jobs WHERE status IN ('BLOCKED', 'SCHEDULED', 'WAITING'))",
        &[],
        |row| Ok([row.integer(0)?, row.integer(1)?, row.integer(2)?]),
    )?;
    restored.unfinished_runs = runs;
    restored.pending_jobs = pending;
    restored.waiting_jobs = waiting;
    Ok(())
}

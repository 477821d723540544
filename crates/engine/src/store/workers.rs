//! Workers: who there is, and who counts as alive.

use super::claim::{Scope, read_retry_state};
use super::evidence::Evidence;
use super::worker_capabilities::WorkerCapabilities;
use super::{Store, json_ids, json_list};
use crate::status::WorkerStatus;
use crate::transition::RetryState;
use windlass_db::error::Result;
use windlass_db::{Row, all, one};
use windlass_system::wake_ups::WakeUps;

/// A worker to be registered.
#[derive(Debug, Clone)]
pub struct NewWorker {
    /// The host's name.
    pub host: String,
    /// Its process id.
    pub pid: i64,
    /// The identity of its process.
    pub process: String,
    /// What it claims.
    pub scope: Scope,
    /// What it can execute.
    pub worker_capabilities: WorkerCapabilities,
    /// How many jobs it executes at once.
    pub threads: i64,
    /// How long it keeps its jobs without a heartbeat, in milliseconds.
    pub lease_ms: i64,
}

/// A worker, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// Its id.
    pub id: i64,
    /// The host's name.
    pub host: String,
    /// Its process id.
    pub pid: i64,
    /// The identity of its process.
    pub process: String,
    /// Its state.
    pub status: WorkerStatus,
    /// The queues it claims from, as a JSON list; `None` is all.
    pub queues: Option<String>,
    /// The runs it claims from, as a JSON list; `None` is all.
    pub run_ids: Option<String>,
    /// The kinds it can execute, as a JSON list.
    pub kinds: String,
    /// What it has that jobs may require, as a JSON list.
    pub capabilities: String,
    /// The version of its code.
    pub version: i64,
    /// How many jobs it executes at once.
    pub threads: i64,
    /// How long it keeps its jobs without a heartbeat, in milliseconds.
    pub lease_ms: i64,
    /// Renewals so far.
    pub heartbeats: i64,
    /// The last renewal, by the worker's clock.
    pub heartbeat_at: i64,
    /// When it registered.
    pub started_at: i64,
    /// Jobs it owns.
    pub running: i64,
    /// What it lacks to start jobs.
    pub shortage: Option<String>,
}

impl Store {
    /// Registers a worker and returns its id.
    ///
    /// # Errors
    /// The database's.
    pub fn register_worker(&self, worker: NewWorker) -> Result<i64> {
        let now_ms = self.clock.now_ms();
        self.write("register a worker", Evidence::Token, move |connection| {
            let (queues, run_ids) = match &worker.scope {
                Scope::Everything => (None, None),
                Scope::Queues(queues) => (Some(json_list("register a worker", queues)?), None),
                Scope::Runs(run_ids) => (None, Some(json_ids(run_ids))),
            };
            connection.wake(WakeUps::PROGRESS);
            one(
                connection,
                "INSERT INTO workers (host, pid, process, queues, run_ids, kinds, threads, lease_ms,
                                      heartbeat_at, started_at, capabilities, version)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, $11) RETURNING id",
                &[
                    (&worker.host).into(),
                    worker.pid.into(),
                    (&worker.process).into(),
                    (&queues).into(),
                    (&run_ids).into(),
                    (&json_list("register a worker", &worker.worker_capabilities.kinds)?).into(),
                    worker.threads.into(),
                    worker.lease_ms.into(),
                    now_ms.into(),
                    (&json_list("register a worker", &worker.worker_capabilities.capabilities)?).into(),
                    worker.worker_capabilities.version.into(),
                ],
                |row| row.integer(0),
            )
        })
    }

    /// Renews a worker's lease. `false` means that it is fenced: it owns nothing any more.
    ///
    /// # Errors
    /// The database's.
    pub fn heartbeat(&self, worker_id: i64) -> Result<bool> {
        let now_ms = self.clock.now_ms();
        self.write("renew a lease", Evidence::Repeat, move |connection| {
            let renewed = connection.execute(
                "UPDATE workers SET heartbeats = heartbeats + 1, heartbeat_at = $2
                 WHERE id = $1 AND status IN ('ALIVE', 'DRAINING')",
                &[worker_id.into(), now_ms.into()],
            )?;
            Ok(renewed == 1)
        })
    }

    /// Marks a worker as finishing what it runs, or as ended. `false` means that it is fenced.
    ///
    /// # Errors
    /// The database's.
    pub fn set_worker_status(&self, worker_id: i64, status: WorkerStatus) -> Result<bool> {
        let now_ms = self.clock.now_ms();
        self.write("change a worker's state", Evidence::Token, move |connection| {
            let changed = connection.execute(
                "UPDATE workers
                 SET status = $2, stopped_at = CASE WHEN $2 IN ('STOPPED', 'DEAD') THEN CAST($3 AS {integer}) END
                 WHERE id = $1 AND status IN ('ALIVE', 'DRAINING')",
                &[worker_id.into(), status.as_str().into(), now_ms.into()],
            )?;
            connection.wake(WakeUps::PROGRESS);
            Ok(changed == 1)
        })
    }

    /// Notes what a worker lacks to start jobs, or that it lacks nothing. For people who look.
    ///
    /// # Errors
    /// The database's.
    pub fn set_worker_shortage(&self, worker_id: i64, shortage: Option<String>) -> Result<()> {
        self.write("note a worker's shortage", Evidence::Repeat, move |connection| {
            connection.execute(
                "UPDATE workers SET shortage = $2 WHERE id = $1",
                &[worker_id.into(), (&shortage).into()],
            )?;
            Ok(())
        })
    }

    /// The workers that count as alive.
    ///
    /// # Errors
    /// The database's.
    pub fn live_workers(&self) -> Result<Vec<Worker>> {
        self.read(|connection| {
            all(
                connection,
                "SELECT id, host, pid, process, status, queues, run_ids, kinds, threads, lease_ms,
                        heartbeats, heartbeat_at, started_at,
                        (SELECT count(*) FROM jobs
                         WHERE jobs.worker_id = workers.id AND jobs.status = 'RUNNING'),
                        capabilities, version, shortage
                 FROM workers WHERE status IN ('ALIVE', 'DRAINING') ORDER BY id",
                &[],
                read_worker,
            )
        })
    }

    /// The attempts that run under a worker by the tables, as (job, run, what its end is decided by). Read
    /// where it is written: a standby that lags would show too little.
    ///
    /// # Errors
    /// The database's.
    pub fn claimed_by(&self, worker_id: i64) -> Result<Vec<(i64, Option<i64>, RetryState)>> {
        self.write("look at what a worker runs", Evidence::Repeat, move |connection| {
            all(
                connection,
                "SELECT id, attempt, failures, max_attempts, interruptions, max_interruptions, on_interrupt,
                        retry, run_id
                 FROM jobs WHERE worker_id = $1 AND status = 'RUNNING'",
                &[worker_id.into()],
                |row| Ok((row.integer(0)?, row.optional_integer(8)?, read_retry_state(row, 1)?)),
            )
        })
    }
}

/// Other programs register too: one row that is no text must not keep everybody from looking at all.
fn read_worker(row: &dyn Row) -> Result<Worker> {
    let text = |column| Ok(row.lossy_text(column)?.unwrap_or_default());
    Ok(Worker {
        id: row.integer(0)?,
        host: text(1)?,
        pid: row.integer(2)?,
        process: text(3)?,
        status: row.parsed(4, WorkerStatus::parse)?,
        queues: row.lossy_text(5)?,
        run_ids: row.lossy_text(6)?,
        kinds: text(7)?,
        threads: row.integer(8)?,
        lease_ms: row.integer(9)?,
        heartbeats: row.integer(10)?,
        heartbeat_at: row.integer(11)?,
        started_at: row.integer(12)?,
        running: row.integer(13)?,
        capabilities: text(14)?,
        version: row.integer(15)?,
        shortage: row.lossy_text(16)?,
    })
}

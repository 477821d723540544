//! Workers: who is alive, and what becomes of the jobs of those who are not.
//!
//! Fencing a worker and rescuing its jobs is one transaction. A fenced worker can neither claim, nor
//! renew its lease, nor record a result, because every one of these is guarded.

use super::abilities::Abilities;
use super::claim::{Claims, Scope, read_facts};
use super::finish::{Finish, finish};
use super::{Store, json_ids, json_list};
use crate::db::{Connection, Row, Value, all, one};
use crate::error::Result;
use crate::signal::Hints;
use crate::status::WorkerStatus;
use crate::transition::{Facts, Outcome, after_attempt};

/// Jobs rescued in one transaction at most.
const RESCUE_MAX: i64 = 1_000;

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
    pub abilities: Abilities,
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
}

/// What a rescue did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rescued {
    /// Workers that were fenced.
    pub fenced: i64,
    /// Jobs that were taken back.
    pub jobs: i64,
}

impl Store {
    /// Registers a worker and returns its id.
    ///
    /// # Errors
    /// The database's.
    pub fn register_worker(&self, worker: NewWorker) -> Result<i64> {
        let now_ms = self.clock.now_ms();
        self.write("register a worker", move |connection| {
            let (queues, run_ids) = match &worker.scope {
                Scope::Everything => (None, None),
                Scope::Queues(queues) => (Some(json_list("register a worker", queues)?), None),
                Scope::Runs(run_ids) => (None, Some(json_ids(run_ids))),
            };
            connection.hint(Hints::PROGRESS);
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
                    (&json_list("register a worker", &worker.abilities.kinds)?).into(),
                    worker.threads.into(),
                    worker.lease_ms.into(),
                    now_ms.into(),
                    (&json_list("register a worker", &worker.abilities.capabilities)?).into(),
                    worker.abilities.version.into(),
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
        self.write("renew a lease", move |connection| {
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
        self.write("change a worker's state", move |connection| {
            let changed = connection.execute(
                "UPDATE workers
                 SET status = $2, stopped_at = CASE WHEN $2 IN ('STOPPED', 'DEAD') THEN CAST($3 AS {integer}) END
                 WHERE id = $1 AND status IN ('ALIVE', 'DRAINING')",
                &[worker_id.into(), status.as_str().into(), now_ms.into()],
            )?;
            connection.hint(Hints::PROGRESS);
            Ok(changed == 1)
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
                        capabilities, version
                 FROM workers WHERE status IN ('ALIVE', 'DRAINING') ORDER BY id",
                &[],
                read_worker,
            )
        })
    }

    /// Fences workers found dead, as (id, heartbeats seen), and takes back the jobs of every worker
    /// that is not alive. A worker that renewed its lease since it was looked at is left alone.
    ///
    /// # Errors
    /// The database's.
    pub fn rescue(&self, dead: Vec<(i64, i64)>) -> Result<Rescued> {
        let now_ms = self.clock.now_ms();
        let random = self.random.clone();
        self.write("rescue jobs", move |connection| {
            let fenced = fence(connection, &dead, now_ms)?;
            let orphans = orphans(connection)?;
            let finishes: Vec<Finish> = orphans
                .iter()
                .map(|orphan| {
                    let error = format!("worker {} is gone", orphan.worker_id);
                    let outcome = Outcome::Interrupted { error };
                    Finish {
                        job_id: orphan.job_id,
                        attempt: orphan.facts.attempt,
                        worker_id: orphan.worker_id,
                        transition: after_attempt(&orphan.facts, outcome, now_ms, random.share()),
                        logs: Vec::new(),
                    }
                })
                .collect();
            finish(connection, &finishes, now_ms)?.announce(connection, &Claims::Jobs(Vec::new()));
            Ok(Rescued { fenced, jobs: finishes.len() as i64 })
        })
    }

    /// The attempts that run under a worker by the tables, as (job, what its end is decided by). Read where
    /// it is written: a standby that lags would show too little.
    ///
    /// # Errors
    /// The database's.
    pub fn claimed_by(&self, worker_id: i64) -> Result<Vec<(i64, Facts)>> {
        self.write("look at what a worker runs", move |connection| {
            all(
                connection,
                "SELECT id, attempt, failures, max_attempts, interruptions, max_interruptions, on_interrupt,
                        retry
                 FROM jobs WHERE worker_id = $1 AND status = 'RUNNING'",
                &[worker_id.into()],
                |row| Ok((row.integer(0)?, read_facts(row, 1)?)),
            )
        })
    }

    /// Whether a rescue would find jobs to take back, without taking the write lock.
    ///
    /// # Errors
    /// The database's.
    pub fn has_orphans(&self) -> Result<bool> {
        self.read(|connection| Ok(!orphans(connection)?.is_empty()))
    }
}

struct Orphan {
    job_id: i64,
    worker_id: i64,
    facts: Facts,
}

fn fence(connection: &mut dyn Connection, dead: &[(i64, i64)], now_ms: i64) -> Result<i64> {
    if dead.is_empty() {
        return Ok(0);
    }
    let seen: Vec<[Value<'_>; 2]> =
        dead.iter().map(|(id, heartbeats)| [(*id).into(), (*heartbeats).into()]).collect();
    let fenced = connection.execute(
        "UPDATE workers SET status = 'DEAD', stopped_at = $2
         FROM {rows $1: id integer, heartbeats integer} AS seen
         WHERE workers.id = seen.id AND workers.heartbeats = seen.heartbeats
           AND workers.status IN ('ALIVE', 'DRAINING')",
        &[Value::rows(&seen), now_ms.into()],
    )?;
    Ok(i64::try_from(fenced).unwrap_or(i64::MAX))
}

/// RUNNING jobs whose owner is not alive: few rows, through the index of running jobs.
fn orphans(connection: &mut dyn Connection) -> Result<Vec<Orphan>> {
    all(
        connection,
        "SELECT id, worker_id, attempt, failures, max_attempts, interruptions, max_interruptions,
                on_interrupt, retry
         FROM jobs
         WHERE status = 'RUNNING'
           AND worker_id NOT IN (SELECT id FROM workers WHERE status IN ('ALIVE', 'DRAINING'))
         LIMIT $1",
        &[RESCUE_MAX.into()],
        |row| Ok(Orphan { job_id: row.integer(0)?, worker_id: row.integer(1)?, facts: read_facts(row, 2)? }),
    )
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
    })
}

//! Workers: registering them, and listing those that are alive.

use crate::status::WorkerStatus;
use crate::store::Workers;
use crate::store::claim::capabilities::WorkerCapabilities;
use crate::store::claim::request::Scope;
use windlass_db::error::Result;
use windlass_db::{Row, all};

/// A worker to register.
#[derive(Debug, Clone)]
pub struct NewWorker {
    /// The name of its host.
    pub host: String,
    /// Its process id.
    pub pid: i64,
    /// The identity of its process, by which another process can tell whether it is gone.
    pub process: String,
    /// What it may claim.
    pub scope: Scope,
    /// What it can execute.
    pub worker_capabilities: WorkerCapabilities,
    /// How many jobs it executes at once.
    pub threads: i64,
    /// The length of its lease in milliseconds: without a heartbeat it keeps its jobs for this time.
    pub lease_ms: i64,
}

/// A worker, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// Its id.
    pub id: i64,
    /// The name of its host.
    pub host: String,
    /// Its process id.
    pub pid: i64,
    /// The identity of its process, by which another process can tell whether it is gone.
    pub process: String,
    /// Its state.
    pub status: WorkerStatus,
    /// The queues it claims from, as a JSON list; `None` means all.
    pub queues: Option<String>,
    /// The runs it claims from, as a JSON list; `None` means all.
    pub run_ids: Option<String>,
    /// The kinds it can execute, as a JSON list.
    pub kinds: String,
    /// Its capabilities, as a JSON list.
    pub capabilities: String,
    /// The version of its code.
    pub code_version: i64,
    /// How many jobs it executes at once.
    pub threads: i64,
    /// The length of its lease in milliseconds: without a heartbeat it keeps its jobs for this time.
    pub lease_ms: i64,
    /// How often it has renewed its lease.
    pub heartbeats: i64,
    /// When it last renewed its lease, by its own clock.
    pub heartbeat_at: i64,
    /// When it registered.
    pub started_at: i64,
    /// How many jobs it is running.
    pub running: i64,
    /// What its machine lacks to start jobs.
    pub shortage: Option<String>,
}

impl Worker {
    /// What the worker can execute. A list that can't be parsed counts as empty.
    pub(in crate::store) fn capabilities(&self) -> WorkerCapabilities {
        let list = |json: &str| serde_json::from_str(json).unwrap_or_default();
        WorkerCapabilities {
            kinds: list(&self.kinds),
            capabilities: list(&self.capabilities),
            code_version: self.code_version,
        }
    }
}

impl Workers<'_> {
    /// Lists the workers that count as alive.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn live(&self) -> Result<Vec<Worker>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT id, host, pid, process, status, queues, run_ids, kinds, threads, lease_ms,
                        heartbeats, heartbeat_at, started_at,
                        (SELECT count(*) FROM jobs
                         WHERE jobs.worker_id = workers.id AND jobs.status = 'RUNNING'),
                        capabilities, code_version, shortage
                 FROM workers WHERE status IN ('ALIVE', 'DRAINING') ORDER BY id",
                &[],
                read_worker,
            )
        })
    }
}

/// Other programs write to this table too. Text that is not valid UTF-8 is replaced, so that the list can be read.
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
        code_version: row.integer(15)?,
        shortage: row.lossy_text(16)?,
    })
}

//! The processes of workers, as the failure detector sees them.

use windlass_engine::store::Worker;
use windlass_system::process::{Fate, Reach, end_orphans, fate};

/// Tells whether the processes of workers exist, and kills the processes that dead workers left. A test may replace it.
pub trait WorkerProcesses: Send + Sync {
    /// Whether the worker's process exists, as far as this process can see. `reach` says where workers of this database may
    /// run.
    fn fate(&self, worker: &Worker, reach: Reach) -> Fate;

    /// Kills the processes that a worker left when it died. `attempts` are the pairs (job, attempt) that it was executing.
    /// Returns whether no process is left.
    fn end_orphans(&self, worker: &Worker, attempts: &[(i64, i64)]) -> bool;
}

/// The processes of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineProcesses;

impl WorkerProcesses for MachineProcesses {
    fn fate(&self, worker: &Worker, reach: Reach) -> Fate {
        fate(worker.pid, &worker.process, reach)
    }

    fn end_orphans(&self, worker: &Worker, attempts: &[(i64, i64)]) -> bool {
        end_orphans(worker.pid, &worker.process, attempts)
    }
}

//! What the failure detector learns from the machine about the processes of workers.

use windlass_engine::store::Worker;
use windlass_system::process::{Fate, Reach, end_orphans, fate};

/// Tells whether workers' processes exist, and kills what dead workers left. A simulation has its own.
pub trait WorkerProcesses: Send + Sync {
    /// What can be said of the worker's process from here. `reach` says where workers of this database may run.
    fn fate(&self, worker: &Worker, reach: Reach) -> Fate;

    /// Kills what a worker that is gone left of some attempts, given as (job, attempt). Returns whether nothing of them
    /// is left.
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

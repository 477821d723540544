//! What the failure detector learns from the machine about the processes of workers.

use windlass_engine::store::Worker;
use windlass_system::process::{HostScope, Liveness, kill_orphans, liveness};

/// Tells whether workers' processes exist, and kills what dead workers left. A simulation has its own.
pub trait WorkerProcesses: Send + Sync {
    /// Whether the process of a worker exists. `host_scope` says where workers of this database can run.
    fn liveness(&self, worker: &Worker, host_scope: HostScope) -> Liveness;

    /// Kills the processes that a dead worker left of some attempts, given as (job, attempt). Returns whether none of them
    /// is left.
    fn kill_orphans(&self, worker: &Worker, attempts: &[(i64, i64)]) -> bool;
}

/// The processes of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineProcesses;

impl WorkerProcesses for MachineProcesses {
    fn liveness(&self, worker: &Worker, host_scope: HostScope) -> Liveness {
        liveness(worker.pid, &worker.process, host_scope)
    }

    fn kill_orphans(&self, worker: &Worker, attempts: &[(i64, i64)]) -> bool {
        kill_orphans(worker.pid, &worker.process, attempts)
    }
}

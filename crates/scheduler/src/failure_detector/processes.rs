//! The processes of workers, as the failure detector sees them.

use windlass_engine::store::Worker;
use windlass_system::process::{HostScope, Liveness, kill_orphans, liveness};

/// Tells whether the processes of workers exist, and kills the processes that dead workers left. A test may replace it.
pub trait WorkerProcesses: Send + Sync {
    /// Whether the worker's process exists, as far as this process can see. `host_scope` says where workers of this database may
    /// run.
    fn liveness(&self, worker: &Worker, host_scope: HostScope) -> Liveness;

    /// Kills the processes that a worker left when it died. `attempts` are the pairs (job, attempt) that it was executing.
    /// Returns whether no process is left.
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

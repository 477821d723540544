//! The request of a claim and its answer.

use crate::store::claim::capabilities::WorkerCapabilities;
use crate::store::claim::job::ClaimedJob;

/// The most jobs that one claim takes.
pub const CLAIM_MAX: usize = 2_000;
/// The most jobs that one claim takes where only one transaction writes at a time, because all other writers wait for it.
pub(in crate::store) const CLAIM_MAX_OF_ONE_WRITER: usize = 1_000;

/// The jobs that a worker takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Jobs of all queues.
    Everything,
    /// Jobs of these queues.
    Queues(Vec<String>),
    /// Jobs of these runs.
    Runs(Vec<i64>),
}

/// A worker's request for jobs.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The worker.
    pub worker_id: i64,
    /// The jobs that it takes.
    pub scope: Scope,
    /// What it can execute.
    pub worker_capabilities: WorkerCapabilities,
    /// The most jobs that it takes now.
    pub limit: usize,
    /// How many of these jobs start at once, each in an idle thread. The others wait in the worker's memory. If the worker
    /// died, they would count as interrupted, so a job with `on_interrupt = fail` is never among them.
    pub idle_threads: usize,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Claims {
    /// The claimed jobs, the most urgent first.
    Jobs(Vec<ClaimedJob>),
    /// The worker is fenced: it owns no jobs any more and must register again.
    Fenced,
}

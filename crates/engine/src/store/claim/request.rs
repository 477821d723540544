//! What a worker asks for when it claims, and what it gets.

use crate::store::claim::capabilities::WorkerCapabilities;
use crate::store::claim::job::ClaimedJob;

/// Jobs in one claim at most.
pub const CLAIM_MAX: usize = 2_000;
/// The same where one transaction is written at a time: everybody else waits for it.
pub(in crate::store) const CLAIM_MAX_OF_ONE_WRITER: usize = 1_000;

/// Which jobs a worker takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Whatever waits in any queue.
    Everything,
    /// Whatever waits in these queues.
    Queues(Vec<String>),
    /// Only the jobs of these runs.
    Runs(Vec<i64>),
}

/// What a worker asks for.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// The worker.
    pub worker_id: i64,
    /// Which jobs.
    pub scope: Scope,
    /// What it can execute.
    pub worker_capabilities: WorkerCapabilities,
    /// How many at most.
    pub limit: usize,
    /// How many of these start at once. The others wait in the worker's memory, and would count as
    /// interrupted if it died: a job that must not be interrupted is never among them.
    pub idle: usize,
}

/// What a claim came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Claims {
    /// The claimed jobs, the most urgent first.
    Jobs(Vec<ClaimedJob>),
    /// The worker is fenced: it owns nothing any more and must register anew.
    Fenced,
}

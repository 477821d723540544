//! Counts and workers as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use windlass_engine::RunStatus;
use windlass_engine::store::{Stats, Worker};

use crate::time::Instant;
use crate::{JobCountsView, json};

/// The numbers of jobs and runs by state, and the live workers.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Stats")]
pub struct StatsView {
    /// How many jobs are in each state.
    job_counts: JobCountsView,
    /// How many runs are in each state.
    run_counts: RunCountsView,
    /// The states of which there may be more.
    at_least: AtLeastView,
    /// The live workers.
    workers: Vec<WorkerView>,
}

impl StatsView {
    /// `workers` are the live ones.
    pub fn new(stats: &Stats, workers: &[Worker]) -> StatsView {
        StatsView {
            job_counts: JobCountsView::new(&stats.jobs),
            run_counts: RunCountsView::new(stats),
            at_least: AtLeastView::new(stats),
            workers: workers.iter().map(WorkerView::new).collect(),
        }
    }
}

/// How many runs are in each state.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RunCounts")]
struct RunCountsView {
    /// All runs.
    total: i64,
    /// Runs that are PENDING.
    pending: i64,
    /// Runs that are RUNNING.
    running: i64,
    /// Runs that are SUCCESSFUL.
    successful: i64,
    /// Runs that are FAILED.
    failed: i64,
    /// Runs that are CANCELLED.
    cancelled: i64,
}

impl RunCountsView {
    fn new(stats: &Stats) -> RunCountsView {
        let of = |status: RunStatus| {
            let count = stats.runs.iter().find(|(of, _count)| *of == status);
            count.map_or(0, |(_status, count)| count.number)
        };
        RunCountsView {
            total: stats.runs.iter().map(|(_status, count)| count.number).sum(),
            pending: of(RunStatus::Pending),
            running: of(RunStatus::Running),
            successful: of(RunStatus::Successful),
            failed: of(RunStatus::Failed),
            cancelled: of(RunStatus::Cancelled),
        }
    }
}

/// The states of which there may be more than the number says, because counting stopped at a bound.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AtLeast")]
struct AtLeastView {
    /// States of jobs.
    jobs: Vec<&'static str>,
    /// States of runs.
    runs: Vec<&'static str>,
}

impl AtLeastView {
    fn new(stats: &Stats) -> AtLeastView {
        let runs = stats.runs.iter().filter(|(_status, count)| !count.is_exact);
        AtLeastView {
            jobs: stats.jobs_at_least.iter().map(|status| status.as_str()).collect(),
            runs: runs.map(|(status, _count)| status.as_str()).collect(),
        }
    }
}

/// A live worker.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Worker")]
pub struct WorkerView {
    /// Its number.
    worker_id: i64,
    /// The machine that it runs on.
    host: String,
    /// Its process.
    pid: i64,
    /// Its state.
    #[schemars(extend("enum" = ["ALIVE", "DRAINING", "STOPPED", "DEAD"]))]
    status: &'static str,
    /// When it was heard last.
    heartbeat_at: Instant,
    /// How many jobs it executes at a time.
    threads: i64,
    /// `null` means every queue.
    queues: Option<Value>,
    /// What it has for jobs that require it.
    capabilities: Value,
    /// The version of its code, for jobs that ask for a lowest one.
    code_version: i64,
    /// How many jobs it executes now.
    running: i64,
}

impl WorkerView {
    /// From the row of the worker.
    pub fn new(worker: &Worker) -> WorkerView {
        WorkerView {
            worker_id: worker.id,
            host: worker.host.clone(),
            pid: worker.pid,
            status: worker.status.as_str(),
            heartbeat_at: Instant::at(worker.heartbeat_at),
            threads: worker.threads,
            queues: worker.queues.as_deref().map(json),
            capabilities: json(&worker.capabilities),
            code_version: worker.code_version,
            running: worker.running,
        }
    }
}

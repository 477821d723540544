//! Counts and workers as JSON.

use serde::Serialize;
use serde_json::Value;
use windlass_engine::RunStatus;
use windlass_engine::store::{Stats, Worker};

use crate::time::rfc3339;
use crate::{JobCountsView, json};

/// The numbers of jobs and runs by state, and the live workers.
#[derive(Debug, Serialize)]
pub struct StatsView {
    job_counts: JobCountsView,
    run_counts: RunCountsView,
    at_least: AtLeastView,
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
#[derive(Debug, Serialize)]
struct RunCountsView {
    total: i64,
    pending: i64,
    running: i64,
    successful: i64,
    failed: i64,
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
#[derive(Debug, Serialize)]
struct AtLeastView {
    jobs: Vec<&'static str>,
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
#[derive(Debug, Serialize)]
pub struct WorkerView {
    worker_id: i64,
    host: String,
    pid: i64,
    status: &'static str,
    heartbeat_at: String,
    threads: i64,
    /// `null` means every queue.
    queues: Option<Value>,
    capabilities: Value,
    code_version: i64,
    running: i64,
}

impl WorkerView {
    fn new(worker: &Worker) -> WorkerView {
        WorkerView {
            worker_id: worker.id,
            host: worker.host.clone(),
            pid: worker.pid,
            status: worker.status.as_str(),
            heartbeat_at: rfc3339(worker.heartbeat_at),
            threads: worker.threads,
            queues: worker.queues.as_deref().map(json),
            capabilities: json(&worker.capabilities),
            code_version: worker.version,
            running: worker.running,
        }
    }
}

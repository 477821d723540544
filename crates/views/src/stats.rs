//! Counts and workers as JSON.

use serde::Serialize;
use serde_json::{Map, Value};
use windlass_engine::JobStatus;
use windlass_engine::store::{Stats, Worker};

use crate::json;
use crate::time::rfc3339;

/// The numbers of jobs and runs by state, and the live workers.
#[derive(Debug, Serialize)]
pub struct StatsView {
    jobs: Map<String, Value>,
    runs: Map<String, Value>,
    at_least: AtLeastView,
    workers: Vec<WorkerView>,
}

impl StatsView {
    /// `workers` are the live ones.
    pub fn new(stats: &Stats, workers: &[Worker]) -> StatsView {
        let job_count = |status: JobStatus| (status.as_str().to_owned(), Value::from(stats.jobs.of(status)));
        let runs =
            stats.runs.iter().map(|(status, count)| (status.as_str().to_owned(), Value::from(count.number)));
        StatsView {
            jobs: JobStatus::ALL.into_iter().map(job_count).collect(),
            runs: runs.collect(),
            at_least: AtLeastView::new(stats),
            workers: workers.iter().map(WorkerView::new).collect(),
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
    id: i64,
    host: String,
    pid: i64,
    status: &'static str,
    heartbeat_at: String,
    threads: i64,
    /// `null` means every queue.
    queues: Option<Value>,
    capabilities: Value,
    version: i64,
    running: i64,
}

impl WorkerView {
    fn new(worker: &Worker) -> WorkerView {
        WorkerView {
            id: worker.id,
            host: worker.host.clone(),
            pid: worker.pid,
            status: worker.status.as_str(),
            heartbeat_at: rfc3339(worker.heartbeat_at),
            threads: worker.threads,
            queues: worker.queues.as_deref().map(json),
            capabilities: json(&worker.capabilities),
            version: worker.version,
            running: worker.running,
        }
    }
}

//! A queue as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::JobStatus;
use windlass_engine::store::{Order, Queue};

use crate::time::{Instant, instant};

/// A queue with its rules.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Queue")]
pub struct QueueView {
    /// Its name.
    queue: String,
    /// Since when it is paused.
    paused_at: Option<Instant>,
    /// How many of its jobs may run at a time.
    max_running: Option<i64>,
    /// How many of its jobs may start within `rate_interval_ms`.
    rate_jobs: Option<i64>,
    /// The interval of the rate.
    rate_interval_ms: Option<i64>,
    /// Its jobs run one at a time, in order of arrival.
    fifo: bool,
    /// Its jobs that are PENDING.
    pending: i64,
    /// Its jobs that are RUNNING.
    running: i64,
    /// Its jobs that are SCHEDULED.
    scheduled: i64,
    /// Its jobs that are WAITING.
    waiting: i64,
    /// The states of which it may have more jobs than the number says, because counting stopped at a bound.
    at_least: Vec<&'static str>,
}

impl QueueView {
    /// From the row of the queue.
    pub fn new(queue: &Queue) -> QueueView {
        let counts = [
            (JobStatus::Pending, queue.pending),
            (JobStatus::Running, queue.running),
            (JobStatus::Scheduled, queue.scheduled),
            (JobStatus::Waiting, queue.waiting),
        ];
        let cut = counts.iter().filter(|(_status, count)| !count.is_exact);
        QueueView {
            queue: queue.name.clone(),
            paused_at: instant(queue.paused_at),
            max_running: queue.max_running,
            rate_jobs: queue.rate.map(|rate| rate.jobs),
            rate_interval_ms: queue.rate.map(|rate| rate.interval_ms),
            fifo: queue.order == Order::Arrival,
            pending: queue.pending.number,
            running: queue.running.number,
            scheduled: queue.scheduled.number,
            waiting: queue.waiting.number,
            at_least: cut.map(|(status, _count)| status.as_str()).collect(),
        }
    }
}

//! A queue as JSON.

use schemars::JsonSchema;
use serde::Serialize;
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
}

impl QueueView {
    /// From the row of the queue.
    pub fn new(queue: &Queue) -> QueueView {
        QueueView {
            queue: queue.name.clone(),
            paused_at: instant(queue.paused_at),
            max_running: queue.max_running,
            rate_jobs: queue.rate.map(|rate| rate.jobs),
            rate_interval_ms: queue.rate.map(|rate| rate.interval_ms),
            fifo: queue.order == Order::Arrival,
            pending: queue.pending,
            running: queue.running,
            scheduled: queue.scheduled,
            waiting: queue.waiting,
        }
    }
}

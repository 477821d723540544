//! A queue as JSON.

use serde::Serialize;
use windlass_engine::store::{Order, Queue};

use crate::time::instant;

/// A queue with its rules.
#[derive(Debug, Serialize)]
pub struct QueueView {
    queue: String,
    paused_at: Option<String>,
    max_running: Option<i64>,
    rate_jobs: Option<i64>,
    rate_interval_ms: Option<i64>,
    fifo: bool,
    pending: i64,
    running: i64,
    scheduled: i64,
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

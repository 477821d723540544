//! The page Queues.

use askama::Template;
use windlass_engine::store::{Order, Queue};

use super::frame::{Frame, Reader, Section};
use super::times::{Stamp, duration, grouped};
use super::url;

struct Row {
    name: String,
    href: String,
    pending: String,
    running: String,
    scheduled: String,
    waiting: String,
    limits: String,
    max_running: String,
    paused: Option<Stamp>,
}

#[derive(Template)]
#[template(path = "queues.html")]
struct QueuesPage {
    frame: Frame,
    rows: Vec<Row>,
}

/// The list of queues.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn page(queues: &[Queue], reader: &Reader) -> askama::Result<String> {
    QueuesPage {
        frame: Frame::new(reader, Section::Queues, "Queues"),
        rows: queues.iter().map(|queue| row(queue, reader)).collect(),
    }
    .render()
}

fn row(queue: &Queue, reader: &Reader) -> Row {
    let mut limits = Vec::new();
    limits.extend(queue.max_running.map(|max| format!("{max} at a time")));
    limits.extend(queue.rate.map(|rate| format!("{} in {}", rate.jobs, duration(rate.interval_ms))));
    match queue.order {
        Order::Arrival => limits.push("in order of arrival".to_owned()),
        Order::Priority => {}
    }
    Row {
        href: format!("{}/queues/{}", reader.base, url::encode(&queue.name)),
        name: queue.name.clone(),
        pending: grouped(queue.pending),
        running: grouped(queue.running),
        scheduled: grouped(queue.scheduled),
        waiting: grouped(queue.waiting),
        limits: if limits.is_empty() { "none".to_owned() } else { limits.join(", ") },
        max_running: queue.max_running.map_or_else(String::new, |max| max.to_string()),
        paused: queue.paused_at.map(|at| reader.times.stamp(at)),
    }
}

//! The page Queues.

use askama::Template;
use std::collections::BTreeMap;

use windlass_engine::store::{Count, KeyOf, KeyUser, OldestJob, Order, Queue, Rate, WaitingKey};
use windlass_views::rate_interval;

use super::frame::{Frame, Reader, Section};
use super::times::{Stamp, grouped, rough_duration};
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
    rate: String,
    is_by_arrival: bool,
    paused: Option<Stamp>,
    oldest: Option<Oldest>,
}

/// The oldest job that is ready.
struct Oldest {
    job_id: i64,
    run_id: Option<i64>,
    waited: String,
}

/// A key for which something waits.
struct KeyRow {
    name: String,
    noun: &'static str,
    limit: i64,
    waiting: String,
    next: Vec<User>,
    waited: String,
    holders: Vec<User>,
}

/// A job or a run, with its address if it has a page.
struct User {
    label: String,
    href: Option<String>,
}

/// What the page shows.
#[derive(Debug)]
pub struct QueuesData {
    /// The queues.
    pub queues: Vec<Queue>,
    /// The name after which the next page begins.
    pub next: Option<String>,
    /// There is no page before.
    pub is_first: bool,
    /// The oldest job of each that is ready.
    pub oldest: BTreeMap<String, OldestJob>,
    /// The keys for which jobs or runs wait.
    pub keys: Vec<WaitingKey>,
}

#[derive(Template)]
#[template(path = "queues.html")]
struct QueuesPage {
    frame: Frame,
    rows: Vec<Row>,
    keys: Vec<KeyRow>,
    first: Option<String>,
    next: Option<String>,
}

/// The list of queues.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn page(data: &QueuesData, reader: &Reader) -> askama::Result<String> {
    QueuesPage {
        frame: Frame::new(reader, Section::Queues, "Queues"),
        rows: data.queues.iter().map(|queue| row(queue, data.oldest.get(&queue.name), reader)).collect(),
        keys: data.keys.iter().map(|key| key_row(key, reader)).collect(),
        first: (!data.is_first).then(|| format!("{}/queues", reader.base)),
        next: data.next.as_ref().map(|name| format!("{}/queues?after={}", reader.base, url::encode(name))),
    }
    .render()
}

fn key_row(key: &WaitingKey, reader: &Reader) -> KeyRow {
    let user = |user: &KeyUser| match (user.job_id, user.run_id) {
        (Some(job_id), Some(run_id)) => User {
            label: format!("#{run_id}, job {job_id}"),
            href: Some(format!("{}/runs/{run_id}?job={job_id}#job", reader.base)),
        },
        (Some(job_id), None) => {
            User { label: format!("job {job_id}"), href: Some(format!("{}/jobs/{job_id}", reader.base)) }
        }
        (None, run_id) => {
            let run_id = run_id.unwrap_or_default();
            User { label: format!("#{run_id}"), href: Some(format!("{}/runs/{run_id}", reader.base)) }
        }
    };
    KeyRow {
        name: key.name.clone(),
        noun: match key.of {
            KeyOf::Jobs => "jobs",
            KeyOf::Runs => "runs",
        },
        limit: key.limit,
        waiting: key.waiting.to_string(),
        next: key.first.iter().map(user).collect(),
        waited: key.since.map_or_else(String::new, |since| waited(since, reader)),
        holders: key.holders.iter().map(user).collect(),
    }
}

/// A number, with a plus sign if there may be more.
fn counted(count: Count) -> String {
    format!("{}{}", grouped(count.number), if count.is_exact { "" } else { "+" })
}

/// As the field of the form takes it.
fn rate_as_text(rate: Rate) -> String {
    format!("{}/{}", rate.jobs, rate_interval(rate))
}

fn waited(since_ms: i64, reader: &Reader) -> String {
    rough_duration((reader.times.now_ms - since_ms).max(0))
}

fn row(queue: &Queue, oldest: Option<&OldestJob>, reader: &Reader) -> Row {
    let mut limits = Vec::new();
    limits.extend(queue.max_running.map(|max| format!("{max} at a time")));
    limits.extend(queue.rate.map(|rate| format!("{} in {}", rate.jobs, rate_interval(rate))));
    match queue.order {
        Order::Arrival => limits.push("in order of arrival".to_owned()),
        Order::Priority => {}
    }
    Row {
        href: format!("{}/queues/{}", reader.base, url::encode(&queue.name)),
        name: queue.name.clone(),
        pending: counted(queue.pending),
        running: counted(queue.running),
        scheduled: counted(queue.scheduled),
        waiting: counted(queue.waiting),
        limits: if limits.is_empty() { "none".to_owned() } else { limits.join(", ") },
        max_running: queue.max_running.map_or_else(String::new, |max| max.to_string()),
        rate: queue.rate.map_or_else(String::new, rate_as_text),
        is_by_arrival: queue.order == Order::Arrival,
        oldest: oldest.map(|job| Oldest {
            job_id: job.job_id,
            run_id: job.run_id,
            waited: waited(job.since, reader),
        }),
        paused: queue.paused_at.map(|at| reader.times.stamp(at)),
    }
}

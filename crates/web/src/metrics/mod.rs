//! `GET /metrics`: what the process has measured, and what was read from the database. The database is read at most every
//! five seconds, however many ask.

mod show;
mod text;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use windlass_engine::Store;
use windlass_engine::measurements::{Histogram, HistogramValues, MEASURED_QUEUES_MAX, SHORT_BOUNDS_S};
use windlass_engine::store::{DatabaseMetrics, QueueMetrics, Role};

use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Allowed, Client, Idempotency, Method, QueryRule, Route, Work};

/// How long what was read is shown.
const FRESH_MS: i64 = 5_000;
/// The queue of jobs that name none. It is always shown.
const DEFAULT_QUEUE: &str = "default";
/// How many pairs of a route and a status are measured. There are fewer, so nothing is left out.
const REQUESTS_MAX: usize = 2_000;

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::Get,
    path: "/metrics",
    allowed: Allowed::Role(Role::Metrics),
    client: Client::Program,
    work: Work::Read(metrics),
    query: QueryRule::Known(&[]),
    body_max: 0,
    idempotency: Idempotency::NoKey,
    document: None,
}];

/// What the machine says of the database's file. Nothing for a database on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileReading {
    /// The size of the write-ahead log.
    pub wal_bytes: Option<i64>,
    /// The free space of its disk.
    pub disk_free_bytes: Option<u64>,
}

/// What the web server itself measures, and what was read last.
#[derive(Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(&'static str, u16), Arc<Histogram>>>,
    reading: Mutex<Option<Arc<Reading>>>,
}

/// What was read from the database and the machine.
pub(crate) struct Reading {
    at_ms: i64,
    database: DatabaseMetrics,
    file: FileReading,
    /// The runs that ended since the first reading, by state.
    ended_runs: BTreeMap<&'static str, i64>,
}

impl Metrics {
    /// Measures an answer.
    pub(crate) fn observe_request(&self, route: &'static str, status: u16, duration_us: i64) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.len() >= REQUESTS_MAX && !requests.contains_key(&(route, status)) {
            return;
        }
        let times =
            requests.entry((route, status)).or_insert_with(|| Arc::new(Histogram::new(SHORT_BOUNDS_S)));
        times.observe_us(duration_us);
    }

    fn requests(&self) -> Vec<((&'static str, u16), HistogramValues)> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.iter().map(|(of, times)| (*of, times.values())).collect()
    }

    /// What was read within the last seconds. Whoever asks while another one reads waits for that.
    fn reading(&self, store: &Store, call: &Call) -> Result<Arc<Reading>, Problem> {
        let mut last = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ms = store.clock().monotonic_ms();
        if let Some(reading) = last.as_ref().filter(|reading| now_ms - reading.at_ms < FRESH_MS) {
            return Ok(Arc::clone(reading));
        }
        let ends_from = last.as_ref().map(|reading| reading.database.ends_until);
        let mut database = store.upkeep().metrics(ends_from)?;
        keep_queues(&mut database, last.as_deref());
        let mut ended_runs = last.as_ref().map(|reading| reading.ended_runs.clone()).unwrap_or_default();
        for (status, ended) in &database.ended_runs {
            *ended_runs.entry(status.as_str()).or_default() += ended;
        }
        let reading = Arc::new(Reading { at_ms: now_ms, database, file: call.sentences.file(), ended_runs });
        *last = Some(Arc::clone(&reading));
        Ok(reading)
    }
}

/// Shows queues that have become empty with 0: a value that is missing looks like a monitor that is broken.
fn keep_queues(database: &mut DatabaseMetrics, last: Option<&Reading>) {
    let seen = last.into_iter().flat_map(|reading| reading.database.queues.keys().map(String::as_str));
    for queue in std::iter::once(DEFAULT_QUEUE).chain(seen) {
        if database.queues.len() < MEASURED_QUEUES_MAX && !database.queues.contains_key(queue) {
            database.queues.insert(queue.to_owned(), QueueMetrics::default());
        }
    }
}

fn metrics(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let reading = call.metrics.reading(store, call)?;
    let text = show::text(&reading, store.measurements(), &call.metrics.requests(), store.clock().now_ms());
    Ok(Answer::metrics(text))
}

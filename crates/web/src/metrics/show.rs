//! The text of all metrics. Pure.

use windlass_engine::measurements::{HistogramValues, Measurements};
use windlass_engine::store::QueueMetrics;
use windlass_engine::{RunStatus, WorkerStatus};

use super::Reading;
use super::text::MetricType::{Counter, Gauge};
use super::text::MetricsText;

/// The times of the answers by route and status.
type Requests = [((&'static str, u16), HistogramValues)];

/// The jobs of a queue in one state.
type CountOf = fn(&QueueMetrics) -> i64;

pub(super) fn text(reading: &Reading, measured: &Measurements, requests: &Requests, now_ms: i64) -> String {
    let mut text = MetricsText::default();
    of_queues(&mut text, reading, now_ms);
    of_database(&mut text, reading);
    of_process(&mut text, measured);
    let name = "windlass_http_request_seconds";
    text.histogram(name, "Time to answer a request of the web server of this process.");
    for ((route, status), values) in requests {
        text.values(name, &[("route", *route), ("status", &status.to_string())], values);
    }
    text.metric("windlass_build_info", "The version of this process. The value is always 1.", Gauge);
    text.value("windlass_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    text.into_text()
}

fn of_queues(text: &mut MetricsText, reading: &Reading, now_ms: i64) {
    let queues = &reading.database.queues;
    text.metric(
        "windlass_jobs",
        "Unfinished jobs in the database, by state and queue. Counts stop at a bound.",
        Gauge,
    );
    let states: [(&str, CountOf); 4] = [
        ("pending", |queue| queue.pending),
        ("running", |queue| queue.running),
        ("scheduled", |queue| queue.scheduled),
        ("waiting", |queue| queue.waiting),
    ];
    for (state, count) in states {
        for (queue, metrics) in queues {
            text.value("windlass_jobs", &[("state", state), ("queue", queue)], count(metrics));
        }
    }
    let name = "windlass_oldest_pending_seconds";
    text.metric(
        name,
        "How long the job that is claimed next has been claimable, by queue. 0 if there is none.",
        Gauge,
    );
    for (queue, metrics) in queues {
        let age_ms = metrics.oldest_pending_at.map_or(0, |since| (now_ms - since).max(0));
        text.value(name, &[("queue", queue)], age_ms as f64 / 1e3);
    }
    let name = "pending_jobs_count";
    text.metric(name, "Jobs that can be claimed, by queue, for autoscalers that expect this name.", Gauge);
    for (queue, metrics) in queues {
        text.value(name, &[("queue", queue)], metrics.pending);
    }
}

fn of_database(text: &mut MetricsText, reading: &Reading) {
    text.metric("windlass_workers", "Workers that live, by state.", Gauge);
    for status in [WorkerStatus::Alive, WorkerStatus::Draining] {
        let workers = &reading.database.workers;
        let count = workers.iter().find(|(of, _)| *of == status).map_or(0, |(_, count)| *count);
        text.value("windlass_workers", &[("status", &status.as_str().to_lowercase())], count);
    }
    let name = "windlass_runs_total";
    text.metric(name, "Runs that ended in the database since this process read it first, by state.", Counter);
    for status in RunStatus::ALL.into_iter().filter(|status| status.is_terminal()) {
        let ended = reading.ended_runs.get(status.as_str()).copied().unwrap_or(0);
        text.value(name, &[("status", &status.as_str().to_lowercase())], ended);
    }
    if let Some(bytes) = reading.file.wal_bytes {
        text.metric("windlass_wal_bytes", "Size of the write-ahead log of the database's file.", Gauge);
        text.value("windlass_wal_bytes", &[], bytes);
    }
    if let Some(bytes) = reading.file.disk_free_bytes {
        text.metric("windlass_disk_free_bytes", "Free space of the disk of the database's file.", Gauge);
        text.value("windlass_disk_free_bytes", &[], bytes);
    }
}

fn of_process(text: &mut MetricsText, measured: &Measurements) {
    let name = "windlass_attempts_total";
    text.metric(name, "Attempts of jobs that ended in this process, by outcome.", Counter);
    for (outcome, count) in measured.attempts() {
        text.value(name, &[("outcome", outcome.as_str())], count);
    }
    let name = "windlass_job_run_seconds";
    text.histogram(name, "Time of the attempts of this process, by queue.");
    for (queue, values) in measured.job_runs() {
        text.values(name, &[("queue", &queue)], &values);
    }
    let histograms = [
        (
            "windlass_job_wait_seconds",
            "Time from when a job could be claimed to its claim by this process.",
            &measured.job_waits,
        ),
        (
            "windlass_commit_seconds",
            "Time of the write transactions of this process until they were durable.",
            &measured.commits,
        ),
        (
            "windlass_schedule_late_seconds",
            "How late this process decided about times of schedules.",
            &measured.late_schedules,
        ),
    ];
    for (name, help, histogram) in histograms {
        text.histogram(name, help);
        text.values(name, &[], &histogram.values());
    }
}

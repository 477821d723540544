//! The page System: the checks of `windlass doctor`, and the workers.

use askama::Template;
use windlass_engine::WorkerStatus;
use windlass_engine::store::Worker;
use windlass_views::{DoctorView, FindingState};

use super::frame::{Frame, Reader, Section};
use super::look::{FAILED, FAILED_ALLOWED, Look, SUCCESSFUL};
use super::prose;
use super::times::{Stamp, rough_duration};

struct Check {
    about: &'static str,
    look: Look,
    word: &'static str,
    message: Vec<prose::Part>,
    next_step: Vec<prose::Part>,
}

struct WorkerRow {
    id: i64,
    host: String,
    pid: i64,
    status: &'static str,
    threads: i64,
    running: i64,
    heard: String,
    started: Stamp,
    queues: String,
    shortage: String,
}

#[derive(Template)]
#[template(path = "system.html")]
struct SystemPage {
    frame: Frame,
    checks: Vec<Check>,
    workers: Vec<WorkerRow>,
}

/// The page.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn page(health: &DoctorView, workers: &[Worker], reader: &Reader) -> askama::Result<String> {
    let mut findings: Vec<_> = health.findings.iter().collect();
    // What is wrong comes first.
    findings.sort_by_key(|finding| match finding.state {
        FindingState::Problem => 0,
        FindingState::Warning => 1,
        FindingState::Ok => 2,
    });
    let checks: Vec<Check> = findings
        .into_iter()
        .map(|finding| {
            let (look, word) = match finding.state {
                FindingState::Ok => (SUCCESSFUL, "Good"),
                FindingState::Warning => (FAILED_ALLOWED, "Warning"),
                FindingState::Problem => (FAILED, "Problem"),
            };
            Check {
                about: finding.about,
                look,
                word,
                message: prose::parts_for(&finding.message, &reader.times),
                next_step: finding
                    .next_step
                    .as_deref()
                    .map_or_else(Vec::new, |text| prose::parts_for(text, &reader.times)),
            }
        })
        .collect();
    SystemPage {
        frame: Frame::new(reader, Section::System, "System"),
        checks,
        workers: workers.iter().map(|worker| row(worker, reader)).collect(),
    }
    .render()
}

fn row(worker: &Worker, reader: &Reader) -> WorkerRow {
    WorkerRow {
        id: worker.id,
        host: worker.host.clone(),
        pid: worker.pid,
        status: match worker.status {
            WorkerStatus::Alive => "alive",
            WorkerStatus::Draining => "draining",
            WorkerStatus::Stopped => "stopped",
            WorkerStatus::Dead => "dead",
        },
        threads: worker.threads,
        running: worker.running,
        heard: format!("{} ago", rough_duration(reader.times.now_ms - worker.heartbeat_at)),
        started: reader.times.stamp(worker.started_at),
        queues: worker.queues.clone().unwrap_or_else(|| "all".to_owned()),
        shortage: worker.shortage.clone().unwrap_or_default(),
    }
}

//! Two short forms: from which job a run is retried, and the zone of the reader.

use askama::Template;
use windlass_engine::store::{JobOfRun, Run};

use super::frame::{Frame, Reader, Section};
use super::look::{Failure, Look};

#[derive(Template)]
#[template(path = "retry_from.html")]
struct RetryFromPage {
    frame: Frame,
    run_id: i64,
    workflow: String,
    jobs: Vec<(String, Look, bool)>,
}

/// From which job a run is retried.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn retry_from(run: &Run, jobs: &[JobOfRun], reader: &Reader) -> askama::Result<String> {
    let own = jobs.iter().filter(|job| job.group_id.is_none());
    let mut is_first = true;
    RetryFromPage {
        frame: Frame::new(reader, Section::Runs, &format!("Retry {} #{}", run.workflow, run.id)),
        run_id: run.id,
        workflow: run.workflow.clone(),
        jobs: own
            .map(|job| {
                let failed = job.status == windlass_engine::JobStatus::Failed && !job.allow_failure;
                let is_chosen = failed && std::mem::replace(&mut is_first, !failed);
                (job.name.clone(), Look::of_job(job.status, Failure::of(job.allow_failure)), is_chosen)
            })
            .collect(),
    }
    .render()
}

#[derive(Template)]
#[template(path = "zone.html")]
struct ZonePage {
    frame: Frame,
    zones: Vec<(&'static str, bool)>,
}

/// The zone of the reader.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn zone(reader: &Reader) -> askama::Result<String> {
    let current = reader.times.zone;
    ZonePage {
        frame: Frame::new(reader, Section::Other, "Zone"),
        zones: chrono_tz::TZ_VARIANTS.iter().map(|zone| (zone.name(), *zone == current)).collect(),
    }
    .render()
}

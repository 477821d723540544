//! What the jobs of a run did when.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::Store;
use windlass_engine::store::{JobOrder, JobPart, JobWindow, Role};
use windlass_views::Instant;

use super::lists::{self, LIMIT_PARAMETER, id};
use crate::answer::Answer;
use crate::call::Call;
use crate::pages::run::{LifePart, life_of};
use crate::problem::Problem;
use crate::route::{Document, Route};

pub(crate) const ROUTES: &[Route] = &[Route::read(
    "/api/v1/runs/{run_id}/timeline",
    Role::View,
    timeline,
    Document::of::<Vec<TimelineJobView>>(
        "Show what the jobs of a run did when, in the order of the definition",
    ),
)
.with_query(&[id("offset", "leave out so many jobs: the next page of the list"), LIMIT_PARAMETER])];

/// A job, and what it did.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TimelineJob")]
struct TimelineJobView {
    /// The job.
    job_id: i64,
    /// Its name in the run.
    job: String,
    /// Its state.
    status: &'static str,
    /// What it did, in the order of time. A retry keeps the attempts before it.
    parts: Vec<TimelinePartView>,
}

/// An attempt of a job, or a time without one.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TimelinePart")]
struct TimelinePartView {
    /// How an attempt ended, or that it runs; `ready` for the time until a worker took the job, `waiting` for the time until it was
    /// ready, `backoff` for the time until it was ready for the next attempt, and `ended` for the time until somebody retried the run.
    #[schemars(extend("enum" = ["successful", "failed", "failed_allowed", "cancelled", "running", "ready", "waiting", "backoff", "ended"]))]
    kind: &'static str,
    /// Its beginning.
    from: Instant,
    /// Its end; null if it goes on.
    until: Option<Instant>,
}

fn timeline(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let run_id = store.runs().get(call.id("run_id")?)?.id;
    let (offset, limit) = (call.query.integer("offset").unwrap_or(0), lists::limit(call));
    let window = JobWindow {
        statuses: vec![],
        name: None,
        part: JobPart::All,
        order: JobOrder::Definition,
        offset,
        limit,
    };
    let found = store.jobs().window(run_id, &window)?;
    let ids: Vec<i64> = found.rows.iter().map(|job| job.id).collect();
    let attempts = store.jobs().attempts_of_each(&ids)?;
    let part = |part: LifePart| TimelinePartView {
        kind: part.sort,
        from: Instant::at(part.from_ms),
        until: part.until_ms.map(Instant::at),
    };
    let views: Vec<TimelineJobView> = found
        .rows
        .iter()
        .map(|job| TimelineJobView {
            job_id: job.id,
            job: job.name.clone(),
            status: job.status.as_str(),
            parts: life_of(job, attempts.get(&job.id).map_or(&[], Vec::as_slice))
                .into_iter()
                .map(part)
                .collect(),
        })
        .collect();
    let shown = offset.saturating_add(ids.len() as i64);
    let next =
        (!ids.is_empty() && shown < found.matching).then(|| lists::next_address(call, "offset", shown));
    Ok(Answer::json(&views)?.with_next(next))
}

//! What failed, by cause.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::Store;
use windlass_engine::store::{FailureGroup, Role};
use windlass_views::Instant;

use super::lists::{self, LIMIT_PARAMETER, id, instant};
use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Document, Route};

const DAY_MS: i64 = 24 * 3_600_000;

pub(crate) const ROUTES: &[Route] = &[Route::read(
    "/api/v1/failures",
    Role::View,
    failures,
    Document::of::<FailuresView>("Show what failed, by cause: the most frequent first"),
)
.with_query(&[
    instant("since", "only failures then or later; without it, of the last 24 hours"),
    id("offset", "leave out so many causes: the next page of the list"),
    LIMIT_PARAMETER,
])];

/// The failures since an instant.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Failures")]
struct FailuresView {
    /// Since when they are complete. It is later than the instant that was asked for if too many jobs failed since.
    since: Instant,
    /// Runs that failed in the same way.
    causes: Vec<CauseView>,
}

/// Runs in which the same job of the same workflow failed first, with the same first line of its error; or jobs without a run
/// of one kind.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Cause")]
struct CauseView {
    /// The workflow of the job; empty for jobs without a run.
    workflow: String,
    /// The name of the job, or the kind of jobs without a run; empty for runs that reached their timeout.
    job: String,
    /// The first line of its error.
    error: String,
    /// The runs, the one that failed last first.
    run_ids: Vec<i64>,
    /// The jobs without a run, the one that failed last first.
    job_ids: Vec<i64>,
    /// When the first of them failed.
    first_at: Instant,
    /// When the last of them failed.
    last_at: Instant,
}

impl CauseView {
    fn new(group: FailureGroup) -> CauseView {
        CauseView {
            workflow: group.workflow,
            job: group.job,
            error: group.error,
            run_ids: group.run_ids,
            job_ids: group.job_ids,
            first_at: Instant::at(group.first_at),
            last_at: Instant::at(group.last_at),
        }
    }
}

fn failures(store: &Store, call: &Call) -> Result<Answer, Problem> {
    // To the minute, so that the answer is the same while nothing fails.
    let day_ago_ms = (store.clock().now_ms() - DAY_MS).div_euclid(60_000) * 60_000;
    let since_ms = call.query.instant_ms("since").unwrap_or(day_ago_ms);
    let found = store.runs().failures_since(since_ms)?;
    let offset = usize::try_from(call.query.integer("offset").unwrap_or(0)).unwrap_or(usize::MAX);
    let limit = usize::try_from(lists::limit(call)).unwrap_or(usize::MAX);
    let all = found.groups.len();
    let causes: Vec<CauseView> =
        found.groups.into_iter().skip(offset).take(limit).map(CauseView::new).collect();
    let shown = offset.saturating_add(causes.len());
    let next = (!causes.is_empty() && shown < all).then(|| lists::next_address(call, "offset", shown as i64));
    Ok(Answer::json(&FailuresView { since: Instant::at(found.since_ms), causes })?.with_next(next))
}

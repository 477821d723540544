//! Runs.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::store::{Role, RunFilter, TimeRange};
use windlass_engine::{RunStatus, Store};
use windlass_views::{ArtifactView, InspectedRun, JobView, RunView};

use super::jobs::list_jobs;
use super::lists::{self, BEFORE_PARAMETER, LIMIT_PARAMETER, instant, text};
use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Document, QueryParameter, Route, ValueSort};

pub(super) const STATUS: &str = "PENDING, RUNNING, SUCCESSFUL, FAILED, CANCELLED";

const FILTERS: &[QueryParameter] = &[
    text("status", "only runs in these states, separated by commas"),
    text("workflow", "only runs of this workflow"),
    text("tag", "only runs whose workflow has this tag"),
    text("run_key", "only the run with this key"),
    text("param", "only runs with this value of a parameter, as NAME=VALUE"),
    instant("since", "only runs that were accepted then or later"),
    instant("until", "only runs that were accepted before"),
    QueryParameter {
        name: "children",
        about: "only runs that jobs of other runs have started; without it, only the others",
        value: ValueSort::Boolean,
    },
    BEFORE_PARAMETER,
    LIMIT_PARAMETER,
];

pub(crate) const ROUTES: &[Route] = &[
    Route::read("/api/v1/runs", Role::View, list, Document::of::<Vec<RunView>>("List runs, newest first"))
        .with_query(FILTERS),
    Route::read(
        "/api/v1/runs/{run_id}",
        Role::View,
        show,
        Document::of::<InspectedRun>("Show a run with its jobs"),
    ),
    Route::read(
        "/api/v1/runs/{run_id}/jobs",
        Role::View,
        list_of_run,
        Document::of::<Vec<JobView>>("List the jobs of a run, newest first"),
    )
    .with_query(&[
        text("status", "only jobs in these states, separated by commas"),
        text("name", "only the job with this name"),
        BEFORE_PARAMETER,
        LIMIT_PARAMETER,
    ]),
    Route::read(
        "/api/v1/runs/{run_id}/graph",
        Role::View,
        graph,
        Document::of::<GraphView>("Show which jobs of a run need which"),
    ),
    Route::read(
        "/api/v1/runs/{run_id}/artifacts",
        Role::View,
        artifacts,
        Document::of::<Vec<ArtifactView>>("List the files that jobs of a run kept"),
    ),
];

/// The filter that the query says.
pub(super) fn filter(call: &Call) -> Result<RunFilter, Problem> {
    Ok(RunFilter {
        workflow: call.query.text("workflow").map(str::to_owned),
        tag: call.query.text("tag").map(str::to_owned),
        statuses: lists::words(call, "status", RunStatus::parse, STATUS)?,
        created: TimeRange {
            from_ms: call.query.instant_ms("since"),
            until_ms: call.query.instant_ms("until"),
        },
        run_key: call.query.text("run_key").map(str::to_owned),
        params: lists::param(call)?.into_iter().collect(),
        children: call.query.is_true("children"),
        cursor: lists::cursor(call),
        ..RunFilter::default()
    })
}

fn list(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let page = store.runs().list_full(&filter(call)?)?;
    lists::page_of(call, &RunView::read_all(store, &page.rows)?, page.next)
}

fn show(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let run = store.runs().get(call.id("run_id")?)?;
    Answer::json(&InspectedRun::read(store, &run)?)
}

fn list_of_run(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let run_id = store.runs().get(call.id("run_id")?)?.id;
    list_jobs(store, call, Some(run_id))
}

fn artifacts(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let run_id = store.runs().get(call.id("run_id")?)?.id;
    let kept = store.runs().artifacts(run_id, None)?;
    let views: Vec<ArtifactView> = kept.iter().map(ArtifactView::new).collect();
    Answer::json(&views)
}

/// The jobs of a run, and which of them need which.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Graph")]
struct GraphView {
    /// The run.
    run_id: i64,
    /// Its jobs.
    jobs: Vec<GraphJobView>,
    /// Which job needs which.
    edges: Vec<EdgeView>,
}

/// A job of a graph.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "GraphJob")]
struct GraphJobView {
    /// The job.
    job_id: i64,
    /// Its name in the run.
    job: Option<String>,
    /// Its state.
    status: &'static str,
}

/// One job needs another.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Edge")]
struct EdgeView {
    /// The job that is needed.
    needed_job_id: i64,
    /// The job that needs it.
    job_id: i64,
}

fn graph(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let run_id = store.runs().get(call.id("run_id")?)?.id;
    let job = |job: &windlass_engine::store::Job| GraphJobView {
        job_id: job.id,
        job: job.name.clone(),
        status: job.status.as_str(),
    };
    let edge = |(needed_job_id, job_id): (i64, i64)| EdgeView { needed_job_id, job_id };
    Answer::json(&GraphView {
        run_id,
        jobs: store.jobs().of_run(run_id)?.iter().map(job).collect(),
        edges: store.jobs().dependencies(run_id)?.into_iter().map(edge).collect(),
    })
}

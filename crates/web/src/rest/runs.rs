//! Runs.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::store::{Job, NeededJob, Reason, Role, RunFilter, TimeRange};
use windlass_engine::{RunStatus, Store};
use windlass_views::{ArtifactView, ExplainedRun, InspectedRun, JobView, RunView, WhyRunView};

use super::jobs::list_jobs;
use super::lists::{self, BEFORE_PARAMETER, LIMIT_PARAMETER, OFFSET_PARAMETER, id, instant, text};
use crate::answer::Answer;
use crate::call::Call;
use crate::pages::runs::Trigger;
use crate::problem::Problem;
use crate::route::{Document, QueryParameter, Route, ValueSort};

pub(super) const STATUS: &str = "PENDING, RUNNING, SUCCESSFUL, FAILED, CANCELLED";

const FILTERS: &[QueryParameter] = &[
    text("status", "only runs in these states, separated by commas"),
    text("workflow", "only runs of this workflow"),
    text("tag", "only runs whose workflow has this tag"),
    text("run_key", "only the run with this key"),
    text("trigger", "only runs that this started: hand, schedule, catchup, backfill, manual or event"),
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

/// How many jobs a run and its graph have in one answer.
const JOBS_MAX: i64 = 1_000;
const JOBS_OF_RUN: [QueryParameter; 2] = [
    id("after", "only jobs with higher numbers: the next page"),
    QueryParameter {
        name: "limit",
        about: "how many jobs there are at most, 1,000 without it",
        value: ValueSort::Integer { least: 1, most: JOBS_MAX },
    },
];

pub(crate) const ROUTES: &[Route] = &[
    Route::read("/api/v1/runs", Role::View, list, Document::of::<Vec<RunView>>("List runs, newest first"))
        .with_query(FILTERS),
    Route::read(
        "/api/v1/runs/{run_id}",
        Role::View,
        show,
        Document::of::<InspectedRun>("Show a run with its jobs, in the order of the definition"),
    )
    .with_query(&JOBS_OF_RUN),
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
        Document::of::<GraphView>("Show which jobs of a run need which, in the order of the definition"),
    )
    .with_query(&JOBS_OF_RUN),
    Route::read(
        "/api/v1/runs/{run_id}/artifacts",
        Role::View,
        artifacts,
        Document::of::<Vec<ArtifactView>>("List the files that jobs of a run kept"),
    )
    .with_query(&[OFFSET_PARAMETER, LIMIT_PARAMETER]),
    Route::read(
        "/api/v1/runs/{run_id}/why",
        Role::View,
        why,
        Document::of::<WhyRunView>(
            "Explain why a run does not go on, or why it ended as it did, by its jobs",
        ),
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
        started_by: trigger(call)?.map(Trigger::started_by),
        children: call.query.is_true("children"),
        cursor: lists::cursor(call),
        ..RunFilter::default()
    })
}

fn list(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let page = store.runs().list_full(&filter(call)?)?;
    lists::page_of(call, &RunView::read_all(store, &page.rows)?, page.next, page.searched_to)
}

fn show(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let run = store.runs().get(call.id("run_id")?)?;
    let (jobs, next) = jobs_of_run(store, call, run.id)?;
    Ok(Answer::json(&InspectedRun::read_part(store, &run, jobs)?)?.with_next(next))
}

/// A page of the jobs of a run, and the address of the next one.
fn jobs_of_run(store: &Store, call: &Call, run_id: i64) -> Result<(Vec<Job>, Option<String>), Problem> {
    let limit = call.query.integer("limit").unwrap_or(JOBS_MAX);
    let after = call.query.integer("after").unwrap_or(0);
    let mut jobs = store.jobs().of_run_after(run_id, after, limit + 1)?;
    let is_last = jobs.len() as i64 <= limit;
    jobs.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let last = jobs.last().filter(|_| !is_last);
    let next = last.map(|job| lists::next_address(call, "after", job.id));
    Ok((jobs, next))
}

fn trigger(call: &Call) -> Result<Option<Trigger>, Problem> {
    let Some(name) = call.query.text("trigger") else { return Ok(None) };
    match Trigger::NAMED.iter().find(|(_, known, _)| *known == name) {
        Some((trigger, ..)) => Ok(Some(*trigger)),
        None => {
            let names = Trigger::NAMED.map(|(_, name, _)| name).join(", ");
            let detail = format!("`{}` is no value of the query parameter `trigger`", name.escape_debug());
            Err(Problem::invalid(detail, format!("it is one of {names}")))
        }
    }
}

fn list_of_run(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let run_id = store.runs().get(call.id("run_id")?)?.id;
    list_jobs(store, call, Some(run_id))
}

fn artifacts(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let run_id = store.runs().get(call.id("run_id")?)?.id;
    let kept = store.runs().artifacts(run_id, None)?;
    lists::part_of(call, &kept, ArtifactView::new)
}

fn why(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let run = store.runs().get(call.id("run_id")?)?;
    let now_ms = store.clock().now_ms();
    let sentence = |reason: &Reason, job: &Job| call.sentences.reason(reason, job, now_ms);
    Answer::json(&ExplainedRun::read(store, run, &sentence)?.view())
}

/// Jobs of a run, and which jobs they need.
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
    let job = |job: &Job| GraphJobView { job_id: job.id, job: job.name.clone(), status: job.status.as_str() };
    let (jobs, next) = jobs_of_run(store, call, run_id)?;
    let ids: Vec<i64> = jobs.iter().map(|job| job.id).collect();
    let needed = store.jobs().needed_by(&ids)?;
    let edge = |needed: &NeededJob| EdgeView { needed_job_id: needed.id, job_id: needed.needed_by };
    let view =
        GraphView { run_id, jobs: jobs.iter().map(job).collect(), edges: needed.iter().map(edge).collect() };
    Ok(Answer::json(&view)?.with_next(next))
}

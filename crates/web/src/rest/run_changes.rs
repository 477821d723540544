//! Starting, cancelling, retrying and repeating runs.

use std::collections::HashSet;

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_engine::Store;
use windlass_engine::store::{
    Cancellation, DefinitionVerb, NewRun, RetrySelection, Role, Run, Subject, Submitted,
};
use windlass_views::{CancelledRun, RetriedRun, RunView, SubmittedView};
use windlass_workflow::Param;
use windlass_workflow::params::{self, ParamError, Supplied};

use super::workflows::no_workflow;
use crate::answer::Answer;
use crate::call::Call;
use crate::once;
use crate::pages::batch;
use crate::problem::Problem;
use crate::route::{Document, Idempotency, Method, Route};

const KEY_OF_THE_RUN: Idempotency = Idempotency::Own(
    "It is the key of the run: whoever sends it again gets the same run, as long as the run is kept.",
);
/// The most runs of a batch.
const BATCH_MAX: usize = 500;
/// The largest body with parameters.
const PARAMS_BYTES: usize = 1024 * 1024;

pub(crate) const ROUTES: &[Route] = &[
    Route::change(
        Method::Post,
        "/api/v1/runs",
        Role::Run,
        start,
        Document::of::<SubmittedView>("Start a run of a registered workflow").with_body::<StartedRun>(),
    )
    .with_body_max(PARAMS_BYTES)
    .with_key(KEY_OF_THE_RUN),
    Route::change(
        Method::Post,
        "/api/v1/runs/batch",
        Role::Run,
        change_batch,
        Document::of::<BatchView>("Cancel or retry runs, each by itself").with_body::<Batch>(),
    )
    .with_key(Idempotency::Kept),
    Route::change(
        Method::Post,
        "/api/v1/runs/{run_id}/cancel",
        Role::Run,
        cancel,
        Document::of::<CancelledRun>("Stop a run; its waiting jobs never start"),
    ),
    Route::change(
        Method::Post,
        "/api/v1/runs/{run_id}/retry",
        Role::Run,
        retry,
        Document::of::<RetriedRun>(
            "Run the failed, skipped and cancelled jobs of a run again, or all from a job on",
        )
        .with_body::<Retry>(),
    )
    .with_key(Idempotency::Kept),
    Route::change(
        Method::Post,
        "/api/v1/runs/{run_id}/rerun",
        Role::Run,
        rerun,
        Document::of::<SubmittedView>(
            "Start a new run with the definition and the parameters of another one",
        )
        .with_body::<Rerun>(),
    )
    .with_body_max(PARAMS_BYTES)
    .with_key(KEY_OF_THE_RUN),
];

/// A run to start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartedRun {
    /// The name of a registered workflow.
    workflow: String,
    /// Values of its parameters.
    #[serde(default)]
    params: Map<String, Value>,
}

/// Which jobs to run again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Retry {
    /// The first job to run again, with all that need it. Without it, the jobs that did not succeed.
    #[serde(default)]
    from: Option<String>,
}

/// What is different in the new run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rerun {
    /// Other values of parameters.
    #[serde(default)]
    params: Map<String, Value>,
}

/// Runs to change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Batch {
    /// What to do with each.
    action: Action,
    /// The runs, at most 500. One that is there twice counts once.
    #[schemars(length(min = 1, max = 500))]
    run_ids: Vec<i64>,
}

/// What is done with each run of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// Stop it.
    Cancel,
    /// Run the jobs again that did not succeed.
    Retry,
}

/// What became of a batch.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "BatchResult")]
struct BatchView {
    /// How many runs were changed.
    changed: usize,
    /// The runs that were not, and why.
    unchanged: Vec<UnchangedView>,
}

/// A run of a batch that was not changed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Unchanged")]
struct UnchangedView {
    /// The run.
    run_id: i64,
    /// Why not.
    detail: String,
}

fn run_of(store: &Store, call: &Call) -> Result<Run, Problem> {
    Ok(store.runs().get(call.id("run_id")?)?)
}

/// The values for the parameters of a workflow.
fn bound(params: &[Param], given: Vec<(String, Supplied)>) -> Result<Map<String, Value>, Problem> {
    params::bind(params, given).map_err(|errors| {
        let next_step = match names_of(params) {
            None => "the workflow takes no parameters; leave them out".to_owned(),
            Some(names) => format!("the workflow takes: {names}"),
        };
        wrong_values(&errors, next_step)
    })
}

/// What is wrong with values of parameters or of the fields of an approval.
pub(super) fn wrong_values(errors: &[ParamError], next_step: String) -> Problem {
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Problem::invalid(errors.join("; "), next_step)
}

/// The names of parameters or fields; `None` without any.
pub(super) fn names_of(params: &[Param]) -> Option<String> {
    let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn start(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let wanted: StartedRun = call.json()?;
    let Some((registration, workflow)) = store.registrations().workflow(&wanted.workflow)? else {
        return Err(no_workflow(&wanted.workflow));
    };
    let given = wanted.params.into_iter().map(|(name, value)| (name, Supplied::Json(value))).collect();
    let params = bound(&workflow.params, given)?;
    let run_key = once::key_of(call)?;
    let run = NewRun { workflow, params, dir: registration.dir, run_key, occasion: None };
    let subject = format!("workflow {}", wanted.workflow);
    let submitted = call.recorded(store, subject).runs().submit(run.clone())?;
    accepted(store, submitted, &run)
}

/// The answer about a run that was submitted. A key that belongs to another request is a conflict.
fn accepted(store: &Store, submitted: Submitted, wanted: &NewRun) -> Result<Answer, Problem> {
    let run = store.runs().get(submitted.run_id)?;
    let params: Map<String, Value> = serde_json::from_str(&run.params).unwrap_or_default();
    if !submitted.created && (run.workflow != wanted.workflow.name || params != wanted.params) {
        return Err(Problem::conflict(
            format!("the key belongs to run {}, which has another workflow or other parameters", run.id),
            "use another key for another request",
        ));
    }
    let status = if submitted.created { StatusCode::CREATED } else { StatusCode::OK };
    Answer::json_with(status, &SubmittedView::new(submitted, &run.workflow, run.status))
}

fn cancel(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let run = run_of(store, call)?;
    let done = if run.status.is_terminal() || run.stop_reason.is_some() {
        None
    } else {
        Some(call.recorded(store, Subject::Run(run.id)).runs().cancel(run.id)?)
    };
    let Cancellation { cancelled, stopping } = done.unwrap_or(Cancellation { cancelled: 0, stopping: 0 });
    let run = RunView::read(store, &store.runs().get(run.id)?)?;
    Answer::json(&CancelledRun {
        run,
        changed: done.is_some(),
        cancelled_jobs: cancelled,
        stopping_jobs: stopping,
    })
}

fn retry(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let run = run_of(store, call)?;
    let wanted: Retry = call.json()?;
    let selection = wanted.from.map_or(RetrySelection::Failed, RetrySelection::From);
    let retried_jobs = call.recorded(store, Subject::Run(run.id)).runs().retry(run.id, selection)?;
    let run = RunView::read(store, &store.runs().get(run.id)?)?;
    Answer::json(&RetriedRun { run, retried_jobs })
}

fn rerun(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let before = run_of(store, call)?;
    let wanted: Rerun = call.json()?;
    let workflow = store.runs().workflow(before.id)?;
    let kept: Map<String, Value> = serde_json::from_str(&before.params).unwrap_or_default();
    // A parameter without a value is null in the run.
    let kept = kept.into_iter().filter(|(name, value)| !value.is_null() && !wanted.params.contains_key(name));
    let given =
        kept.chain(wanted.params.clone()).map(|(name, value)| (name, Supplied::Json(value))).collect();
    let params = bound(&workflow.params, given)?;
    let run_key = once::key_of(call)?;
    let run = NewRun { workflow, params, dir: before.dir, run_key, occasion: None };
    let file = store.runs().definitions(before.id)?.pop().and_then(|last| last.file);
    let file = file.map(|file| (DefinitionVerb::Rerun, file));
    let subject = format!("run {}", before.id);
    let submitted = call.recorded(store, subject).runs().submit_from(run.clone(), file)?;
    accepted(store, submitted, &run)
}

fn change_batch(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let wanted: Batch = call.json()?;
    if wanted.run_ids.is_empty() || wanted.run_ids.len() > BATCH_MAX {
        return Err(Problem::invalid(
            format!("a batch has 1 to {BATCH_MAX} runs, and this one has {}", wanted.run_ids.len()),
            "send several batches",
        ));
    }
    let action = match wanted.action {
        Action::Cancel => batch::Action::Cancel,
        Action::Retry => batch::Action::Retry,
    };
    let mut seen = HashSet::new();
    let ids: Vec<i64> = wanted.run_ids.into_iter().filter(|run_id| seen.insert(*run_id)).collect();
    let done = batch::read::apply(|run_id| call.recorded(store, Subject::Run(run_id)), action, &ids)?;
    let unchanged = done.refused.into_iter().map(|(run_id, detail)| UnchangedView { run_id, detail });
    Answer::json(&BatchView { changed: done.changed.len(), unchanged: unchanged.collect() })
}

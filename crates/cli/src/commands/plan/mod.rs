//! `windlass plan`: what a run would do. It writes nothing.

mod path;
mod text;
mod times;

use std::path::Path;

use clap::Args;
use serde_json::{Map, Value as Json, json};
use windlass_engine::store::NewRun;
use windlass_views::{PlanView, PlannedJobView, PlannedLimitView, PlannedSecretView};
use windlass_worker::{SecretPresence, look_for_secret};
use windlass_workflow::kinds::sleep::Wake;
use windlass_workflow::model::Secret;
use windlass_workflow::plan::{Forecast, Items, PlannedJob, plan};
use windlass_workflow::{Action, Job, RunHandler, Workflow};

use crate::arguments::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::submission::{PartArgs, ReadWorkflow, WorkflowArgs};
use times::PastTimes;

/// Show what a run would do: order, conditions, items, times
///
/// Nothing is written, and no job is executed. The times are those of the last 10 runs, if there is a database.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    #[command(flatten)]
    part: PartArgs,
}

const EXAMPLES: &str = "\
Examples:
  windlass plan nightly.toml -p mode=full
  windlass plan nightly.toml --only load --with-upstream
  windlass plan nightly.toml -o json | jq '.jobs[].forecast'";

/// Shows the plan.
pub(crate) fn execute(global: &GlobalOptions, args: &PlanArgs) -> Result<(), Failure> {
    let ReadWorkflow { workflow, dir, file: _ } = args.part.of(args.workflow.read(global)?)?;
    let params = args.workflow.bind(&workflow)?;
    show(global, &NewRun { workflow, params, dir, run_key: None, occasion: None })
}

/// Shows what a run would do. `run --dry-run` does the same.
pub(super) fn show(global: &GlobalOptions, run: &NewRun) -> Result<(), Failure> {
    let NewRun { workflow, params, dir, run_key: _, occasion: _ } = run;
    let past = match Database::if_exists(global)? {
        Some(database) => PastTimes::read(&database, &workflow.name)?,
        None => PastTimes::default(),
    };
    let view = view(workflow, params, dir.as_deref().map(Path::new), past);
    Output { format: global.output }.object(&view, text::plan)
}

fn view(workflow: &Workflow, params: &Map<String, Json>, dir: Option<&Path>, past: PastTimes) -> PlanView {
    let planned = plan(workflow, params);
    let mut jobs: Vec<PlannedJobView> = planned.iter().map(|planned| job_view(workflow, planned)).collect();
    for job in &mut jobs {
        job.duration_ms = past.median_ms(&job.job);
    }
    let critical_path =
        path::critical(workflow, &planned, |job| past.median_ms(&job.name).or_else(|| sleep_ms(job, params)));
    let secrets = workflow.secrets.iter().map(|secret| secret_view(secret, dir)).collect();
    let concurrency = limit_view(workflow, params);
    let params = params.clone();
    PlanView {
        workflow: workflow.name.clone(),
        params,
        concurrency,
        jobs,
        secrets,
        runs: past.runs,
        critical_path,
    }
}

fn limit_view(workflow: &Workflow, params: &Map<String, Json>) -> Option<PlannedLimitView> {
    let concurrency = workflow.concurrency.as_ref()?;
    let key = concurrency.render(params, &workflow.name).ok();
    Some(PlannedLimitView { key, limit: concurrency.limit, on_full: concurrency.on_full.as_str() })
}

/// How long a job sleeps, if its params say it.
fn sleep_ms(job: &Job, params: &Map<String, Json>) -> Option<i64> {
    let Action::Sleep(sleep) = &job.action else { return None };
    match sleep.wake(&json!({ "params": params })) {
        Ok(Wake::After(sleep_ms)) => Some(sleep_ms),
        Ok(Wake::At(_)) | Err(_) => None,
    }
}

fn job_view(workflow: &Workflow, planned: &PlannedJob) -> PlannedJobView {
    let job = &workflow.jobs[planned.index];
    let (forecast, reason) = match &planned.forecast {
        Forecast::Runs => ("runs", None),
        Forecast::Undecided => {
            ("undecided", job.condition.as_ref().map(|condition| condition.text().to_owned()))
        }
        Forecast::Skipped(why) => ("skipped", Some(why.clone())),
        Forecast::Fails(why) => ("fails", Some(why.clone())),
    };
    let (forecast, reason, items) = match &planned.items {
        Items::Fails(why) if forecast == "runs" => ("fails", Some(why.clone()), None),
        Items::Fails(_) | Items::None | Items::Unknown => (forecast, reason, None),
        Items::Count(items) => (forecast, reason, Some(*items)),
    };
    let calls = match &job.action {
        Action::Call(call) => Some(call.workflow.clone()),
        Action::Shell(_)
        | Action::Http(_)
        | Action::Sleep(_)
        | Action::WaitFor(_)
        | Action::Approval(_)
        | Action::Signal(_) => None,
    };
    PlannedJobView {
        job: job.name.clone(),
        kind: job.action.kind(),
        needs: job.needs.iter().map(|needed| workflow.jobs[*needed].name.clone()).collect(),
        handler: job.handler.map(RunHandler::key),
        when: job.when.name(),
        allow_failure: job.allow_failure,
        forecast,
        reason,
        items,
        calls,
        duration_ms: None,
    }
}

fn secret_view(secret: &Secret, dir: Option<&Path>) -> PlannedSecretView {
    let (found, reason) = match look_for_secret(secret, dir) {
        SecretPresence::Found => (Some(true), None),
        SecretPresence::NotTried => (None, None),
        SecretPresence::Missing(why) => (Some(false), Some(why)),
    };
    PlannedSecretView { secret: secret.name.clone(), found, reason }
}

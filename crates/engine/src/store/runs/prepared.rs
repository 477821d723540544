//! Preparing a run: its definition and its jobs as texts, before the write lock is taken.

use super::submit::NewRun;
use crate::attempt_end::EndConditions;
use crate::decide::for_each::Group;
use crate::decide::{Control, Then};
use crate::store::Change;
use crate::transition::Backoff;
use serde::Serialize;
use serde_json::Value as Json;
use windlass_db::error::{Error, Result};
use windlass_system::random::Random;
use windlass_workflow::{Job, Workflow, hash_of_stored};

/// Everything about a run that can be computed before the write lock is taken. For a large workflow this is most of
/// the work.
pub(in crate::store) struct PreparedRun {
    /// The token of the run.
    pub(in crate::store) token: i64,
    /// The caller that submits it.
    pub(super) started_by: Option<String>,
    /// The caller's place in a trace.
    pub(super) traceparent: Option<String>,
    pub(super) definition: StoredDefinition,
    pub(super) jobs: Vec<PreparedJob>,
    /// Concurrency keys of jobs that have no parents.
    pub(super) keys_to_admit: Vec<String>,
    /// The limit of the runs of its workflow.
    pub(super) concurrency: Option<RunConcurrency>,
}

/// The columns of a run whose workflow limits its runs.
pub(super) struct RunConcurrency {
    pub(super) key: String,
    pub(super) limit: i64,
    pub(super) on_full: &'static str,
}

/// The computed values of a row of `jobs`.
pub(super) struct PreparedJob {
    pub(super) payload: String,
    pub(super) retry: String,
    pub(super) requires: String,
    pub(super) concurrency_key: Option<String>,
    /// What the scheduler decides before the job runs.
    pub(super) control: Option<String>,
    pub(super) token: i64,
}

/// A definition as JSON, and its hash.
pub(in crate::store) struct StoredDefinition {
    pub(super) hash: String,
    pub(super) json: String,
    pub(super) secret_variables: Option<String>,
    pub(super) tags: Option<String>,
}

impl StoredDefinition {
    pub(in crate::store) fn of(workflow: &Workflow) -> StoredDefinition {
        let json = workflow.to_json();
        let variables = workflow.secret_variables();
        let secret_variables = (!variables.is_empty()).then(|| Json::from(variables).to_string());
        let tags = (!workflow.tags.is_empty()).then(|| Json::from(workflow.tags.as_slice()).to_string());
        StoredDefinition { hash: hash_of_stored(&json), json, secret_variables, tags }
    }
}

impl PreparedRun {
    pub(in crate::store) fn of(run: &NewRun, random: &Random) -> Result<PreparedRun> {
        let workflow = &run.workflow;
        // A program may have built the workflow, or it may come from a table that other programs can change.
        workflow.check().map_err(|error| {
            Error::invalid(format!("submit workflow `{}`", workflow.name), error.to_string())
        })?;
        workflow.check_calls_are_complete().map_err(|error| {
            Error::invalid(format!("submit workflow `{}`", workflow.name), error.to_string())
        })?;
        let mut keys_to_admit = Vec::new();
        let mut jobs = Vec::with_capacity(workflow.jobs.len());
        for job in &workflow.jobs {
            let concurrency_key = concurrency_key(run, job)?;
            let control = control(workflow, job)?;
            let is_ready = job.needs.is_empty() && job.handler.is_none() && control.is_none();
            keys_to_admit.extend(concurrency_key.clone().filter(|_key| is_ready));
            jobs.push(PreparedJob {
                payload: payload(workflow, job),
                retry: retry(job)?,
                requires: to_json(&job.requires)?,
                concurrency_key,
                control,
                token: random.token(),
            });
        }
        Ok(PreparedRun {
            token: random.token(),
            started_by: None,
            traceparent: None,
            definition: StoredDefinition::of(workflow),
            jobs,
            keys_to_admit,
            concurrency: run_concurrency(run)?,
        })
    }

    /// The same run, submitted by the caller of a change.
    pub(in crate::store) fn started_by(self, change: Option<&Change>) -> PreparedRun {
        let traceparent = change.and_then(|change| change.traceparent).map(|caller| caller.to_string());
        PreparedRun { started_by: change.map(Change::caller_name), traceparent, ..self }
    }
}

/// Renders the concurrency key of the run itself.
fn run_concurrency(run: &NewRun) -> Result<Option<RunConcurrency>> {
    let Some(concurrency) = &run.workflow.concurrency else { return Ok(None) };
    let key = concurrency.render(&run.params, &run.workflow.name).map_err(|error| {
        let operation = format!("submit workflow `{}`", run.workflow.name);
        Error::invalid(operation, format!("`concurrency.key` of the workflow: {error}"))
    })?;
    Ok(Some(RunConcurrency { key, limit: concurrency.limit, on_full: concurrency.on_full.as_str() }))
}

/// Renders the concurrency key with the run's parameters.
fn concurrency_key(run: &NewRun, job: &Job) -> Result<Option<String>> {
    let Some(concurrency) = &job.concurrency else { return Ok(None) };
    concurrency.render(&run.params, &run.workflow.name).map(Some).map_err(|error| {
        let operation = format!("submit workflow `{}`", run.workflow.name);
        Error::invalid(operation, format!("`concurrency.key` of job `{}`: {error}", job.name))
    })
}

/// The pauses between attempts and the conditions at their ends, as JSON.
fn retry(job: &Job) -> Result<String> {
    #[derive(Serialize)]
    struct StoredRetry {
        #[serde(flatten)]
        backoff: Backoff,
        #[serde(flatten)]
        conditions: EndConditions,
    }
    to_json(&StoredRetry { backoff: Backoff::from(&job.retry), conditions: EndConditions::of(job) })
}

/// What the scheduler decides before the job runs, as JSON.
fn control(workflow: &Workflow, job: &Job) -> Result<Option<String>> {
    let action = Then::of(&job.action);
    let uses = if action.is_some() { names_of_used(workflow, job) } else { Vec::new() };
    let then = match job.for_each.clone() {
        Some(for_each) => {
            let kind = job.action.kind().to_owned();
            Some(Then::ForEach(Group { kind, for_each: *for_each, then: action.map(Box::new) }))
        }
        None => action,
    };
    let control = Control { condition: job.condition.clone(), then, deadline_ms: job.deadline_ms, uses };
    if control == Control::default() { Ok(None) } else { to_json(&control).map(Some) }
}

/// The payload of the job's row: what its handler gets.
fn payload(workflow: &Workflow, job: &Job) -> String {
    let uses = names_of_used(workflow, job);
    job.action.payload(&uses.iter().map(String::as_str).collect::<Vec<_>>(), &workflow.secrets_of(job))
}

/// The names of the jobs that the templates of a job read.
fn names_of_used(workflow: &Workflow, job: &Job) -> Vec<String> {
    job.uses.iter().map(|index| workflow.jobs[*index].name.clone()).collect()
}

pub(super) fn to_json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::internal("submit a run", error.to_string()))
}

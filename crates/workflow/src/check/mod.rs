//! Checks a workflow that a program made. It finds the same errors as the parser does in a file. The parser names a line,
//! and this check names a field of the model, as in `jobs[3].needs[0]`.

mod job;
mod reads;
mod schedule;
mod secret;
mod supported;
mod trigger;

use std::collections::HashMap;

use crate::expression::{HasItems, HasWorkspace, Place, Reader};
use crate::field::{self, Checked, KnownNames, WorkflowError, optional_duration, refuse, within};
use crate::graph::Graph;
use crate::job_names::JobNames;
use crate::model::Workflow;
use crate::names::{NameKind, workflow_name_fault};
use crate::params::{self, Param, ParamKind, Supplied};
use crate::support::Accepted;
use crate::{env, limits};

impl Workflow {
    /// Checks names, indices, cycles, limits, numbers and templates, as the parser does for a file.
    ///
    /// # Errors
    /// The first error that is found, and the field.
    pub fn check(&self) -> Result<(), WorkflowError> {
        self.check_accepting(Accepted::Supported)
    }

    /// As [`Workflow::check`], for a workflow that may use this. It is for tests.
    ///
    /// # Errors
    /// The first error that is found, and the field.
    pub fn check_accepting(&self, accepted: Accepted) -> Result<(), WorkflowError> {
        within(self.workflows.len(), limits::CALLED_WORKFLOWS, "workflows")?;
        let jobs = self.jobs.len() + self.workflows.iter().map(|called| called.jobs.len()).sum::<usize>();
        if !self.workflows.is_empty() {
            within(jobs, limits::JOBS, "the jobs of all workflows")?;
        }
        for (index, called) in self.workflows.iter().enumerate() {
            let within = format!("workflows[{index}] (`{}`)", called.name);
            if !called.workflows.is_empty() {
                return refuse(within, "it has `workflows` of its own");
            }
            called.check_alone(accepted).map_err(|error| error.inside(&within))?;
        }
        self.check_alone(accepted)?;
        self.check_calls().or_else(|error| refuse("workflows", error.to_string()))
    }

    /// Checks everything but the calls of workflows.
    fn check_alone(&self, accepted: Accepted) -> Result<(), WorkflowError> {
        if let Some(fault) = workflow_name_fault(&self.name) {
            return refuse("name", fault);
        }
        field::optional(self.description.as_deref(), "description")?;
        optional_duration(self.timeout_ms, "timeout_ms")?;
        supported::check_workflow(self, accepted)?;
        check_params(&self.params)?;
        check_tags(&self.tags)?;
        secret::check_all(&self.secrets)?;
        check_size(self)?;
        check_graph(self)?;
        let jobs = JobNames::new(self.jobs.iter().map(|job| job.name.as_str()));
        let secrets: Vec<&str> = self.secrets.iter().map(|secret| secret.name.as_str()).collect();
        let names = KnownNames {
            params: &self.params,
            jobs: &jobs,
            secrets: &secrets,
            reader: Reader::Workflow,
            has_items: HasItems::No,
            has_workspace: HasWorkspace::of(self.workspace),
            accepted,
        };
        env::check(&self.env, "env", &names, Place::Workflow)?;
        self.concurrency
            .as_ref()
            .map_or(Ok(()), |concurrency| job::check_concurrency(concurrency, &names))?;
        for (index, job) in self.jobs.iter().enumerate() {
            let reader = if job.handler.is_some() { Reader::Handler } else { Reader::Job };
            let has_items = if job.for_each.is_some() { HasItems::Yes } else { HasItems::No };
            supported::check_job(job, accepted)
                .and_then(|()| job::check(index, job, &KnownNames { reader, has_items, ..names }))
                .map_err(|error| within_job(self, index, error))?;
        }
        check_outputs(self, &KnownNames { reader: Reader::Outputs, ..names })?;
        reads::check(self, &jobs)?;
        schedule::check_all(&self.schedules, &names)?;
        trigger::check_all(self, &names)
    }
}

/// Checks that every index names a job, and that jobs do not need each other in a cycle.
pub(crate) fn check_graph(workflow: &Workflow) -> Checked {
    for (index, job) in workflow.jobs.iter().enumerate() {
        for (field, list) in [("needs", &job.needs), ("uses", &job.uses)] {
            job::check_indices(list, field, index, workflow.jobs.len())
                .map_err(|error| within_job(workflow, index, error))?;
        }
        let is_other = |needed: &&usize| workflow.jobs[**needed].handler != job.handler;
        if let Some(needed) = job.needs.iter().find(is_other) {
            let reason =
                format!("`{}`, jobs[{needed}], belongs to another table", workflow.jobs[*needed].name);
            let error = WorkflowError { field: "needs".to_owned(), reason };
            return Err(within_job(workflow, index, error));
        }
    }
    let graph = Graph::new(workflow);
    // The order leaves out the jobs of a cycle. Searching for the cycle takes longer, so it is done only when there is one.
    if graph.order().len() == workflow.jobs.len() {
        return Ok(());
    }
    let cycle = graph.cycles(1).into_iter().next().unwrap_or_default();
    let names: Vec<&str> =
        cycle.iter().chain(cycle.first()).map(|index| workflow.jobs[*index].name.as_str()).collect();
    let shown = match names.as_slice() {
        all if all.len() <= CYCLE_NAMES => all.join(" -> "),
        many => {
            let more = many.len() - CYCLE_NAMES;
            let (start, end) = (many[..CYCLE_NAMES - 1].join(" -> "), many[many.len() - 1]);
            format!("{start} -> ({more} more) -> {end}")
        }
    };
    refuse("jobs", format!("these jobs need each other in a cycle: {shown}"))
}

/// Names of a cycle that a message shows.
const CYCLE_NAMES: usize = 12;

fn check_size(workflow: &Workflow) -> Checked {
    let jobs = workflow.jobs.len();
    if workflow.jobs.iter().all(|job| job.handler.is_some()) {
        return refuse("jobs", "the workflow has no jobs");
    }
    within(jobs, limits::JOBS, "jobs")?;
    let edges: usize = workflow.jobs.iter().map(|job| job.needs.len()).sum();
    if edges > limits::EDGES {
        return refuse(
            "jobs",
            format!("the jobs have {edges} entries in `needs`; the limit is {}", limits::EDGES),
        );
    }
    let mut seen: HashMap<&str, usize> = HashMap::with_capacity(jobs);
    for (index, job) in workflow.jobs.iter().enumerate() {
        if let Some(first) = seen.insert(&job.name, index) {
            let reason = format!("jobs[{first}] has the same name");
            return Err(within_job(workflow, index, WorkflowError { field: "name".to_owned(), reason }));
        }
    }
    Ok(())
}

fn check_outputs(workflow: &Workflow, names: &KnownNames<'_>) -> Checked {
    within(workflow.outputs.len(), limits::OUTPUTS, "outputs")?;
    for (name, expression) in &workflow.outputs {
        let field = format!("outputs.{name}");
        field::name(name, &field, NameKind::Output)?;
        field::condition(Some(expression), &field, names, Place::Outputs)?;
    }
    Ok(())
}

fn check_tags(tags: &[String]) -> Checked {
    within(tags.len(), limits::TAGS, "tags")?;
    for (at, tag) in tags.iter().enumerate() {
        field::name(tag, &format!("tags[{at}]"), NameKind::Tag)?;
    }
    match tags.windows(2).position(|pair| pair[0] >= pair[1]) {
        Some(at) => refuse(format!("tags[{}]", at + 1), "the list must be sorted, without duplicates"),
        None => Ok(()),
    }
}

fn check_params(params: &[Param]) -> Checked {
    within(params.len(), limits::PARAMS, "params")?;
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, param) in params.iter().enumerate() {
        check_param(param).map_err(|error| error.inside(&format!("params[{index}] (`{}`)", param.name)))?;
        if let Some(first) = seen.insert(params::env_name(&param.name), index) {
            let reason =
                format!("params[{first}] (`{}`) has the same environment variable", params[first].name);
            return refuse(format!("params[{index}] (`{}`)", param.name), reason);
        }
    }
    Ok(())
}

fn check_param(param: &Param) -> Checked {
    field::name(&param.name, "name", NameKind::Param)?;
    field::optional(param.description.as_deref(), "description")?;
    within(param.choices.len(), limits::CHOICES, "choices")?;
    for (index, choice) in param.choices.iter().enumerate() {
        field::plain(choice, &format!("choices[{index}]"))?;
        if param.choices[..index].contains(choice) {
            return refuse(format!("choices[{index}]"), "an earlier item is the same choice");
        }
    }
    match (param.kind == ParamKind::Choice, param.choices.is_empty()) {
        (true, true) => return refuse("choices", "a choice needs at least one"),
        (false, false) => return refuse("choices", "only the kind `Choice` has choices"),
        (true, false) | (false, true) => {}
    }
    let Some(default) = &param.default else { return Ok(()) };
    if param.required {
        return refuse("required", "a parameter with a default is never required");
    }
    match params::convert(param, Supplied::Json(default.clone())) {
        Ok(converted) if converted == *default => Ok(()),
        Ok(_) => refuse("default", "it is not in the form that the parser gives to values of this kind"),
        Err(reason) => refuse("default", reason),
    }
}

/// The same error for a field of the job with this index.
fn within_job(workflow: &Workflow, index: usize, error: WorkflowError) -> WorkflowError {
    error.inside(&format!("jobs[{index}] (`{}`)", workflow.jobs[index].name))
}

//! Checks a workflow that a program made. The parser finds the same errors in a file, where they have a line; here
//! the place is a field of the model, as in `jobs[3].needs[0]`.

mod job;
mod schedule;
mod text;

use std::collections::HashMap;
use std::ops::RangeInclusive;

use crate::graph::Graph;
use crate::job_names::JobNames;
use crate::limits;
use crate::lower::workflow_name_fault;
use crate::model::{Param, ParamKind, Workflow};
use crate::params::{self, Supplied};
use crate::report::Findings;
use crate::template::Reader;

/// Why a workflow can't be used: the first thing that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct WorkflowError {
    /// The field, as in `jobs[3].needs[0]`.
    pub place: String,
    /// What is wrong with it.
    pub reason: String,
}

type Checked = Result<(), WorkflowError>;

impl Workflow {
    /// Checks everything that a file would be refused for: names, indices, cycles, limits, numbers, templates.
    ///
    /// # Errors
    /// The first thing that is wrong, and where.
    pub fn check(&self) -> Result<(), WorkflowError> {
        if let Some(fault) = workflow_name_fault(&self.name) {
            return refuse("name", fault);
        }
        text::optional(self.description.as_deref(), "description")?;
        optional_duration(self.timeout_ms, "timeout_ms")?;
        check_params(&self.params)?;
        check_size(self)?;
        check_graph(self)?;
        let names = JobNames::new(self.jobs.iter().map(|job| job.name.as_str()));
        let texts = text::Texts { params: &self.params, names: &names };
        text::env(&self.env, "env", &texts, Reader::Workflow)?;
        for (index, job) in self.jobs.iter().enumerate() {
            job::check(index, job, &texts).map_err(|error| within_job(self, index, error))?;
        }
        job::check_uses(self)?;
        schedule::check_all(&self.schedules, &texts)
    }
}

/// Whether the graph can be worked through: every index names a job, and no job waits for itself.
pub(crate) fn check_graph(workflow: &Workflow) -> Checked {
    for (index, job) in workflow.jobs.iter().enumerate() {
        for (field, list) in [("needs", &job.needs), ("uses", &job.uses)] {
            job::check_indices(list, field, index, workflow.jobs.len())
                .map_err(|error| within_job(workflow, index, error))?;
        }
    }
    let graph = Graph::new(workflow);
    // The order leaves out the jobs of a cycle. A cycle itself is searched for only when there is one.
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

/// Names of a cycle that are shown.
const CYCLE_NAMES: usize = 12;

fn check_size(workflow: &Workflow) -> Checked {
    let jobs = workflow.jobs.len();
    if jobs == 0 {
        return refuse("jobs", "the workflow has no jobs");
    }
    within(jobs, limits::JOBS, "jobs")?;
    let edges: usize = workflow.jobs.iter().map(|job| job.needs.len()).sum();
    if edges > limits::EDGES {
        return refuse(
            "jobs",
            format!("they have {edges} entries in `needs`; the limit is {}", limits::EDGES),
        );
    }
    let mut seen: HashMap<&str, usize> = HashMap::with_capacity(jobs);
    for (index, job) in workflow.jobs.iter().enumerate() {
        if let Some(first) = seen.insert(&job.name, index) {
            let reason = format!("jobs[{first}] has the same name");
            return Err(within_job(workflow, index, WorkflowError { place: "name".to_owned(), reason }));
        }
    }
    Ok(())
}

fn check_params(params: &[Param]) -> Checked {
    within(params.len(), limits::PARAMS, "params")?;
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, param) in params.iter().enumerate() {
        check_param(param).map_err(|error| error.below(&format!("params[{index}] (`{}`)", param.name)))?;
        if let Some(first) = seen.insert(params::env_name(&param.name), index) {
            let reason = format!(
                "params[{first}] (`{}`) has the same name as an environment variable",
                params[first].name
            );
            return refuse(format!("params[{index}] (`{}`)", param.name), reason);
        }
    }
    Ok(())
}

fn check_param(param: &Param) -> Checked {
    text::name(&param.name, "name", text::Rule::Param)?;
    text::optional(param.description.as_deref(), "description")?;
    within(param.choices.len(), limits::CHOICES, "choices")?;
    for (index, choice) in param.choices.iter().enumerate() {
        text::plain(choice, &format!("choices[{index}]"))?;
        if param.choices[..index].contains(choice) {
            return refuse(format!("choices[{index}]"), "the same choice is there twice");
        }
    }
    match (param.kind, param.choices.is_empty()) {
        (ParamKind::Choice, true) => return refuse("choices", "a choice needs at least one"),
        (
            ParamKind::String | ParamKind::Integer | ParamKind::Number | ParamKind::Boolean | ParamKind::Date,
            false,
        ) => {
            return refuse("choices", "only the kind `Choice` has choices");
        }
        (ParamKind::Choice, false)
        | (
            ParamKind::String | ParamKind::Integer | ParamKind::Number | ParamKind::Boolean | ParamKind::Date,
            true,
        ) => {}
    }
    let Some(default) = &param.default else { return Ok(()) };
    if param.required {
        return refuse("required", "a parameter with a default never has to be given");
    }
    match params::convert(param, Supplied::Json(default.clone())) {
        Ok(converted) if converted == *default => Ok(()),
        Ok(_) => refuse("default", "it is not in the form that a file gives"),
        Err(reason) => refuse("default", reason),
    }
}

impl WorkflowError {
    /// The same error of a field that lies in `outer`.
    fn below(self, outer: &str) -> WorkflowError {
        WorkflowError { place: format!("{outer}.{}", self.place), ..self }
    }
}

fn within_job(workflow: &Workflow, index: usize, error: WorkflowError) -> WorkflowError {
    error.below(&format!("jobs[{index}] (`{}`)", workflow.jobs[index].name))
}

fn refuse(place: impl Into<String>, reason: impl Into<String>) -> Checked {
    Err(WorkflowError { place: place.into(), reason: reason.into() })
}

/// What the checks of a file find, as an error about one field: the first of them.
fn first_of(findings: Findings, place: &str) -> Checked {
    let Some(finding) = findings.into_first() else { return Ok(()) };
    let parts = [Some(finding.message), finding.label, finding.help];
    refuse(place, parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

fn within(length: usize, limit: usize, place: &str) -> Checked {
    match length <= limit {
        true => Ok(()),
        false => refuse(place, format!("there are {length}; the limit is {limit}")),
    }
}

fn in_range(value: i64, allowed: RangeInclusive<i64>, place: &str) -> Checked {
    match allowed.contains(&value) {
        true => Ok(()),
        false => {
            refuse(place, format!("it is {value}, and must be {} to {}", allowed.start(), allowed.end()))
        }
    }
}

fn optional_duration(value_ms: Option<i64>, place: &str) -> Checked {
    value_ms.map_or(Ok(()), |value_ms| in_range(value_ms, 1..=limits::DURATION_MS, place))
}

//! Workflows that call workflows: the list of the called ones inside the caller, and the checks of all calls together.
//!
//! A workflow has all workflows that its jobs call, directly or through others, in one list. So one definition says
//! everything that a run will execute, and what a called workflow calls is found by an index.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value as Json};

use crate::kinds::Action;
use crate::kinds::call::Call;
use crate::kinds::map_texts;
use crate::limits;
use crate::model::{Job, Workflow};
use crate::params::{self, Param, ParamError, ParamKind, Supplied};
use crate::template::{self, TemplateError};

/// Why the calls of a workflow can't be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// A workflow calls itself, directly or through others.
    #[error("`{}` calls itself: {}; `repeat` executes a job again, `for_each` once for each item", .0.first().map_or("", String::as_str), .0.join(" → "))]
    Recursive(Vec<String>),
    /// The calls are too deep.
    #[error("workflows call each other {} deep, and the limit is {}: {}", .0.len() - 1, limits::CALL_DEPTH, .0.join(" → "))]
    TooDeep(Vec<String>),
    /// A called workflow is not in the list.
    #[error("job `{job}` calls `{workflow}`, {reason}")]
    Unknown {
        /// The job that calls it.
        job: String,
        /// As in the file.
        workflow: String,
        /// Why it is not there.
        reason: &'static str,
    },
    /// The values of a call do not fit the parameters of the called workflow.
    #[error("job `{job}` calls `{workflow}`: {error}")]
    Params {
        /// The job that calls it.
        job: String,
        /// As in the file.
        workflow: String,
        /// What is wrong.
        error: ParamError,
    },
}

impl Workflow {
    /// The jobs that call workflows, in this workflow and in all that it calls.
    pub fn calls(&self) -> impl Iterator<Item = (&Job, &Call)> {
        std::iter::once(self).chain(&self.workflows).flat_map(own_calls)
    }

    /// The same for changes. `scope` is the index of the workflow that has the job; nothing for this one.
    pub fn calls_mut(&mut self) -> impl Iterator<Item = (Option<usize>, &mut Call)> {
        let own = (None, &mut self.jobs);
        let called = self.workflows.iter_mut().enumerate();
        let all =
            std::iter::once(own).chain(called.map(|(index, workflow)| (Some(index), &mut workflow.jobs)));
        all.flat_map(|(scope, jobs)| jobs.iter_mut().filter_map(move |job| Some((scope, call_of(job)?))))
    }

    /// Adds a workflow to the list, together with those that it calls. Returns its index. Those that it calls follow it.
    pub fn add_called(&mut self, mut called: Workflow) -> usize {
        let index = self.workflows.len();
        let of_called = std::mem::take(&mut called.workflows);
        self.workflows.push(called);
        self.workflows.extend(of_called);
        for workflow in &mut self.workflows[index..] {
            for call in workflow.jobs.iter_mut().filter_map(call_of) {
                call.called = call.called.map(|called| index + 1 + called);
            }
        }
        index
    }

    /// A workflow of the list as one of its own: with those that it calls, and no others.
    #[must_use]
    pub fn called(&self, index: usize) -> Option<Workflow> {
        let mut workflow = self.workflows.get(index)?.clone();
        let (mut order, mut place) = (vec![index], HashMap::from([(index, 0)]));
        let mut at = 0;
        while let Some(caller) = order.get(at).and_then(|index| self.workflows.get(*index)) {
            for called in own_calls(caller).filter_map(|(_job, call)| call.called) {
                place.entry(called).or_insert_with(|| {
                    order.push(called);
                    order.len() - 1
                });
            }
            at += 1;
        }
        workflow.workflows =
            order.iter().skip(1).filter_map(|index| self.workflows.get(*index).cloned()).collect();
        for (_scope, call) in workflow.calls_mut() {
            // The first place is the workflow itself.
            call.called = call.called.and_then(|called| place.get(&called)?.checked_sub(1));
        }
        Some(workflow)
    }

    /// Checks that every call has its workflow, and everything that [`Workflow::check`] checks about calls.
    ///
    /// # Errors
    /// The first error that is found.
    pub fn check_calls_are_complete(&self) -> Result<(), CallError> {
        for (job, call) in self.calls() {
            if call.called.is_none() {
                let reason = match call.is_of_file() {
                    true => "and the file was not read",
                    false => "which is neither a workflow of the file nor registered",
                };
                return Err(unknown(job, call, reason));
            }
        }
        self.check_calls()
    }

    /// Checks the known calls: what they give, their depth, and that no workflow calls itself.
    pub(crate) fn check_calls(&self) -> Result<(), CallError> {
        for (job, call) in self.calls() {
            let Some(index) = call.called else { continue };
            let called = self.workflows.get(index);
            let called = called.ok_or_else(|| unknown(job, call, "which the definition does not have"))?;
            if let Some(error) = wrong_params(&called.params, &call.params).into_iter().next() {
                let (job, workflow) = (job.name.clone(), call.workflow.clone());
                return Err(CallError::Params { job, workflow, error });
            }
        }
        check_depth(self)
    }
}

fn unknown(job: &Job, call: &Call, reason: &'static str) -> CallError {
    CallError::Unknown { job: job.name.clone(), workflow: call.workflow.clone(), reason }
}

fn own_calls(workflow: &Workflow) -> impl Iterator<Item = (&Job, &Call)> {
    workflow.jobs.iter().filter_map(|job| match &job.action {
        Action::Call(call) => Some((job, call)),
        Action::Shell(_)
        | Action::Http(_)
        | Action::Sleep(_)
        | Action::WaitFor(_)
        | Action::Approval(_)
        | Action::Signal(_) => None,
    })
}

fn call_of(job: &mut Job) -> Option<&mut Call> {
    match &mut job.action {
        Action::Call(call) => Some(call),
        Action::Shell(_)
        | Action::Http(_)
        | Action::Sleep(_)
        | Action::WaitFor(_)
        | Action::Approval(_)
        | Action::Signal(_) => None,
    }
}

/// What is wrong with the values of a call, as far as they are known before the run: a text that is a template may give any
/// value.
pub(crate) fn wrong_params(declared: &[Param], given: &Map<String, Json>) -> Vec<ParamError> {
    let is_known = |value: &Json| !matches!(value, Json::String(text) if template::is_template(text));
    let (known, templates): (Vec<_>, Vec<_>) = given.iter().partition(|(_name, value)| is_known(value));
    let supplied =
        known.into_iter().map(|(name, value)| (name.clone(), supply(declared, name, value.clone())));
    let mut errors = params::bind(declared, supplied.collect()).err().unwrap_or_default();
    errors.retain(|error| match error {
        ParamError::Missing { name, .. } => templates.iter().all(|(given, _value)| *given != name),
        ParamError::Unknown { .. } | ParamError::Invalid { .. } | ParamError::Repeated { .. } => true,
    });
    let unknown = templates.iter().filter(|(name, _value)| declared.iter().all(|param| param.name != **name));
    errors.extend(unknown.map(|(name, _value)| params::unknown((*name).clone(), declared)));
    errors
}

/// Why the params of a call have no values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallParamsError {
    /// A template has no value.
    #[error("`params.{name}`: {error}")]
    Template {
        /// The name of the parameter.
        name: String,
        /// What is wrong.
        error: TemplateError,
    },
    /// The values do not fit the parameters of the called workflow.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Params(Vec<ParamError>),
}

/// The values of the called workflow's parameters. Templates read `values`, also those in lists and tables. A list or an object
/// becomes JSON for a parameter that is a text, as it does within a text.
///
/// # Errors
/// A template has no value, or the values do not fit the parameters.
pub fn bind(
    declared: &[Param],
    given: &Map<String, Json>,
    values: &Json,
) -> Result<Map<String, Json>, CallParamsError> {
    let mut left = limits::TEMPLATE_OUTPUT_BYTES;
    let mut supplied = Vec::with_capacity(given.len());
    for (name, value) in given {
        let value = map_texts(value, &mut |text| rendered(text, values, &mut left))
            .map_err(|error| CallParamsError::Template { name: name.clone(), error })?;
        let becomes_text = matches!(value, Json::Array(_) | Json::Object(_)) && is_text(declared, name);
        let value = if becomes_text { Json::String(value.to_string()) } else { value };
        supplied.push((name.clone(), supply(declared, name, value)));
    }
    params::bind(declared, supplied).map_err(CallParamsError::Params)
}

/// The value of a text. `left` is how many bytes the values of all texts may still have.
fn rendered(text: &str, values: &Json, left: &mut usize) -> Result<Json, TemplateError> {
    let value = template::render_json(text, values)?;
    if template::is_template(text) {
        let bytes = value.as_str().map_or_else(|| value.to_string().len(), str::len);
        *left = left.checked_sub(bytes).ok_or_else(|| TemplateError {
            expression: None,
            message: format!("the values grow beyond {} KiB", limits::TEMPLATE_OUTPUT_BYTES / 1024),
        })?;
    }
    Ok(value)
}

/// Whether the values of a parameter are texts.
fn is_text(declared: &[Param], name: &str) -> bool {
    let kind = declared.iter().find(|param| param.name == name).map(|param| param.kind);
    match kind {
        Some(
            ParamKind::String
            | ParamKind::Date
            | ParamKind::Choice
            | ParamKind::Datetime
            | ParamKind::Duration,
        ) => true,
        Some(ParamKind::Integer | ParamKind::Number | ParamKind::Boolean | ParamKind::List) | None => false,
    }
}

/// A text is read as the type of the parameter. A number or a boolean becomes a text for a parameter that is one.
fn supply(declared: &[Param], name: &str, value: Json) -> Supplied {
    match value {
        Json::String(text) => Supplied::Text(text),
        Json::Bool(_) | Json::Number(_) if is_text(declared, name) => Supplied::Text(value.to_string()),
        value @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_)) => {
            Supplied::Json(value)
        }
    }
}

/// What the search knows of a workflow of the list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    Open,
    Done,
}

/// A way down the calls.
struct Descent<'w> {
    list: &'w [Workflow],
    visits: BTreeMap<usize, Visit>,
    /// The longest way down from each workflow that is done: how many calls, and the next workflow.
    longest: HashMap<usize, (usize, Option<usize>)>,
    path: Vec<usize>,
}

/// Refuses workflows that call themselves, and calls that are too deep.
pub(crate) fn check_depth(workflow: &Workflow) -> Result<(), CallError> {
    let mut descent = Descent {
        list: &workflow.workflows,
        visits: BTreeMap::new(),
        longest: HashMap::new(),
        path: Vec::new(),
    };
    let (depth, first) = descent.below(workflow)?;
    // A workflow that nobody calls must not call itself either.
    for index in 0..workflow.workflows.len() {
        descent.visit(index)?;
    }
    if depth <= limits::CALL_DEPTH {
        return Ok(());
    }
    let mut names = vec![workflow.name.clone()];
    let mut next = first;
    while let Some(index) = next {
        names.push(descent.name(index));
        next = descent.longest.get(&index).and_then(|(_depth, next)| *next);
    }
    Err(CallError::TooDeep(names))
}

impl Descent<'_> {
    fn name(&self, index: usize) -> String {
        self.list.get(index).map_or_else(String::new, |workflow| workflow.name.clone())
    }

    /// The longest way down from a workflow. The number of the list's workflows bounds the depth of this recursion, and a
    /// path that is longer than the limit ends it.
    fn below(&mut self, workflow: &Workflow) -> Result<(usize, Option<usize>), CallError> {
        let mut longest = (0, None);
        let called: Vec<usize> = own_calls(workflow).filter_map(|(_job, call)| call.called).collect();
        for index in called {
            let (depth, _next) = self.visit(index)?;
            if depth + 1 > longest.0 {
                longest = (depth + 1, Some(index));
            }
        }
        Ok(longest)
    }

    fn visit(&mut self, index: usize) -> Result<(usize, Option<usize>), CallError> {
        match self.visits.get(&index) {
            Some(Visit::Done) => return Ok(self.longest.get(&index).copied().unwrap_or_default()),
            Some(Visit::Open) => {
                let start = self.path.iter().position(|open| *open == index).unwrap_or_default();
                let circle = self.path[start..].iter().chain([&index]);
                return Err(CallError::Recursive(circle.map(|index| self.name(*index)).collect()));
            }
            None => (),
        }
        let Some(workflow) = self.list.get(index) else { return Ok((0, None)) };
        self.visits.insert(index, Visit::Open);
        self.path.push(index);
        let longest = self.below(workflow)?;
        self.path.pop();
        self.visits.insert(index, Visit::Done);
        self.longest.insert(index, longest);
        Ok(longest)
    }
}

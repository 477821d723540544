//! Reads `workflows`, and finds the workflows of the file that its jobs call.

use serde_json::Value as Json;

use super::job::UnresolvedJob;
use super::tables::JobEntry;
use super::top_level::{self, TopLevel};
use crate::calls::{check_depth, wrong_params};
use crate::keys::Table;
use crate::kinds::Action;
use crate::kinds::call::Call;
use crate::model::Workflow;
use crate::names::{self, NameKind};
use crate::params::{Param, ParamError};
use crate::report::{Finding, Findings, Span};
use crate::tree::{Entry, Value};
use crate::{expect, limits};

/// A workflow in `workflows`.
pub(super) struct Local<'t, 's> {
    pub(super) name: &'t str,
    pub(super) top: TopLevel<'t, 's>,
}

pub(super) fn read_locals<'t, 's>(
    workflows: Option<&'t Entry<'s>>,
    findings: &mut Findings,
) -> Vec<Local<'t, 's>> {
    let Some(workflows) = workflows else { return Vec::new() };
    let expected = "a table of names and workflows";
    let entries = expect::table(workflows, limits::CALLED_WORKFLOWS, expected, findings);
    let mut locals = Vec::new();
    for entry in entries.unwrap_or_default() {
        names::check_key(entry, NameKind::Workflow, findings);
        if let Some(keys) = expect::table(entry, usize::MAX, "a table with `jobs`", findings) {
            let top = top_level::read(keys, Table::LocalWorkflow, findings);
            locals.push(Local { name: &entry.key, top });
        }
    }
    locals
}

/// Finds the called workflows of the file, and checks what the calls give them.
pub(super) fn resolve(
    jobs: &mut [UnresolvedJob<'_, '_>],
    entries: &[JobEntry<'_, '_>],
    locals: &[Local<'_, '_>],
    findings: &mut Findings,
) {
    for (unresolved, JobEntry { entry, .. }) in jobs.iter_mut().zip(entries) {
        let Action::Call(call) = &mut unresolved.job.action else { continue };
        call.called = locals.iter().position(|local| local.name == call.workflow);
        let Some(local) = call.called.and_then(|index| locals.get(index)) else { continue };
        check_params(call, &local.top.params, entry, findings);
    }
}

/// Reports each value of a call that does not fit the parameters of the called workflow. `job` is the job that calls it.
pub(super) fn check_params(call: &Call, declared: &[Param], job: &Entry<'_>, findings: &mut Findings) {
    for error in wrong_params(declared, &call.params) {
        findings.push(wrong_param(&error, call, job));
    }
}

/// Where a job names the workflow that it calls.
pub(super) fn span_of_called(job: &Entry<'_>) -> Span {
    entry_of(&job.node.value, "workflow").map_or(job.key_span.clone(), |workflow| workflow.node.span.clone())
}

/// The entry of a table with this key.
fn entry_of<'t, 's>(table: &'t Value<'s>, key: &str) -> Option<&'t Entry<'s>> {
    let Value::Table(entries) = table else { return None };
    entries.iter().find(|entry| entry.key == key)
}

fn wrong_param(error: &ParamError, call: &Call, job: &Entry<'_>) -> Finding {
    let part = |name: &str| entry_of(&job.node.value, name);
    let param = |name: &str| entry_of(&part("params")?.node.value, name);
    let of_call = span_of_called(job);
    let (job, called, given) = (&job.key, &call.workflow, &call.params);
    match error {
        ParamError::Unknown { name, .. } | ParamError::Repeated { name } => {
            let span = param(name).map_or(of_call, |param| param.key_span.clone());
            Finding::new(span, format!("`{called}`: {error}"))
        }
        ParamError::Invalid { name, reason } => {
            let span = param(name).map_or(of_call, |param| param.node.span.clone());
            let finding = Finding::new(span, format!("this value of `{name}` cannot be given to `{called}`"));
            let finding = finding.label(reason);
            match given.get(name) {
                Some(Json::Array(_)) => finding.help(format!(
                    "write a value of that type, or declare the parameter `{name}` of `{called}` with type = \"list\""
                )),
                Some(Json::Object(_)) => finding.help(
                    "no parameter takes a table; give one value for each parameter, or the table as JSON in quotes",
                ),
                Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_)) | None => finding,
            }
        }
        ParamError::Missing { name, .. } => {
            let message = format!("job `{job}` gives no value to the parameter `{name}` of `{called}`");
            Finding::new(of_call, message).help(format!(
                "write params = {{ {name} = … }} in the job, or give the parameter a `default` or required = false"
            ))
        }
    }
}

/// Reports workflows of the file that call themselves, and calls that are too deep.
pub(super) fn check(workflow: &Workflow, workflows: Option<&Entry<'_>>, findings: &mut Findings) {
    let Err(error) = check_depth(workflow) else {
        return;
    };
    let span = workflows.map_or(0..0, |entry| entry.key_span.clone());
    findings.push(Finding::new(span, error.to_string()));
}

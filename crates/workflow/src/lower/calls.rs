//! Reads `workflows`, and finds the workflows of the file that its jobs call.

use super::job::UnresolvedJob;
use super::tables::JobEntry;
use super::top_level::{self, TopLevel};
use crate::calls::{check_depth, check_given};
use crate::keys::Table;
use crate::kinds::Action;
use crate::kinds::call::Call;
use crate::model::Workflow;
use crate::names::{self, NameKind};
use crate::params::ParamError;
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
        if let Err(error) = check_given(&local.top.params, &call.params) {
            findings.push(wrong_param(&error, call, entry));
        }
    }
}

/// The entry of a table with this key.
fn entry_of<'t, 's>(table: &'t Value<'s>, key: &str) -> Option<&'t Entry<'s>> {
    let Value::Table(entries) = table else { return None };
    entries.iter().find(|entry| entry.key == key)
}

fn wrong_param(error: &ParamError, call: &Call, job: &Entry<'_>) -> Finding {
    let part = |name: &str| entry_of(&job.node.value, name);
    let param = |name: &str| entry_of(&part("params")?.node.value, name);
    let of_call: Span = part("workflow").map_or(job.key_span.clone(), |workflow| workflow.node.span.clone());
    let (job, called) = (&job.key, &call.workflow);
    match error {
        ParamError::Unknown { name, .. } | ParamError::Repeated { name } => {
            let span = param(name).map_or(of_call, |param| param.key_span.clone());
            Finding::new(span, format!("`{called}`: {error}"))
        }
        ParamError::Invalid { name, reason } => {
            let span = param(name).map_or(of_call, |param| param.node.span.clone());
            Finding::new(span, format!("this value of `{name}` cannot be given to `{called}`")).label(reason)
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

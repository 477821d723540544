//! Reads `requires`: the capabilities that a worker must have to execute a job.

use crate::job_names::JobNames;
use crate::names::{self, NameKind};
use crate::report::{Finding, Findings, Span};
use crate::tree::{Entry, Node, Value};
use crate::{expect, limits};

/// A required capability and where the file names it.
#[derive(Debug, Clone)]
pub(super) struct Requirement {
    pub(super) capability: String,
    span: Span,
}

/// Reads a list of names. The result is sorted and has no duplicates. A single name is a list of one.
pub(super) fn read(entry: &Entry<'_>, findings: &mut Findings) -> Option<Vec<Requirement>> {
    let items = match &entry.node.value {
        Value::Text(_) => std::slice::from_ref(&entry.node),
        Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken
        | Value::List(_)
        | Value::Table(_) => expect::list(entry, limits::CAPABILITIES, "a list of capabilities", findings)?,
    };
    let mut required: Vec<Requirement> = items.iter().filter_map(|item| read_item(item, findings)).collect();
    required.sort_by(|one, other| one.capability.cmp(&other.capability));
    required.dedup_by(|one, other| one.capability == other.capability);
    Some(required)
}

fn read_item(item: &Node<'_>, findings: &mut Findings) -> Option<Requirement> {
    let capability = expect::text(item, "an item of `requires`", findings)?;
    let is_name = names::check(capability, &item.span, NameKind::Capability, findings);
    is_name.then(|| Requirement { capability: capability.to_owned(), span: item.span.clone() })
}

/// Reports capabilities that are jobs of this file.
///
/// In other tools `requires` means what `needs` means here. Without this check, the job would wait forever for a worker
/// with that capability.
pub(super) fn check_not_jobs(requirements: &[Requirement], names: &JobNames<'_>, findings: &mut Findings) {
    let is_job = |requirement: &&Requirement| names.index(&requirement.capability).is_some();
    for requirement in requirements.iter().filter(is_job) {
        let capability = &requirement.capability;
        let message = format!("`requires` lists capabilities of workers, and `{capability}` is a job");
        findings.push(
            Finding::new(requirement.span.clone(), message)
                .label(format!("did you mean needs = [\"{capability}\"]?"))
                .help("a capability must not have the name of a job of this file"),
        );
    }
}

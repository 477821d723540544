//! `requires`: what a worker must have to see a job.

use super::expect;
use super::name::{self, Rule};
use crate::job_names::JobNames;
use crate::limits;
use crate::report::{Finding, Findings};
use crate::tree::{Entry, Node, Span, Value};

/// A capability and where it is written.
#[derive(Debug, Clone)]
pub(super) struct Required {
    pub(super) capability: String,
    span: Span,
}

/// A list of names, sorted, without duplicates; one name alone is a list of one.
pub(super) fn read(entry: &Entry<'_>, findings: &mut Findings) -> Option<Vec<Required>> {
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
    let mut required: Vec<Required> = items.iter().filter_map(|item| one(item, findings)).collect();
    required.sort_by(|one, other| one.capability.cmp(&other.capability));
    required.dedup_by(|one, other| one.capability == other.capability);
    Some(required)
}

fn one(item: &Node<'_>, findings: &mut Findings) -> Option<Required> {
    let capability = expect::text(item, "an item of `requires`", findings)?;
    let is_name = name::check(capability, &item.span, Rule::Capability, findings);
    is_name.then(|| Required { capability: capability.to_owned(), span: item.span.clone() })
}

/// Reports capabilities that are jobs of this file: elsewhere `requires` is what `needs` is here, and the job
/// would wait for ever for a worker that has them.
pub(super) fn check_not_jobs(required: &[Required], names: &JobNames<'_>, findings: &mut Findings) {
    for one in required.iter().filter(|one| names.index(&one.capability).is_some()) {
        let capability = &one.capability;
        let message = format!("`requires` lists capabilities of workers, and `{capability}` is a job");
        findings.push(
            Finding::new(one.span.clone(), message)
                .label(format!("did you mean needs = [\"{capability}\"]?"))
                .help("a capability needs a name that no job of the file has"),
        );
    }
}

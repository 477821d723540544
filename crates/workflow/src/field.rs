//! Checks of single fields of a workflow that a program made.

use std::ops::RangeInclusive;

use crate::expression::{Expression, Form, HasItems, HasWorkspace, Place, Reader, Scope};
use crate::job_names::JobNames;
use crate::limits;
use crate::names::{self, NameKind};
use crate::params::Param;
use crate::report::Findings;
use crate::support::Accepted;
use crate::template::{self, Read, Templates};

/// Why a workflow can't be used: the first error that was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct WorkflowError {
    /// The field, as in `jobs[3].needs[0]`.
    pub field: String,
    /// What is wrong with the field.
    pub reason: String,
}

impl WorkflowError {
    /// The same error for a field that lies inside `outer`.
    pub(crate) fn inside(self, outer: &str) -> WorkflowError {
        WorkflowError { field: format!("{outer}.{}", self.field), ..self }
    }
}

pub(crate) type Checked = Result<(), WorkflowError>;

/// The names that templates and expressions of a workflow can look up.
#[derive(Clone, Copy)]
pub(crate) struct KnownNames<'w> {
    pub(crate) params: &'w [Param],
    pub(crate) jobs: &'w JobNames<'w>,
    pub(crate) secrets: &'w [&'w str],
    pub(crate) reader: Reader,
    pub(crate) has_items: HasItems,
    pub(crate) has_workspace: HasWorkspace,
    pub(crate) accepted: Accepted,
}

pub(crate) fn refuse(field: impl Into<String>, reason: impl Into<String>) -> Checked {
    Err(WorkflowError { field: field.into(), reason: reason.into() })
}

/// Checks a list's length.
pub(crate) fn within(length: usize, limit: usize, field: &str) -> Checked {
    match length <= limit {
        true => Ok(()),
        false => refuse(field, format!("there are {length}; the limit is {limit}")),
    }
}

pub(crate) fn in_range(value: i64, allowed: RangeInclusive<i64>, field: &str) -> Checked {
    match allowed.contains(&value) {
        true => Ok(()),
        false => {
            refuse(field, format!("it is {value}, and must be {} to {}", allowed.start(), allowed.end()))
        }
    }
}

pub(crate) fn optional_duration(value_ms: Option<i64>, field: &str) -> Checked {
    value_ms.map_or(Ok(()), |value_ms| in_range(value_ms, 1..=limits::DURATION_MS, field))
}

pub(crate) fn name(name: &str, field: &str, kind: NameKind) -> Checked {
    let mut findings = Findings::default();
    names::check(name, &(0..0), kind, &mut findings);
    first_of(findings, field)
}

/// Checks that a process can be given the text, and that it has a usual length.
pub(crate) fn plain(text: &str, field: &str) -> Checked {
    up_to(text, limits::TEXT_BYTES, field)
}

pub(crate) fn optional(text: Option<&str>, field: &str) -> Checked {
    text.map_or(Ok(()), |text| plain(text, field))
}

/// Checks that a process can be given the text, and that it has at most `limit` bytes.
pub(crate) fn up_to(text: &str, limit: usize, field: &str) -> Checked {
    if text.len() > limit {
        return refuse(field, format!("it has {} bytes; the limit is {limit}", text.len()));
    }
    match text.contains('\0') {
        true => refuse(field, "it contains a NUL character, which no process can be given"),
        false => Ok(()),
    }
}

/// Checks that the text is more than white space.
pub(crate) fn filled(text: &str, field: &str) -> Checked {
    match text.trim().is_empty() {
        true => refuse(field, "it is empty"),
        false => plain(text, field),
    }
}

/// Checks the templates of a text. Returns the jobs that they read, as indices.
pub(crate) fn outputs_read(
    text: &str,
    field: &str,
    names: &KnownNames<'_>,
    place: Place,
) -> Result<Vec<usize>, WorkflowError> {
    if !template::is_template(text) {
        return Ok(Vec::new());
    }
    let mut templates = Templates::default();
    templates.add_text(text, place, Form::Template);
    let reads = check_texts(&templates, field, names)?;
    Ok(reads.into_iter().map(|read| read.job).collect())
}

/// Checks the names in an expression that may give any value.
pub(crate) fn value(expression: &Expression, field: &str, names: &KnownNames<'_>, place: Place) -> Checked {
    let mut templates = Templates::default();
    templates.add_value(expression.text(), place);
    check_texts(&templates, field, names).map(|_reads| ())
}

/// Checks the names and the type of a condition.
pub(crate) fn condition(
    expression: Option<&Expression>,
    field: &str,
    names: &KnownNames<'_>,
    place: Place,
) -> Checked {
    let Some(expression) = expression else { return Ok(()) };
    let mut templates = Templates::default();
    templates.add_text(expression.text(), place, Form::Bare);
    check_texts(&templates, field, names).map(|_reads| ())
}

fn check_texts(
    templates: &Templates<'_>,
    field: &str,
    names: &KnownNames<'_>,
) -> Result<Vec<Read>, WorkflowError> {
    let KnownNames { params, jobs, secrets, reader, has_items, has_workspace, accepted } = *names;
    let mut findings = Findings::of(accepted);
    let scope = Scope { file: "", params, jobs, secrets, reader, has_items, has_workspace };
    let reads = template::check(templates, &scope, &mut findings);
    first_of(findings, field)?;
    Ok(reads)
}

/// The first finding as an error about one field.
fn first_of(findings: Findings, field: &str) -> Checked {
    let Some(finding) = findings.into_first() else { return Ok(()) };
    let parts = [Some(finding.message), finding.label, finding.help];
    refuse(field, parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

//! Names and texts of a workflow that a program made.

use std::collections::BTreeMap;

use super::{Checked, first_of, refuse, within};
use crate::job_names::JobNames;
use crate::limits;
pub(super) use crate::lower::NameRule as Rule;
use crate::lower::{ENV_RESERVED, check_name};
use crate::model::Param;
use crate::report::Findings;
use crate::template::{self, Reader, Scope, Templates};

/// What the templates of a workflow can name.
pub(super) struct Texts<'w> {
    pub(super) params: &'w [Param],
    pub(super) names: &'w JobNames<'w>,
}

pub(super) fn name(name: &str, place: &str, rule: Rule) -> Checked {
    let mut findings = Findings::default();
    check_name(name, &(0..0), rule, &mut findings);
    first_of(findings, place)
}

/// A text that a program can be given.
pub(super) fn plain(text: &str, place: &str) -> Checked {
    up_to(text, limits::TEXT_BYTES, place)
}

pub(super) fn optional(text: Option<&str>, place: &str) -> Checked {
    text.map_or(Ok(()), |text| plain(text, place))
}

pub(super) fn up_to(text: &str, limit: usize, place: &str) -> Checked {
    if text.len() > limit {
        return refuse(place, format!("it has {} bytes; the limit is {limit}", text.len()));
    }
    match text.contains('\0') {
        true => refuse(place, "it contains a NUL character, which no program can be given"),
        false => Ok(()),
    }
}

/// A text that is not only white space.
pub(super) fn filled(text: &str, place: &str) -> Checked {
    match text.trim().is_empty() {
        true => refuse(place, "it is empty"),
        false => plain(text, place),
    }
}

/// The jobs whose outputs the templates of a text read, as indices.
pub(super) fn outputs_read(
    text: &str,
    place: &str,
    texts: &Texts<'_>,
    reader: Reader,
) -> Result<Vec<usize>, super::WorkflowError> {
    if !template::is_template(text) {
        return Ok(Vec::new());
    }
    let mut templates = Templates::default();
    templates.add_text(text);
    let mut findings = Findings::default();
    let scope = Scope { text: "", params: texts.params, names: texts.names, reader };
    let used = template::check(&templates, &scope, &mut findings);
    first_of(findings, place)?;
    Ok(used.into_iter().map(|used| used.job).collect())
}

/// The variables of an `env`. Returns the jobs whose outputs its values read.
pub(super) fn env(
    env: &BTreeMap<String, String>,
    place: &str,
    texts: &Texts<'_>,
    reader: Reader,
) -> Result<Vec<usize>, super::WorkflowError> {
    within(env.len(), limits::ENV_ENTRIES, place)?;
    let mut read = Vec::new();
    for (variable, value) in env {
        let place = format!("{place}[{variable:?}]");
        name(variable, &place, Rule::Variable)?;
        if variable.starts_with(ENV_RESERVED) {
            refuse(&place, format!("names that begin with {ENV_RESERVED} are set by the engine"))?;
        }
        plain(value, &place)?;
        read.extend(outputs_read(value, &place, texts, reader)?);
    }
    Ok(read)
}

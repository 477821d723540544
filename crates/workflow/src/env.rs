//! `env`: names and values for the environment of a process. A workflow has one, and so has each job of some kinds.

use std::collections::BTreeMap;

use crate::expression::Place;
use crate::field::{self, KnownNames, WorkflowError};
use crate::key::Key;
use crate::names::{self, NameKind};
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::{Entry, Value};
use crate::{expect, limits};

/// What other tools call `env`.
pub(crate) const ELSEWHERE: &[&str] = &["environment", "variables", "vars"];

/// Variables whose names begin with this are set by Windlass.
pub(crate) const RESERVED: &str = "WINDLASS_";

/// Reads an `env` table of a file. `key` is that of the workflow or that of a kind.
pub(crate) fn read<'t>(
    entry: &'t Entry<'_>,
    key: &Key,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    let expected = "a table of names and values";
    let Some(entries) = expect::table(entry, limits::ENV_ENTRIES, expected, findings) else { return env };
    for variable in entries {
        if !names::check_key(variable, NameKind::Variable, findings) {
            continue;
        }
        if !check_not_reserved(variable, findings) {
            continue;
        }
        if let Some(text) = value(variable, findings) {
            templates.add(&variable.node, key);
            env.insert(variable.key.to_string(), text);
        }
    }
    env
}

/// Whether a process may be given a variable with the name of this key. Reports an error if not.
pub(crate) fn check_not_reserved(variable: &Entry<'_>, findings: &mut Findings) -> bool {
    let is_reserved = variable.key.starts_with(RESERVED);
    if is_reserved {
        let message =
            format!("`{}` cannot be set: Windlass sets the names that begin with {RESERVED}", variable.key);
        findings.push(Finding::new(variable.key_span.clone(), message).help("choose another name"));
    }
    !is_reserved
}

/// Reads a value as text: a string, a number or a boolean.
pub(crate) fn value(variable: &Entry<'_>, findings: &mut Findings) -> Option<String> {
    let what = expect::quoted(variable);
    match &variable.node.value {
        Value::Text(_) => expect::text(&variable.node, &what, findings).map(str::to_owned),
        Value::Integer(integer) => Some(integer.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Boolean(boolean) => Some(boolean.to_string()),
        Value::Date(_) => {
            expect::wrong_type_help(
                &variable.node,
                &what,
                "a string, a number or a boolean",
                "put the date in quotes",
                findings,
            );
            None
        }
        Value::Null | Value::Broken | Value::List(_) | Value::Table(_) => {
            expect::wrong_type(&variable.node, &what, "a string, a number or a boolean", findings);
            None
        }
    }
}

/// Checks the variables that a program set. Returns the jobs whose outputs the values read, as indices.
pub(crate) fn check(
    env: &BTreeMap<String, String>,
    field: &str,
    names: &KnownNames<'_>,
    place: Place,
) -> Result<Vec<usize>, WorkflowError> {
    field::within(env.len(), limits::ENV_ENTRIES, field)?;
    let mut read = Vec::new();
    for (variable, value) in env {
        let field = format!("{field}[{variable:?}]");
        field::name(variable, &field, NameKind::Variable)?;
        if variable.starts_with(RESERVED) {
            field::refuse(
                &field,
                format!("Windlass sets the names that begin with {RESERVED}; choose another"),
            )?;
        }
        field::plain(value, &field)?;
        read.extend(field::outputs_read(value, &field, names, place)?);
    }
    Ok(read)
}

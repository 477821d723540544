//! `env`: names and values for the environment of a process.

use std::collections::BTreeMap;

use super::expect;
use super::name::{self, Rule};
use crate::limits;
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::{Entry, Value};

/// Names that begin so belong to the engine.
pub(crate) const RESERVED: &str = "WINDLASS_";

pub(super) fn read<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    let expected = "a table of names and values";
    let Some(entries) = expect::table(entry, limits::ENV_ENTRIES, expected, findings) else { return env };
    for variable in entries {
        if !name::check_key(variable, Rule::Variable, findings) {
            continue;
        }
        if variable.key.starts_with(RESERVED) {
            let message = format!("`{}` cannot be set: names in {RESERVED} are the engine's", variable.key);
            findings.push(Finding::new(variable.key_span.clone(), message).help("choose another name"));
            continue;
        }
        if let Some(text) = value_text(variable, findings) {
            templates.add(&variable.node);
            env.insert(variable.key.to_string(), text);
        }
    }
    env
}

fn value_text(variable: &Entry<'_>, findings: &mut Findings) -> Option<String> {
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

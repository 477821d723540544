//! Reads the keys of the kind `workflow`.

use serde_json::{Map, Value as Json};

use super::Call;
use crate::expression::Place;
use crate::key::{Key, ValueType};
use crate::kinds::{Action, Defaults};
use crate::names::{self, NameKind};
use crate::report::Findings;
use crate::template::Templates;
use crate::tree::{Entry, Node, Value};
use crate::{expect, limits, support};

pub(super) const OTHER_KEYS: &[Key] = &[PARAMS];

pub(super) const WORKFLOW: Key =
    Key::new("workflow", &[ValueType::Text], "a workflow of this file, of another file, or a registered one")
        .support(support::CALLS)
        .elsewhere(&["call", "uses", "subworkflow", "triggerdagid"]);
const PARAMS: Key = Key::new("params", &[ValueType::Values], "values of the called workflow's parameters")
    .support(support::CALLS)
    .template(Place::CallParams)
    .elsewhere(&["parameters", "with", "conf"]);

pub(super) fn read<'t>(
    keys: &[&'t Entry<'_>],
    _defaults: &Defaults,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Action> {
    let (mut workflow, mut params) = (None, Map::new());
    for entry in keys {
        match entry.key.as_ref() {
            "workflow" => workflow = expect::filled_text(&entry.node, "`workflow`", findings),
            "params" => params = read_params(entry, templates, findings),
            _ => (),
        }
    }
    Some(Action::Call(Call { params, ..Call::of(workflow?) }))
}

fn read_params<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Map<String, Json> {
    let mut params = Map::new();
    let expected = "a table of names and values";
    for param in expect::table(entry, limits::PARAMS, expected, findings).unwrap_or_default() {
        if !names::check_key(param, NameKind::Param, findings) {
            continue;
        }
        templates.add(&param.node, &PARAMS);
        match json(&param.node) {
            Some(value) => drop(params.insert(param.key.to_string(), value)),
            None => expect::wrong_type(&param.node, &expect::quoted(param), "a value", findings),
        }
    }
    params
}

/// The value as JSON. Dates are texts. Nothing for null, and for a value that was reported before.
fn json(node: &Node<'_>) -> Option<Json> {
    Some(match &node.value {
        Value::Text(text) => Json::from(text.as_ref()),
        Value::Integer(integer) => Json::from(*integer),
        Value::Number(number) => Json::from(*number),
        Value::Boolean(boolean) => Json::from(*boolean),
        Value::Date(date) => Json::from(date.to_string()),
        Value::List(items) => items.iter().map(json).collect::<Option<Vec<Json>>>()?.into(),
        Value::Table(entries) => {
            let pairs = entries.iter().map(|entry| Some((entry.key.to_string(), json(&entry.node)?)));
            Json::Object(pairs.collect::<Option<Map<String, Json>>>()?)
        }
        Value::Null | Value::Broken => return None,
    })
}

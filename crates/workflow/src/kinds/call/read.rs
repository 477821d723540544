//! Reads the keys of the kind `workflow`.

use serde_json::{Map, Value as Json};

use super::Call;
use crate::expression::Place;
use crate::key::{Key, ValueType};
use crate::kinds::{Action, Defaults, read_json};
use crate::names::{self, NameKind};
use crate::report::Findings;
use crate::template::Templates;
use crate::tree::{Entry, Value};
use crate::{expect, limits, support};

pub(super) const OTHER_KEYS: &[Key] = &[PARAMS];

pub(super) const WORKFLOW: Key =
    Key::new("workflow", &[ValueType::Text], "a workflow of this file, of another file, or a registered one")
        .support(support::CALLS)
        .elsewhere(&["call", "uses", "subworkflow", "triggerdagid"]);
const PARAMS: Key = Key::new("params", &[ValueType::AnyValues], "values of the called workflow's parameters")
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
        if matches!(param.node.value, Value::Null) {
            expect::wrong_type(&param.node, &expect::quoted(param), "a value", findings);
        } else if let Some(value) = read_json(&param.node, &PARAMS, templates, findings) {
            params.insert(param.key.to_string(), value);
        }
    }
    params
}

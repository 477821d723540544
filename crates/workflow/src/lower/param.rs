//! `params`: the typed parameters of a workflow.

use std::collections::HashMap;

use super::expect;
use super::keys;
use super::name::{self, Rule};
use crate::limits;
use crate::model::{Param, ParamKind};
use crate::params::{self, Supplied};
use crate::report::{Finding, Findings};
use crate::tree::{Entry, Node, Span, Value};

const KINDS: [(&str, ParamKind); 6] = [
    ("string", ParamKind::String),
    ("integer", ParamKind::Integer),
    ("number", ParamKind::Number),
    ("boolean", ParamKind::Boolean),
    ("date", ParamKind::Date),
    ("choice", ParamKind::Choice),
];

pub(super) fn read_all(entry: &Entry<'_>, findings: &mut Findings) -> Vec<Param> {
    let expected = "a table of names and parameters";
    let Some(entries) = expect::table(entry, limits::PARAMS, expected, findings) else { return Vec::new() };
    check_variables(entries, findings);
    entries.iter().filter_map(|entry| read(entry, findings)).collect()
}

/// `day` and `DAY` would be one environment variable.
fn check_variables(entries: &[Entry<'_>], findings: &mut Findings) {
    let mut seen: HashMap<String, &Entry<'_>> = HashMap::new();
    for entry in entries {
        let variable = params::env_name(&entry.key);
        match seen.get(&variable) {
            Some(first) => findings.push(
                Finding::new(
                    entry.key_span.clone(),
                    format!("parameters `{}` and `{}` are the same variable", first.key, entry.key),
                )
                .label(format!("both are {variable} in the environment of jobs"))
                .related(first.key_span.clone(), "the first one")
                .help("rename one of them"),
            ),
            None => {
                seen.insert(variable, entry);
            }
        }
    }
}

/// What the table of a parameter says.
#[derive(Default)]
struct Parts<'t, 's> {
    kind: Option<ParamKind>,
    description: Option<String>,
    default: Option<&'t Node<'s>>,
    required: Option<(bool, Span)>,
    choices: Option<(Vec<String>, Span)>,
    is_broken: bool,
}

fn read(entry: &Entry<'_>, findings: &mut Findings) -> Option<Param> {
    let mut parts = Parts { is_broken: !name::check_key(entry, Rule::Param, findings), ..Parts::default() };
    let expected = "a table like { type = \"string\", default = \"x\" }";
    for part in expect::table(entry, usize::MAX, expected, findings)? {
        match part.key.as_ref() {
            "type" => {
                parts.kind = expect::word(part, &KINDS, findings);
                parts.is_broken |= parts.kind.is_none();
            }
            "description" => {
                parts.description = expect::text(&part.node, "`description`", findings).map(str::to_owned);
            }
            "default" => parts.default = Some(&part.node),
            "required" => {
                parts.required =
                    expect::boolean(part, findings).map(|required| (required, part.key_span.clone()));
            }
            "choices" => {
                let choices = read_choices(part, findings);
                parts.is_broken |= choices.is_none();
                parts.choices = choices.map(|choices| (choices, part.key_span.clone()));
            }
            _ => {
                keys::unknown(part, "a parameter", &keys::PARAM, findings);
            }
        }
    }
    complete(entry, parts, findings)
}

fn complete(entry: &Entry<'_>, parts: Parts<'_, '_>, findings: &mut Findings) -> Option<Param> {
    // `choices` alone says what it is.
    let kind = parts.kind.unwrap_or(match parts.choices {
        Some(_) => ParamKind::Choice,
        None => ParamKind::String,
    });
    match (&parts.choices, kind) {
        (Some((_, span)), kind) if kind != ParamKind::Choice => {
            let finding = Finding::new(span.clone(), "`choices` is only for the type \"choice\"");
            findings.push(finding.help("write type = \"choice\", or remove `choices`"));
        }
        (None, ParamKind::Choice) if !parts.is_broken => {
            let message = format!("parameter `{}` is a choice without `choices`", entry.key);
            let help = "add `choices`, a list of strings";
            findings.push(Finding::new(entry.key_span.clone(), message).help(help));
            return None;
        }
        _ => (),
    }
    if let (Some(_), Some((true, span))) = (parts.default, &parts.required) {
        let message = format!("parameter `{}` is required and has a default", entry.key);
        let help = "remove `required` or `default`: with a default it never has to be given";
        findings.push(Finding::new(span.clone(), message).help(help));
    }
    let mut param = Param {
        name: entry.key.to_string(),
        kind,
        description: parts.description,
        default: None,
        required: parts.required.map_or(parts.default.is_none(), |(required, _)| required),
        choices: parts.choices.map(|(choices, _)| choices).unwrap_or_default(),
    };
    if let Some(node) = parts.default
        && !parts.is_broken
    {
        param.default = read_default(node, &param, findings);
    }
    Some(param)
}

fn read_choices(entry: &Entry<'_>, findings: &mut Findings) -> Option<Vec<String>> {
    let items = expect::list(entry, limits::CHOICES, "a list of strings", findings)?;
    let mut choices: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        let choice = expect::text(item, "an item of `choices`", findings)?.to_owned();
        if choices.contains(&choice) {
            findings.push(Finding::new(item.span.clone(), format!("the choice \"{choice}\" is there twice")));
        }
        choices.push(choice);
    }
    if choices.is_empty() {
        findings.push(Finding::new(entry.node.span.clone(), "`choices` is empty"));
        return None;
    }
    Some(choices)
}

/// The value, if it is of a kind that parameters have.
pub(super) fn scalar(node: &Node<'_>) -> Option<serde_json::Value> {
    match &node.value {
        Value::Text(text) => Some(serde_json::Value::from(text.as_ref())),
        Value::Date(text) => Some(serde_json::Value::from(text.as_str())),
        Value::Integer(integer) => Some(serde_json::Value::from(*integer)),
        Value::Number(number) => Some(serde_json::Value::from(*number)),
        Value::Boolean(boolean) => Some(serde_json::Value::from(*boolean)),
        Value::Null | Value::Broken | Value::List(_) | Value::Table(_) => None,
    }
}

/// A default follows the rules of a value that is given.
fn read_default(node: &Node<'_>, param: &Param, findings: &mut Findings) -> Option<serde_json::Value> {
    let Some(json) = scalar(node) else {
        expect::wrong_type(node, "`default`", params::expectation(param.kind), findings);
        return None;
    };
    match params::convert(param, Supplied::Json(json)) {
        Ok(value) => Some(value),
        Err(reason) => {
            let message = format!("the default of `{}` is not of its type", param.name);
            findings.push(Finding::new(node.span.clone(), message).label(reason));
            None
        }
    }
}

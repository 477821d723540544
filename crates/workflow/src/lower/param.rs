//! Reads `params`: the typed parameters of a workflow.

use std::collections::HashMap;

use crate::keys::{self, Table};
use crate::names::{self, NameKind};
use crate::params::{self, Param, ParamKind, Supplied};
use crate::report::{Finding, Findings, Span};
use crate::tree::{Entry, Node, Value};
use crate::{expect, limits, template};

const KINDS: [(&str, ParamKind); 9] = [
    ("string", ParamKind::String),
    ("integer", ParamKind::Integer),
    ("number", ParamKind::Number),
    ("boolean", ParamKind::Boolean),
    ("date", ParamKind::Date),
    ("datetime", ParamKind::Datetime),
    ("duration", ParamKind::Duration),
    ("choice", ParamKind::Choice),
    ("list", ParamKind::List),
];

pub(crate) fn read_all(entry: &Entry<'_>, findings: &mut Findings) -> Vec<Param> {
    let expected = "a table of names and parameters";
    let Some(entries) = expect::table(entry, limits::PARAMS, expected, findings) else { return Vec::new() };
    check_variables(entries, findings);
    entries.iter().filter_map(|entry| read(entry, findings)).collect()
}

/// Reports parameters that have the same environment variable, as `day` and `DAY` would.
fn check_variables(entries: &[Entry<'_>], findings: &mut Findings) {
    let mut seen: HashMap<String, &Entry<'_>> = HashMap::new();
    for entry in entries {
        let variable = params::env_name(&entry.key);
        match seen.get(&variable) {
            Some(first) => findings.push(
                Finding::new(
                    entry.key_span.clone(),
                    format!("parameters `{}` and `{}` have the same variable", first.key, entry.key),
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

/// The values of a parameter's table.
#[derive(Default)]
struct ParamTable<'t, 's> {
    kind: Option<ParamKind>,
    description: Option<String>,
    default: Option<&'t Node<'s>>,
    required: Option<(bool, Span)>,
    choices: Option<(Vec<String>, Span)>,
    /// A value is wrong, which was reported.
    is_wrong: bool,
}

fn read(entry: &Entry<'_>, findings: &mut Findings) -> Option<Param> {
    let mut table =
        ParamTable { is_wrong: !names::check_key(entry, NameKind::Param, findings), ..ParamTable::default() };
    let expected = "a table like { type = \"string\", default = \"x\" }";
    for part in expect::table(entry, usize::MAX, expected, findings)? {
        let Ok(key) = keys::find(part, Table::Param, findings) else { continue };
        match key.name() {
            "type" => {
                table.kind = expect::word(part, &KINDS, findings);
                table.is_wrong |= table.kind.is_none();
            }
            "description" => {
                table.description = expect::text(&part.node, "`description`", findings).map(str::to_owned);
            }
            "default" => table.default = Some(&part.node),
            "required" => {
                table.required =
                    expect::boolean(part, findings).map(|required| (required, part.key_span.clone()));
            }
            "choices" => {
                let choices = read_choices(part, findings);
                table.is_wrong |= choices.is_none();
                table.choices = choices.map(|choices| (choices, part.key_span.clone()));
            }
            _ => (),
        }
    }
    complete(entry, table, findings)
}

fn complete(entry: &Entry<'_>, table: ParamTable<'_, '_>, findings: &mut Findings) -> Option<Param> {
    // A table with `choices` needs no `type`.
    let kind = table.kind.unwrap_or(match table.choices {
        Some(_) => ParamKind::Choice,
        None => ParamKind::String,
    });
    match (&table.choices, kind) {
        (Some((_, span)), kind) if kind != ParamKind::Choice => {
            let finding = Finding::new(span.clone(), "only the type \"choice\" has `choices`");
            findings.push(finding.help("write type = \"choice\", or remove `choices`"));
        }
        (None, ParamKind::Choice) if !table.is_wrong => {
            let message = format!("parameter `{}` is a choice without `choices`", entry.key);
            let help = "add `choices`, a list of strings";
            findings.push(Finding::new(entry.key_span.clone(), message).help(help));
            return None;
        }
        (Some(_), _) | (None, _) => (),
    }
    if let (Some(_), Some((true, span))) = (table.default, &table.required) {
        let message = format!("parameter `{}` is required and has a default", entry.key);
        let help = "remove `required` or `default`; a parameter with a default is never required";
        findings.push(Finding::new(span.clone(), message).help(help));
    }
    let mut param = Param {
        name: entry.key.to_string(),
        kind,
        description: table.description,
        default: None,
        required: table.required.map_or(table.default.is_none(), |(required, _)| required),
        choices: table.choices.map(|(choices, _)| choices).unwrap_or_default(),
    };
    if let Some(node) = table.default
        && !table.is_wrong
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

/// The value as JSON, if a parameter can have such a value.
pub(super) fn value(node: &Node<'_>) -> Option<serde_json::Value> {
    match &node.value {
        Value::Text(_)
        | Value::Date(_)
        | Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::List(_) => node.to_json(),
        Value::Null | Value::Broken | Value::Table(_) => None,
    }
}

/// Reports the templates in a list: in `params` of schedules and triggers, only a text that is no item is rendered.
pub(super) fn refuse_templates_in_list(node: &Node<'_>, findings: &mut Findings) {
    let Value::List(items) = &node.value else { return };
    items.iter().for_each(|item| refuse_templates(item, findings));
}

// The depth of a tree is limited.
fn refuse_templates(node: &Node<'_>, findings: &mut Findings) {
    match &node.value {
        Value::Text(text) if template::is_template(text) => findings.push(
            Finding::new(node.span.clone(), "a template that is an item of a list is not rendered here")
                .help("write the list as one text with commas, like \"a,{{ … }}\""),
        ),
        Value::List(items) => items.iter().for_each(|item| refuse_templates(item, findings)),
        Value::Table(entries) => entries.iter().for_each(|entry| refuse_templates(&entry.node, findings)),
        Value::Text(_)
        | Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken => (),
    }
}

/// Reads a default. It follows the same rules as a value that is given to a run.
fn read_default(node: &Node<'_>, param: &Param, findings: &mut Findings) -> Option<serde_json::Value> {
    let Some(json) = value(node) else {
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

//! Reads `triggers`: what starts a run of the workflow besides a person and a schedule.

use std::collections::HashMap;

use serde_json::Map;

use super::param;
use super::top_level::TopLevel;
use crate::expect;
use crate::expression::{HasItems, HasWorkspace, Place, Reader, Scope};
use crate::job_names::JobNames;
use crate::keys::{self, TRIGGER_IF, TRIGGER_PARAMS, Table};
use crate::limits;
use crate::names::{self, NameKind};
use crate::params::ParamError;
use crate::report::{Finding, Findings, Span};
use crate::template::{self, Templates};
use crate::tree::{Entry, Node, Value};
use crate::trigger::{DEFAULT_TRIGGER, EndStatus, Trigger, TriggerSource};

pub(super) fn read_all(
    file: &str,
    workflow: &str,
    top: &TopLevel<'_, '_>,
    names: &JobNames<'_>,
    findings: &mut Findings,
) -> Vec<Trigger> {
    let Some(entry) = top.triggers else { return Vec::new() };
    let scope = Scope {
        file,
        params: &top.params,
        jobs: names,
        secrets: &[],
        reader: Reader::Workflow,
        has_items: HasItems::No,
        has_workspace: HasWorkspace::No,
    };
    if let Value::Table(_) = entry.node.value {
        let help = "begin each trigger with [[triggers]], and write its name as `name`";
        expect::wrong_type_help(&entry.node, "`triggers`", "a list of triggers", help, findings);
        return Vec::new();
    }
    let items = expect::list(entry, limits::TRIGGERS, "a list of triggers", findings).unwrap_or_default();
    let mut seen: HashMap<String, Span> = HashMap::new();
    let mut triggers = Vec::with_capacity(items.len());
    for item in items {
        let Some(trigger) = read(item, workflow, &scope, findings) else { continue };
        if let Some(first) = seen.insert(trigger.name.clone(), item.span.clone()) {
            let message = format!("two triggers have the name `{}`", trigger.name);
            let finding = Finding::new(item.span.clone(), message).related(first, "the first one");
            let finding = match trigger.name.as_str() {
                DEFAULT_TRIGGER => {
                    finding.label(format!("a trigger without `name` is called `{DEFAULT_TRIGGER}`"))
                }
                _ => finding,
            };
            findings.push(finding.help("give each trigger a `name` of its own"));
        }
        triggers.push(trigger);
    }
    triggers
}

fn read(item: &Node<'_>, workflow: &str, scope: &Scope<'_>, findings: &mut Findings) -> Option<Trigger> {
    let Value::Table(entries) = &item.value else {
        expect::wrong_type(item, "a trigger", "a table with `event` or `after`", findings);
        return None;
    };
    let before = findings.count();
    let mut trigger = Trigger {
        name: DEFAULT_TRIGGER.to_owned(),
        source: TriggerSource::RunEnd { after: Vec::new(), status: Vec::new() },
        condition: None,
        params: Map::new(),
    };
    let (mut event, mut key, mut after, mut status) = (None, None, None, None);
    let (mut templates, mut params): (Templates<'_>, &[Entry<'_>]) = (Templates::default(), &[]);
    for part in entries {
        let Ok(known) = keys::find(part, Table::Trigger, findings) else { continue };
        let text = |findings: &mut Findings| {
            expect::filled_text(&part.node, &expect::quoted(part), findings).map(str::to_owned)
        };
        match known.name() {
            "name" => trigger.name = name(part, NameKind::Trigger, findings).unwrap_or_default(),
            "event" => event = Some((part, name(part, NameKind::Event, findings).unwrap_or_default())),
            "key" => {
                let text = text(findings).unwrap_or_default();
                if template::is_template(&text) {
                    let message =
                        "`key` of a trigger is no template, so the braces would be a part of the key";
                    let help = "leave it out, and compare the key in `if`, as in if = \"event.key == 'a'\"";
                    findings.push(Finding::new(part.node.span.clone(), message).help(help));
                }
                key = Some((part, text));
            }
            "after" => after = Some((part, patterns(part, workflow, findings))),
            "status" => status = Some((part, states(part, findings))),
            "if" => trigger.condition = expect::expression(part, &TRIGGER_IF, &mut templates, findings),
            "params" => {
                let table = expect::table(part, limits::PARAMS, "a table of names and values", findings);
                params = table.unwrap_or_default();
            }
            _ => (),
        }
    }
    let is_wrong = findings.count() > before;
    for (part, other) in
        [(&key.as_ref().map(|(part, _)| *part), "event"), (&status.as_ref().map(|(part, _)| *part), "after")]
    {
        let has_other = if other == "event" { event.is_some() } else { after.is_some() };
        if let Some(part) = part
            && !has_other
            && !is_wrong
        {
            let message = format!("`{}` has no effect without `{other}`", part.key);
            findings.push(
                Finding::new(part.key_span.clone(), message).help(format!("add `{other}`, or remove it")),
            );
        }
    }
    trigger.source = match (event, after) {
        (Some((_, event)), None) => TriggerSource::Event { event, key: key.map(|(_, key)| key) },
        (None, Some((_, after))) => {
            templates.move_all(Place::Trigger, Place::RunEndTrigger);
            TriggerSource::RunEnd { after, status: status.map(|(_, status)| status).unwrap_or_default() }
        }
        (Some((event, _)), Some((after, _))) => {
            let message = "a trigger has both `event` and `after`";
            let finding =
                Finding::new(after.key_span.clone(), message).related(event.key_span.clone(), "the event");
            findings.push(finding.help("keep one of them, or write two triggers"));
            return None;
        }
        (None, None) => {
            if !is_wrong {
                let finding = Finding::new(item.span.clone(), "this trigger does not say what starts a run");
                findings.push(finding.label("needs `event` or `after`").help(
                    "write event = \"push\" for `windlass signal push`, or after = [\"nightly-*\"] for the ends of other runs",
                ));
            }
            return None;
        }
    };
    template::check(&templates, scope, findings);
    read_params(&mut trigger, item, params, scope, findings);
    (findings.count() == before).then_some(trigger)
}

fn name(entry: &Entry<'_>, kind: NameKind, findings: &mut Findings) -> Option<String> {
    let text = expect::text(&entry.node, &expect::quoted(entry), findings)?;
    names::check(text, &entry.node.span, kind, findings).then(|| text.to_owned())
}

/// A list of texts. A single text is a list of one.
fn texts<'t, 's>(entry: &'t Entry<'s>, expected: &str, findings: &mut Findings) -> &'t [Node<'s>] {
    if let Value::Text(_) = &entry.node.value {
        return std::slice::from_ref(&entry.node);
    }
    let items = expect::list(entry, limits::TRIGGER_PATTERNS, expected, findings).unwrap_or_default();
    if items.is_empty() && matches!(entry.node.value, Value::List(_)) {
        findings.push(Finding::new(entry.node.span.clone(), format!("`{}` is empty", entry.key)));
    }
    items
}

fn patterns(entry: &Entry<'_>, workflow: &str, findings: &mut Findings) -> Vec<String> {
    let mut patterns = Vec::new();
    for item in texts(entry, "a list of names of workflows", findings) {
        let Some(pattern) = expect::filled_text(item, "an item of `after`", findings) else { continue };
        if let Some(fault) = pattern_fault(pattern, workflow) {
            findings.push(Finding::new(item.span.clone(), fault).help(
                "write the names of other workflows; `*` stands for any characters, and never means the workflow itself",
            ));
        }
        patterns.push(pattern.to_owned());
    }
    patterns
}

/// Why a pattern is wrong in a trigger of a workflow.
pub(crate) fn pattern_fault(pattern: &str, workflow: &str) -> Option<String> {
    if pattern == workflow {
        return Some(format!(
            "a workflow can't start after its own runs: `{workflow}` would start itself again and again"
        ));
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*');
    let is_right =
        !pattern.is_empty() && pattern.len() <= limits::NAME_CHARS && pattern.chars().all(is_allowed);
    (!is_right).then(|| "this is not a name of a workflow, or a pattern".to_owned())
}

fn states(entry: &Entry<'_>, findings: &mut Findings) -> Vec<EndStatus> {
    let mut states = Vec::new();
    for item in texts(entry, "a list of \"SUCCESSFUL\", \"FAILED\" and \"CANCELLED\"", findings) {
        let Some(text) = expect::text(item, "an item of `status`", findings) else { continue };
        match EndStatus::ALL.into_iter().find(|status| status.as_str() == text) {
            Some(status) => states.push(status),
            None => {
                let label = "must be one of \"SUCCESSFUL\", \"FAILED\", \"CANCELLED\"";
                findings
                    .push(Finding::new(item.span.clone(), format!("no run ends as \"{text}\"")).label(label));
            }
        }
    }
    states
}

fn read_params(
    trigger: &mut Trigger,
    item: &Node<'_>,
    params: &[Entry<'_>],
    scope: &Scope<'_>,
    findings: &mut Findings,
) {
    let before = findings.count();
    for entry in params {
        let mut templates = Templates::default();
        templates.add(&entry.node, &TRIGGER_PARAMS);
        if let TriggerSource::RunEnd { .. } = trigger.source {
            templates.move_all(Place::Trigger, Place::RunEndTrigger);
        }
        template::check(&templates, scope, findings);
        param::refuse_templates_in_list(&entry.node, findings);
        match param::value(&entry.node) {
            Some(value) => drop(trigger.params.insert(entry.key.to_string(), value)),
            None => {
                let what = format!("the value of `{}`", entry.key);
                let expected = "a string, a number, a boolean, a date or a list";
                expect::wrong_type(&entry.node, &what, expected, findings);
            }
        }
    }
    if findings.count() > before {
        return;
    }
    for error in trigger.check_params(scope.params).err().unwrap_or_default() {
        let message = error.to_string();
        let place = |name: &str| params.iter().find(|entry| entry.key == name);
        findings.push(match error {
            ParamError::Unknown { name, .. } | ParamError::Repeated { name } | ParamError::Invalid { name, .. } => {
                Finding::new(place(&name).map_or(item.span.clone(), |entry| entry.node.span.clone()), message)
            }
            ParamError::Missing { name, .. } => {
                let message = format!("trigger `{}` gives no value to the parameter `{name}`", trigger.name);
                Finding::new(item.span.clone(), message).help(format!(
                    "write params = {{ {name} = … }} in the trigger, or give the parameter a `default` or required = false"
                ))
            }
        });
    }
}

//! Reads the top level of a file.

use std::collections::BTreeMap;

use super::concurrency::{self, RunConcurrency};
use super::job::JobDefaults;
use super::outputs::{self, Outputs};
use super::{param, secret, workspace};
use crate::expect::{self, ShortestDuration};
use crate::keys::{self, Table, WORKFLOW_ENV};
use crate::model::{KeepWorkspace, RunHandler, Secret};
use crate::names::{self, NameKind, workflow_name_fault};
use crate::params::Param;
use crate::report::{Finding, Findings, Span};
use crate::source::Source;
use crate::template::Templates;
use crate::tree::{Entry, Value};
use crate::{env, include, kinds, limits};

/// The values of the top level.
#[derive(Default)]
pub(super) struct TopLevel<'t, 's> {
    name: Option<(String, Span)>,
    pub(super) description: Option<String>,
    pub(super) timeout_ms: Option<i64>,
    pub(super) params: Vec<Param>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) defaults: JobDefaults,
    /// The templates in `env` and `[defaults]`, which belong to no single job.
    pub(super) templates: Templates<'t>,
    pub(super) schedules: Option<&'t Entry<'s>>,
    pub(super) triggers: Option<&'t Entry<'s>>,
    pub(super) tags: Vec<String>,
    pub(super) secrets: Vec<Secret>,
    pub(super) outputs: Outputs<'t>,
    pub(super) workflows: Option<&'t Entry<'s>>,
    pub(super) workspace: Option<KeepWorkspace>,
    pub(super) concurrency: Option<RunConcurrency>,
    pub(super) jobs: Option<&'t Entry<'s>>,
    /// The tables of handlers that the file has, in the order of the phases.
    pub(super) handlers: Vec<(RunHandler, &'t Entry<'s>)>,
}

/// Reads the keys of a workflow: of the file, or of one of its `workflows`.
pub(super) fn read<'t, 's>(root: &'t [Entry<'s>], table: Table, findings: &mut Findings) -> TopLevel<'t, 's> {
    let mut top = TopLevel::default();
    for entry in root {
        let Ok(key) = keys::find(entry, table, findings) else { continue };
        match key.name() {
            "name" => {
                let name = expect::text(&entry.node, "`name`", findings).unwrap_or("unnamed");
                top.name = Some((name.to_owned(), entry.node.span.clone()));
            }
            "description" => {
                top.description = expect::text(&entry.node, "`description`", findings).map(str::to_owned);
            }
            "timeout" => {
                top.timeout_ms = expect::duration_ms(entry, ShortestDuration::OneMillisecond, findings);
            }
            "params" => top.params = param::read_all(entry, findings),
            "env" => top.env = env::read(entry, &WORKFLOW_ENV, &mut top.templates, findings),
            "defaults" => top.defaults = read_defaults(entry, &mut top.templates, findings),
            "schedules" => top.schedules = Some(entry),
            "triggers" => top.triggers = Some(entry),
            "jobs" => top.jobs = Some(entry),
            "outputs" => top.outputs = outputs::read(entry, findings),
            "workflows" => top.workflows = Some(entry),
            "include" => include::check(entry, findings),
            "tags" => top.tags = read_tags(entry, findings),
            "secrets" => top.secrets = secret::read_all(entry, findings),
            "concurrency" => {
                top.concurrency = concurrency::read_of_runs(entry, &mut top.templates, findings);
            }
            "workspace" => top.workspace = workspace::read(entry, findings),
            name => {
                let handler = RunHandler::ALL.into_iter().find(|handler| handler.key() == name);
                top.handlers.extend(handler.map(|handler| (handler, entry)));
            }
        }
    }
    top.handlers.sort_by_key(|(handler, _)| RunHandler::ALL.iter().position(|known| known == handler));
    top
}

fn read_defaults<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> JobDefaults {
    let mut defaults = JobDefaults::default();
    let expected = "a table of settings for all jobs";
    for part in expect::table(entry, usize::MAX, expected, findings).unwrap_or_default() {
        let Ok(key) = keys::find(part, Table::Defaults, findings) else { continue };
        match kinds::is_key(key.name()) {
            true => defaults.kinds.read(part, templates, findings),
            false => defaults.settings.take(part, templates, findings),
        }
    }
    defaults
}

/// The workflow's name: the key `name`, or the file's name without its extension.
pub(super) fn workflow_name(source: &Source, top: &TopLevel<'_, '_>, findings: &mut Findings) -> String {
    let (name, span) = match &top.name {
        Some((name, span)) => (name.as_str(), Some(span.clone())),
        None => (source.stem(), None),
    };
    let Some(reason) = workflow_name_fault(name) else { return name.to_owned() };
    let finding = match span {
        Some(span) => Finding::new(span, "this is not a valid name for a workflow").label(reason),
        None => {
            Finding::without_position(format!("the file's name is not a valid name for a workflow: {reason}"))
                .help("give the workflow a `name` in the file")
        }
    };
    findings.push(finding);
    name.to_owned()
}

/// Reads `tags`. A single tag is a list of one.
fn read_tags(entry: &Entry<'_>, findings: &mut Findings) -> Vec<String> {
    let items = match &entry.node.value {
        Value::Text(_) => Some(std::slice::from_ref(&entry.node)),
        Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken
        | Value::List(_)
        | Value::Table(_) => expect::list(entry, limits::TAGS, "a list of strings", findings),
    };
    let mut tags: Vec<String> = Vec::new();
    for item in items.unwrap_or_default() {
        let Some(tag) = expect::text(item, "an item of `tags`", findings) else { continue };
        if !names::check(tag, &item.span, NameKind::Tag, findings) {
            continue;
        }
        if tags.iter().any(|known| known == tag) {
            let finding = Finding::new(item.span.clone(), format!("the tag `{tag}` is there twice"));
            findings.push(finding.help("remove one of them"));
        }
        tags.push(tag.to_owned());
    }
    tags.sort_unstable();
    tags.dedup();
    tags
}

//! Reads the top level of a file.

use std::collections::BTreeMap;

use super::job::JobDefaults;
use super::param;
use crate::expect::{self, ShortestDuration};
use crate::keys::{self, Table, WORKFLOW_ENV};
use crate::names::workflow_name_fault;
use crate::params::Param;
use crate::report::{Finding, Findings, Span};
use crate::source::Source;
use crate::template::Templates;
use crate::tree::{Entry, Value};
use crate::{env, kinds, limits};

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
    jobs: Option<&'t Entry<'s>>,
}

pub(super) fn read<'t, 's>(root: &'t [Entry<'s>], findings: &mut Findings) -> TopLevel<'t, 's> {
    let mut top = TopLevel::default();
    for entry in root {
        let Ok(key) = keys::find(entry, Table::Workflow, findings) else { continue };
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
            "jobs" => top.jobs = Some(entry),
            _ => (),
        }
    }
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

/// The entries of `jobs`. There is at least one, and at most [`limits::JOBS`].
pub(super) fn jobs<'t, 's>(top: &TopLevel<'t, 's>, findings: &mut Findings) -> Option<&'t [Entry<'s>]> {
    let help = || {
        format!(
            "define one under `jobs`: a table with the job's name, and in it {}",
            kinds::action_keys_text()
        )
    };
    let Some(jobs) = top.jobs else {
        findings.push(Finding::without_position("the workflow has no jobs").help(help()));
        return None;
    };
    let Value::Table(entries) = &jobs.node.value else {
        expect::wrong_type_help(&jobs.node, "`jobs`", "a table of names and jobs", help(), findings);
        return None;
    };
    if entries.is_empty() {
        findings.push(Finding::new(jobs.key_span.clone(), "the workflow has no jobs").help(help()));
        return None;
    }
    if entries.len() > limits::JOBS {
        findings.push(
            Finding::new(jobs.key_span.clone(), format!("the workflow has {} jobs", entries.len()))
                .label(format!("the limit is {}", limits::JOBS))
                .help("split the workflow into several"),
        );
        return None;
    }
    Some(entries)
}

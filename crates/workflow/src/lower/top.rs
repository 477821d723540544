//! The top level of a file.

use std::collections::BTreeMap;

use super::expect::{self, Least};
use super::settings::{Settings, Taken};
use super::{env, keys, param};
use crate::limits;
use crate::model::Param;
use crate::report::{Finding, Findings};
use crate::source::Source;
use crate::template::Templates;
use crate::tree::{Entry, Span, Value};

const JOB_HELP: &str = "define one under `jobs`: a table with the job's name, and in it `run` or `command`";

/// What the top level says.
#[derive(Default)]
pub(super) struct Top<'t, 's> {
    name: Option<(String, Span)>,
    pub(super) description: Option<String>,
    pub(super) timeout_ms: Option<i64>,
    pub(super) params: Vec<Param>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) defaults: Settings,
    /// Templates that no single job owns: those of `env` and `defaults`.
    pub(super) templates: Templates<'t>,
    pub(super) schedules: Option<&'t Entry<'s>>,
    jobs: Option<&'t Entry<'s>>,
}

pub(super) fn read<'t, 's>(root: &'t [Entry<'s>], findings: &mut Findings) -> Top<'t, 's> {
    let mut top = Top::default();
    for entry in root {
        match entry.key.as_ref() {
            "name" => {
                let name = expect::text(&entry.node, "`name`", findings).unwrap_or("unnamed");
                top.name = Some((name.to_owned(), entry.node.span.clone()));
            }
            "description" => {
                top.description = expect::text(&entry.node, "`description`", findings).map(str::to_owned);
            }
            "timeout" => top.timeout_ms = expect::duration_ms(entry, Least::OneMillisecond, findings),
            "params" => top.params = param::read_all(entry, findings),
            "env" => top.env = env::read(entry, &mut top.templates, findings),
            "defaults" => top.defaults = read_defaults(entry, &mut top.templates, findings),
            "schedules" => top.schedules = Some(entry),
            "jobs" => top.jobs = Some(entry),
            _ => {
                keys::unknown(entry, "a workflow", &keys::WORKFLOW, findings);
            }
        }
    }
    top
}

fn read_defaults<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Settings {
    let mut settings = Settings::default();
    let expected = "a table of settings for all jobs";
    for part in expect::table(entry, usize::MAX, expected, findings).unwrap_or_default() {
        if settings.take(part, templates, findings) == Taken::Yes {
            continue;
        }
        let key = part.key.as_ref();
        if !keys::JOB_ONLY.contains(&key) {
            keys::unknown(part, "`defaults`", &keys::SETTINGS, findings);
            continue;
        }
        let help = match key {
            "env" => "the `env` at the top of the file is that of all jobs".to_owned(),
            _ => format!("`{key}` belongs into each job"),
        };
        let message = format!("unknown key `{key}` in `defaults`");
        findings.push(Finding::new(part.key_span.clone(), message).help(help));
    }
    settings
}

/// The given name, or the file's name without its extension.
pub(super) fn workflow_name(source: &Source, top: &Top<'_, '_>, findings: &mut Findings) -> String {
    let (name, span) = match &top.name {
        Some((name, span)) => (name.as_str(), Some(span.clone())),
        None => (source.stem(), None),
    };
    let Some(reason) = name_fault(name) else { return name.to_owned() };
    let finding = match span {
        Some(span) => Finding::new(span, "this is not a name for a workflow").label(reason),
        None => Finding::without_place(format!("the file's name is not a name for a workflow: {reason}"))
            .help("give the workflow a `name` in the file"),
    };
    findings.push(finding);
    name.to_owned()
}

/// Why a workflow can't have the name.
pub(crate) fn name_fault(name: &str) -> Option<&'static str> {
    if name.trim().is_empty() {
        Some("it is empty")
    } else if name.trim() != name {
        Some("it begins or ends with a space")
    } else if name.chars().any(char::is_control) {
        Some("it contains a control character")
    } else if name.chars().count() > limits::NAME_CHARS {
        Some("it is longer than 200 characters")
    } else {
        None
    }
}

/// The entries of `jobs`, at least one.
pub(super) fn jobs<'t, 's>(top: &Top<'t, 's>, findings: &mut Findings) -> Option<&'t [Entry<'s>]> {
    let Some(jobs) = top.jobs else {
        findings.push(Finding::without_place("the workflow has no jobs").help(JOB_HELP));
        return None;
    };
    let Value::Table(entries) = &jobs.node.value else {
        expect::wrong_type_help(&jobs.node, "`jobs`", "a table of names and jobs", JOB_HELP, findings);
        return None;
    };
    if entries.is_empty() {
        findings.push(Finding::new(jobs.key_span.clone(), "the workflow has no jobs").help(JOB_HELP));
        return None;
    }
    if entries.len() > limits::JOBS {
        findings.push(
            Finding::new(jobs.key_span.clone(), format!("the workflow has {} jobs", entries.len()))
                .label(format!("the limit is {}", limits::JOBS))
                .help("split it into several workflows"),
        );
        return None;
    }
    Some(entries)
}

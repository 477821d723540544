//! Reads one job.

use super::requires::Requirement;
use super::settings::Settings;
use crate::expect;
use crate::keys::{self, Table};
use crate::kinds::{self, Action};
use crate::model::{DEFAULT_MAX_INTERRUPTIONS, DEFAULT_QUEUE, Job};
use crate::names::{self, NameKind};
use crate::report::Findings;
use crate::template::Templates;
use crate::tree::{Entry, Node, Value};

/// A job as read from its table. The names in `needs` and in templates are not resolved to indices yet.
#[derive(Debug)]
pub(super) struct UnresolvedJob<'t, 's> {
    /// The job, with empty `needs` and `uses`.
    pub(super) job: Job,
    /// The names of the jobs that it needs.
    pub(super) needs: &'t [Node<'s>],
    /// The capabilities in the job's own table, without those of `[defaults]`.
    pub(super) requires: Vec<Requirement>,
    pub(super) templates: Templates<'t>,
}

/// What `[defaults]` says.
#[derive(Debug, Default)]
pub(super) struct JobDefaults {
    pub(super) settings: Settings,
    pub(super) kinds: kinds::Defaults,
}

/// The values of a job's table, before defaults are filled in.
#[derive(Default)]
struct JobTable<'t, 's> {
    description: Option<String>,
    /// The entries whose keys belong to a kind.
    of_kinds: Vec<&'t Entry<'s>>,
    /// There is no action because of an error that was reported: a misspelled key, or a job that is not a table. So the
    /// missing action is not reported too.
    action_is_wrong: bool,
    needs: &'t [Node<'s>],
    settings: Settings,
    templates: Templates<'t>,
}

pub(super) fn read<'t, 's>(
    entry: &'t Entry<'s>,
    defaults: &JobDefaults,
    findings: &mut Findings,
) -> UnresolvedJob<'t, 's> {
    names::check_key(entry, NameKind::Job, findings);
    let mut table = JobTable::default();
    let expected = format!("a table with {}", kinds::action_keys_text());
    match expect::table(entry, usize::MAX, &expected, findings) {
        Some(entries) => entries.iter().for_each(|entry| take(entry, &mut table, findings)),
        None => table.action_is_wrong = true,
    }
    complete(entry, table, defaults, findings)
}

fn take<'t, 's>(entry: &'t Entry<'s>, table: &mut JobTable<'t, 's>, findings: &mut Findings) {
    let key = match keys::find(entry, Table::Job, findings) {
        Ok(key) => key,
        Err(unknown) => {
            table.action_is_wrong |= unknown.meant.is_some_and(kinds::is_action_key);
            return;
        }
    };
    match key.name() {
        "description" => {
            table.description = expect::text(&entry.node, "`description`", findings).map(str::to_owned);
        }
        "needs" => table.needs = read_needs(entry, findings),
        name if kinds::is_key(name) => table.of_kinds.push(entry),
        _ => table.settings.take(entry, &mut table.templates, findings),
    }
}

fn complete<'t, 's>(
    entry: &Entry<'_>,
    mut table: JobTable<'t, 's>,
    defaults: &JobDefaults,
    findings: &mut Findings,
) -> UnresolvedJob<'t, 's> {
    let has_action = table.of_kinds.iter().any(|entry| kinds::is_action_key(&entry.key));
    if !has_action && !table.action_is_wrong {
        findings.push(kinds::nothing_to_execute(entry));
    }
    let action = kinds::read(entry, &table.of_kinds, &defaults.kinds, &mut table.templates, findings);
    let (settings, defaults) = (table.settings, &defaults.settings);
    let job = Job {
        name: entry.key.to_string(),
        description: table.description,
        // A job without an action is an error that was reported, so the model is thrown away.
        action: action.unwrap_or_else(Action::nothing),
        needs: Vec::new(),
        uses: Vec::new(),
        retry: settings.retry.or(&defaults.retry).complete(findings),
        timeout_ms: settings.timeout_ms.or(defaults.timeout_ms),
        queue: settings.queue.or_else(|| defaults.queue.clone()).unwrap_or_else(|| DEFAULT_QUEUE.to_owned()),
        priority: settings.priority.or(defaults.priority).unwrap_or(0),
        allow_failure: settings.allow_failure.or(defaults.allow_failure).unwrap_or(false),
        on_interrupt: settings.on_interrupt.or(defaults.on_interrupt).unwrap_or_default(),
        max_interruptions: settings
            .max_interruptions
            .or(defaults.max_interruptions)
            .unwrap_or(DEFAULT_MAX_INTERRUPTIONS),
        requires: capabilities(settings.requires.as_deref().or(defaults.requires.as_deref())),
        version: settings.version.or(defaults.version).unwrap_or(0),
        concurrency: settings.concurrency.or_else(|| defaults.concurrency.clone()),
    };
    let requires = settings.requires.unwrap_or_default();
    UnresolvedJob { job, needs: table.needs, requires, templates: table.templates }
}

fn capabilities(requirements: Option<&[Requirement]>) -> Vec<String> {
    let requirements = requirements.unwrap_or_default();
    requirements.iter().map(|requirement| requirement.capability.clone()).collect()
}

/// Reads a list of names. A single name is a list of one.
fn read_needs<'t, 's>(entry: &'t Entry<'s>, findings: &mut Findings) -> &'t [Node<'s>] {
    if let Value::Text(_) = &entry.node.value {
        return std::slice::from_ref(&entry.node);
    }
    // The number of needs is limited for all jobs together, when they are resolved.
    expect::list(entry, usize::MAX, "a list of names of jobs", findings).unwrap_or_default()
}

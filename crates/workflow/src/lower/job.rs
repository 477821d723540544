//! Reads one job.

use std::collections::BTreeMap;

use super::for_each;
use super::repeat;
use super::requires::Requirement;
use super::set_variables;
use super::settings::Settings;
use super::tables::JobEntry;
use crate::expect::{self, ShortestDuration};
use crate::expression::{Expression, HasItems, Place};
use crate::for_each::ForEach;
use crate::keys::{self, IF, RETRY_IF, SKIP_IF, SUCCESS_IF, Table};
use crate::kinds::{self, Action};
use crate::model::{
    DEFAULT_HANDLER_TIMEOUT_MS, DEFAULT_MAX_INTERRUPTIONS, DEFAULT_QUEUE, Job, Repetition, Retry, When,
};
use crate::names::{self, NameKind};
use crate::report::{Finding, Findings, Span};
use crate::template::Templates;
use crate::tree::{Entry, Node, Value};

/// A job as read from its table. The names in `needs` and in templates are not resolved to indices yet.
#[derive(Debug)]
pub(super) struct UnresolvedJob<'t, 's> {
    /// The job, with empty `needs` and `uses`.
    pub(super) job: Job,
    /// The names of the jobs that it needs.
    pub(super) needs: &'t [Node<'s>],
    /// The names of the secrets that it gets as variables.
    pub(super) secrets: &'t [Node<'s>],
    /// The capabilities in the job's own table, without those of `[defaults]`.
    pub(super) requires: Box<[Requirement]>,
    /// Whether the job has `for_each`, which may be wrong.
    pub(super) has_items: HasItems,
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
    /// The value of `needs` is wrong, which was reported.
    needs_are_wrong: bool,
    secrets: &'t [Node<'s>],
    /// `when`, and where it stands.
    when: Option<(When, Span)>,
    condition: Option<Expression>,
    for_each: Option<Box<ForEach>>,
    has_items: HasItems,
    success_if: Option<Expression>,
    skip_if: Option<Expression>,
    repeat: Option<Box<Repetition>>,
    set_variables: BTreeMap<String, Expression>,
    deadline_ms: Option<i64>,
    /// Where `retry` has an `if` of its own.
    retry_condition: Option<Span>,
    settings: Settings,
    templates: Templates<'t>,
}

pub(super) fn read<'t, 's>(
    job: JobEntry<'t, 's>,
    defaults: &JobDefaults,
    findings: &mut Findings,
) -> UnresolvedJob<'t, 's> {
    let JobEntry { entry, handler } = job;
    names::check_key(entry, NameKind::Job, findings);
    let mut table = JobTable::default();
    let expected = format!("a table with {}", kinds::action_keys_text());
    match expect::table(entry, usize::MAX, &expected, findings) {
        Some(entries) => entries.iter().for_each(|entry| take(entry, &mut table, findings)),
        None => table.action_is_wrong = true,
    }
    check_when(&table, findings);
    let mut unresolved = complete(entry, table, defaults, findings);
    unresolved.job.handler = handler;
    if handler.is_some() && !unresolved.job.action.is_wait() {
        unresolved.job.timeout_ms.get_or_insert(DEFAULT_HANDLER_TIMEOUT_MS);
    }
    unresolved
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
        "needs" => {
            let needs = names_of(entry, "a list of names of jobs", findings);
            table.needs_are_wrong = needs.is_none();
            table.needs = needs.unwrap_or_default();
        }
        "secrets" => {
            table.secrets = names_of(entry, "a list of names of secrets", findings).unwrap_or_default();
        }
        "for_each" => {
            table.has_items = HasItems::Yes;
            table.for_each = for_each::read(entry, &mut table.templates, findings).map(Box::new);
        }
        "if" => table.condition = expect::expression(entry, &IF, &mut table.templates, findings),
        "success_if" => {
            table.success_if = expect::expression(entry, &SUCCESS_IF, &mut table.templates, findings);
        }
        "skip_if" => table.skip_if = expect::expression(entry, &SKIP_IF, &mut table.templates, findings),
        "repeat" => table.repeat = repeat::read(entry, &mut table.templates, findings).map(Box::new),
        "set_variables" => {
            table.set_variables = set_variables::read(entry, &mut table.templates, findings);
        }
        "when" => {
            let words = When::ALL.map(|when| (when.name(), when));
            let when = expect::word(entry, &words, findings);
            table.when = when.map(|when| (when, entry.key_span.clone()));
        }
        "deadline" => {
            table.deadline_ms = expect::duration_ms(entry, ShortestDuration::OneMillisecond, findings);
        }
        name if kinds::is_key(name) => table.of_kinds.push(entry),
        _ => {
            if let Value::Table(parts) = &entry.node.value
                && key.name() == "retry"
            {
                let condition = parts.iter().find(|part| part.key == RETRY_IF.name());
                table.retry_condition = condition.map(|part| part.key_span.clone());
            }
            table.settings.take(entry, &mut table.templates, findings);
        }
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
    if let Some(action) = &action {
        table.templates.move_all(Place::AttemptEnd, action.end_place());
    }
    let is_wait = action.as_ref().is_some_and(Action::is_wait);
    let is_call = action.as_ref().is_some_and(|action| !action.is_claimed() && !action.is_wait());
    let (mut settings, mut defaults) = (table.settings, defaults.settings.clone());
    if is_call {
        refuse_keys_of_workers(entry, findings);
        if let Some(span) = table.retry_condition.take() {
            let message = "`retry.if` has no effect beside `workflow`";
            findings.push(Finding::new(span, message).help("remove `if`: a run that fails is tried again"));
        }
        // The runs that the job starts are its attempts, and their jobs are those of workers.
        (settings, defaults) = (settings.of_runs(), defaults.of_runs());
    }
    if is_wait {
        refuse_keys_of_attempts(entry, findings);
        // A wait has no attempts, so what the file says about all attempts has no effect on it.
        let allow_failure = settings.allow_failure.or(defaults.allow_failure);
        settings = Settings { allow_failure, ..Settings::default() };
        defaults = Settings::default();
    }
    let mut retry = settings.retry.or(&defaults.retry).complete(findings);
    check_retry_condition(table.retry_condition, &retry, findings);
    if retry.max_attempts == 1 {
        retry.condition = None;
    }
    let job = Job {
        name: entry.key.to_string(),
        description: table.description,
        // A job without an action is an error that was reported, so the model is thrown away.
        action: action.unwrap_or_else(Action::nothing),
        needs: Vec::new(),
        when: table.when.map(|(when, _)| when).unwrap_or_default(),
        condition: table.condition,
        for_each: table.for_each,
        handler: None,
        uses: Vec::new(),
        retry,
        deadline_ms: table.deadline_ms,
        success_if: table.success_if,
        skip_if: table.skip_if,
        repeat: table.repeat,
        set_variables: (!table.set_variables.is_empty()).then(|| Box::new(table.set_variables)),
        secrets: Vec::new(),
        timeout_ms: settings.timeout_ms.or(defaults.timeout_ms),
        queue: settings.queue.or(defaults.queue).unwrap_or_else(|| DEFAULT_QUEUE.to_owned()),
        priority: settings.priority.or(defaults.priority).unwrap_or(0),
        allow_failure: settings.allow_failure.or(defaults.allow_failure).unwrap_or(false),
        on_interrupt: settings.on_interrupt.or(defaults.on_interrupt).unwrap_or_default(),
        max_interruptions: settings
            .max_interruptions
            .or(defaults.max_interruptions)
            .unwrap_or(DEFAULT_MAX_INTERRUPTIONS),
        requires: capabilities(settings.requires.as_deref().or(defaults.requires.as_deref())),
        code_version: settings.code_version.or(defaults.code_version).unwrap_or(0),
        concurrency: settings.concurrency.or(defaults.concurrency),
    };
    let requires = settings.requires.unwrap_or_default().into();
    let JobTable { needs, secrets, has_items, templates, .. } = table;
    UnresolvedJob { job, needs, secrets, requires, has_items, templates }
}

/// The keys of a job that are about its worker, or about what its process gave.
const KEYS_OF_WORKERS: [&str; 12] = [
    "queue",
    "priority",
    "on_interrupt",
    "max_interruptions",
    "requires",
    "code_version",
    "concurrency",
    "secrets",
    "success_if",
    "skip_if",
    "repeat",
    "set_variables",
];

/// Reports keys without effect in a job that starts runs.
fn refuse_keys_of_workers(entry: &Entry<'_>, findings: &mut Findings) {
    let Value::Table(parts) = &entry.node.value else { return };
    let Some(action) = parts.iter().find(|part| kinds::is_action_key(&part.key)) else { return };
    for part in parts.iter().filter(|part| KEYS_OF_WORKERS.contains(&part.key.as_ref())) {
        let finding = kinds::useless_beside(part, action);
        findings
            .push(finding.help("no worker executes this job; write the key into the jobs of the workflow"));
    }
}

/// The keys of a job that are about its attempts, about its worker, or about what its process gave.
const KEYS_OF_ATTEMPTS: [&str; 15] = [
    "retry",
    "timeout",
    "queue",
    "priority",
    "on_interrupt",
    "max_interruptions",
    "requires",
    "code_version",
    "concurrency",
    "secrets",
    "success_if",
    "skip_if",
    "repeat",
    "set_variables",
    "deadline",
];

/// Reports keys that have no effect on a job that only waits, or sends an event.
fn refuse_keys_of_attempts(job: &Entry<'_>, findings: &mut Findings) {
    let Value::Table(parts) = &job.node.value else { return };
    let Some(action) = parts.iter().find(|part| kinds::is_action_key(&part.key)) else { return };
    for part in parts.iter().filter(|part| KEYS_OF_ATTEMPTS.contains(&part.key.as_ref())) {
        let help = format!("no worker executes the job; remove `{}`", part.key);
        findings.push(kinds::useless_beside(part, action).help(help));
    }
}

fn capabilities(requirements: Option<&[Requirement]>) -> Vec<String> {
    let requirements = requirements.unwrap_or_default();
    requirements.iter().map(|requirement| requirement.capability.clone()).collect()
}

/// `when` says what the needed jobs must be, so there must be one.
fn check_when(table: &JobTable<'_, '_>, findings: &mut Findings) {
    if let Some((_, span)) = &table.when
        && table.needs.is_empty()
        && !table.needs_are_wrong
    {
        let message = "`when` says how the jobs that this job needs must have ended, and it needs none";
        findings.push(Finding::new(span.clone(), message).help("add `needs`, or remove `when`"));
    }
}

/// `retry.if` says when to try again, so there must be another attempt. A condition in `[defaults]` is for the jobs that have
/// one.
fn check_retry_condition(span: Option<Span>, retry: &Retry, findings: &mut Findings) {
    if let Some(span) = span
        && retry.max_attempts == 1
    {
        let message = "`retry.if` says when to try again, and `max_attempts` is 1";
        findings.push(Finding::new(span, message).help("add max_attempts = 3, or remove `if`"));
    }
}

/// A list of names, as nodes. A single name is a list of one.
fn names_of<'t, 's>(entry: &'t Entry<'s>, expected: &str, findings: &mut Findings) -> Option<&'t [Node<'s>]> {
    if let Value::Text(_) = &entry.node.value {
        return Some(std::slice::from_ref(&entry.node));
    }
    // The number of needs is limited for all jobs together, when they are resolved.
    expect::list(entry, usize::MAX, expected, findings)
}

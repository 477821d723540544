//! One job.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::expect;
use super::keys;
use super::requires::Required;
use super::settings::{Settings, Taken};
use super::{env, name};
use crate::limits;
use crate::model::{Action, DEFAULT_MAX_INTERRUPTIONS, DEFAULT_QUEUE, Job};
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::{Entry, Node, Span, Value};

/// A job whose `needs` and templates are still to be resolved.
#[derive(Debug)]
pub(super) struct Draft<'t, 's> {
    pub(super) job: Job,
    pub(super) needs: &'t [Node<'s>],
    /// What it requires by itself, not by `defaults`.
    pub(super) required: Vec<Required>,
    pub(super) templates: Templates<'t>,
}

/// What the table of a job says, before defaults.
#[derive(Default)]
struct Parts<'t, 's> {
    description: Option<String>,
    script: Option<(String, Span)>,
    command: Option<(Vec<String>, Span)>,
    /// `run` or `command` is there but wrong, which was reported: it is not missing.
    action_is_broken: bool,
    shell_span: Option<Span>,
    needs: &'t [Node<'s>],
    env: BTreeMap<String, String>,
    settings: Settings,
    templates: Templates<'t>,
}

pub(super) fn read<'t, 's>(
    entry: &'t Entry<'s>,
    defaults: &Settings,
    findings: &mut Findings,
) -> Draft<'t, 's> {
    name::check_key(entry, name::Rule::Job, findings);
    let mut parts = Parts::default();
    let expected = "a table with `run` or `command`";
    match expect::table(entry, usize::MAX, expected, findings) {
        Some(entries) => {
            for part in entries {
                take(part, &mut parts, findings);
            }
        }
        None => parts.action_is_broken = true,
    }
    complete(entry, parts, defaults, findings)
}

fn take<'t, 's>(part: &'t Entry<'s>, parts: &mut Parts<'t, 's>, findings: &mut Findings) {
    match part.key.as_ref() {
        "description" => {
            parts.description = expect::text(&part.node, "`description`", findings).map(str::to_owned);
        }
        "run" => {
            let script = read_script(part, findings);
            parts.action_is_broken |= script.is_none();
            parts.script = script.map(|script| (script, part.key_span.clone()));
        }
        "command" => {
            let command = read_command(part, &mut parts.templates, findings);
            parts.action_is_broken |= command.is_none();
            parts.command = command.map(|command| (command, part.key_span.clone()));
        }
        "needs" => parts.needs = read_needs(part, findings),
        "env" => parts.env = env::read(part, &mut parts.templates, findings),
        other => {
            if other == "shell" {
                parts.shell_span = Some(part.key_span.clone());
            }
            if parts.settings.take(part, &mut parts.templates, findings) == Taken::No {
                let meant = keys::unknown(part, "a job", &keys::of_a_job(), findings);
                parts.action_is_broken |= matches!(meant, Some("run" | "command"));
            }
        }
    }
}

fn complete<'t, 's>(
    entry: &Entry<'_>,
    mut parts: Parts<'t, 's>,
    defaults: &Settings,
    findings: &mut Findings,
) -> Draft<'t, 's> {
    let action = action(entry, &mut parts, defaults, findings);
    let settings = parts.settings;
    let job = Job {
        name: entry.key.to_string(),
        description: parts.description,
        action,
        needs: Vec::new(),
        uses: Vec::new(),
        env: parts.env,
        dir: settings.dir.or_else(|| defaults.dir.clone()),
        retry: settings.retry.over(&defaults.retry).complete(findings),
        timeout_ms: settings.timeout_ms.or(defaults.timeout_ms),
        queue: settings.queue.or_else(|| defaults.queue.clone()).unwrap_or_else(|| DEFAULT_QUEUE.to_owned()),
        priority: settings.priority.or(defaults.priority).unwrap_or(0),
        allow_failure: settings.allow_failure.or(defaults.allow_failure).unwrap_or(false),
        on_interrupt: settings.on_interrupt.or(defaults.on_interrupt).unwrap_or_default(),
        max_interruptions: settings
            .max_interruptions
            .or(defaults.max_interruptions)
            .unwrap_or(DEFAULT_MAX_INTERRUPTIONS),
        output: settings.output.or(defaults.output).unwrap_or_default(),
        requires: capabilities(settings.requires.as_deref().or(defaults.requires.as_deref())),
        version: settings.version.or(defaults.version).unwrap_or(0),
        concurrency: settings.concurrency.or_else(|| defaults.concurrency.clone()),
    };
    let required = settings.requires.unwrap_or_default();
    Draft { job, needs: parts.needs, required, templates: parts.templates }
}

fn capabilities(required: Option<&[Required]>) -> Vec<String> {
    required.unwrap_or_default().iter().map(|one| one.capability.clone()).collect()
}

/// `run` or `command`, exactly one of them.
fn action(
    entry: &Entry<'_>,
    parts: &mut Parts<'_, '_>,
    defaults: &Settings,
    findings: &mut Findings,
) -> Action {
    if let (Some((_, command_span)), Some(shell_span)) = (&parts.command, &parts.shell_span) {
        findings.push(
            Finding::new(shell_span.clone(), "`shell` has no meaning beside `command`")
                .related(command_span.clone(), "`command` is executed without a shell")
                .help("remove `shell`, or use `run` with a script"),
        );
    }
    match (parts.script.take(), parts.command.take()) {
        (Some((_, run_span)), Some((command, command_span))) => {
            let message = format!("job `{}` has both `run` and `command`", entry.key);
            findings.push(
                Finding::new(command_span, message).related(run_span, "`run` is here").help(
                    "keep `run` for a script of the shell, or `command` for a program and its arguments",
                ),
            );
            Action::Command(command)
        }
        (Some((script, _)), None) => {
            let shell = parts.settings.shell.take().or_else(|| defaults.shell.clone()).unwrap_or_default();
            Action::Run { script, shell }
        }
        (None, Some((command, _))) => Action::Command(command),
        (None, None) => {
            if !parts.action_is_broken {
                let message = format!("job `{}` has nothing to execute", entry.key);
                findings.push(
                    Finding::new(entry.key_span.clone(), message).label("needs `run` or `command`").help(
                        "add `run` with a script, or `command` with a list: the program, then its arguments",
                    ),
                );
            }
            Action::Command(Vec::new())
        }
    }
}

fn read_script(entry: &Entry<'_>, findings: &mut Findings) -> Option<String> {
    if let Value::List(_) = entry.node.value {
        expect::wrong_type_help(
            &entry.node,
            "`run`",
            "a string, the script",
            "a program with its arguments goes into `command`",
            findings,
        );
        return None;
    }
    let script = expect::text_up_to(&entry.node, "`run`", limits::SCRIPT_BYTES, findings)?;
    if script.trim().is_empty() {
        findings.push(Finding::new(entry.node.span.clone(), "`run` is empty").label("write the script here"));
        return None;
    }
    Some(script.to_owned())
}

fn read_command<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Vec<String>> {
    let expected = "a list: the program, then its arguments";
    if let Value::Text(text) = &entry.node.value {
        let words: Vec<_> = text.split_whitespace().map(|word| format!("{word:?}")).collect();
        let help = match text.len() < 200 {
            true => format!("write command = [{}], or use `run` for a script", words.join(", ")),
            false => "use `run` for a script".to_owned(),
        };
        expect::wrong_type_help(&entry.node, "`command`", expected, help, findings);
        return None;
    }
    let items = expect::list(entry, limits::COMMAND_ITEMS, expected, findings)?;
    let mut command = Vec::with_capacity(items.len());
    let mut complete = true;
    for item in items {
        match argument(item, findings) {
            Some(text) => {
                templates.add(item);
                command.push(text.into_owned());
            }
            None => complete = false,
        }
    }
    if complete && command.first().is_none_or(|program| program.trim().is_empty()) {
        findings.push(Finding::new(entry.node.span.clone(), "`command` names no program"));
        return None;
    }
    complete.then_some(command)
}

/// Numbers are common arguments; they need no quotes.
fn argument<'t>(node: &'t Node<'_>, findings: &mut Findings) -> Option<Cow<'t, str>> {
    if let Value::Integer(integer) = &node.value {
        return Some(Cow::Owned(integer.to_string()));
    }
    if let Value::Number(number) = &node.value {
        return Some(Cow::Owned(number.to_string()));
    }
    expect::text(node, "an item of `command`", findings).map(Cow::Borrowed)
}

/// A list of names; one name alone is a list of one.
fn read_needs<'t, 's>(entry: &'t Entry<'s>, findings: &mut Findings) -> &'t [Node<'s>] {
    if let Value::Text(_) = &entry.node.value {
        return std::slice::from_ref(&entry.node);
    }
    expect::list(entry, usize::MAX, "a list of names of jobs", findings).unwrap_or_default()
}

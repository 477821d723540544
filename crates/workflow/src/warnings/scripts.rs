//! What scripts read that is not there: expressions of GitHub Actions, and variables that the job does not have.

use super::{JobInFile, WorkflowInFile, entries};
use crate::kinds::Action;
use crate::kinds::shell::Program;
use crate::params;
use crate::report::{Finding, Findings};
use crate::tree::{Node, Value};

pub(super) fn check(file: &WorkflowInFile<'_, '_>, findings: &mut Findings) {
    for job in &file.jobs {
        if let Action::Shell(shell) = &job.job.action {
            check_texts(job, findings);
            match &shell.program {
                Program::Script { text, .. } => check_variables(file, job, text, findings),
                Program::Command(_) => {}
            }
        }
    }
}

/// Warns of `${{`, of which the shell can't read the dollar, and a template leaves it where it is.
fn check_texts(job: &JobInFile<'_, '_>, findings: &mut Findings) {
    let is_of_github = |node: &Node<'_>| matches!(&node.value, Value::Text(text) if text.contains("${{"));
    if let Some(entry) = job.key("run").filter(|entry| is_of_github(&entry.node)) {
        findings.push(
            Finding::new(entry.node.span.clone(), "the shell gets `${{` as it is, and can't read it").help(
                "write env = { VALUE = \"{{ params.NAME }}\" } in the job, and \"$VALUE\" in the script",
            ),
        );
    }
    let env = job.key("env").map(entries).unwrap_or_default().iter().map(|entry| &entry.node);
    let command = job.key("command").map(|entry| match &entry.node.value {
        Value::List(words) => words.as_slice(),
        Value::Text(_)
        | Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken
        | Value::Table(_) => &[],
    });
    if let Some(node) = env.chain(command.unwrap_or_default()).find(|node| is_of_github(node)) {
        findings.push(
            Finding::new(node.span.clone(), "the `$` before the braces stays in the text")
                .help("write {{ … }} without it"),
        );
    }
}

/// Warns of variables of Windlass that a script reads and its job does not have.
fn check_variables(
    file: &WorkflowInFile<'_, '_>,
    job: &JobInFile<'_, '_>,
    script: &str,
    findings: &mut Findings,
) {
    let Some(entry) = job.key("run") else { return };
    let own: Vec<String> = file.workflow.params.iter().map(|param| params::env_name(&param.name)).collect();
    for name in variables(script) {
        let help = if name.starts_with("WINDLASS_PARAM_") && !own.iter().any(|own| own == name) {
            Some("no parameter of the file has this variable; declare one under `params`")
        } else if ["WINDLASS_ITEM", "WINDLASS_INDEX"].contains(&name) && job.job.for_each.is_none() {
            Some("add `for_each` to the job, which gives it an item")
        } else {
            None
        };
        if let Some(help) = help {
            let message = format!("the job has no variable `{name}`");
            findings.push(Finding::new(entry.node.span.clone(), message).help(help));
            return;
        }
    }
}

/// The names that a script reads as `$NAME` or `${NAME}`. One with a value for its absence, as in `${NAME:-x}`, is none.
fn variables(script: &str) -> impl Iterator<Item = &str> {
    script.match_indices('$').filter_map(|(at, _)| {
        let rest = &script[at + 1..];
        let (rest, is_braced) = rest.strip_prefix('{').map_or((rest, false), |rest| (rest, true));
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        (!is_braced || rest[end..].starts_with('}')).then_some(&rest[..end])
    })
}

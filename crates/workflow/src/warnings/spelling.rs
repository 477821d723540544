//! Values that have another effect than they seem to have.

use super::{JobInFile, WorkflowInFile};
use crate::duration;
use crate::kinds::Action;
use crate::kinds::shell::Program;
use crate::report::{Finding, Findings};
use crate::tree::{Node, Value};

pub(super) fn check(file: &WorkflowInFile<'_, '_>, findings: &mut Findings) {
    for job in &file.jobs {
        if let Action::Shell(shell) = &job.job.action {
            match &shell.program {
                Program::Script { .. } => {}
                Program::Command(_) => check_command(job, findings),
            }
        }
        check_until(job, findings);
        check_timeouts(file, job, findings);
    }
}

/// Whether a shell would put something else in place of an argument: a variable, names of files, or the home folder.
fn is_expanded_by_shells(word: &str) -> bool {
    let is_name = |c: char| c.is_ascii_uppercase() || c == '_' || c == '{';
    let has_variable = word.match_indices('$').any(|(at, _)| word[at + 1..].starts_with(is_name));
    let is_pattern = word.starts_with("*.") || word.ends_with("/*");
    (has_variable && !word.contains(char::is_whitespace)) || is_pattern || word.starts_with("~/")
}

/// Whether the program is a shell or one that reads patterns and variables by itself.
fn starts_a_shell(words: &[Node<'_>]) -> bool {
    let Some(Value::Text(program)) = words.first().map(|word| &word.value) else { return false };
    let name = program.rsplit('/').next().unwrap_or_default();
    ["sh", "bash", "zsh", "dash", "ksh", "awk", "find", "perl", "envsubst"].contains(&name)
}

/// Warns of rounds whose end asks for an exit code with which an attempt fails, so that no other round follows.
fn check_until(job: &JobInFile<'_, '_>, findings: &mut Findings) {
    let Some(repeat) = &job.job.repeat else { return };
    let Some(entry) = job.key("repeat") else { return };
    if repeat.until.text().contains("exit_code") && job.job.success_if.is_none() {
        findings.push(
            Finding::new(entry.node.span.clone(), "an exit code other than 0 fails the job before `until` is asked")
                .help("name the exit codes of a round that may be followed by another: success_if = \"exit_code in [0, 1]\""),
        );
    }
}

/// Warns of signs of a shell in a program's arguments.
fn check_command(job: &JobInFile<'_, '_>, findings: &mut Findings) {
    const SIGNS: [&str; 9] = ["|", "||", "&&", ">", ">>", "<", "2>&1", "2>", ";"];
    let Some(entry) = job.key("command") else { return };
    let Value::List(words) = &entry.node.value else { return };
    let is_sign = |word: &&Node<'_>| match &word.value {
        Value::Text(text) => SIGNS.contains(&text.as_ref()),
        Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken
        | Value::List(_)
        | Value::Table(_) => false,
    };
    let is_expanded =
        |word: &&Node<'_>| matches!(&word.value, Value::Text(text) if is_expanded_by_shells(text));
    if let Some(word) = words.iter().skip(1).find(is_expanded).filter(|_| !starts_a_shell(words)) {
        findings.push(
            Finding::new(word.span.clone(), "`command` starts a program without a shell")
                .label("the program gets this as it is")
                .help(
                    "write the line as `run`, which a shell executes; a template gives the values of the run",
                ),
        );
    }
    if let Some(word) = words.iter().find(is_sign) {
        findings.push(
            Finding::new(word.span.clone(), "`command` starts a program without a shell")
                .label("the program gets this as an argument")
                .help("write the line as `run`, which a shell executes"),
        );
    }
}

/// Warns of a `timeout` that another limit is reached before.
fn check_timeouts(file: &WorkflowInFile<'_, '_>, job: &JobInFile<'_, '_>, findings: &mut Findings) {
    let (Some(timeout_ms), Some(entry)) = (job.job.timeout_ms, job.key("timeout")) else { return };
    let of_run = file.workflow.timeout_ms.filter(|_| job.job.handler.is_none());
    let limits = [("`timeout` of the workflow", of_run), ("`deadline` of the job", job.job.deadline_ms)];
    for (name, limit_ms) in limits {
        if let Some(limit_ms) = limit_ms.filter(|limit_ms| timeout_ms > *limit_ms) {
            let message = format!("the {name} ends before this `timeout` does");
            findings.push(
                Finding::new(entry.node.span.clone(), message)
                    .label(format!("longer than {}", duration::to_text(limit_ms)))
                    .help("shorten this `timeout`, or allow more time there"),
            );
        }
    }
}

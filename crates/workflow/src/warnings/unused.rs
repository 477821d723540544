//! Parameters and secrets that nothing uses.

use super::WorkflowInFile;
use crate::kinds::Action;
use crate::kinds::shell::Program;
use crate::params;
use crate::report::{Finding, Findings};
use crate::tree::Entry;
use std::collections::HashSet;

/// The endings of files that a program of another language reads as its script.
const SCRIPT_ENDINGS: [&str; 12] =
    [".sh", ".bash", ".py", ".rb", ".pl", ".js", ".mjs", ".ts", ".php", ".lua", ".r", ".jar"];

/// Warns of parameters that no template, no expression and no script names. A script of its own may read their variables, so
/// nothing is said if a job starts one.
pub(super) fn params(file: &WorkflowInFile<'_, '_>, findings: &mut Findings) {
    let params = file.table("params");
    if params.is_empty() {
        return;
    }
    let read: HashSet<&str> = file.reads().filter_map(|read| read.name_after("params")).collect();
    let programs: Vec<&Program> = file
        .jobs
        .iter()
        .filter_map(|job| match &job.job.action {
            Action::Shell(shell) => Some(&shell.program),
            Action::Http(_)
            | Action::Sleep(_)
            | Action::WaitFor(_)
            | Action::Approval(_)
            | Action::Signal(_)
            | Action::Call(_) => None,
        })
        .collect();
    if programs.iter().any(|program| texts(program).any(starts_another_file)) {
        return;
    }
    for param in params {
        let variable = params::env_name(&param.key);
        let is_named = || programs.iter().any(|program| texts(program).any(|text| text.contains(&variable)));
        if !read.contains(param.key.as_ref()) && !is_named() {
            findings.push(
                Finding::new(
                    param.key_span.clone(),
                    format!("nothing in the file reads the parameter `{}`", param.key),
                )
                .help(format!(
                    "remove it, or read it: `params.{}` in a template or a condition, `${variable}` in a script",
                    param.key
                )),
            );
        }
    }
}

fn texts(program: &Program) -> Box<dyn Iterator<Item = &str> + '_> {
    match program {
        Program::Script { text, shell } => {
            Box::new(std::iter::once(text.as_str()).chain(shell.iter().map(String::as_str)))
        }
        Program::Command(words) => Box::new(words.iter().map(String::as_str)),
    }
}

/// Whether a text starts a file besides programs of the system: `./load`, `bin/load`, `python3 load.py`.
fn starts_another_file(text: &str) -> bool {
    const OF_THE_SYSTEM: [&str; 5] = ["/dev/", "/bin/", "/usr/bin/", "/tmp/", "/proc/"];
    text.split(|c: char| {
        c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '"' | '\'' | '<' | '>')
    })
    .any(|word| {
        let is_path = word.contains('/') && !word.contains("://");
        let lower = word.to_ascii_lowercase();
        (is_path && !OF_THE_SYSTEM.iter().any(|known| word.starts_with(known)))
            || SCRIPT_ENDINGS.iter().any(|ending| lower.ends_with(ending))
    })
}

/// Warns of secrets that no job of the file uses.
pub(super) fn secrets<'a>(
    secrets: impl Iterator<Item = &'a Entry<'a>>,
    workflows: &[WorkflowInFile<'_, '_>],
    findings: &mut Findings,
) {
    let reads = workflows.iter().flat_map(WorkflowInFile::reads);
    let read: HashSet<&str> = reads.filter_map(|read| read.name_after("secrets")).collect();
    for secret in secrets {
        let name = secret.key.as_ref();
        let mut jobs = workflows.iter().flat_map(|workflow| &workflow.jobs);
        let is_variable = jobs.any(|job| job.job.secrets.iter().any(|own| own == name));
        if !is_variable && !read.contains(name) {
            findings.push(
                Finding::new(secret.key_span.clone(), format!("no job uses the secret `{name}`")).help(
                    format!(
                        "remove it, or use it: secrets = [\"{name}\"] in a job, or {{{{ secrets.{name} }}}} in its `env`"
                    ),
                ),
            );
        }
    }
}

/// Warns of workflows of the file that no job calls.
pub(super) fn workflows<'a>(
    locals: impl Iterator<Item = &'a Entry<'a>>,
    workflows: &[WorkflowInFile<'_, '_>],
    findings: &mut Findings,
) {
    for local in locals {
        let calls_it = |action: &Action| match action {
            Action::Call(call) => call.workflow == local.key,
            Action::Shell(_)
            | Action::Http(_)
            | Action::Sleep(_)
            | Action::WaitFor(_)
            | Action::Approval(_)
            | Action::Signal(_) => false,
        };
        let mut jobs = workflows.iter().flat_map(|workflow| &workflow.jobs);
        if !jobs.any(|job| calls_it(&job.job.action)) {
            let name = &local.key;
            findings.push(
                Finding::new(local.key_span.clone(), format!("no job calls the workflow `{name}`"))
                    .help(format!("remove it, or call it: workflow = \"{name}\" in a job")),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::starts_another_file;

    #[test]
    fn scripts_of_their_own_are_recognized() {
        for text in
            ["./load.sh", "python3 etl.py --all", "bin/load", "\"$DIR/load\"", "node a.mjs", "cd x && ./y"]
        {
            assert!(starts_another_file(text), "{text}");
        }
        for text in
            ["echo 1 > /dev/null", "curl https://example.com/x", "/usr/bin/env true", "test -n \"$A\""]
        {
            assert!(!starts_another_file(text), "{text}");
        }
    }
}

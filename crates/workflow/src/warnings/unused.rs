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
    if programs.iter().any(|program| starts_a_file(program)) {
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

/// Whether the program of a job, or a program that its script calls, is a file besides those of the system.
fn starts_a_file(program: &Program) -> bool {
    match program {
        Program::Script { text, shell } => {
            starts_another_file(text) || shell.first().is_some_and(|program| is_own_path(program))
        }
        Program::Command(words) => {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            is_call_of_a_file(&words)
                || words.iter().any(|word| word.contains(char::is_whitespace) && starts_another_file(word))
        }
    }
}

/// Whether a script starts a file besides programs of the system: `./load`, `bin/load`, `python3 load.py`. A path that is only
/// an argument, as in `cat data/in.csv`, is none.
fn starts_another_file(script: &str) -> bool {
    let calls = script.split([';', '&', '|', '(', ')', '{', '}', '`', '\n']);
    calls.into_iter().any(|call| {
        let words: Vec<&str> = call.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
        is_call_of_a_file(&words)
    })
}

/// Words before the name of a program: those of the shell, and programs that start another one.
const BEFORE_A_PROGRAM: [&str; 17] = [
    "if", "then", "else", "elif", "while", "until", "do", "!", "exec", "time", "env", "sudo", "nice",
    "nohup", "timeout", "xargs", "command",
];
/// Programs that read a file as their script.
const INTERPRETERS: [&str; 15] = [
    ".", "source", "sh", "bash", "dash", "zsh", "ksh", "python", "python3", "ruby", "perl", "node", "php",
    "java", "make",
];

/// Whether the words of one call start a file of the author.
fn is_call_of_a_file(words: &[&str]) -> bool {
    let is_before = |word: &&&str| {
        BEFORE_A_PROGRAM.contains(word) || word.starts_with('-') || is_assignment(word) || is_number(word)
    };
    let mut words = words.iter().skip_while(is_before);
    let Some(program) = words.next() else { return false };
    let has_ending = |word: &str| {
        let lower = word.to_ascii_lowercase();
        SCRIPT_ENDINGS.iter().any(|ending| lower.ends_with(ending))
    };
    let name = program.rsplit('/').next().unwrap_or_default();
    let mut rest = words;
    is_own_path(program)
        || has_ending(program)
        || rest.any(|word| has_ending(word) || (INTERPRETERS.contains(&name) && is_own_path(word)))
}

/// Whether a word is a path outside of the folders of the system.
fn is_own_path(word: &str) -> bool {
    const OF_THE_SYSTEM: [&str; 5] = ["/dev/", "/bin/", "/usr/bin/", "/tmp/", "/proc/"];
    let is_path = word.contains('/') && !word.contains("://");
    is_path && !OF_THE_SYSTEM.iter().any(|known| word.starts_with(known))
}

/// Whether a word sets a variable for the program after it.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _value)| name);
    name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// Whether a word is an argument of a program before another one, as in `timeout 5m ./load`.
fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(|c| c.is_ascii_alphanumeric())
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
        for text in [
            "./load.sh",
            "python3 etl.py --all",
            "bin/load",
            "\"$DIR/load\"",
            "node a.mjs",
            "cd x && ./y",
            "timeout 5m ./load",
            "A=b bash bin/load",
            "if ./check; then echo; fi",
            "echo $(./load)",
            "find . | xargs ./load",
        ] {
            assert!(starts_another_file(text), "{text}");
        }
        for text in [
            "echo 1 > /dev/null",
            "curl https://example.com/x",
            "/usr/bin/env true",
            "test -n \"$A\"",
            "cat data/in.csv",
            "grep x logs/today | wc -l",
            "cp a/b c/d",
            "wc -l < data/in",
            "echo a/b",
        ] {
            assert!(!starts_another_file(text), "{text}");
        }
    }
}

//! The kinds of jobs: one file each.
//!
//! A kind's file holds everything pure about the kind: its keys in a workflow file, how they are read and checked, the
//! payload for the worker, and how people are told what a job does. Nothing outside this folder knows the kinds, except
//! the worker's handlers. `docs/contributing/adding-a-job-kind.md` shows how to add one.

pub mod shell;

use serde::{Deserialize, Serialize};

use crate::field::{KnownNames, WorkflowError};
use crate::key::Key;
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::Entry;
use shell::Shell;

/// What a job executes. There is one variant for each kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A script or a program.
    Shell(Shell),
}

impl Action {
    /// An action that does nothing and succeeds, for tests and measurements.
    #[must_use]
    pub fn nothing() -> Action {
        Shell::command(["true"]).into()
    }

    /// The name of the kind, as in the column `jobs.kind`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Action::Shell(_) => shell::KIND.name,
        }
    }

    /// What the worker is told to do, as JSON. `uses` are the names of the jobs whose outputs the templates read.
    #[must_use]
    pub fn payload(&self, uses: &[&str]) -> String {
        match self {
            Action::Shell(shell) => shell.payload(uses),
        }
    }

    /// What the job does, for people.
    #[must_use]
    pub fn summary(&self) -> Summary {
        match self {
            Action::Shell(shell) => shell.summary(),
        }
    }

    /// Checks an action that a program made. Returns the jobs whose outputs its templates read, as indices.
    pub(crate) fn check(&self, names: &KnownNames<'_>) -> Result<Vec<usize>, WorkflowError> {
        match self {
            Action::Shell(shell) => shell.check(names),
        }
    }
}

/// What a job does, for people. Whoever shows it decides how to quote and shorten the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// What the text is, in one word, as in "script".
    pub label: &'static str,
    /// The script or the command.
    pub text: SummaryText,
}

/// The text of a [`Summary`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SummaryText {
    /// One or more lines.
    Lines(String),
    /// Words that need quotes if they contain spaces.
    Words(Vec<String>),
}

impl std::fmt::Display for SummaryText {
    /// Writes the lines, or the words without quotes.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SummaryText::Lines(lines) => formatter.write_str(lines),
            SummaryText::Words(words) => formatter.write_str(&words.join(" ")),
        }
    }
}

/// What the rest of the crate needs to know about a kind to read files and payloads.
pub(crate) struct Kind {
    /// The name in the column `jobs.kind`.
    name: &'static str,
    /// The keys that choose what a job executes. A job has exactly one of these, among those of all kinds.
    action_keys: &'static [ActionKey],
    /// The other keys of the kind that a job may have.
    job_keys: &'static [Key],
    /// The keys of the kind that `[defaults]` may have.
    default_keys: &'static [Key],
    /// Reads the keys of the kind in one job. Gives nothing when a value is wrong, after reporting the error.
    read: ReadAction,
    /// Checks a payload that was enqueued alone. The error is for people.
    check_payload: fn(payload: &str) -> Result<(), String>,
    /// What a job with this payload does, for people. Nothing when the payload is wrong.
    summarize_payload: fn(payload: &str) -> Option<Summary>,
}

type ReadAction = for<'t, 's> fn(
    keys: &[&'t Entry<'s>],
    defaults: &Defaults,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Action>;

/// A key that chooses what a job executes.
pub(crate) struct ActionKey {
    key: Key,
    /// What the value is, for people: "a script".
    holds: &'static str,
}

/// All kinds, in the order in which messages list their keys.
const KINDS: [&Kind; 1] = [&shell::KIND];

/// What `[defaults]` says about the jobs of each kind that has such keys.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    shell: shell::Defaults,
}

impl Defaults {
    /// Reads a key of `[defaults]` that [`is_default_key`] accepts.
    pub(crate) fn read<'t>(
        &mut self,
        entry: &'t Entry<'_>,
        templates: &mut Templates<'t>,
        findings: &mut Findings,
    ) {
        self.shell.read(entry, templates, findings);
    }
}

/// Whether a worker can execute the kind without a handler of the user's program.
#[must_use]
pub fn is_built_in(kind: &str) -> bool {
    find(kind).is_some()
}

/// Checks the payload of a job that is enqueued alone. A kind that is not built in accepts every payload.
///
/// # Errors
/// What is wrong with the payload, for people.
pub fn check_payload(kind: &str, payload: &str) -> Result<(), String> {
    find(kind).map_or(Ok(()), |kind| (kind.check_payload)(payload))
}

/// What a job with this payload does, for people. Nothing when the kind is not built in, or the payload is wrong.
#[must_use]
pub fn summarize_payload(kind: &str, payload: &str) -> Option<Summary> {
    find(kind).and_then(|kind| (kind.summarize_payload)(payload))
}

fn find(name: &str) -> Option<&'static Kind> {
    KINDS.into_iter().find(|kind| kind.name == name)
}

fn action_keys() -> impl Iterator<Item = (&'static Kind, &'static ActionKey)> {
    KINDS.into_iter().flat_map(|kind| kind.action_keys.iter().map(move |key| (kind, key)))
}

/// The keys of all kinds that a job may have.
pub(crate) fn job_keys() -> impl Iterator<Item = Key> {
    KINDS.into_iter().flat_map(|kind| {
        kind.action_keys.iter().map(|action| action.key).chain(kind.job_keys.iter().copied())
    })
}

/// The keys of all kinds that `[defaults]` may have.
pub(crate) fn default_keys() -> impl Iterator<Item = Key> {
    KINDS.into_iter().flat_map(|kind| kind.default_keys.iter().copied())
}

/// Whether the key belongs to a kind, in the table of a job.
pub(crate) fn is_job_key(name: &str) -> bool {
    job_keys().any(|key| key.name == name)
}

/// Whether the key belongs to a kind, in `[defaults]`.
pub(crate) fn is_default_key(name: &str) -> bool {
    default_keys().any(|key| key.name == name)
}

/// Whether the key chooses what a job executes.
pub(crate) fn is_action_key(name: &str) -> bool {
    action_keys().any(|(_kind, action)| action.key.name == name)
}

/// The keys that choose what a job executes, for messages: "`run` or `command`".
pub(crate) fn action_keys_text() -> String {
    listed(action_keys().map(|(_kind, action)| format!("`{}`", action.key.name)).collect())
}

/// Reads what a job executes. `keys` are the entries of the job that [`is_job_key`] accepts. Gives nothing when the job
/// has no action or a wrong one.
pub(crate) fn read<'t>(
    job: &Entry<'_>,
    keys: &[&'t Entry<'_>],
    defaults: &Defaults,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Action> {
    let find = |entry: &Entry<'_>| action_keys().find(|(_kind, action)| action.key.name == entry.key);
    let mut actions =
        keys.iter().filter_map(|entry| find(entry).map(|(kind, action)| (*entry, kind, action)));
    let (first, kind, action) = actions.next()?;
    // The same key twice is an error of the syntax, which was reported.
    if let Some((second, _kind, other)) = actions.find(|(entry, _kind, _action)| entry.key != first.key) {
        let message = format!("job `{}` has both `{}` and `{}`", job.key, first.key, second.key);
        let help = format!(
            "a job executes one thing; keep `{}` for {}, or `{}` for {}",
            first.key, action.holds, second.key, other.holds
        );
        let related = format!("`{}` is here", first.key);
        findings.push(
            Finding::new(second.key_span.clone(), message)
                .related(first.key_span.clone(), related)
                .help(help),
        );
    }
    let belongs = |entry: &Entry<'_>| {
        let is_of_kind = |key: &Key| key.name == entry.key;
        kind.job_keys.iter().any(is_of_kind) || is_action_key(&entry.key)
    };
    for entry in keys.iter().filter(|entry| !belongs(entry)) {
        findings.push(useless_beside(entry, first));
    }
    (kind.read)(keys, defaults, templates, findings)
}

/// The error about a job without an action.
pub(crate) fn nothing_to_execute(job: &Entry<'_>) -> Finding {
    let choices =
        action_keys().map(|(_kind, action)| format!("`{}` with {}", action.key.name, action.holds)).collect();
    Finding::new(job.key_span.clone(), format!("job `{}` has nothing to execute", job.key))
        .label(format!("needs {}", action_keys_text()))
        .help(format!("add {}", listed(choices)))
}

/// The error about a key that has no effect because of what the job executes.
fn useless_beside(entry: &Entry<'_>, action: &Entry<'_>) -> Finding {
    Finding::new(entry.key_span.clone(), format!("`{}` has no effect beside `{}`", entry.key, action.key))
        .related(action.key_span.clone(), format!("`{}` is here", action.key))
}

/// "a", "a or b", "a, b or c".
fn listed(mut words: Vec<String>) -> String {
    let last = words.pop().unwrap_or_default();
    match words.is_empty() {
        true => last,
        false => format!("{} or {last}", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn kinds_have_different_names_and_different_action_keys() {
        let names: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
        let keys: BTreeSet<&str> = action_keys().map(|(_kind, action)| action.key.name).collect();
        assert_eq!(keys.len(), action_keys().count());
    }

    #[test]
    fn a_kind_that_is_not_built_in_accepts_every_payload() {
        assert!(!is_built_in("send-mail"));
        assert_eq!(check_payload("send-mail", "{"), Ok(()));
        assert_eq!(summarize_payload("send-mail", "{}"), None);
    }

    #[test]
    fn alternatives_are_listed_with_or() {
        let list = |words: &[&str]| listed(words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b"]), "a or b");
        assert_eq!(list(&["a", "b", "c"]), "a, b or c");
    }
}

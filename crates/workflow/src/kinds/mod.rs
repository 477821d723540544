//! The kinds of jobs: one file each.
//!
//! A kind's file holds everything pure about the kind: its keys in a workflow file, how they are read and checked, the
//! payload for the worker, and how people are told what a job does. Nothing outside this folder knows the kinds, except
//! the worker's handlers. `docs/contributing/adding-a-job-kind.md` shows how to add one.

pub mod approval;
pub mod call;
pub mod http;
mod json;
mod read;
pub mod shell;
pub mod signal;
pub mod sleep;
mod summary;
pub mod wait_for;

use approval::Approval;
use serde::{Deserialize, Serialize};

use call::Call;

use crate::expression::Place;
use crate::field::{KnownNames, WorkflowError};
use crate::files::{Artifact, Input};
use crate::key::Key;
use crate::report::Findings;
use crate::secrets::JobSecret;
use crate::support::Support;
use crate::template::Templates;
use crate::tree::Entry;
use http::Http;
pub(crate) use http::{AUTH as AUTH_KEYS, HTTP as HTTP_KEYS};
pub(crate) use json::map_texts;
use json::{each_text, read_json};
pub(crate) use read::{
    action_key_names, action_keys_text, is_action_key, is_key, keys, nothing_to_execute, read, useless_beside,
};
use shell::Shell;
pub(crate) use shell::read_plain_command as read_command;
pub(crate) use shell::{ARTIFACT as ARTIFACT_KEYS, CONTAINER_KEYS};
use signal::Signal;
use sleep::Sleep;
pub use summary::{Summary, SummaryText};
use wait_for::WaitFor;

/// What a job executes. There is one variant for each kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A script or a program.
    Shell(Shell),
    /// An HTTP request.
    Http(Box<Http>),
    /// Nothing, until an instant.
    Sleep(Sleep),
    /// Nothing, until an event comes.
    WaitFor(WaitFor),
    /// Nothing, until a person approves or rejects it.
    Approval(Approval),
    /// An event, which the scheduler sends.
    Signal(Box<Signal>),
    /// A run of another workflow.
    Call(Call),
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
            Action::Http(_) => http::KIND.name,
            Action::Sleep(_) => sleep::KIND.name,
            Action::WaitFor(_) => wait_for::KIND.name,
            Action::Approval(_) => approval::KIND.name,
            Action::Signal(_) => signal::KIND.name,
            Action::Call(_) => call::KIND.name,
        }
    }

    /// What the worker is told to do, as JSON. `uses` are the names of the jobs whose outputs the templates read.
    #[must_use]
    pub fn payload(&self, uses: &[&str], secrets: &[JobSecret]) -> String {
        match self {
            Action::Shell(shell) => shell.payload(uses, secrets),
            Action::Http(http) => http.payload(uses, secrets),
            Action::Sleep(sleep) => sleep.payload(),
            Action::WaitFor(wait) => wait.payload(),
            Action::Approval(approval) => approval.payload(),
            Action::Signal(signal) => signal.payload(),
            Action::Call(call) => call.payload(),
        }
    }

    /// What the job does, for people.
    #[must_use]
    pub fn summary(&self) -> Summary {
        match self {
            Action::Shell(shell) => shell.summary(),
            Action::Http(http) => http.summary(),
            Action::Sleep(sleep) => sleep.summary(),
            Action::WaitFor(wait) => wait.summary(),
            Action::Approval(approval) => approval.summary(),
            Action::Signal(signal) => signal.summary(),
            Action::Call(call) => call.summary(),
        }
    }

    /// Whether a worker claims and executes it. The scheduler does the others.
    #[must_use]
    pub fn is_claimed(&self) -> bool {
        match self {
            Action::Shell(_) | Action::Http(_) => true,
            Action::Sleep(_)
            | Action::WaitFor(_)
            | Action::Approval(_)
            | Action::Signal(_)
            | Action::Call(_) => false,
        }
    }

    /// The fields that this version may not support, each with whether it is used.
    pub(crate) fn features(&self) -> Vec<(&'static str, Support, bool)> {
        match self {
            Action::Shell(shell) => shell.features(),
            Action::Http(http) => http.features(),
            Action::Sleep(_) | Action::WaitFor(_) | Action::Approval(_) | Action::Signal(_) => Vec::new(),
            Action::Call(_) => Call::features(),
        }
    }

    /// The names of the secrets that the templates read, in any order.
    pub(crate) fn secrets_read(&self) -> Vec<String> {
        match self {
            Action::Shell(shell) => shell.secrets_read(),
            Action::Http(http) => http.secrets_read(),
            Action::Sleep(_)
            | Action::WaitFor(_)
            | Action::Approval(_)
            | Action::Signal(_)
            | Action::Call(_) => Vec::new(),
        }
    }

    /// The files that the job keeps.
    pub(crate) fn artifacts(&self) -> &[Artifact] {
        match self {
            Action::Shell(shell) => &shell.artifacts,
            Action::Http(_)
            | Action::Call(_)
            | Action::Sleep(_)
            | Action::WaitFor(_)
            | Action::Approval(_)
            | Action::Signal(_) => &[],
        }
    }

    /// The files that the job gets.
    pub(crate) fn inputs(&self) -> &[Input] {
        match self {
            Action::Shell(shell) => &shell.inputs,
            Action::Http(_)
            | Action::Call(_)
            | Action::Sleep(_)
            | Action::WaitFor(_)
            | Action::Approval(_)
            | Action::Signal(_) => &[],
        }
    }

    /// Whether the action starts a process, which can be given variables.
    pub(crate) fn has_process(&self) -> bool {
        match self {
            Action::Shell(_) => true,
            Action::Http(_)
            | Action::Sleep(_)
            | Action::WaitFor(_)
            | Action::Approval(_)
            | Action::Signal(_)
            | Action::Call(_) => false,
        }
    }

    /// Whether the action gives its process a variable of this name by `env`.
    pub(crate) fn sets_variable(&self, name: &str) -> bool {
        match self {
            Action::Shell(shell) => shell.env.contains_key(name),
            Action::Http(_)
            | Action::Sleep(_)
            | Action::WaitFor(_)
            | Action::Approval(_)
            | Action::Signal(_)
            | Action::Call(_) => false,
        }
    }

    /// Checks an action that a program made. Returns the jobs whose outputs its templates read, as indices.
    pub(crate) fn check(&self, names: &KnownNames<'_>) -> Result<Vec<usize>, WorkflowError> {
        match self {
            Action::Shell(shell) => shell.check(names),
            Action::Http(http) => http.check(names),
            Action::Sleep(sleep) => sleep.check(names),
            Action::WaitFor(wait) => wait.check(names),
            Action::Approval(approval) => approval.check(names),
            Action::Signal(signal) => signal.check(names),
            Action::Call(call) => call.check(names),
        }
    }

    /// Where the conditions about the end of an attempt stand: it decides which names they can look up.
    pub(crate) fn end_place(&self) -> Place {
        match self {
            Action::Shell(_)
            | Action::Call(_)
            | Action::Sleep(_)
            | Action::WaitFor(_)
            | Action::Approval(_)
            | Action::Signal(_) => Place::AttemptEnd,
            Action::Http(_) => Place::RequestEnd,
        }
    }

    /// Whether the job only waits, or sends an event: the scheduler ends it, and no worker claims it.
    #[must_use]
    pub fn is_wait(&self) -> bool {
        is_wait(self.kind())
    }
}

/// What the rest of the crate needs to know about a kind to read files and payloads.
pub(crate) struct Kind {
    /// The name in the column `jobs.kind`.
    name: &'static str,
    /// The keys that choose what a job executes. A job has exactly one of these, among those of all kinds.
    action_keys: &'static [ActionKey],
    /// The other keys of the kind.
    other_keys: &'static [Key],
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
const KINDS: &[&Kind] =
    &[&shell::KIND, &http::KIND, &call::KIND, &sleep::KIND, &wait_for::KIND, &approval::KIND, &signal::KIND];

/// What `[defaults]` says about the jobs of each kind that has such keys.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    shell: shell::Defaults,
}

impl Defaults {
    /// Reads an entry of `[defaults]` whose key [`is_key`] accepts.
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

/// The names of the built-in kinds.
pub fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

/// Whether jobs of the kind only wait, or send an event: the scheduler ends them, and no worker claims them.
#[must_use]
pub fn is_wait(kind: &str) -> bool {
    [sleep::KIND.name, wait_for::KIND.name, approval::KIND.name, signal::KIND.name].contains(&kind)
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
    KINDS.iter().copied().find(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn kinds_have_different_names_and_different_action_keys() {
        let names: BTreeSet<&str> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
        let keys: BTreeSet<&str> = read::action_keys().map(|(_kind, action)| action.key.name()).collect();
        assert_eq!(keys.len(), read::action_keys().count());
    }

    #[test]
    fn a_kind_that_is_not_built_in_accepts_every_payload() {
        assert!(!is_built_in("send-mail"));
        assert_eq!(check_payload("send-mail", "{"), Ok(()));
        assert_eq!(summarize_payload("send-mail", "{}"), None);
    }
}

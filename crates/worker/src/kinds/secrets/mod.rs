//! The secrets of one attempt. A worker finds their values before each attempt, and keeps them in memory until its end.
//!
//! What leaves the attempt is masked: see `handler/masker`.

mod command;
mod source;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value as Json};
use windlass_engine::transition::Outcome;
use windlass_system::Clock;
use windlass_system::shortage::is_shortage;
use windlass_workflow::model::{Secret, SecretSource};
use windlass_workflow::secrets::JobSecret;
use windlass_workflow::template::made_of_secrets;

use crate::handler::{Attempt, Masker, SECRET_MIN_CHARS, Stop, StopCause, failed, failed_for_good};
use source::{Missing, Worker};

/// Bytes of the value of a secret, at most.
pub(crate) const SECRET_MAX_BYTES: usize = 64 * 1024;

/// Whether a worker in this process would find the value of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPresence {
    /// It would.
    Found,
    /// A program gives the value, and it was not started.
    NotTried,
    /// It would not, and this is why.
    Missing(String),
}

/// Looks for the value of a secret as an attempt in this process would. `dir` is the folder of the workflow file.
#[must_use]
pub fn look_for_secret(secret: &Secret, dir: Option<&Path>) -> SecretPresence {
    let not_started = |_: &[String]| Err(Missing::Unusable(String::new()));
    let worker = Worker { variable: &|name| std::env::var_os(name), output: &not_started, dir };
    if matches!(secret.source, SecretSource::Command(_)) {
        return SecretPresence::NotTried;
    }
    match worker.find(&secret.name, &secret.source).and_then(check) {
        Ok(_value) => SecretPresence::Found,
        Err(Missing::Unusable(why) | Missing::Failed(why)) => SecretPresence::Missing(why),
        Err(Missing::Io(what, error)) => SecretPresence::Missing(format!("{what}: {error}")),
        Err(Missing::Stopped(_cause)) => SecretPresence::NotTried,
    }
}

/// The value of a secret of this process itself, which no job gets. `dir` is the folder that relative paths and a program start
/// from.
///
/// # Errors
/// Why there is no value, without a part of it.
pub fn find_own_secret(source: &SecretSource, dir: Option<&Path>) -> Result<String, String> {
    let (stop, clock) = (Stop::default(), Clock::system());
    let worker = Worker {
        variable: &|name| std::env::var_os(name),
        output: &|words| command::output(&stop, &clock, words, dir),
        dir,
    };
    worker.find("", source).and_then(check).map_err(|missing| match missing {
        Missing::Unusable(why) | Missing::Failed(why) => why,
        Missing::Io(what, error) => format!("{what}: {error}"),
        Missing::Stopped(_cause) => "its command was stopped".to_owned(),
    })
}

/// The values of the secrets that one job names.
#[derive(Default)]
pub(crate) struct Secrets {
    values: BTreeMap<String, String>,
    /// The names of those that the process gets as variables.
    variables: Vec<String>,
    /// Texts that were made of secrets.
    rendered: RefCell<Vec<String>>,
}

impl Secrets {
    /// Finds the values. `dir` is the folder of the run, against which relative paths are resolved. The error is the outcome
    /// of the attempt that has no value for one of its secrets.
    pub(crate) fn resolve(
        attempt: &Attempt,
        used: &[JobSecret],
        dir: Option<&Path>,
    ) -> Result<Secrets, Outcome> {
        let worker = Worker {
            variable: &|name| std::env::var_os(name),
            output: &|words| command::output(attempt.stop(), attempt.clock(), words, dir),
            dir,
        };
        Secrets::find(&worker, used)
    }

    /// Values that are made up. Nothing is read.
    pub(crate) fn fake(used: &[JobSecret]) -> Secrets {
        let mut secrets = Secrets::default();
        for JobSecret { name, source: _, is_variable } in used {
            secrets.values.insert(name.clone(), format!("the fake secret {name}"));
            if *is_variable {
                secrets.variables.push(name.clone());
            }
        }
        secrets
    }

    fn find(worker: &Worker<'_>, used: &[JobSecret]) -> Result<Secrets, Outcome> {
        let mut secrets = Secrets::default();
        for JobSecret { name, source, is_variable } in used {
            let found = match worker.find(name, source) {
                Ok(bytes) => check(bytes),
                Err(missing) => Err(missing),
            };
            let value = found.map_err(|missing| outcome(name, missing))?;
            secrets.values.insert(name.clone(), value);
            if *is_variable {
                secrets.variables.push(name.clone());
            }
        }
        Ok(secrets)
    }

    /// The variables that the process gets.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().filter_map(|name| Some((name.as_str(), self.values.get(name)?.as_str())))
    }

    /// The values by name, as templates see them.
    pub(crate) fn values(&self) -> Map<String, Json> {
        self.values.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect()
    }

    /// Notes the text that a template with secrets came to, because a filter may have changed a secret in it. Lines that the
    /// template has too are no secrets. A long text is data with a secret in it.
    pub(crate) fn note_rendered(&self, template: &str, text: &str) {
        if text.len() > SECRET_MAX_BYTES {
            return;
        }
        let new = text.lines().filter(|line| template.lines().all(|known| known != *line));
        self.rendered.borrow_mut().extend(new.map(str::to_owned));
    }

    /// Notes the values of the expressions of a template that read secrets, because they may be a part of a secret.
    pub(crate) fn note_parts(&self, template: &str, context: &Json) {
        let parts = made_of_secrets(template, context);
        self.rendered.borrow_mut().extend(parts.into_iter().filter(|text| text.len() <= SECRET_MAX_BYTES));
    }

    /// Masks the secrets in everything that leaves the attempt from now on.
    pub(crate) fn mask(&self, attempt: &Attempt) {
        if !self.values.is_empty() {
            let rendered = self.rendered.borrow();
            attempt.mask(Masker::new(self.values.values().chain(rendered.iter()).map(String::as_str)));
        }
    }
}

/// The value as text, if it can be a secret.
fn check(bytes: Vec<u8>) -> Result<String, Missing> {
    let unusable = |why: &str| Err(Missing::Unusable(why.to_owned()));
    let Ok(value) = String::from_utf8(bytes) else { return unusable("its value is not UTF-8 text") };
    if value.contains('\0') {
        return unusable("its value contains a NUL character, which no process can be given");
    }
    if value.len() > SECRET_MAX_BYTES {
        return unusable(&format!(
            "its value has {} bytes, and the limit is {SECRET_MAX_BYTES}",
            value.len()
        ));
    }
    if value.chars().count() < SECRET_MIN_CHARS {
        return unusable(&format!(
            "its value has fewer than {SECRET_MIN_CHARS} characters; a text so short could not be masked in outputs"
        ));
    }
    Ok(value)
}

/// The outcome of an attempt that has no value for a secret.
fn outcome(name: &str, missing: Missing) -> Outcome {
    match missing {
        Missing::Unusable(why) => failed_for_good(format!("secret `{name}`: {why}")),
        Missing::Failed(why) => failed(format!("secret `{name}`: {why}")),
        Missing::Io(what, error) if is_shortage(&error) => {
            Outcome::OutOfResources { reason: format!("{what}: {error}") }
        }
        Missing::Io(what, error) => failed_for_good(format!("secret `{name}`: {what}: {error}")),
        Missing::Stopped(StopCause::Leaving | StopCause::Fenced) => Outcome::Unstarted,
        Missing::Stopped(
            StopCause::Cancelled | StopCause::TimedOut | StopCause::PastDeadline | StopCause::Killed,
        ) => failed(format!("secret `{name}`: its command was stopped, because the attempt was")),
    }
}

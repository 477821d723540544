//! The payload of the kind `shell`: what the worker is told to do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Container, EnvFile, KIND, OutputSource};
use crate::files::{Artifact, Input};
use crate::kinds::{Summary, SummaryText};
use crate::secrets::JobSecret;
use crate::support::{self, Support};

/// What the worker is told to do, for a job of a workflow and for a job that was enqueued alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payload {
    /// A script for the shell. A payload has either this or `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// A program and its arguments, without a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The program that reads the script after `-c`, preceded by its own arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shell: Vec<String>,
    /// Environment of the process. Values may be templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Working directory, relative to the folder of the run. May be a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// The names of the jobs whose outputs the templates read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<String>,
    /// Where the output comes from.
    #[serde(default)]
    pub output: OutputSource,
    /// The standard input. May be a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Files with variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_files: Vec<EnvFile>,
    /// The secrets that the process gets or that templates read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<JobSecret>,
    /// The files that are put into the folder before each attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// The files that are kept after a success.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The image in which the process runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
}

impl Payload {
    /// Reads and checks a payload.
    ///
    /// # Errors
    /// What is wrong with the payload, for people.
    pub fn parse(json: &str) -> Result<Payload, String> {
        let refuse = |reason: &str| Err(format!("the payload of kind `{}` {reason}", KIND.name));
        let payload: Payload = match serde_json::from_str(json) {
            Ok(payload) => payload,
            Err(error) => return refuse(&format!("cannot be read: {error}")),
        };
        if let Some(key) = payload.unsupported() {
            return refuse(&format!("has `{key}`, which this version does not support"));
        }
        match (&payload.run, &payload.command) {
            (Some(_), None) => Ok(payload),
            (None, Some(command)) if command.is_empty() => {
                refuse("has an empty `command`; list the program and its arguments")
            }
            (None, Some(_)) => Ok(payload),
            (Some(_), Some(_)) | (None, None) => {
                refuse("needs either `run` (a script) or `command` (a list)")
            }
        }
    }
}

impl Payload {
    /// A key that this version does not support.
    fn unsupported(&self) -> Option<&'static str> {
        let used = [
            ("stdin", support::STDIN, self.stdin.is_some()),
            ("env_files", support::ENV_FILES, !self.env_files.is_empty()),
            ("output", support::OUTPUT_LINES, self.output == OutputSource::Lines),
        ];
        let is_refused =
            |(_, support, is_used): &&(&str, Support, bool)| *is_used && *support == Support::Planned;
        used.iter().find(is_refused).map(|(key, _, _)| *key)
    }
}

pub(super) fn check(payload: &str) -> Result<(), String> {
    Payload::parse(payload).map(|_payload| ())
}

pub(super) fn summarize(payload: &str) -> Option<Summary> {
    match Payload::parse(payload).ok()? {
        Payload { run: Some(script), .. } => Some(script_summary(script)),
        Payload { command, .. } => command.map(command_summary),
    }
}

pub(super) fn script_summary(text: String) -> Summary {
    Summary { label: "script", text: SummaryText::Lines(text) }
}

pub(super) fn command_summary(words: Vec<String>) -> Summary {
    Summary { label: "command", text: SummaryText::Words(words) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::kinds::Action;
    use crate::kinds::shell::Shell;

    #[test]
    fn a_payload_has_a_script_or_a_command() {
        assert!(Payload::parse(r#"{"run":"true"}"#).is_ok());
        assert!(Payload::parse(r#"{"command":["true"],"output":"json"}"#).is_ok());
        for wrong in ["{}", r#"{"run":"a","command":["b"]}"#, r#"{"command":[]}"#, r#"{"rnu":"true"}"#, "7"] {
            let message = Payload::parse(wrong).unwrap_err();
            assert!(message.starts_with("the payload of kind `shell` "), "{wrong}: {message}");
        }
    }

    #[test]
    fn the_payload_of_an_action_can_be_parsed() {
        let script = Shell { dir: Some("work".to_owned()), ..Shell::script("echo") };
        let payload = Action::from(script).payload(&["fetch"], &[]);
        assert_eq!(payload, r#"{"run":"echo","dir":"work","uses":["fetch"],"output":"file"}"#);
        assert_eq!(Payload::parse(&payload).unwrap().uses, ["fetch"]);
        let command = Action::from(Shell::command(["ls", "-l"])).payload(&[], &[]);
        assert_eq!(Payload::parse(&command).unwrap().command.unwrap(), ["ls", "-l"]);
    }

    #[test]
    fn people_see_the_script_or_the_words_of_the_command() {
        for (action, label, text) in
            [(Shell::script("a\nb"), "script", "a\nb"), (Shell::command(["ls", "-l"]), "command", "ls -l")]
        {
            let summary = action.summary();
            assert_eq!((summary.label, summary.text.to_string().as_str()), (label, text));
            assert_eq!(summarize(&action.payload(&[], &[])), Some(summary));
        }
        assert_eq!(summarize(r#"{"to": 7}"#), None);
    }
}

//! What a job of kind `shell` is told to do.

use std::collections::BTreeMap;

use serde::Deserialize;
use windlass_workflow::OutputSource;

/// The payload of a job of kind `shell`, of a workflow or enqueued alone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Payload {
    /// A script for the shell, or…
    #[serde(default)]
    pub(super) run: Option<String>,
    /// …a program and its arguments, without a shell.
    #[serde(default)]
    pub(super) command: Option<Vec<String>>,
    /// The program that reads the script with `-c`, and its arguments before that.
    #[serde(default)]
    pub(super) shell: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) dir: Option<String>,
    /// Names of the jobs whose outputs the templates read.
    #[serde(default)]
    pub(super) uses: Vec<String>,
    #[serde(default)]
    pub(super) output: OutputSource,
}

impl Payload {
    /// Reads and checks a payload; the error is for people.
    pub(super) fn parse(json: &str) -> Result<Payload, String> {
        let payload: Payload =
            serde_json::from_str(json).map_err(|error| format!("the payload of kind `shell`: {error}"))?;
        match (&payload.run, &payload.command) {
            (Some(_), None) => Ok(payload),
            (None, Some(command)) if command.is_empty() => {
                Err("the payload of kind `shell`: `command` is empty".to_owned())
            }
            (None, Some(_)) => Ok(payload),
            (Some(_), Some(_)) | (None, None) => {
                Err("the payload of kind `shell` needs either `run` (a script) or `command` (a list)"
                    .to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_has_a_script_or_a_command() {
        assert!(Payload::parse(r#"{"run":"true"}"#).is_ok());
        assert!(Payload::parse(r#"{"command":["true"],"output":"json"}"#).is_ok());
        for wrong in ["{}", r#"{"run":"a","command":["b"]}"#, r#"{"command":[]}"#, r#"{"rnu":"true"}"#, "7"] {
            assert!(Payload::parse(wrong).is_err(), "{wrong}");
        }
    }
}

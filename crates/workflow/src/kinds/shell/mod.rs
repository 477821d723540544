//! The kind `shell`: a job that is a process, either a script or a program with arguments.

mod container;
mod files;
mod payload;
mod read;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Action, ActionKey, Kind, Summary};
use crate::expression::Place;
use crate::field::{self, Checked, KnownNames, WorkflowError};
use crate::files::{Artifact, Input};
use crate::secrets::JobSecret;
use crate::support::{self, Support};
use crate::{env, limits, template};
pub(crate) use container::CONTAINER_KEYS;
pub use container::{Container, Pull, check_argument};
pub use payload::Payload;
use payload::{command_summary, script_summary};
pub(crate) use read::{ARTIFACT, Defaults, read_plain_command};

pub(super) const KIND: Kind = Kind {
    name: "shell",
    action_keys: &[
        ActionKey { key: read::RUN, holds: "a script" },
        ActionKey { key: read::COMMAND, holds: "a program and its arguments" },
    ],
    other_keys: read::OTHER_KEYS,
    read: read::read,
    check_payload: payload::check,
    summarize_payload: payload::summarize,
};

/// A script or a program, with the environment, the folder and the output of its process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
// The lists are no `Vec`, because a file may have 200,000 jobs, and few of them have such lists.
pub struct Shell {
    /// What is executed.
    #[serde(flatten)]
    pub program: Program,
    /// Environment of this job, over that of the workflow. Values may be templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Working directory, relative to the folder of the workflow file. May be a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// Where the job's output comes from.
    pub output: OutputSource,
    /// The standard input. May be a template. Nothing means an empty input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Files with variables, read at the start of each attempt. A later file wins, and `env` wins over all.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub env_files: Box<[EnvFile]>,
    /// The files that are put into the folder of the job before each attempt.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub inputs: Box<[Input]>,
    /// The files that are kept when the job succeeds.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub artifacts: Box<[Artifact]>,
    /// The image in which the process runs. Nothing means that it is a process of the worker's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Box<Container>>,
}

/// A file with variables for a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvFile {
    /// The path, relative to the folder of the workflow file.
    pub path: String,
    /// What happens when there is no such file.
    pub if_missing: IfMissing,
}

/// What happens when a file is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IfMissing {
    /// The attempt fails.
    Fail,
    /// The attempt starts without the file. A file has `"?.env"` for this.
    Ignore,
}

/// What a process executes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// A script for a shell. It is never a template.
    #[serde(rename = "run")]
    Script {
        /// The text of the script.
        text: String,
        /// The program that reads the script after `-c`, preceded by its own arguments. Empty means the worker's default
        /// shell.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shell: Vec<String>,
    },
    /// A program and its arguments, without a shell. Each item may be a template.
    Command(Vec<String>),
}

/// Where a job's output comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputSource {
    /// The file that `WINDLASS_OUTPUT` names, if the job wrote it. The content is JSON when it parses as JSON, else text.
    #[default]
    File,
    /// The standard output as text, without trailing newlines.
    Text,
    /// The standard output, parsed as JSON. Anything else fails the attempt.
    Json,
    /// The lines of the standard output, as a list of texts.
    Lines,
}

impl Shell {
    /// Executes a script with the worker's default shell.
    #[must_use]
    pub fn script(text: impl Into<String>) -> Shell {
        Shell::of(Program::Script { text: text.into(), shell: Vec::new() })
    }

    /// Executes a program with arguments.
    #[must_use]
    pub fn command<Word: Into<String>>(words: impl IntoIterator<Item = Word>) -> Shell {
        Shell::of(Program::Command(words.into_iter().map(Into::into).collect()))
    }

    fn of(program: Program) -> Shell {
        Shell {
            program,
            env: BTreeMap::new(),
            dir: None,
            output: OutputSource::default(),
            stdin: None,
            env_files: Box::default(),
            inputs: Box::default(),
            artifacts: Box::default(),
            container: None,
        }
    }

    pub(super) fn payload(&self, uses: &[&str], secrets: &[JobSecret]) -> String {
        let Shell { program, env, dir, output, stdin, env_files, inputs, artifacts, container } = self;
        let (run, command, shell) = match program {
            Program::Script { text, shell } => (Some(text.clone()), None, shell.clone()),
            Program::Command(words) => (None, Some(words.clone()), Vec::new()),
        };
        let uses = uses.iter().map(|name| (*name).to_owned()).collect();
        let payload = Payload {
            run,
            command,
            shell,
            env: env.clone(),
            dir: dir.clone(),
            uses,
            output: *output,
            stdin: stdin.clone(),
            env_files: env_files.to_vec(),
            secrets: secrets.to_vec(),
            inputs: inputs.to_vec(),
            artifacts: artifacts.to_vec(),
            container: container.as_deref().cloned(),
        };
        serde_json::to_string(&payload).expect("a payload has only string keys")
    }

    pub(super) fn summary(&self) -> Summary {
        match &self.program {
            Program::Script { text, .. } => script_summary(text.clone()),
            Program::Command(words) => command_summary(words.clone()),
        }
    }

    pub(super) fn features(&self) -> Vec<(&'static str, Support, bool)> {
        vec![
            ("action.stdin", support::STDIN, self.stdin.is_some()),
            ("action.env_files", support::ENV_FILES, !self.env_files.is_empty()),
            ("action.output", support::OUTPUT_LINES, self.output == OutputSource::Lines),
        ]
    }

    pub(super) fn secrets_read(&self) -> Vec<String> {
        self.env.values().chain(&self.stdin).flat_map(|text| template::secrets_read(text)).collect()
    }

    pub(super) fn check(&self, names: &KnownNames<'_>) -> Result<Vec<usize>, WorkflowError> {
        let mut read = match &self.program {
            Program::Script { text, shell } => check_script(text, shell).map(|()| Vec::new())?,
            Program::Command(words) => check_command(words, names)?,
        };
        read.extend(env::check(&self.env, "action.env", names, Place::Environment)?);
        if let Some(dir) = &self.dir {
            field::filled(dir, "action.dir")?;
            read.extend(field::outputs_read(dir, "action.dir", names, Place::Command)?);
        }
        if let Some(stdin) = &self.stdin {
            field::plain(stdin, "action.stdin")?;
            read.extend(field::outputs_read(stdin, "action.stdin", names, Place::Environment)?);
        }
        field::within(self.env_files.len(), limits::ENV_FILES, "action.env_files")?;
        for (at, file) in self.env_files.iter().enumerate() {
            field::filled(&file.path, &format!("action.env_files[{at}].path"))?;
        }
        read.extend(self.check_files(names)?);
        if let Some(container) = &self.container {
            read.extend(container.check(names)?);
        }
        Ok(read)
    }
}

impl Shell {
    fn check_files(&self, names: &KnownNames<'_>) -> Result<Vec<usize>, WorkflowError> {
        let mut read = Vec::new();
        field::within(self.artifacts.len(), limits::ARTIFACT_PATTERNS, "action.artifacts")?;
        for (at, artifact) in self.artifacts.iter().enumerate() {
            let field = format!("action.artifacts[{at}].glob");
            field::filled(&artifact.glob, &field)?;
            crate::files::check_glob(&artifact.glob).or_else(|reason| field::refuse(&field, reason))?;
            read.extend(field::outputs_read(&artifact.glob, &field, names, Place::Path)?);
        }
        field::within(self.inputs.len(), limits::INPUTS, "action.inputs")?;
        for (at, Input { to, job, path }) in self.inputs.iter().enumerate() {
            let field = format!("action.inputs[{at}]");
            let parsed = Input::parse(to, &format!("jobs.{job}/{path}"));
            parsed.map(|_input| ()).or_else(|reason| field::refuse(&field, reason))?;
            if self.inputs[..at].iter().any(|other| other.to == *to) {
                field::refuse(&field, "an earlier entry has the same path")?;
            }
            if names.jobs.index(job).is_none() {
                field::refuse(&field, format!("there is no job `{job}`"))?;
            }
            read.extend(field::outputs_read(path, &field, names, Place::Path)?);
        }
        Ok(read)
    }
}

impl From<Shell> for Action {
    fn from(shell: Shell) -> Action {
        Action::Shell(shell)
    }
}

fn check_script(text: &str, shell: &[String]) -> Checked {
    if text.trim().is_empty() {
        field::refuse("action.script", "it is empty")?;
    }
    field::up_to(text, limits::SCRIPT_BYTES, "action.script")?;
    check_items(shell, "action.shell")?;
    match shell.first().is_some_and(|program| program.trim().is_empty()) {
        true => field::refuse("action.shell", "it names no program"),
        false => Ok(()),
    }
}

fn check_command(words: &[String], names: &KnownNames<'_>) -> Result<Vec<usize>, WorkflowError> {
    check_items(words, "action.command")?;
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        field::refuse("action.command", "it names no program")?;
    }
    let mut read = Vec::new();
    for (at, word) in words.iter().enumerate() {
        read.extend(field::outputs_read(word, &format!("action.command[{at}]"), names, Place::Command)?);
    }
    Ok(read)
}

fn check_items(items: &[String], field: &str) -> Checked {
    field::within(items.len(), limits::COMMAND_ITEMS, field)?;
    items.iter().enumerate().try_for_each(|(at, item)| field::plain(item, &format!("{field}[{at}]")))
}

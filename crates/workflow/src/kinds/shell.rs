//! The kind `shell`: a job that is a process, either a script or a program with arguments.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::read::useless_beside;
use super::{Action, ActionKey, Kind, Summary, SummaryText};
use crate::expression::Place;
use crate::field::{self, Checked, KnownNames, WorkflowError};
use crate::keys::{ENV_ELSEWHERE, Key, ValueType};
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::{Entry, Node, Value};
use crate::{env, expect, limits};

pub(super) const KIND: Kind = Kind {
    name: "shell",
    action_keys: &[
        ActionKey {
            key: Key::new("run", &[ValueType::Text], "a script for the shell").elsewhere(&[
                "script",
                "shellcommand",
                "bashcommand",
                "execstart",
            ]),
            holds: "a script",
        },
        ActionKey { key: COMMAND, holds: "a program and its arguments" },
    ],
    other_keys: &[SHELL, ENV, DIR, OUTPUT],
    read,
    check_payload,
    summarize_payload,
};

const COMMAND: Key = Key::new("command", &[ValueType::Texts], "a program and its arguments")
    .template(Place::Command)
    .elsewhere(&["exec", "cmd", "args", "entrypoint"]);
const SHELL: Key = Key::new("shell", &[ValueType::Text, ValueType::Texts], "the shell for `run`")
    .in_defaults()
    .default("/bin/sh -e");
const ENV: Key = Key::new("env", &[ValueType::Values], "environment of this job")
    .template(Place::Environment)
    .elsewhere(ENV_ELSEWHERE);
const DIR: Key = Key::new("dir", &[ValueType::Text], "working directory")
    .in_defaults()
    .default("the folder of the workflow file")
    .template(Place::Command)
    .elsewhere(&["cwd", "workdir", "workingdirectory", "workingdir", "directory"]);
const OUTPUT: Key =
    Key::new("output", &[ValueType::Word], "where the output comes from").in_defaults().default("file");

/// A script or a program, with the environment, the folder and the output of its process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
}

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

fn check_payload(payload: &str) -> Result<(), String> {
    Payload::parse(payload).map(|_payload| ())
}

fn summarize_payload(payload: &str) -> Option<Summary> {
    match Payload::parse(payload).ok()? {
        Payload { run: Some(script), .. } => Some(script_summary(script)),
        Payload { command, .. } => command.map(command_summary),
    }
}

fn script_summary(text: String) -> Summary {
    Summary { label: "script", text: SummaryText::Lines(text) }
}

fn command_summary(words: Vec<String>) -> Summary {
    Summary { label: "command", text: SummaryText::Words(words) }
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
        Shell { program, env: BTreeMap::new(), dir: None, output: OutputSource::default() }
    }

    pub(super) fn payload(&self, uses: &[&str]) -> String {
        let Shell { program, env, dir, output } = self;
        let (run, command, shell) = match program {
            Program::Script { text, shell } => (Some(text.clone()), None, shell.clone()),
            Program::Command(words) => (None, Some(words.clone()), Vec::new()),
        };
        let uses = uses.iter().map(|name| (*name).to_owned()).collect();
        let payload =
            Payload { run, command, shell, env: env.clone(), dir: dir.clone(), uses, output: *output };
        serde_json::to_string(&payload).expect("a payload has only string keys")
    }

    pub(super) fn summary(&self) -> Summary {
        match &self.program {
            Program::Script { text, .. } => script_summary(text.clone()),
            Program::Command(words) => command_summary(words.clone()),
        }
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

/// What `[defaults]` says for all jobs of this kind.
#[derive(Debug, Default)]
pub(super) struct Defaults {
    shell: Option<Vec<String>>,
    dir: Option<String>,
    output: Option<OutputSource>,
}

impl Defaults {
    pub(super) fn read<'t>(
        &mut self,
        entry: &'t Entry<'_>,
        templates: &mut Templates<'t>,
        findings: &mut Findings,
    ) {
        match entry.key.as_ref() {
            "shell" => self.shell = read_shell(entry, findings),
            "dir" => self.dir = read_dir(entry, templates, findings),
            "output" => self.output = read_output(entry, findings),
            _ => (),
        }
    }
}

fn read<'t>(
    keys: &[&'t Entry<'_>],
    defaults: &super::Defaults,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Action> {
    let (mut script, mut command, mut env) = (None, None, BTreeMap::new());
    let mut own = Defaults::default();
    for entry in keys {
        match entry.key.as_ref() {
            "run" => script = read_script(entry, findings),
            "command" => command = read_command(entry, templates, findings),
            "env" => env = env::read(entry, &ENV, templates, findings),
            _ => own.read(entry, templates, findings),
        }
    }
    check_shell_has_script(keys, findings);
    let defaults = &defaults.shell;
    let program = match (script, command) {
        (Some(text), _) => {
            Program::Script { text, shell: own.shell.or_else(|| defaults.shell.clone()).unwrap_or_default() }
        }
        (None, Some(words)) => Program::Command(words),
        (None, None) => return None,
    };
    let dir = own.dir.or_else(|| defaults.dir.clone());
    let output = own.output.or(defaults.output).unwrap_or_default();
    Some(Action::Shell(Shell { program, env, dir, output }))
}

/// A command is executed without a shell, so `shell` beside it is a mistake.
fn check_shell_has_script(keys: &[&Entry<'_>], findings: &mut Findings) {
    let find = |name: &str| keys.iter().find(|entry| entry.key == name);
    if let (Some(shell), Some(command)) = (find("shell"), find("command")) {
        let help = "a command is executed without a shell; remove `shell`, or use `run` with a script";
        findings.push(useless_beside(shell, command).help(help));
    }
}

fn read_script(entry: &Entry<'_>, findings: &mut Findings) -> Option<String> {
    if let Value::List(_) = entry.node.value {
        let help = "write a program and its arguments as `command`";
        expect::wrong_type_help(&entry.node, "`run`", "a string, the script", help, findings);
        return None;
    }
    let script = expect::text_up_to(&entry.node, "`run`", limits::SCRIPT_BYTES, findings)?;
    if script.trim().is_empty() {
        findings.push(Finding::new(entry.node.span.clone(), "`run` is empty").label("write the script here"));
        return None;
    }
    Some(script.to_owned())
}

fn read_command<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Vec<String>> {
    let expected = "a list: the program, then its arguments";
    if let Value::Text(text) = &entry.node.value {
        let words: Vec<_> = text.split_whitespace().map(|word| format!("{word:?}")).collect();
        let help = match text.len() < 200 {
            true => format!("write command = [{}], or use `run` for a script", words.join(", ")),
            false => "use `run` for a script".to_owned(),
        };
        expect::wrong_type_help(&entry.node, "`command`", expected, help, findings);
        return None;
    }
    let items = expect::list(entry, limits::COMMAND_ITEMS, expected, findings)?;
    let mut command = Vec::with_capacity(items.len());
    let mut is_complete = true;
    for item in items {
        match read_word(item, findings) {
            Some(text) => {
                templates.add(item, &COMMAND);
                command.push(text.into_owned());
            }
            None => is_complete = false,
        }
    }
    if is_complete && command.first().is_none_or(|program| program.trim().is_empty()) {
        let finding = Finding::new(entry.node.span.clone(), "`command` names no program");
        findings.push(finding.help("write the program as the first item of the list"));
        return None;
    }
    is_complete.then_some(command)
}

/// One word of a command. Numbers are common arguments, so they need no quotes.
fn read_word<'t>(node: &'t Node<'_>, findings: &mut Findings) -> Option<Cow<'t, str>> {
    if let Value::Integer(integer) = &node.value {
        return Some(Cow::Owned(integer.to_string()));
    }
    if let Value::Number(number) = &node.value {
        return Some(Cow::Owned(number.to_string()));
    }
    expect::text(node, "an item of `command`", findings).map(Cow::Borrowed)
}

/// Reads `"bash -eu"` or `["bash", "-eu"]`.
fn read_shell(entry: &Entry<'_>, findings: &mut Findings) -> Option<Vec<String>> {
    let words = if let Value::Text(text) = &entry.node.value {
        split_shell(text, entry, findings)?
    } else if let Value::List(items) = &entry.node.value {
        expect::list(entry, limits::COMMAND_ITEMS, "a list", findings)?;
        let texts = items.iter().map(|node| expect::text(node, "an item of `shell`", findings));
        texts.map(|text| text.map(str::to_owned)).collect::<Option<Vec<_>>>()?
    } else {
        let expected = "a string like \"bash -eu\" or a list like [\"bash\", \"-eu\"]";
        expect::wrong_type(&entry.node, "`shell`", expected, findings);
        return None;
    };
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        let finding = Finding::new(entry.node.span.clone(), "`shell` names no program");
        findings.push(finding.help("remove `shell` to use the default shell"));
        return None;
    }
    Some(words)
}

fn split_shell(text: &str, entry: &Entry<'_>, findings: &mut Findings) -> Option<Vec<String>> {
    expect::text(&entry.node, "`shell`", findings)?;
    if text.contains(['"', '\'', '\\', '$']) {
        let message = "`shell` as a string is split at spaces, and quotes and `$` have no meaning in it";
        let help = "write a list: shell = [\"bash\", \"-eu\"]";
        findings.push(Finding::new(entry.node.span.clone(), message).help(help));
        return None;
    }
    Some(text.split_whitespace().map(str::to_owned).collect())
}

fn read_dir<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<String> {
    templates.add(&entry.node, &DIR);
    expect::filled_text(&entry.node, "`dir`", findings).map(str::to_owned)
}

fn read_output(entry: &Entry<'_>, findings: &mut Findings) -> Option<OutputSource> {
    let words = [("text", OutputSource::Text), ("json", OutputSource::Json), ("file", OutputSource::File)];
    expect::word(entry, &words, findings)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
        let payload = Action::from(script).payload(&["fetch"]);
        assert_eq!(payload, r#"{"run":"echo","dir":"work","uses":["fetch"],"output":"file"}"#);
        assert_eq!(Payload::parse(&payload).unwrap().uses, ["fetch"]);
        let command = Action::from(Shell::command(["ls", "-l"])).payload(&[]);
        assert_eq!(Payload::parse(&command).unwrap().command.unwrap(), ["ls", "-l"]);
    }

    #[test]
    fn people_see_the_script_or_the_words_of_the_command() {
        for (action, label, text) in
            [(Shell::script("a\nb"), "script", "a\nb"), (Shell::command(["ls", "-l"]), "command", "ls -l")]
        {
            let summary = action.summary();
            assert_eq!((summary.label, summary.text.to_string().as_str()), (label, text));
            assert_eq!(summarize_payload(&action.payload(&[])), Some(summary));
        }
        assert_eq!(summarize_payload(r#"{"to": 7}"#), None);
    }
}

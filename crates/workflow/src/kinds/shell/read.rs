//! Reads the keys of the kind `shell`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::container::CONTAINER;
use super::{EnvFile, IfMissing, OutputSource, Program, Shell};
use super::{container, files};
use crate::expression::Place;
use crate::key::{Key, Table, ValueType};
use crate::kinds::Action;
use crate::kinds::read::useless_beside;
use crate::report::{Finding, Findings};
use crate::template::{self, Templates};
use crate::tree::{Entry, Node, Value};
use crate::{env, expect, limits, support};

/// The keys besides those that choose the action.
pub(super) const OTHER_KEYS: &[Key] =
    &[SHELL, ENV, DIR, OUTPUT, STDIN, ENV_FILES, INPUTS, ARTIFACTS, CONTAINER];

pub(super) const RUN: Key = Key::new("run", &[ValueType::Text], "a script for the shell").elsewhere(&[
    "script",
    "shellcommand",
    "bashcommand",
    "execstart",
]);
pub(super) const COMMAND: Key = Key::new("command", &[ValueType::Words], "a program and its arguments")
    .template(Place::Command)
    .elsewhere(&["exec", "cmd", "args", "entrypoint"]);
const SHELL: Key = Key::new("shell", &[ValueType::Text, ValueType::Texts], "the shell for `run`")
    .in_defaults()
    .default("/bin/sh -e");
const ENV: Key = Key::new("env", &[ValueType::Values], "environment of this job")
    .template(Place::Environment)
    .elsewhere(env::ELSEWHERE);
const DIR: Key = Key::new("dir", &[ValueType::Text], "working directory")
    .in_defaults()
    .default("the folder of the workflow file")
    .template(Place::Command)
    .elsewhere(&["cwd", "workdir", "workingdirectory", "workingdir", "directory"]);
const OUTPUT: Key = Key::new("output", &[ValueType::Word], "where the output comes from")
    .words(&["text", "json", "file", "lines"])
    .in_defaults()
    .default("file");

const STDIN: Key = Key::new("stdin", &[ValueType::Text], "the standard input of the process")
    .support(support::STDIN)
    .template(Place::Environment)
    .elsewhere(&["input", "standardinput"]);
const ENV_FILES: Key =
    Key::new("env_files", &[ValueType::Texts, ValueType::Text], "files with variables for the process")
        .support(support::ENV_FILES)
        .elsewhere(&["dotenv", "envfile", "environmentfile"]);

pub(super) const INPUTS: Key =
    Key::new("inputs", &[ValueType::Values], "artifacts of other jobs that the job gets")
        .template(Place::Path);
pub(super) const ARTIFACTS: Key = Key::new(
    "artifacts",
    &[ValueType::TextsOrTables(Table::Artifact), ValueType::Text],
    "patterns of the files that are kept when the job succeeds",
)
.template(Place::Path)
.elsewhere(&["outputfiles", "archive"]);
pub(super) const GLOB: Key = Key::new("glob", &[ValueType::Text], "the pattern of the files")
    .template(Place::Path)
    .elsewhere(&["path", "paths", "pattern", "files"]);
const REQUIRED: Key =
    Key::new("required", &[ValueType::Boolean], "whether the attempt fails if no file matches")
        .default("false");

/// The keys of an item of `artifacts`.
pub(crate) const ARTIFACT: &[Key] = &[GLOB, REQUIRED];

/// What `[defaults]` says for all jobs of this kind.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    shell: Option<Vec<String>>,
    dir: Option<String>,
    output: Option<OutputSource>,
}

impl Defaults {
    pub(crate) fn read<'t>(
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

pub(super) fn read<'t>(
    keys: &[&'t Entry<'_>],
    defaults: &crate::kinds::Defaults,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Action> {
    let (mut script, mut command, mut env) = (None, None, BTreeMap::new());
    let (mut stdin, mut env_files) = (None, Vec::new());
    let (mut inputs, mut artifacts, mut container) = (Vec::new(), Vec::new(), None);
    let mut own = Defaults::default();
    for entry in keys {
        match entry.key.as_ref() {
            "run" => script = read_script(entry, templates, findings),
            "command" => command = read_command(entry, templates, findings),
            "env" => env = env::read(entry, &ENV, templates, findings),
            "stdin" => stdin = read_stdin(entry, templates, findings),
            "env_files" => env_files = read_env_files(entry, findings),
            "inputs" => inputs = files::read_inputs(entry, templates, findings),
            "artifacts" => artifacts = files::read_artifacts(entry, templates, findings),
            "container" => container = container::read(entry, templates, findings),
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
    Some(Action::Shell(Shell {
        program,
        env,
        dir,
        output,
        stdin,
        env_files: env_files.into(),
        inputs: inputs.into(),
        artifacts: artifacts.into(),
        container: container.map(Box::new),
    }))
}

/// A command is executed without a shell, so `shell` beside it is a mistake.
fn check_shell_has_script(keys: &[&Entry<'_>], findings: &mut Findings) {
    let find = |name: &str| keys.iter().find(|entry| entry.key == name);
    if let (Some(shell), Some(command)) = (find("shell"), find("command")) {
        let help = "a command is executed without a shell; remove `shell`, or use `run` with a script";
        findings.push(useless_beside(shell, command).help(help));
    }
}

fn read_script<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<String> {
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
    templates.add_script(&entry.node);
    Some(script.to_owned())
}

fn read_command<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Vec<String>> {
    if let Value::Text(text) = &entry.node.value {
        let words: Vec<_> = text.split_whitespace().map(|word| format!("{word:?}")).collect();
        let help = match text.len() < 200 {
            true => format!("write command = [{}], or use `run` for a script", words.join(", ")),
            false => "use `run` for a script".to_owned(),
        };
        expect::wrong_type_help(&entry.node, "`command`", COMMAND_FORM, help, findings);
        return None;
    }
    if let Value::List(items) = &entry.node.value {
        items.iter().for_each(|item| templates.add(item, &COMMAND));
    }
    read_plain_command(entry, findings)
}

const COMMAND_FORM: &str = "a list: the program, then its arguments";

/// Reads a program and its arguments.
pub(crate) fn read_plain_command(entry: &Entry<'_>, findings: &mut Findings) -> Option<Vec<String>> {
    let items = expect::list(entry, limits::COMMAND_ITEMS, COMMAND_FORM, findings)?;
    let texts: Vec<Option<Cow<'_, str>>> = items.iter().map(|item| read_word(item, findings)).collect();
    let words: Vec<String> =
        texts.into_iter().map(|text| text.map(Cow::into_owned)).collect::<Option<_>>()?;
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        let finding = Finding::new(entry.node.span.clone(), "`command` names no program");
        findings.push(finding.help("write the program as the first item of the list"));
        return None;
    }
    Some(words)
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
    let program = words[0].rsplit('/').next().unwrap_or_default();
    if let Some((_, option)) = WITHOUT_C.iter().find(|(name, _)| *name == program) {
        let message = format!("`{program}` reads no script after `-c`, and that is where `shell` puts it");
        let help = format!(
            "write command = [\"{program}\", \"{option}\", \"…\"] in place of `run` and `shell`, or command = \
             [\"{program}\", \"FILE\"]"
        );
        findings.push(Finding::new(entry.node.span.clone(), message).help(help));
        return None;
    }
    Some(words)
}

/// Programs to which `-c` means something else, with the option after which they read a script.
const WITHOUT_C: [(&str, &str); 9] = [
    ("node", "-e"),
    ("nodejs", "-e"),
    ("bun", "-e"),
    ("deno", "eval"),
    ("ruby", "-e"),
    ("perl", "-e"),
    ("lua", "-e"),
    ("php", "-r"),
    ("Rscript", "-e"),
];

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

fn read_stdin<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<String> {
    templates.add(&entry.node, &STDIN);
    expect::text(&entry.node, "`stdin`", findings).map(str::to_owned)
}

/// Reads `".env"` or `[".env", "?local.env"]`.
fn read_env_files(entry: &Entry<'_>, findings: &mut Findings) -> Vec<EnvFile> {
    let items = if let Value::Text(_) = &entry.node.value {
        Some(std::slice::from_ref(&entry.node))
    } else {
        let expected = "a list of files like [\".env\"]";
        expect::list(entry, limits::ENV_FILES, expected, findings)
    };
    let mut files = Vec::new();
    for item in items.unwrap_or_default() {
        let Some(text) = expect::filled_text(item, "an item of `env_files`", findings) else { continue };
        let (path, if_missing) = match text.strip_prefix('?') {
            Some(path) => (path, IfMissing::Ignore),
            None => (text, IfMissing::Fail),
        };
        if path.trim().is_empty() {
            findings.push(Finding::new(item.span.clone(), "an item of `env_files` names no file"));
        }
        if template::is_template(path) {
            let message = "`env_files` are no templates, so the braces would be a part of the path";
            let help = "write the path of a file; `env` of a job can have values of params";
            findings.push(Finding::new(item.span.clone(), message).help(help));
        }
        files.push(EnvFile { path: path.to_owned(), if_missing });
    }
    files
}

fn read_output(entry: &Entry<'_>, findings: &mut Findings) -> Option<OutputSource> {
    let words = [
        ("text", OutputSource::Text),
        ("json", OutputSource::Json),
        ("file", OutputSource::File),
        ("lines", OutputSource::Lines),
    ];
    let supported = match findings.accepts(support::OUTPUT_LINES) {
        true => &words[..],
        false => &words[..3],
    };
    expect::word(entry, supported, findings)
}

//! What a step of Dagu executes: commands, scripts, requests, other workflows.

use super::calls::{Call, call};
use super::container;
use super::http::http;
use super::job::Draft;
use super::programs::{NO_EQUIVALENT, jq, shell_of, ssh};
use super::script::{Script, command_of, process, script, text_of};
use super::values::{find, literal_word, pairs, plain_key, quoted, scalar, shell_word, table};
use crate::tree::{Entry, Node};

/// What became of the action.
pub(super) enum Action {
    /// A job with a process.
    Process,
    /// A job that calls a file or document.
    Call(Call),
    /// A job of another kind.
    Other,
    /// A job that fails, because the action has no equivalent.
    Nothing,
}

/// The name of the executor, and its settings.
fn executor<'t, 's>(entries: &'t [Entry<'s>], document: &str) -> (String, Vec<&'t Entry<'s>>) {
    let written = find(entries, &["executor", "action"]);
    let nested = written.map(|entry| table(&entry.node)).unwrap_or_default();
    let name = match find(nested, &["type"]).or_else(|| find(entries, &["type"])) {
        Some(entry) => scalar(&entry.node, document),
        None => written.and_then(|entry| scalar(&entry.node, document)),
    };
    let settings = find(nested, &["config"]).or_else(|| find(entries, &["config", "with"]));
    (
        name.unwrap_or_default().to_ascii_lowercase(),
        settings.map(|entry| pairs(&entry.node)).unwrap_or_default(),
    )
}

/// The document that a step calls. In some versions `run` is a script.
fn called(entries: &[Entry<'_>], document: &str) -> Option<String> {
    let call = find(entries, &["call"]).and_then(|entry| scalar(&entry.node, document));
    let action = || {
        let is_run = text_of(entries, &["action"], document)? == "dag.run";
        let with = find(entries, &["with"]).filter(|_| is_run)?;
        text_of(table(&with.node), &["dag"], document)
    };
    let run =
        || text_of(entries, &["run"], document).filter(|run| is_workflow(run.trim(), entries, document));
    call.or_else(action).or_else(run).map(|called| called.trim().to_owned())
}

/// Whether `run` names a workflow. In newer versions it is a script.
fn is_workflow(run: &str, entries: &[Entry<'_>], document: &str) -> bool {
    let is_file = run.ends_with(".yaml") || run.ends_with(".yml");
    let is_program = run.starts_with(['.', '/', '~'])
        || [".sh", ".bash", ".py", ".rb", ".pl", ".js"].iter().any(|end| run.ends_with(end));
    if is_program && !is_file {
        return false;
    }
    let has_params = find(entries, &["params", "parallel"]).is_some();
    // Newer versions write their keys with underscores.
    let is_newer = ["working_dir:", "_on:", "_sec:", "_policy:", "action:", " id:"]
        .iter()
        .any(|key| document.contains(key));
    let is_command = matches!(run, "true" | "false" | "date" | "env" | "ls" | "pwd" | "make" | "hostname");
    let is_name = !run.contains(|c: char| c.is_whitespace() || "$|;&<>()'\"`".contains(c));
    is_name && !run.is_empty() && (is_file || has_params || !(is_newer || is_command))
}

/// The part of the output of a step that has several: `outputs` of a called workflow, `body` of an answer.
pub(super) fn output_part(entries: &[Entry<'_>], document: &str) -> Option<&'static str> {
    let (executor, _) = executor(entries, document);
    match executor.as_str() {
        "http" => Some("body"),
        "dag" | "subworkflow" => Some("outputs"),
        _ => called(entries, document).map(|_| "outputs"),
    }
}

/// Writes the action of a step. The guards are lines of a script that come before it.
pub(super) fn read(node: &Node<'_>, guards: &[String], draft: &mut Draft<'_, '_>) -> Action {
    let document = draft.reader.document;
    let entries = table(node);
    let (executor, settings) = executor(entries, document);
    if let Some(called) = called(entries, document) {
        return call(called, entries, node, draft);
    }
    let command = command_of(node, entries, document);
    match executor.as_str() {
        "" | "shell" | "command" | "sh" | "bash" => {
            if let Some(mut script) = script(entries, &command, draft) {
                script.shell = script.shell.or_else(|| shell_of(&settings, document));
                draft.leave_out_others(settings.iter().copied(), &["shell", "shellargs"], NO_EQUIVALENT);
                contained(entries, draft);
                return process(script, entries, guards, node, draft);
            }
            nothing("a step without a command", node, draft)
        }
        "http" => http(&command, entries, &settings, node, draft),
        "jq" => process(jq(command, entries, &settings, draft), entries, guards, node, draft),
        "ssh" => match ssh(command, entries, &settings, draft) {
            Some(script) => process(script, entries, guards, node, draft),
            None => nothing("an `ssh` step whose host stands elsewhere", node, draft),
        },
        "docker" => docker(command, entries, &settings, guards, node, draft),
        "dag" | "subworkflow" => match command {
            Some(command) => call(command, entries, node, draft),
            None => nothing("a step that calls nothing", node, draft),
        },
        other => nothing(&format!("a step of the kind `{other}`"), node, draft),
    }
}

/// Writes `container` of a job with a process: that of the step, or that of all steps.
fn contained(entries: &[Entry<'_>], draft: &mut Draft<'_, '_>) {
    let Some(entry) = find(entries, &["container"]) else {
        if let Some(container) = draft.reader.container.clone() {
            draft.contain(container);
        }
        return;
    };
    let settings: Vec<&Entry<'_>> = table(&entry.node).iter().collect();
    match container::read(&settings, draft.reader.document, &|text| draft.template(text)) {
        Some((container, left_out)) => {
            left_out.into_iter().for_each(|(setting, why)| draft.leave_out(setting, why));
            draft.contain(container);
        }
        None => draft.leave_out(entry, "write `container` with an image"),
    }
}

/// A step with the executor `docker`: a command in a container, or an image that has its own command.
fn docker(
    command: Option<String>,
    entries: &[Entry<'_>],
    settings: &[&Entry<'_>],
    guards: &[String],
    node: &Node<'_>,
    draft: &mut Draft<'_, '_>,
) -> Action {
    let settings = container::of_executor(settings);
    let read = container::read(&settings, draft.reader.document, &|text| draft.template(text));
    let Some((container, left_out)) = read else {
        return nothing("a `docker` step whose image is missing or computed", node, draft);
    };
    let script = match command {
        Some(command) => {
            left_out.into_iter().for_each(|(setting, why)| draft.leave_out(setting, why));
            draft.contain(container);
            Script { text: command, shell: None }
        }
        None => {
            for setting in settings.iter().filter(|setting| plain_key(setting) != "image") {
                draft.leave_out(setting, "write it as an option of `docker run`");
            }
            Script { text: format!("docker run --rm {}", shell_word(&container.image)), shell: None }
        }
    };
    process(script, entries, guards, node, draft)
}

/// The most lines of a step that stand in a comment.
const SOURCE_LINES: usize = 50;

/// The step as the file has it, in comments for the person who writes the job.
fn source_of(node: &Node<'_>, document: &str) -> Vec<String> {
    let written = document.get(node.span.clone()).unwrap_or_default().trim_end();
    let printable = |line: &str| line.replace(|c: char| c.is_control() && c != '\t', " ");
    let mut lines: Vec<String> = written
        .lines()
        .take(SOURCE_LINES)
        .map(|line| format!("#   {}", printable(line).trim_end()))
        .collect();
    if written.lines().count() > SOURCE_LINES {
        lines.push("#   …".to_owned());
    }
    lines
}

/// A job that fails with the reason, so that the others keep their place.
pub(super) fn nothing(what: &str, node: &Node<'_>, draft: &mut Draft<'_, '_>) -> Action {
    let comment =
        draft.reader.notes.leave_out(&node.span, format!("{what}; the job fails until a person writes it"));
    draft.lines.push(comment);
    draft.lines.extend(source_of(node, draft.reader.document));
    // The text may have names from the file, and a shell must not execute them.
    let text = format!("echo {} >&2\nexit 1", literal_word(&format!("not carried over: {what}")));
    draft.lines.push(format!("run = {}", quoted(&text)));
    Action::Nothing
}

//! Commands and scripts of steps.

use super::actions::Action;
use super::job::Draft;
use super::values::{find, items, list, quoted, scalar, shell_word, table, text};
use crate::tree::{Entry, Node};

/// A script, and the shell that runs it.
pub(super) struct Script {
    pub(super) text: String,
    pub(super) shell: Option<String>,
}

/// The text of `command` with its arguments.
pub(super) fn command_of(node: &Node<'_>, entries: &[Entry<'_>], document: &str) -> Option<String> {
    if let Some(text) = text(node) {
        return Some(text.trim().to_owned());
    }
    let written = find(entries, &["command", "cmd", "run"])?;
    let mut command = match list(&written.node) {
        Some(words) => {
            let words: Vec<String> = words.iter().filter_map(|word| line(word, document)).collect();
            // A list of lines, or of the words of one line.
            match words.len() > 1 && words.first().is_some_and(|word| word.contains(' ')) {
                true => words.join("\n"),
                false => words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "),
            }
        }
        None => scalar(&written.node, document)?.trim().to_owned(),
    };
    if let Some(args) = find(entries, &["args"]) {
        for arg in items(&args.node).into_iter().filter_map(|arg| scalar(arg, document)) {
            command.push(' ');
            command.push_str(&if list(&args.node).is_some() { shell_word(&arg) } else { arg });
        }
    }
    (!command.is_empty()).then_some(command)
}

/// A word of a list. YAML reads a word with a colon as a table of one entry.
fn line(node: &Node<'_>, document: &str) -> Option<String> {
    match table(node) {
        [entry] => Some(format!("{}: {}", entry.key, scalar(&entry.node, document)?)),
        _ => scalar(node, document),
    }
}

pub(super) fn text_of(entries: &[Entry<'_>], keys: &[&str], document: &str) -> Option<String> {
    find(entries, keys).and_then(|entry| scalar(&entry.node, document))
}

/// The script of a step: its `script`, for the program that `command` names.
pub(super) fn script(
    entries: &[Entry<'_>],
    command: &Option<String>,
    draft: &mut Draft<'_, '_>,
) -> Option<Script> {
    let document = draft.reader.document;
    let shell = find(entries, &["shell"]).map(|shell| {
        let words = items(&shell.node).into_iter().filter_map(|word| scalar(word, document));
        words.collect::<Vec<_>>().join(" ")
    });
    let Some(written) = text_of(entries, &["script"], document) else {
        return Some(Script { text: command.clone()?, shell });
    };
    let text = match written.starts_with("#!") {
        true => written.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned()),
        false => written.clone(),
    };
    let named =
        written.lines().next().and_then(|line| line.strip_prefix("#!")).map(|line| line.trim().to_owned());
    let Some(program) = command.clone().or(named) else { return Some(Script { text, shell }) };
    let program = program.trim_start_matches("/usr/bin/env ").to_owned();
    let base = program.split_whitespace().next().unwrap_or_default();
    let base = base.rsplit('/').next().unwrap_or_default();
    Some(match base {
        "sh" | "dash" if !program.contains(' ') => Script { text, shell },
        "bash" | "zsh" | "ksh" => Script { text, shell: Some(program) },
        "sh" | "dash" => Script { text, shell: Some(program) },
        _ => {
            let text = format!("{program} - <<'WINDLASS_END'\n{}\nWINDLASS_END", text.trim_end());
            Script { text, shell }
        }
    })
}

pub(super) fn process(
    script: Script,
    entries: &[Entry<'_>],
    guards: &[String],
    node: &Node<'_>,
    draft: &mut Draft<'_, '_>,
) -> Action {
    let document = draft.reader.document;
    let mut lines: Vec<String> = guards.to_vec();
    for (key, stream) in [("stdout", ">"), ("stderr", "2>")] {
        let Some(entry) = find(entries, &[key]) else { continue };
        match scalar(&entry.node, document) {
            Some(file) => {
                draft.give_variables(&file, node);
                lines.push(format!("exec {stream}{}", shell_word(&draft.script(&file))));
            }
            None => draft.leave_out(entry, "write the redirection in the script"),
        }
    }
    draft.give_variables(&script.text, node);
    lines.push(draft.script(script.text.trim_end()));
    draft.lines.push(format!("run = {}", quoted(&lines.join("\n"))));
    if let Some(shell) = script.shell.filter(|shell| !shell.trim().is_empty()) {
        draft.lines.push(format!("shell = {}", quoted(&shell)));
    }
    if let Some(entry) = find(entries, &["dir", "workingdir"]) {
        let dir = scalar(&entry.node, document).unwrap_or_default();
        match draft.template(&dir) {
            Some(dir) => draft.lines.push(format!("dir = {}", quoted(&dir))),
            None => draft.leave_out(entry, "the folder is computed; write it as `dir`"),
        }
    }
    Action::Process
}

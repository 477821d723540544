//! What a step of Dagu executes: commands, scripts, requests, other workflows.

use super::dag::is_number;
use super::params::words;
use super::references::for_script;
use super::steps::Draft;
use super::values::{find, items, pairs, plain_key, quoted, scalar, shell_word, table, toml_key};
use crate::tree::{Entry, Node, Value};

/// What became of the action.
pub(super) enum Action {
    /// A job with a process.
    Process,
    /// A job that calls this file or document.
    Call(String),
    /// A job of another kind.
    Other,
    /// A job that fails, because the action has no equivalent.
    Nothing,
}

/// The name of the executor, and its settings.
fn executor<'t, 's>(entries: &'t [Entry<'s>], document: &str) -> (String, Vec<&'t Entry<'s>>) {
    let written = find(entries, &["executor"]);
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
    call.or_else(|| {
        let run = find(entries, &["run"]).and_then(|entry| scalar(&entry.node, document))?;
        let is_one_word = !run.trim().contains(char::is_whitespace) && !run.contains(['$', '|', ';']);
        is_one_word.then(|| run.trim().to_owned())
    })
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
            if let Some(script) = script(entries, &command, draft) {
                return process(script, entries, guards, node, draft);
            }
            nothing("a step without a command", node, draft)
        }
        "http" => http(&command, entries, &settings, node, draft),
        "jq" => {
            let raw = settings
                .iter()
                .any(|setting| plain_key(setting) == "raw" && super::values::is_true(&setting.node));
            let query = command.clone().unwrap_or_else(|| ".".to_owned());
            let input = text_of(entries, &["script"], document).unwrap_or_default();
            let option = if raw { " -r" } else { "" };
            let script = format!(
                "jq{option} {} <<'WINDLASS_END'\n{}\nWINDLASS_END",
                shell_word(&query),
                input.trim_end()
            );
            process(Script { text: script, shell: None }, entries, guards, node, draft)
        }
        "ssh" => {
            let text = |key: &str| {
                let setting = settings.iter().find(|setting| plain_key(setting) == key);
                setting.and_then(|setting| scalar(&setting.node, document))
            };
            let Some(host) = text("host").or_else(|| text("ip")) else {
                return nothing("an `ssh` step whose host stands elsewhere", node, draft);
            };
            let mut words = vec!["ssh".to_owned()];
            for (option, value) in [("-i", text("key")), ("-p", text("port"))] {
                words.extend(value.map(|value| format!("{option} {}", shell_word(&value))));
            }
            if text("stricthostkeychecking").is_some_and(|value| value == "false") {
                words.push("-o StrictHostKeyChecking=no".to_owned());
            }
            words.push(shell_word(&text("user").map_or(host.clone(), |user| format!("{user}@{host}"))));
            let remote = command.or_else(|| text_of(entries, &["script"], document)).unwrap_or_default();
            words.push(shell_word(&remote));
            process(Script { text: words.join(" "), shell: None }, entries, guards, node, draft)
        }
        "docker" => {
            let text = |key: &str| settings.iter().find(|setting| plain_key(setting) == key);
            let image = text("image").and_then(|image| scalar(&image.node, document));
            let others = settings
                .iter()
                .filter(|setting| !matches!(plain_key(setting).as_str(), "image" | "autoremove" | "pull"));
            for setting in others.copied().collect::<Vec<_>>() {
                draft.leave_out(setting, "write it as an option of `docker run`");
            }
            match image {
                Some(image) => {
                    let text =
                        format!("docker run --rm {} {}", shell_word(&image), command.unwrap_or_default());
                    process(
                        Script { text: text.trim_end().to_owned(), shell: None },
                        entries,
                        guards,
                        node,
                        draft,
                    )
                }
                None => nothing("a `docker` step without an image", node, draft),
            }
        }
        "dag" | "subworkflow" => match command {
            Some(command) => call(command, entries, node, draft),
            None => nothing("a step that calls nothing", node, draft),
        },
        other => nothing(&format!("a step of the kind `{other}`"), node, draft),
    }
}

struct Script {
    text: String,
    shell: Option<String>,
}

/// The text of `command` with its arguments.
fn command_of(node: &Node<'_>, entries: &[Entry<'_>], document: &str) -> Option<String> {
    if let Value::Text(text) = &node.value {
        return Some(text.trim().to_owned());
    }
    let written = find(entries, &["command", "cmd", "run"])?;
    let mut command = match &written.node.value {
        Value::List(words) => {
            let words: Vec<String> = words.iter().filter_map(|word| scalar(word, document)).collect();
            // A list of lines, or of the words of one line.
            match words.len() > 1 && words.first().is_some_and(|word| word.contains(' ')) {
                true => words.join("\n"),
                false => words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "),
            }
        }
        Value::Text(_)
        | Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken
        | Value::Table(_) => scalar(&written.node, document)?.trim().to_owned(),
    };
    if let Some(args) = find(entries, &["args"]) {
        for arg in items(&args.node).into_iter().filter_map(|arg| scalar(arg, document)) {
            command.push(' ');
            command.push_str(&if matches!(args.node.value, Value::List(_)) { shell_word(&arg) } else { arg });
        }
    }
    (!command.is_empty()).then_some(command)
}

fn text_of(entries: &[Entry<'_>], keys: &[&str], document: &str) -> Option<String> {
    find(entries, keys).and_then(|entry| scalar(&entry.node, document))
}

/// The script of a step: its `script`, for the program that `command` names.
fn script(entries: &[Entry<'_>], command: &Option<String>, draft: &mut Draft<'_, '_>) -> Option<Script> {
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

fn process(
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
                lines.push(format!("exec {stream}{}", shell_word(&for_script(&file))));
            }
            None => draft.leave_out(entry, "write the redirection in the script"),
        }
    }
    draft.give_variables(&script.text, node);
    lines.push(for_script(script.text.trim_end()));
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

fn http(
    command: &Option<String>,
    entries: &[Entry<'_>],
    settings: &[&Entry<'_>],
    node: &Node<'_>,
    draft: &mut Draft<'_, '_>,
) -> Action {
    let document = draft.reader.document;
    let command = command.clone().unwrap_or_default();
    let (method, url) = match command.split_once(char::is_whitespace) {
        Some((method, url)) => (method.to_ascii_uppercase(), url.trim().to_owned()),
        None => ("GET".to_owned(), command.clone()),
    };
    let Some(url) = draft.template(url.trim_matches(['"', '\''])).filter(|url| !url.is_empty()) else {
        return nothing("a request whose address is computed", node, draft);
    };
    let mut fields = vec![format!("url = {}", quoted(&url))];
    if method != "GET" {
        fields.insert(0, format!("method = {}", quoted(&method)));
    }
    for setting in settings {
        let text = scalar(&setting.node, document);
        match (plain_key(setting).as_str(), text) {
            ("headers" | "query", _) => {
                let mut values = Vec::new();
                for pair in pairs(&setting.node) {
                    let value = scalar(&pair.node, document).unwrap_or_default();
                    match draft.template(&value) {
                        Some(value) => values.push(format!("{} = {}", toml_key(&pair.key), quoted(&value))),
                        None => draft.leave_out(pair, "the value is computed"),
                    }
                }
                if !values.is_empty() {
                    fields.push(format!("{} = {{ {} }}", plain_key(setting), values.join(", ")));
                }
            }
            ("body", Some(body)) if body.is_empty() => (),
            ("body", Some(body)) => match draft.template(&body) {
                Some(body) => fields.push(format!("body = {}", quoted(&body))),
                None => draft.leave_out(setting, "the body is computed"),
            },
            ("silent" | "debug" | "json" | "format", _) => (),
            ("timeout", Some(seconds)) if is_number(&seconds) => {
                draft.lines.push(format!("timeout = \"{seconds}s\""))
            }
            _ => draft.leave_out(setting, "there is no equivalent"),
        }
    }
    if let Some(script) = find(entries, &["script"]) {
        draft.leave_out(script, "write the settings of the request in `http`");
    }
    draft.lines.push(format!("http = {{ {} }}", fields.join(", ")));
    Action::Other
}

/// A job that calls another workflow, once or for each item of `parallel`.
fn call(called: String, entries: &[Entry<'_>], node: &Node<'_>, draft: &mut Draft<'_, '_>) -> Action {
    let document = draft.reader.document;
    if let Some(parallel) = find(entries, &["parallel"]) {
        let listed = find(table(&parallel.node), &["items"]).unwrap_or(parallel);
        let texts: Option<Vec<String>> = match &listed.node.value {
            Value::List(items) => items.iter().map(|item| draft.template(&scalar(item, document)?)).collect(),
            Value::Text(_)
            | Value::Integer(_)
            | Value::Number(_)
            | Value::Boolean(_)
            | Value::Date(_)
            | Value::Null
            | Value::Broken
            | Value::Table(_) => None,
        };
        match texts {
            Some(texts) => {
                let most = find(table(&parallel.node), &["maxconcurrent"])
                    .and_then(|most| scalar(&most.node, document));
                let most = most.filter(|most| is_number(most)).map(|most| format!(", max_parallel = {most}"));
                let items = super::values::quoted_list(&texts);
                draft.lines.push(format!("for_each = {{ in = {items}{} }}", most.unwrap_or_default()));
                draft.lines.push("params = { p1 = \"{{ item }}\" }".to_owned());
                return Action::Call(called);
            }
            None => draft.leave_out(parallel, "write the items as `for_each`"),
        }
    }
    let mut params: Vec<String> = Vec::new();
    let written: Vec<(Option<String>, String)> = match find(entries, &["params"]) {
        None => Vec::new(),
        Some(entry) => match &entry.node.value {
            Value::Text(text) => words(text),
            Value::Integer(_)
            | Value::Number(_)
            | Value::Boolean(_)
            | Value::Date(_)
            | Value::Null
            | Value::Broken
            | Value::List(_)
            | Value::Table(_) => {
                let values = pairs(&entry.node);
                let pair =
                    |pair: &&Entry<'_>| Some((Some(pair.key.to_string()), scalar(&pair.node, document)?));
                values.iter().filter_map(pair).collect()
            }
        },
    };
    for (index, (name, value)) in written.iter().enumerate() {
        let name = name.clone().unwrap_or_else(|| format!("p{}", index + 1));
        match draft.template(value) {
            Some(value) => params.push(format!("{} = {}", toml_key(&name), quoted(&value))),
            None => {
                let what = format!("the value of parameter `{name}` is computed: `{value}`");
                let comment = draft.reader.notes.leave_out(&node.span, what);
                draft.lines.push(comment);
            }
        }
    }
    if !params.is_empty() {
        draft.lines.push(format!("params = {{ {} }}", params.join(", ")));
    }
    Action::Call(called)
}

/// A job that fails with the reason, so that the others keep their place.
fn nothing(what: &str, node: &Node<'_>, draft: &mut Draft<'_, '_>) -> Action {
    let comment =
        draft.reader.notes.leave_out(&node.span, format!("{what}; the job fails until a person writes it"));
    draft.lines.push(comment);
    let text = format!("echo {} >&2\nexit 1", shell_word(&format!("not carried over: {what}")));
    draft.lines.push(format!("run = {}", quoted(&text)));
    Action::Nothing
}

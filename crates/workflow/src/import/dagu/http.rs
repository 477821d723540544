//! Steps that send a request.

use super::actions::{Action, nothing};
use super::dag::is_number;
use super::job::Draft;
use super::values::{find, pairs, plain_key, quoted, scalar, toml_key, value_of};
use crate::tree::{Entry, Node};

/// A job that sends the request of a step.
pub(super) fn http(
    command: &Option<String>,
    entries: &[Entry<'_>],
    settings: &[&Entry<'_>],
    node: &Node<'_>,
    draft: &mut Draft<'_, '_>,
) -> Action {
    let document = draft.reader.document;
    let setting = |name: &str| {
        let found = settings.iter().find(|setting| plain_key(setting) == name)?;
        scalar(&found.node, document)
    };
    let command = command.clone().unwrap_or_default();
    let (method, url) = match command.split_once(char::is_whitespace) {
        Some((method, url)) => (method.to_owned(), url.trim().to_owned()),
        None if command.is_empty() => ("GET".to_owned(), setting("url").unwrap_or_default()),
        None => ("GET".to_owned(), command.clone()),
    };
    let method = setting("method").unwrap_or(method).to_ascii_uppercase();
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
                    let value = value_of(&pair.node, document);
                    match value.and_then(|value| draft.template(&value)) {
                        Some(value) => values.push(format!("{} = {}", toml_key(&pair.key), quoted(&value))),
                        None => draft.leave_out(pair, "the value is computed, or is no text"),
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
            ("silent" | "method", _) => (),
            ("debug" | "json", Some(text)) if text == "false" => (),
            ("debug" | "json", _) => draft.leave_out(setting, "the job has `status`, `headers` and `body`"),
            ("url", _) if command.is_empty() => (),
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

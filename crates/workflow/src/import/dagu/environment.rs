//! `env` and `secrets` of a document.

use super::dag::Reader;
use super::references::variable_of;
use super::values::{find, items, pairs, quoted, scalar, table, text};
use crate::tree::{Entry, Node};

/// Reads `env`: a table, or a list of tables and of texts with an equals sign.
pub(super) fn variables(entry: &Entry<'_>, reader: &mut Reader<'_>) {
    let mut added: Vec<(String, String)> = Vec::new();
    let written =
        pairs(&entry.node).into_iter().map(|pair| (pair.key.to_string(), &pair.node, &pair.key_span));
    let texts = items(&entry.node).into_iter().filter_map(|item| {
        let (name, _) = text(item)?.split_once('=')?;
        Some((name.trim().to_owned(), item, &item.span))
    });
    let all: Vec<(String, &Node<'_>, _)> = written.chain(texts).collect();
    for (name, node, span) in all {
        let written = scalar(node, reader.document).unwrap_or_default();
        // In a list the text begins with the name.
        let text = written.strip_prefix(&format!("{name}=")).unwrap_or(&written).to_owned();
        let name = name.trim().to_owned();
        if variable_of(&name) != name || name.starts_with("WINDLASS_") {
            continue;
        }
        match reader.template(&text) {
            Some(value) => {
                added.retain(|(known, _)| *known != name);
                reader.env.retain(|(known, _)| *known != name);
                added.push((name.clone(), value.clone()));
                reader.env.push((name, value));
            }
            None => {
                let what = format!(
                    "the variable `{name}` is computed: `{text}`; set it in the scripts that read it"
                );
                let comment = reader.notes.leave_out(span, what);
                reader.top.push(comment);
            }
        }
    }
}

/// Reads `secrets`. Returns the table with them.
pub(super) fn secrets(entry: &Entry<'_>, reader: &mut Reader<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for item in items(&entry.node) {
        let field =
            |keys: &[&str]| find(table(item), keys).and_then(|field| scalar(&field.node, reader.document));
        let (name, provider, key) = (field(&["name"]), field(&["provider"]), field(&["key", "path"]));
        let source = match (provider.as_deref(), &key) {
            (Some("env"), Some(key)) => Some(format!("{{ env = {} }}", quoted(key))),
            (Some("file"), Some(key)) => Some(format!("{{ file = {} }}", quoted(key))),
            _ => None,
        };
        match (name, source) {
            (Some(name), Some(source)) => {
                lines.push(format!("{name} = {source}"));
                reader.secrets.push(name);
            }
            (name, _) => {
                let what = format!(
                    "the secret `{}` of provider `{}`; write it under [secrets] with `command`",
                    name.unwrap_or_default(),
                    provider.unwrap_or_default()
                );
                let comment = reader.notes.leave_out(&item.span, what);
                reader.top.push(comment);
            }
        }
    }
    if lines.is_empty() { lines } else { [vec!["[secrets]".to_owned()], lines].concat() }
}

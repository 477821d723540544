//! `env` and `secrets` of a document.

use super::dag::Reader;
use super::references::variable_of;
use super::values::{find, items, pairs, plain_key, quoted, scalar, table, text, value_of};
use crate::tree::{Entry, Node};

/// Reads `env`: a table, or a list of tables and of texts with an equals sign.
pub(super) fn variables(entry: &Entry<'_>, reader: &mut Reader<'_>) {
    leave_out_unnamed(entry, reader);
    let written =
        pairs(&entry.node).into_iter().map(|pair| (pair.key.to_string(), &pair.node, &pair.key_span));
    let texts = items(&entry.node).into_iter().filter_map(|item| {
        let (name, _) = text(item)?.split_once('=')?;
        Some((name.trim().to_owned(), item, &item.span))
    });
    let all: Vec<(String, &Node<'_>, _)> = written.chain(texts).collect();
    for (name, node, span) in all {
        let name = name.trim().to_owned();
        let Some(written) = readable(&name, node, reader.document) else {
            let what = format!("the variable `{name}`; it can't have this name, or its value is no text");
            let comment = reader.notes.leave_out(span, what);
            reader.top.push(comment);
            continue;
        };
        // In a list the text begins with the name.
        let text = written.strip_prefix(&format!("{name}=")).unwrap_or(&written).to_owned();
        match reader.template(&text) {
            Some(value) => {
                reader.env.retain(|(known, _)| *known != name);
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

/// The value of a variable, if it can be one here.
fn readable(name: &str, node: &Node<'_>, document: &str) -> Option<String> {
    let is_name = !name.is_empty() && variable_of(name) == name && !name.starts_with("WINDLASS_");
    value_of(node, document).filter(|_| is_name)
}

/// Names the items of `env` that are no variables.
fn leave_out_unnamed(entry: &Entry<'_>, reader: &mut Reader<'_>) {
    let mut lines = Vec::new();
    for item in items(&entry.node) {
        let is_variable = text(item).is_some_and(|text| text.contains('='));
        if !is_variable && table(item).is_empty() {
            reader.leave_out_item(item, "a variable is written as NAME=value", &mut lines);
        }
    }
    reader.top.append(&mut lines);
}

/// Reads `secrets`. Returns their names, and where their values are.
pub(super) fn secrets(entry: &Entry<'_>, reader: &mut Reader<'_>) -> Vec<(String, String)> {
    let mut sources = Vec::new();
    let mut lines = Vec::new();
    for item in items(&entry.node) {
        match secret(item, reader.document) {
            Ok((name, source)) => {
                reader.secrets.push(name.clone());
                sources.push((name, source));
                let others = table(item).iter().filter(|field| !FIELDS.contains(&plain_key(field).as_str()));
                others.for_each(|field| reader.leave_out(field, "a secret has no such key", &mut lines));
            }
            Err(what) => lines.push(reader.notes.leave_out(&item.span, what)),
        }
    }
    reader.top.append(&mut lines);
    sources
}

/// The keys of a secret that [`secret`] reads.
const FIELDS: [&str; 4] = ["name", "provider", "key", "path"];

/// The name of a secret and where its value is, or what is left out.
fn secret(item: &Node<'_>, document: &str) -> Result<(String, String), String> {
    let field = |keys: &[&str]| find(table(item), keys).and_then(|field| scalar(&field.node, document));
    let Some(name) = field(&["name"]).or_else(|| scalar(item, document)) else {
        return Err("a secret without a name".to_owned());
    };
    if name.is_empty() || variable_of(&name) != name {
        return Err(format!("the secret `{name}`; a secret can't have this name"));
    }
    let from = match (field(&["provider"]), field(&["key", "path"]), field(&["ref"])) {
        (Some(provider), Some(key), _) if provider == "env" => {
            return Ok((name, format!("{{ env = {} }}", quoted(&key))));
        }
        (Some(provider), Some(key), _) if provider == "file" => {
            return Ok((name, format!("{{ file = {} }}", quoted(&key))));
        }
        (Some(provider), ..) => format!(" of provider `{provider}`"),
        (None, _, Some(place)) => format!(", which is `{place}` in the store of Dagu"),
        (None, _, None) => ", which is in the store of Dagu".to_owned(),
    };
    Err(format!("the secret `{name}`{from}; write it under [secrets] with `command`"))
}

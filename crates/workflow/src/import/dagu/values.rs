//! Values of Dagu's YAML, which takes several forms for most of them.

use crate::tree::{Entry, Node, Value};

/// A key as all versions of Dagu have it: without underscores and in small letters.
pub(super) fn plain_key(entry: &Entry<'_>) -> String {
    entry.key.chars().filter(|c| *c != '_' && *c != '-').collect::<String>().to_ascii_lowercase()
}

/// A text, a number or a boolean as text. `document` has the spelling of numbers.
pub(super) fn scalar(node: &Node<'_>, document: &str) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.to_string()),
        Value::Integer(_) | Value::Number(_) | Value::Boolean(_) => {
            document.get(node.span.clone()).map(str::to_owned)
        }
        Value::Date(text) => Some(text.clone()),
        Value::Null | Value::Broken | Value::List(_) | Value::Table(_) => None,
    }
}

/// The value of a variable or parameter: nothing is an empty text, and a list or a table is no value.
pub(super) fn value_of(node: &Node<'_>, document: &str) -> Option<String> {
    if matches!(node.value, Value::Null) { Some(String::new()) } else { scalar(node, document) }
}

/// The text, if the value is one.
pub(super) fn text<'t>(node: &'t Node<'_>) -> Option<&'t str> {
    if let Value::Text(text) = &node.value { Some(text) } else { None }
}

/// The items, if the value is a list.
pub(super) fn list<'t, 's>(node: &'t Node<'s>) -> Option<&'t [Node<'s>]> {
    if let Value::List(items) = &node.value { Some(items) } else { None }
}

/// The items of a list; a single value is a list of one.
pub(super) fn items<'t, 's>(node: &'t Node<'s>) -> Vec<&'t Node<'s>> {
    match &node.value {
        Value::List(items) => items.iter().collect(),
        Value::Null | Value::Broken => Vec::new(),
        Value::Text(_)
        | Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Table(_) => vec![node],
    }
}

pub(super) fn table<'t, 's>(node: &'t Node<'s>) -> &'t [Entry<'s>] {
    if let Value::Table(entries) = &node.value { entries } else { &[] }
}

/// The names and values of a table, or of a list of tables.
pub(super) fn pairs<'t, 's>(node: &'t Node<'s>) -> Vec<&'t Entry<'s>> {
    items(node).into_iter().flat_map(table).collect()
}

pub(super) fn find<'t, 's>(entries: &'t [Entry<'s>], keys: &[&str]) -> Option<&'t Entry<'s>> {
    entries.iter().find(|entry| keys.contains(&plain_key(entry).as_str()))
}

pub(super) fn is_true(node: &Node<'_>) -> bool {
    matches!(node.value, Value::Boolean(true))
}

/// A text in the quotes of TOML.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A list of texts in TOML.
pub(super) fn quoted_list<T: AsRef<str>>(texts: &[T]) -> String {
    let items: Vec<String> = texts.iter().map(|text| quoted(text.as_ref())).collect();
    format!("[{}]", items.join(", "))
}

/// A name and a value in TOML, in a table of one line.
pub(super) fn inline_table(entries: &[(String, String)]) -> String {
    let entries: Vec<String> =
        entries.iter().map(|(name, value)| format!("{} = {}", toml_key(name), quoted(value))).collect();
    format!("{{ {} }}", entries.join(", "))
}

pub(super) fn toml_key(name: &str) -> String {
    match !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// A word for the shell.
pub(super) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else if text.contains('$') || text.contains('`') {
        // Dagu puts values into the words of a list too.
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        literal_word(text)
    }
}

/// A word in which a shell replaces nothing.
pub(super) fn literal_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A name that jobs, tags and workflows of a file can have.
pub(super) fn name_of(text: &str, otherwise: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let name = name.trim_end_matches(['-', '.']);
    match name.chars().next() {
        None => otherwise.to_owned(),
        Some(c) if c.is_ascii_alphabetic() || c == '_' => name.chars().take(60).collect(),
        Some(_) => format!("{otherwise}-{}", name.chars().take(50).collect::<String>()),
    }
}

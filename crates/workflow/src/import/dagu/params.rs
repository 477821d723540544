//! `params` of Dagu: positions and names, as a text, a list or a table.

use super::dag::Reader;
use super::references::{has_command, references, variable_of};
use super::values::{find, items, pairs, quoted, scalar, table};
use crate::tree::{Entry, Node, Value};

/// A parameter.
#[derive(Debug, Clone)]
pub(super) struct Param {
    /// The name in Dagu: a word, or a position.
    pub(super) name: String,
    /// The name here.
    pub(super) ours: String,
    pub(super) default: Option<String>,
    pub(super) description: Option<String>,
}

impl Param {
    fn new(name: &str, default: Option<String>) -> Param {
        let ours = match name.starts_with(|c: char| c.is_ascii_digit()) {
            true => format!("p{name}"),
            false => variable_of(name),
        };
        Param { name: name.to_owned(), ours, default, description: None }
    }

    /// The line in `[params]`.
    pub(super) fn line(&self) -> String {
        let default = self
            .default
            .as_ref()
            .map_or("required = true".to_owned(), |default| format!("default = {}", quoted(default)));
        let description = self.description.as_ref().map(|text| format!(", description = {}", quoted(text)));
        format!("{} = {{ {default}{} }}", self.ours, description.unwrap_or_default())
    }
}

/// Reads `params`. A default that is computed is left out, so the parameter becomes required.
pub(super) fn read(entry: &Entry<'_>, reader: &mut Reader<'_>) -> Vec<Param> {
    let mut params: Vec<Param> = Vec::new();
    for (name, value, description) in written(&entry.node, reader.document) {
        let name = name.unwrap_or_else(|| (params.len() + 1).to_string());
        let mut default = value;
        if let Some(text) = default.as_ref().filter(|text| has_command(text) || !references(text).is_empty())
        {
            let what =
                format!("the default `{text}` of parameter `{name}` is computed; give the value with -p");
            let comment = reader.notes.leave_out(&entry.key_span, what);
            reader.top.push(comment);
            default = None;
        }
        if params.iter().all(|param| param.name != name) {
            params.push(Param { description, ..Param::new(&name, default) });
        }
    }
    params
}

/// Adds the parameters that callers give and the workflow does not name. Returns those given by the position of a parameter
/// that has a name.
pub(super) fn add_given<'c>(
    given: impl Iterator<Item = &'c String>,
    params: &mut Vec<Param>,
) -> Vec<(&'c str, String)> {
    let mut misplaced = Vec::new();
    let written = params.len();
    for name in given {
        let place = name.strip_prefix('p').filter(|place| place.starts_with(|c: char| c.is_ascii_digit()));
        let param = Param::new(place.unwrap_or(name), Some(String::new()));
        if params.iter().any(|known| known.ours == param.ours) {
            continue;
        }
        let index =
            place.and_then(|place| place.parse::<usize>().ok()).and_then(|place| place.checked_sub(1));
        if let Some(named) = index.filter(|index| *index < written).and_then(|index| params.get(index)) {
            misplaced.push((name.as_str(), named.ours.clone()));
        }
        params.push(param);
    }
    misplaced
}

type Written = (Option<String>, Option<String>, Option<String>);

fn written(node: &Node<'_>, document: &str) -> Vec<Written> {
    match &node.value {
        Value::Text(text) => words(text).into_iter().map(|(name, value)| (name, Some(value), None)).collect(),
        Value::List(_) => items(node)
            .into_iter()
            .flat_map(|item| match &item.value {
                Value::Table(entries) => of_table(entries, document),
                Value::Text(_)
                | Value::Integer(_)
                | Value::Number(_)
                | Value::Boolean(_)
                | Value::Date(_)
                | Value::Null
                | Value::Broken
                | Value::List(_) => {
                    let text = scalar(item, document).unwrap_or_default();
                    words(&text).into_iter().map(|(name, value)| (name, Some(value), None)).collect()
                }
            })
            .collect(),
        Value::Table(_) => pairs(node).into_iter().map(|entry| of_entry(entry, document)).collect(),
        Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken => scalar(node, document).map(|text| (None, Some(text), None)).into_iter().collect(),
    }
}

/// An item of a list: a description of one parameter, or names and values.
fn of_table(entries: &[Entry<'_>], document: &str) -> Vec<Written> {
    let text = |key: &str| find(entries, &[key]).and_then(|entry| scalar(&entry.node, document));
    match find(entries, &["name"]) {
        Some(name) => {
            vec![(
                scalar(&name.node, document),
                text("default").or_else(|| text("value")),
                text("description"),
            )]
        }
        None => entries.iter().map(|entry| of_entry(entry, document)).collect(),
    }
}

fn of_entry(entry: &Entry<'_>, document: &str) -> Written {
    let fields = table(&entry.node);
    let text = |key: &str| find(fields, &[key]).and_then(|entry| scalar(&entry.node, document));
    match fields.is_empty() {
        true => (Some(entry.key.to_string()), Some(scalar(&entry.node, document).unwrap_or_default()), None),
        false => (Some(entry.key.to_string()), text("default"), text("description")),
    }
}

/// The words of a text, some of them with names: `a "b c" NAME=d`.
pub(super) fn words(text: &str) -> Vec<(Option<String>, String)> {
    let mut words: Vec<(Option<String>, String)> = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.peek() {
        if c.is_whitespace() {
            chars.next();
            continue;
        }
        let (mut name, mut word) = (None, String::new());
        let mut quote = None;
        while let Some(c) = chars.next_if(|c| quote.is_some() || !c.is_whitespace()) {
            match (quote, c) {
                (Some(open), c) if open == c => quote = None,
                (None, '"' | '\'' | '`') => {
                    quote = Some(c);
                    // A text in these quotes is a command.
                    if c == '`' {
                        word.push(c);
                    }
                }
                (None, '=') if name.is_none() && is_name(&word) => name = Some(std::mem::take(&mut word)),
                (_, c) => word.push(c),
            }
        }
        words.push((name, word));
    }
    words
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_have_names_and_quotes() {
        let found: Vec<String> = words("a 'b c' X=1 Y=\"x y\"")
            .into_iter()
            .map(|(name, value)| format!("{}:{value}", name.unwrap_or_default()))
            .collect();
        assert_eq!(found, [":a", ":b c", "X:1", "Y:x y"]);
    }
}

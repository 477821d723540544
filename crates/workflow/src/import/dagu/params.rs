//! `params` of Dagu: positions and names, as a text, a list or a table.

use super::dag::Reader;
use super::references::{has_command, references, variable_of};
use super::values::{find, items, pairs, plain_key, quoted, scalar, table, value_of};
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
    kind: Kind,
}

/// What values a parameter takes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Text,
    Integer,
    Number,
    Boolean,
    Choice(Vec<String>),
}

impl Kind {
    /// The beginning of the line in `[params]`.
    fn keys(&self) -> String {
        match self {
            Kind::Text => String::new(),
            Kind::Integer => "type = \"integer\", ".to_owned(),
            Kind::Number => "type = \"number\", ".to_owned(),
            Kind::Boolean => "type = \"boolean\", ".to_owned(),
            Kind::Choice(choices) => {
                let choices: Vec<String> = choices.iter().map(|choice| quoted(choice)).collect();
                format!("type = \"choice\", choices = [{}], ", choices.join(", "))
            }
        }
    }

    /// A default as it is written here, if it is a value of this kind.
    fn default(&self, text: &str) -> Option<String> {
        let is_plain = match self {
            Kind::Text => return Some(quoted(text)),
            Kind::Choice(choices) => {
                return choices.iter().any(|choice| choice == text).then(|| quoted(text));
            }
            Kind::Integer => text.parse::<i64>().is_ok(),
            Kind::Number => text.parse::<f64>().is_ok_and(f64::is_finite) && !text.ends_with('.'),
            Kind::Boolean => matches!(text, "true" | "false"),
        };
        is_plain.then(|| text.trim_start_matches('+').to_owned())
    }
}

impl Param {
    fn new(name: &str, default: Option<String>) -> Param {
        let ours = match name.starts_with(|c: char| c.is_ascii_digit()) {
            true => format!("p{name}"),
            false => variable_of(name),
        };
        Param { name: name.to_owned(), ours, default, description: None, kind: Kind::Text }
    }

    /// The default as it is written here.
    fn written_default(&self) -> Option<String> {
        self.kind.default(self.default.as_ref()?)
    }

    /// Whether each run must give a value.
    pub(super) fn is_required(&self) -> bool {
        self.written_default().is_none()
    }

    /// The line in `[params]`.
    pub(super) fn line(&self) -> String {
        let default = self
            .written_default()
            .map_or("required = true".to_owned(), |default| format!("default = {default}"));
        let description = self.description.as_ref().map(|text| format!(", description = {}", quoted(text)));
        format!("{} = {{ {}{default}{} }}", self.ours, self.kind.keys(), description.unwrap_or_default())
    }
}

/// Reads `params`. A default that is computed is left out, so the parameter becomes required.
pub(super) fn read(entry: &Entry<'_>, reader: &mut Reader<'_>) -> Vec<Param> {
    let mut params: Vec<Param> = Vec::new();
    for Written { name, value, unreadable, description, fields } in written(&entry.node, reader.document) {
        let name = name.unwrap_or_else(|| (params.len() + 1).to_string());
        let mut default = value;
        if let Some(node) = unreadable {
            let mut lines = Vec::new();
            let why = format!("a default of parameter `{name}` is a text, a number or a boolean");
            reader.leave_out_item(node, &why, &mut lines);
            reader.top.append(&mut lines);
        }
        let span = find(fields, &["default", "value"]).map_or(&entry.key_span, |entry| &entry.key_span);
        let kind = kind_of(&name, fields, reader);
        let required = find(fields, &["required"]).and_then(|entry| scalar(&entry.node, reader.document));
        if default.is_none() && kind == Kind::Text && required.as_deref() == Some("false") {
            default = Some(String::new());
        }
        if let Some(text) = default.as_ref().filter(|text| has_command(text) || !references(text).is_empty())
        {
            let what =
                format!("the default `{text}` of parameter `{name}` is computed; give the value with -p");
            let comment = reader.notes.leave_out(span, what);
            reader.top.push(comment);
            default = None;
        }
        if let Some(text) = default.as_ref().filter(|text| kind.default(text).is_none()) {
            let what = format!("the default `{text}` of parameter `{name}` is no value of its type");
            let comment = reader.notes.leave_out(span, what);
            reader.top.push(comment);
        }
        if params.iter().all(|param| param.name != name) {
            params.push(Param { description, kind, ..Param::new(&name, default) });
        }
    }
    params
}

/// The keys of a parameter that [`read`] and [`kind_of`] carry over.
const CARRIED_OVER: [&str; 7] = ["name", "default", "value", "description", "type", "enum", "required"];

/// What values a parameter takes. Each key that has no equivalent is named.
fn kind_of(name: &str, fields: &[Entry<'_>], reader: &mut Reader<'_>) -> Kind {
    let mut left_out = Vec::new();
    let choices: Vec<String> = find(fields, &["enum"])
        .map(|entry| {
            items(&entry.node).into_iter().filter_map(|item| scalar(item, reader.document)).collect()
        })
        .unwrap_or_default();
    let written = find(fields, &["type"]).and_then(|entry| scalar(&entry.node, reader.document));
    let kind = match written.as_deref() {
        Some("integer" | "number" | "boolean") if !choices.is_empty() => {
            left_out.push("the type beside `enum`".to_owned());
            Kind::Choice(choices)
        }
        _ if !choices.is_empty() => Kind::Choice(choices),
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some("boolean") => Kind::Boolean,
        Some("string") | None => Kind::Text,
        Some(other) => {
            left_out.push(format!("the type `{other}`"));
            Kind::Text
        }
    };
    let others = fields.iter().filter(|entry| !CARRIED_OVER.contains(&plain_key(entry).as_str()));
    left_out.extend(others.map(|entry| format!("`{}`", entry.key)));
    for what in left_out {
        let span = fields.first().map(|entry| entry.key_span.clone());
        let comment =
            reader.notes.leave_out(&span.unwrap_or_default(), format!("{what} of parameter `{name}`"));
        reader.top.push(comment);
    }
    kind
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

/// A parameter as it is written.
#[derive(Default)]
struct Written<'t, 's> {
    name: Option<String>,
    value: Option<String>,
    /// A default that is a list or a table.
    unreadable: Option<&'t Node<'s>>,
    description: Option<String>,
    /// The keys of its description, if it has one.
    fields: &'t [Entry<'s>],
}

impl Written<'_, '_> {
    fn word((name, value): (Option<String>, String)) -> Self {
        Written { name, value: Some(value), ..Written::default() }
    }
}

fn written<'t, 's>(node: &'t Node<'s>, document: &str) -> Vec<Written<'t, 's>> {
    match &node.value {
        Value::Text(text) => words(text).into_iter().map(Written::word).collect(),
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
                    words(&text).into_iter().map(Written::word).collect()
                }
            })
            .collect(),
        Value::Table(_) => pairs(node).into_iter().map(|entry| of_entry(entry, document)).collect(),
        Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken => {
            scalar(node, document).map(|text| Written::word((None, text))).into_iter().collect()
        }
    }
}

/// An item of a list: a description of one parameter, or names and values.
fn of_table<'t, 's>(entries: &'t [Entry<'s>], document: &str) -> Vec<Written<'t, 's>> {
    match find(entries, &["name"]) {
        Some(name) => vec![described(scalar(&name.node, document), entries, document)],
        None => entries.iter().map(|entry| of_entry(entry, document)).collect(),
    }
}

fn described<'t, 's>(name: Option<String>, fields: &'t [Entry<'s>], document: &str) -> Written<'t, 's> {
    let text = |key: &str| find(fields, &[key]).and_then(|entry| scalar(&entry.node, document));
    let value = text("default").or_else(|| text("value"));
    let unreadable = find(fields, &["default", "value"]).map(|field| &field.node);
    let unreadable = unreadable.filter(|node| value_of(node, document).is_none());
    Written { name, value, unreadable, description: text("description"), fields }
}

fn of_entry<'t, 's>(entry: &'t Entry<'s>, document: &str) -> Written<'t, 's> {
    let (name, fields) = (entry.key.to_string(), table(&entry.node));
    match fields.is_empty() {
        true => {
            let value = value_of(&entry.node, document);
            let unreadable = value.is_none().then_some(&entry.node);
            Written { name: Some(name), value, unreadable, ..Written::default() }
        }
        false => described(Some(name), fields, document),
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

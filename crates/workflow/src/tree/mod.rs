//! A file as a tree of values with their positions. TOML and JSON give the same tree.

mod json;
mod size;
mod toml;

use std::borrow::Cow;

pub use size::has_too_many_parts;

use crate::limits;
use crate::report::{Finding, Findings, Span};
use crate::source::{Format, Source};

/// The help for an error of syntax.
const CHECKED_LATER: &str = "correct the syntax first; everything else is checked after that";

/// A value and its position.
#[derive(Debug)]
pub(crate) struct Node<'s> {
    pub(crate) span: Span,
    pub(crate) value: Value<'s>,
}

/// A value in a file.
#[derive(Debug)]
pub(crate) enum Value<'s> {
    Text(Cow<'s, str>),
    Integer(i64),
    Number(f64),
    Boolean(bool),
    /// A date or time of TOML, as the file has it.
    Date(String),
    Null,
    /// A wrong value that was reported.
    Broken,
    List(Vec<Node<'s>>),
    Table(Vec<Entry<'s>>),
}

/// A key and its value.
#[derive(Debug)]
pub(crate) struct Entry<'s> {
    pub(crate) key: Cow<'s, str>,
    pub(crate) key_span: Span,
    pub(crate) node: Node<'s>,
}

impl Node<'_> {
    /// The value as JSON. Nothing if a part of it is wrong, which was reported.
    pub(crate) fn to_json(&self) -> Option<serde_json::Value> {
        Some(match &self.value {
            Value::Text(text) => serde_json::Value::from(text.as_ref()),
            Value::Date(text) => serde_json::Value::from(text.as_str()),
            Value::Integer(integer) => serde_json::Value::from(*integer),
            Value::Number(number) => serde_json::Value::from(*number),
            Value::Boolean(boolean) => serde_json::Value::from(*boolean),
            Value::Null => serde_json::Value::Null,
            Value::Broken => return None,
            Value::List(items) => items.iter().map(Node::to_json).collect::<Option<_>>()?,
            Value::Table(entries) => {
                let field = |entry: &Entry<'_>| Some((entry.key.to_string(), entry.node.to_json()?));
                serde_json::Value::Object(entries.iter().map(field).collect::<Option<_>>()?)
            }
        })
    }
}

impl Value<'_> {
    /// The type of the value for people, as in "found a list".
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Number(_) => "a number",
            Value::Boolean(_) => "a boolean",
            Value::Date(_) => "a date",
            Value::Null => "null",
            Value::Broken => "a broken value",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// Parses the text into a tree, in the order of the file. The result is `None` if the syntax is wrong. After other errors,
/// such as a duplicate key, there is a tree, so that more errors can be found.
pub(crate) fn read<'s>(source: &'s Source, findings: &mut Findings) -> Option<Vec<Entry<'s>>> {
    if has_too_many_parts(&source.text, source.format) {
        let help = format!(
            "the limit is {} words, texts, signs and spaces, and a table counts as several; split the workflow into several, \
             or write it in JSON, which needs fewer parts",
            limits::PARTS
        );
        findings.push(Finding::without_position("the file has too many parts").help(help));
        return None;
    }
    match source.format {
        Format::Toml => toml::read(&source.text, findings),
        Format::Json => json::read(&source.text, findings),
    }
}

fn too_deep(span: Span) -> Finding {
    Finding::new(span, "the file is nested too deeply")
        .label(format!("more than {} lists and tables inside each other", limits::NESTING))
}

fn number_out_of_range(span: Span) -> Finding {
    Finding::new(span, "the number is out of range")
        .label("does not fit into 64 bits")
        .help("write it in quotes if it is meant as text")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn outline(path: &str, text: &str) -> String {
        let source = Source::new(path, text.into()).unwrap();
        let mut findings = Findings::default();
        let Some(entries) = read(&source, &mut findings) else { return "broken".to_owned() };
        if !findings.is_empty() {
            return "with errors".to_owned();
        }
        entries.iter().map(|entry| render(entry, text)).collect::<Vec<_>>().join(" ")
    }

    fn render(entry: &Entry<'_>, text: &str) -> String {
        let value = if let Value::Table(entries) = &entry.node.value {
            let inner: Vec<_> = entries.iter().map(|entry| render(entry, text)).collect();
            format!("{{{}}}", inner.join(" "))
        } else {
            format!("{}@{}", entry.node.value.kind(), &text[entry.node.span.clone()])
        };
        format!("{}@{}={value}", entry.key, &text[entry.key_span.clone()])
    }

    #[test]
    fn both_formats_keep_the_order_and_the_positions() {
        let toml = "z = 1\n[b]\ny = 'x'\n[a]\nq = [1]\n[b.c]\n";
        assert_eq!(
            outline("a.toml", toml),
            "z@z=an integer@1 b@b={y@y=a string@'x' c@c={}} a@a={q@q=a list@[1]}"
        );
        let json = r#"{"z": 1.5, "b": {"y": null}, "a": [true]}"#;
        assert_eq!(
            outline("a.json", json),
            r#"z@"z"=a number@1.5 b@"b"={y@"y"=null@null} a@"a"=a list@[true]"#
        );
    }

    #[test]
    fn json_is_strict() {
        for text in [
            "{a: 1}",
            "{\"a\": 1,}",
            "{'a': 1}",
            "{\"a\": 1} // x",
            "{\"a\": +1}",
            "{\"a\": .5}",
            "{\"a\": 0x1}",
            "{\"a\": \"\n\"}",
            "{\"a\": NaN}",
            "{\"a\": 01}",
            "{\"a\": 1} {}",
            "{\"a\" 1}",
            "[]",
            "",
        ] {
            assert!(["broken", "with errors"].contains(&outline("a.json", text).as_str()), "{text}");
        }
    }

    #[test]
    fn nesting_is_limited_in_both_formats() {
        for depth in [limits::NESTING + 1, 600, 100_000] {
            let lists = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            for text in [
                outline("a.toml", &format!("a = {lists}")),
                outline("a.json", &format!("{{\"a\": {lists}}}")),
            ] {
                assert!(["broken", "with errors"].contains(&text.as_str()), "{depth}: {text}");
            }
        }
        for key in ["a.".repeat(100_000), "a.".repeat(limits::NESTING + 1)] {
            for text in [outline("a.toml", &format!("{key}a = 1")), outline("a.toml", &format!("[{key}a]"))] {
                assert!(["broken", "with errors"].contains(&text.as_str()), "{text}");
            }
        }
        let lists = format!("{}{}", "[".repeat(limits::NESTING - 1), "]".repeat(limits::NESTING - 1));
        assert!(outline("a.toml", &format!("a = {lists}")).starts_with("a@a=a list"));
        assert!(outline("a.json", &format!("{{\"a\": {lists}}}")).starts_with("a@\"a\"=a list"));
    }
}

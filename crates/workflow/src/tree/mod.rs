//! A file as a tree of values with their positions. TOML, JSON and YAML give the same tree.

mod json;
mod size;
mod toml;
mod yaml;

use std::borrow::Cow;

pub use size::has_too_many_parts;

use crate::limits;
use crate::report::{Finding, Findings, Report, Span};
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
    read_text(&source.text, source.format, findings)
}

/// The same for a text.
pub(crate) fn read_text<'s>(
    text: &'s str,
    format: Format,
    findings: &mut Findings,
) -> Option<Vec<Entry<'s>>> {
    if has_too_many_parts(text, format) {
        findings.push(too_many_parts());
        return None;
    }
    match format {
        Format::Toml => toml::read(text, findings),
        Format::Json => json::read(text, findings),
        Format::Yaml => yaml::read(text, findings),
    }
}

/// The names and values of a file, for example the parameters of a run.
///
/// # Errors
/// All errors of syntax.
pub fn read_values(source: &Source) -> Result<serde_json::Map<String, serde_json::Value>, Report> {
    let mut findings = Findings::default();
    let entries = read(source, &mut findings).unwrap_or_default();
    if findings.is_empty() {
        return Ok(entries.iter().map(|entry| (entry.key.to_string(), to_json(&entry.node))).collect());
    }
    Err(Report::new(source.path.as_str(), &source.text, findings))
}

/// The value as JSON. Dates are texts, and a number that JSON does not have is null.
fn to_json(node: &Node<'_>) -> serde_json::Value {
    use serde_json::Value as Json;
    match &node.value {
        Value::Text(text) => Json::from(text.as_ref()),
        Value::Integer(integer) => Json::from(*integer),
        Value::Number(number) => Json::from(*number),
        Value::Boolean(boolean) => Json::from(*boolean),
        Value::Date(date) => Json::from(date.as_str()),
        Value::Null | Value::Broken => Json::Null,
        Value::List(items) => items.iter().map(to_json).collect(),
        Value::Table(entries) => {
            Json::Object(entries.iter().map(|entry| (entry.key.to_string(), to_json(&entry.node))).collect())
        }
    }
}

fn too_many_parts() -> Finding {
    let help = format!(
        "the limit is {} words, texts, signs and spaces, and a table counts as several; split the workflow into several, \
         or write it in JSON, which needs fewer parts",
        limits::PARTS
    );
    Finding::without_position("the file has too many parts").help(help)
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
    fn all_formats_keep_the_order_and_the_positions() {
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
        let yaml = "# ü\nz: 1\nb:\n  y: 'x'\n\"a\":\n  q: [1, é]\n  b:\n  - c\n";
        assert_eq!(
            outline("a.yaml", yaml),
            "z@z=an integer@1 b@b={y@y=a string@'x'} a@\"a\"={q@q=a list@[1, é] b@b=a list@c}"
        );
    }

    #[test]
    fn plain_values_of_yaml_follow_the_core_schema() {
        for (written, kind) in [
            ("no", "a string"),
            ("on", "a string"),
            ("yes", "a string"),
            ("2026-01-31", "a string"),
            ("12:30", "a string"),
            ("1_000", "a string"),
            ("0b1", "a string"),
            ("1.2.3", "a string"),
            ("--1", "a string"),
            (".", "a string"),
            ("e5", "a string"),
            ("1e", "a string"),
            ("'1'", "a string"),
            ("\"true\"", "a string"),
            ("true", "a boolean"),
            ("False", "a boolean"),
            ("~", "null"),
            ("NULL", "null"),
            ("-7", "an integer"),
            ("007", "an integer"),
            ("0o17", "an integer"),
            ("0xfF", "an integer"),
            ("1.", "a number"),
            (".5", "a number"),
            ("-1.5e3", "a number"),
            ("1e3", "a number"),
            (".inf", "a number"),
        ] {
            assert_eq!(outline("a.yaml", &format!("a: {written}\n")), format!("a@a={kind}@{written}"));
        }
        for wrong in
            ["99999999999999999999", "1e999", "!!str x", "!x", "*a", "&a [*a]", "[", "{a: }}", "|x", "@x"]
        {
            let outline = outline("a.yaml", &format!("a: {wrong}\n"));
            assert!(["broken", "with errors"].contains(&outline.as_str()), "{wrong}: {outline}");
        }
    }

    #[test]
    fn aliases_copy_up_to_the_limit() {
        let outline_of = |text: String| outline("a.yaml", &text);
        assert_eq!(
            outline_of("a: &x {b: 1}\nc: *x\n".to_owned()),
            "a@a={b@b=an integer@1} c@c={b@b=an integer@1}"
        );
        let list = |items: usize| format!("a: &x [{}]\n", "1,".repeat(items));
        assert!(outline_of(format!("{}b: *x\n", list(limits::YAML_COPIES - 1))).starts_with("a@a=a list"));
        assert_eq!(outline_of(format!("{}b: *x\n", list(limits::YAML_COPIES))), "broken");
        assert!(
            outline_of(list(limits::YAML_COPIES)).starts_with("a@a=a list"),
            "an anchor alone is no copy"
        );
        let texts = format!("a: &x '{}'\nb: [{}]\n", "x".repeat(400_000), "*x,".repeat(3));
        assert_eq!(outline_of(texts), "broken", "texts count by their size");
        let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let nested = format!("a: &x {}\nb: {}*x{}\n", deep(20), "[".repeat(20), "]".repeat(20));
        assert_eq!(outline_of(nested), "broken", "an alias does not lead around the limit of depth");
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
                outline("a.yaml", &format!("a: {lists}")),
                outline("a.yaml", &format!("a:\n{}x", "- ".repeat(depth))),
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

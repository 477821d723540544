//! Parses JSON into the tree.

use std::collections::HashMap;

use jsonc_parser::common::Ranged;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};
use serde::de::IgnoredAny;

use super::{CHECKED_LATER, Entry, Node, Value, number_out_of_range, too_deep};
use crate::limits;
use crate::report::{Finding, Findings, Span};

/// The options for strict JSON (RFC 8259), without the parser's extensions.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) fn read<'s>(text: &'s str, findings: &mut Findings) -> Option<Vec<Entry<'s>>> {
    let value = match parse_to_ast(text, &CollectOptions::default(), &STRICT) {
        Ok(result) => {
            error_of_strict_parser(text).into_iter().for_each(|finding| findings.push(finding));
            result.value
        }
        Err(error) => {
            findings.push(syntax_error(&error));
            return None;
        }
    };
    match value {
        Some(ast::Value::Object(object)) => Some(entries(object, 1, findings)),
        Some(other) => {
            findings.push(not_an_object(span(&other)));
            None
        }
        None => {
            findings.push(not_an_object(0..text.len()));
            None
        }
    }
}

fn entries<'s>(object: ast::Object<'s>, depth: usize, findings: &mut Findings) -> Vec<Entry<'s>> {
    let mut seen: HashMap<String, Span> = HashMap::new();
    let mut entries = Vec::with_capacity(object.properties.len());
    for property in object.properties {
        let key_span = span(&property.name);
        let (key, node) = (property.name, node(property.value, depth, findings));
        let key = match key {
            ast::ObjectPropName::String(literal) => literal.value,
            ast::ObjectPropName::Word(word) => word.value.into(),
        };
        match seen.get(key.as_ref()) {
            Some(first) => findings.push(
                Finding::new(key_span.clone(), format!("`{key}` is defined twice"))
                    .label("the second definition")
                    .related(first.clone(), "the first definition")
                    .help("remove or rename one of them"),
            ),
            None => {
                seen.insert(key.to_string(), key_span.clone());
            }
        }
        entries.push(Entry { key, key_span, node });
    }
    entries
}

fn node<'s>(value: ast::Value<'s>, depth: usize, findings: &mut Findings) -> Node<'s> {
    let span = span(&value);
    if depth > limits::NESTING {
        findings.push(too_deep(span.clone()));
        return Node { span, value: Value::Broken };
    }
    let value = match value {
        ast::Value::StringLit(literal) => Value::Text(literal.value),
        ast::Value::NumberLit(literal) => number(literal.value, &span, findings),
        ast::Value::BooleanLit(literal) => Value::Boolean(literal.value),
        ast::Value::Object(object) => Value::Table(entries(object, depth + 1, findings)),
        ast::Value::Array(array) => {
            Value::List(array.elements.into_iter().map(|item| node(item, depth + 1, findings)).collect())
        }
        ast::Value::NullKeyword(_) => Value::Null,
    };
    Node { span, value }
}

fn number<'s>(text: &str, span: &Span, findings: &mut Findings) -> Value<'s> {
    let whole = !text.contains(['.', 'e', 'E']);
    if whole && let Ok(integer) = text.parse() {
        return Value::Integer(integer);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && !whole => Value::Number(number),
        Ok(_) | Err(_) => {
            findings.push(number_out_of_range(span.clone()));
            Value::Broken
        }
    }
}

fn span(ranged: &impl Ranged) -> Span {
    let range = ranged.range();
    range.start..range.end
}

fn not_an_object(span: Span) -> Finding {
    Finding::new(span, "a workflow file in JSON is one object").label("expected `{ \"jobs\": … }`")
}

/// Finds an error of syntax that the parser accepts, such as a line break inside a string or a form feed between values.
///
/// serde_json is strict about these, but it gives no positions of values, so it can't replace the other parser.
fn error_of_strict_parser(text: &str) -> Option<Finding> {
    let error = serde_json::from_str::<IgnoredAny>(text).err()?;
    let line_start =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let at = (line_start + error.column().saturating_sub(1)).min(text.len());
    let message = error.to_string();
    let reason = message.split(" at line ").next().unwrap_or_default();
    let finding = Finding::new(at..at + 1, "the file is not valid JSON").label(reason);
    Some(match reason.starts_with("control character") {
        true => finding.help("write a line break as \\n and a tab as \\t"),
        false => finding,
    })
}

fn syntax_error(error: &ParseError) -> Finding {
    let span = error.range().start..error.range().end;
    if matches!(error.kind(), ParseErrorKind::NestingDepthExceeded) {
        return too_deep(span);
    }
    let reason = error.kind().to_string();
    Finding::new(span, "the file is not valid JSON").label(lower_first(&reason)).help(CHECKED_LATER)
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_lowercase().chain(chars).collect())
}

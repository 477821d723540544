//! Parses TOML into the tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{CHECKED_LATER, Entry, Node, Value, number_out_of_range, too_deep};
use crate::limits;
use crate::report::{Finding, Findings, Span};

/// The parser's message for a duplicate key.
const DUPLICATE_KEY: &str = "duplicate key";

/// Parses the text. All errors of syntax are reported, because the parser continues after an error. A duplicate key is an
/// error too, but the tree is usable.
pub(super) fn read<'s>(text: &'s str, findings: &mut Findings) -> Option<Vec<Entry<'s>>> {
    let (root, mut errors) = DeTable::parse_recoverable(text);
    errors.sort_by_key(|error| error.span().map_or(usize::MAX, |span| span.start));
    let mut is_broken = false;
    for error in &errors {
        let finding = syntax_error(error, text);
        let breaks = error.message() != DUPLICATE_KEY;
        let is_first = breaks && !is_broken;
        is_broken |= breaks;
        findings.push(if is_first { finding.help(CHECKED_LATER) } else { finding });
    }
    let entries = entries(root.into_inner(), 1, findings);
    (!is_broken).then_some(entries)
}

fn entries<'s>(table: DeTable<'s>, depth: usize, findings: &mut Findings) -> Vec<Entry<'s>> {
    let mut entries: Vec<Entry<'s>> = table
        .into_iter()
        .map(|(key, value)| Entry {
            key_span: key.span(),
            key: key.into_inner(),
            node: node(value, depth, findings),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_span.start);
    entries
}

fn node<'s>(value: Spanned<DeValue<'s>>, depth: usize, findings: &mut Findings) -> Node<'s> {
    let span = value.span();
    if depth > limits::NESTING {
        findings.push(too_deep(span.clone()));
        return Node { span, value: Value::Broken };
    }
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(integer) => Value::Integer(integer),
            Err(_) => {
                findings.push(number_out_of_range(span.clone()));
                Value::Broken
            }
        },
        DeValue::Float(float) => Value::Number(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(boolean) => Value::Boolean(boolean),
        DeValue::Datetime(datetime) => Value::Date(datetime.to_string()),
        DeValue::Array(items) => {
            Value::List(items.into_iter().map(|item| node(item, depth + 1, findings)).collect())
        }
        DeValue::Table(table) => Value::Table(entries(table, depth + 1, findings)),
    };
    Node { span, value }
}

fn syntax_error(error: &toml::de::Error, text: &str) -> Finding {
    let span = error.span().unwrap_or(text.len()..text.len());
    match error.message() {
        DUPLICATE_KEY => {
            let key = text.get(span.clone()).unwrap_or_default();
            Finding::new(span, format!("`{key}` is defined twice"))
                .label("the second definition")
                .help("remove or rename one of them")
        }
        "recursion limit" => too_deep(span),
        _ if is_bare_text(&span, text) => {
            Finding::new(span, "the file is not valid TOML").label("a text needs quotes")
        }
        message => Finding::new(span, "the file is not valid TOML").label(message),
    }
}

/// Whether a value begins here with a letter. The parser takes it for a wrong number, but a text without quotes was meant.
fn is_bare_text(span: &Span, text: &str) -> bool {
    let before = text.get(..span.start).unwrap_or_default().trim_end_matches([' ', '\t']);
    let value = text.get(span.start..).unwrap_or_default();
    before.ends_with(['=', '[', ',']) && value.starts_with(char::is_alphabetic)
}

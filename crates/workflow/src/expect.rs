//! Reads a value of the expected type, or reports an error at the value.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::expression::Expression;
use crate::key::Key;
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::{Entry, Node, Value};
use crate::{duration, limits};

/// Reports, for example, "`timeout` must be a duration, found an integer". A value that was reported before is not
/// reported again.
pub(crate) fn wrong_type(node: &Node<'_>, what: &str, expected: &str, findings: &mut Findings) {
    if !matches!(node.value, Value::Broken) {
        findings.push(wrong_type_finding(node, what, expected));
    }
}

/// Like [`wrong_type`], with advice on what to write.
pub(crate) fn wrong_type_help(
    node: &Node<'_>,
    what: &str,
    expected: &str,
    help: impl Into<String>,
    findings: &mut Findings,
) {
    if !matches!(node.value, Value::Broken) {
        findings.push(wrong_type_finding(node, what, expected).help(help));
    }
}

fn wrong_type_finding(node: &Node<'_>, what: &str, expected: &str) -> Finding {
    Finding::new(node.span.clone(), format!("{what} must be {expected}"))
        .label(format!("found {}", node.value.kind()))
}

/// The key of an entry, as messages name it.
pub(crate) fn quoted(entry: &Entry<'_>) -> String {
    format!("`{}`", entry.key)
}

/// A text that a process can be given: without NUL, and of a usual length.
pub(crate) fn text<'t>(node: &'t Node<'_>, what: &str, findings: &mut Findings) -> Option<&'t str> {
    text_up_to(node, what, limits::TEXT_BYTES, findings)
}

/// A text without NUL, of at most `limit` bytes.
pub(crate) fn text_up_to<'t>(
    node: &'t Node<'_>,
    what: &str,
    limit: usize,
    findings: &mut Findings,
) -> Option<&'t str> {
    let Value::Text(text) = &node.value else {
        wrong_type(node, what, "a string", findings);
        return None;
    };
    check_text(text, node, what, limit, findings).then_some(text)
}

/// Whether the text is short enough and has no NUL. Reports an error if not.
fn check_text(text: &str, node: &Node<'_>, what: &str, limit: usize, findings: &mut Findings) -> bool {
    if text.len() > limit {
        let label = format!("{} KiB; the limit is {} KiB", text.len().div_ceil(1024), limit / 1024);
        findings.push(
            Finding::new(node.span.clone(), format!("{what} is too long"))
                .label(label)
                .help("write it into a file next to the workflow, and read that file in the job"),
        );
        return false;
    }
    if text.contains('\0') {
        findings.push(
            Finding::new(node.span.clone(), format!("{what} contains a NUL character"))
                .label("no process can be given this text"),
        );
        return false;
    }
    true
}

/// A text that is more than white space.
pub(crate) fn filled_text<'t>(node: &'t Node<'_>, what: &str, findings: &mut Findings) -> Option<&'t str> {
    let text = text(node, what, findings)?;
    if text.trim().is_empty() {
        findings.push(Finding::new(node.span.clone(), format!("{what} is empty")));
        return None;
    }
    Some(text)
}

/// An expression. Its names are checked with the templates.
pub(crate) fn expression<'t>(
    entry: &'t Entry<'_>,
    key: &Key,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Expression> {
    let what = quoted(entry);
    let Value::Text(text) = &entry.node.value else {
        wrong_type(&entry.node, &what, "an expression in quotes, like \"params.x == 1\"", findings);
        return None;
    };
    let text = text.trim();
    if text.is_empty() {
        findings.push(Finding::new(entry.node.span.clone(), format!("{what} is empty")));
        return None;
    }
    if let Some(inside) = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"))
        && !inside.contains("{{")
    {
        let written = format!("{} = {:?}", entry.key, inside.trim());
        let message = format!("an expression stands without braces: `{written}`");
        findings.push(Finding::new(entry.node.span.clone(), message));
        return None;
    }
    templates.add(&entry.node, key);
    Some(Expression::unchecked(text))
}

pub(crate) fn boolean(entry: &Entry<'_>, findings: &mut Findings) -> Option<bool> {
    let Value::Boolean(boolean) = entry.node.value else {
        wrong_type(&entry.node, &quoted(entry), "`true` or `false`", findings);
        return None;
    };
    Some(boolean)
}

/// The value of a key that is no template, and has one.
fn no_template(entry: &Entry<'_>, what: &str) -> Finding {
    let key = quoted(entry);
    Finding::new(entry.node.span.clone(), format!("{key} can't be a template")).label(format!("write {what}"))
}

pub(crate) fn integer(
    entry: &Entry<'_>,
    allowed: RangeInclusive<i64>,
    findings: &mut Findings,
) -> Option<i64> {
    if let Value::Text(text) = &entry.node.value
        && text.contains("{{")
    {
        findings.push(no_template(entry, "a number"));
        return None;
    }
    let Value::Integer(integer) = entry.node.value else {
        wrong_type(&entry.node, &quoted(entry), "an integer", findings);
        return None;
    };
    if !allowed.contains(&integer) {
        findings.push(out_of_range(entry, allowed.start(), allowed.end()));
        return None;
    }
    Some(integer)
}

pub(crate) fn number(
    entry: &Entry<'_>,
    allowed: RangeInclusive<f64>,
    findings: &mut Findings,
) -> Option<f64> {
    let number = if let Value::Integer(integer) = entry.node.value {
        integer as f64
    } else if let Value::Number(number) = entry.node.value {
        number
    } else {
        wrong_type(&entry.node, &quoted(entry), "a number", findings);
        return None;
    };
    if !allowed.contains(&number) {
        findings.push(out_of_range(entry, allowed.start(), allowed.end()));
        return None;
    }
    Some(number)
}

fn out_of_range(entry: &Entry<'_>, least: impl Display, most: impl Display) -> Finding {
    Finding::new(entry.node.span.clone(), format!("`{}` is out of range", entry.key))
        .label(format!("must be between {least} and {most}"))
}

/// The shortest duration that a key allows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShortestDuration {
    Zero,
    OneMillisecond,
}

pub(crate) fn duration_ms(
    entry: &Entry<'_>,
    shortest: ShortestDuration,
    findings: &mut Findings,
) -> Option<i64> {
    let what = quoted(entry);
    if let Value::Integer(seconds) = &entry.node.value {
        let help = format!("write \"{seconds}s\" for seconds, \"{seconds}m\" for minutes");
        wrong_type_help(&entry.node, &what, "a duration with a unit", help, findings);
        return None;
    }
    let Value::Text(text) = &entry.node.value else {
        wrong_type(&entry.node, &what, "a duration like \"90s\" or \"1h 30m\"", findings);
        return None;
    };
    match duration::parse_ms(text) {
        Ok(0) if shortest == ShortestDuration::OneMillisecond => {
            findings.push(
                Finding::new(entry.node.span.clone(), format!("{what} must be longer than zero"))
                    .help("remove the key to have no limit"),
            );
            None
        }
        Ok(milliseconds) => Some(milliseconds),
        Err(_no_duration) if text.contains("{{") => {
            findings.push(no_template(entry, "a duration"));
            None
        }
        Err(reason) => {
            let message = format!("{what} is not a duration");
            findings.push(Finding::new(entry.node.span.clone(), message).label(reason));
            None
        }
    }
}

pub(crate) fn list<'t, 's>(
    entry: &'t Entry<'s>,
    limit: usize,
    expected: &str,
    findings: &mut Findings,
) -> Option<&'t [Node<'s>]> {
    let Value::List(items) = &entry.node.value else {
        wrong_type(&entry.node, &quoted(entry), expected, findings);
        return None;
    };
    within(items.len(), limit, entry, "items", findings).then_some(items)
}

pub(crate) fn table<'t, 's>(
    entry: &'t Entry<'s>,
    limit: usize,
    expected: &str,
    findings: &mut Findings,
) -> Option<&'t [Entry<'s>]> {
    let Value::Table(entries) = &entry.node.value else {
        wrong_type(&entry.node, &quoted(entry), expected, findings);
        return None;
    };
    within(entries.len(), limit, entry, "entries", findings).then_some(entries)
}

fn within(length: usize, limit: usize, entry: &Entry<'_>, unit: &str, findings: &mut Findings) -> bool {
    if length > limit {
        let message = format!("`{}` has too many {unit}", entry.key);
        findings.push(
            Finding::new(entry.key_span.clone(), message).label(format!("{length}; the limit is {limit}")),
        );
    }
    length <= limit
}

/// The value that belongs to one of a few words. `-` is read as `_`, which the words have. The error lists the words and suggests the nearest.
pub(crate) fn word<T: Copy>(entry: &Entry<'_>, words: &[(&str, T)], findings: &mut Findings) -> Option<T> {
    let listed = words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
    let Value::Text(text) = &entry.node.value else {
        wrong_type(&entry.node, &quoted(entry), &format!("one of {listed}"), findings);
        return None;
    };
    let written = text.replace('-', "_");
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == written) {
        return Some(*value);
    }
    let nearest = findings.nearest(text, words.iter().map(|(word, _)| *word));
    let finding = Finding::new(entry.node.span.clone(), format!("`{}` has no value \"{text}\"", entry.key))
        .label(format!("must be one of {listed}"));
    findings.push(match nearest {
        Some(word) => finding.help(format!("did you mean \"{word}\"?")),
        None => finding,
    });
    None
}

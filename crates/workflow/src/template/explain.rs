//! Which look-up found nothing, and what there is instead.

use serde_json::Value;

use super::expression::{Reference, Segment};

/// Names that an explanation lists at most.
const LISTED: usize = 20;

/// The first look-up that leads to nothing or to null, in words. Values are never shown.
pub(super) fn missing(references: &[Reference], context: &Value) -> Option<String> {
    references.iter().find_map(|reference| missing_one(&reference.path, context))
}

fn missing_one(path: &[Segment], context: &Value) -> Option<String> {
    let mut value = context;
    for (depth, segment) in path.iter().enumerate() {
        let next = match segment {
            Segment::Name(name) => value.get(name),
            Segment::Index(index) => item(value, *index),
            Segment::Computed => return None,
        };
        match next {
            Some(next) => value = next,
            None => return Some(absent(&path[..depth], segment, value)),
        }
    }
    value.is_null().then(|| null(path))
}

fn item(value: &Value, index: i64) -> Option<&Value> {
    let items = value.as_array()?;
    let from_end = usize::try_from(index.unsigned_abs()).ok()?;
    if index < 0 { items.get(items.len().checked_sub(from_end)?) } else { items.get(from_end) }
}

fn absent(parent: &[Segment], segment: &Segment, value: &Value) -> String {
    let parent_text = text(parent);
    match (segment, value) {
        (Segment::Index(index), Value::Array(items)) => {
            format!("`{parent_text}` has no item {index}; it has {} items", items.len())
        }
        (_, Value::Null) => null(parent),
        (Segment::Name(name), Value::Object(fields)) => {
            let there = match fields.len() {
                0 => "it is empty".to_owned(),
                more if more > LISTED => {
                    let first: Vec<&str> = fields.keys().take(LISTED).map(String::as_str).collect();
                    format!("it has {} and {} more", first.join(", "), more - LISTED)
                }
                _ => format!("it has {}", fields.keys().cloned().collect::<Vec<_>>().join(", ")),
            };
            match parent.is_empty() {
                true => format!("there is no `{name}`"),
                false => format!("`{parent_text}` has no field `{name}`; {there}"),
            }
        }
        (Segment::Name(_) | Segment::Index(_) | Segment::Computed, other) => {
            let kind = match other {
                Value::Null => "null",
                Value::Bool(_) => "a boolean",
                Value::Number(_) => "a number",
                Value::String(_) => "text",
                Value::Array(_) => "a list",
                Value::Object(_) => "an object",
            };
            format!("`{parent_text}` is {kind}, so it has no `{}`", text(std::slice::from_ref(segment)))
        }
    }
}

fn null(path: &[Segment]) -> String {
    match path {
        [Segment::Name(jobs), Segment::Name(job), Segment::Name(output)]
            if jobs == "jobs" && output == "output" =>
        {
            format!("job `{job}` has no output; it prints or writes one when it says where (`output`)")
        }
        [Segment::Name(params), Segment::Name(name)] if params == "params" => {
            format!(
                "parameter `{name}` has no value; give it one, or write {{{{ params.{name} | default(\"\") }}}}"
            )
        }
        _ => format!("`{}` is null", text(path)),
    }
}

/// A path as it is written.
pub(super) fn text(path: &[Segment]) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Name(name) if is_plain(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Segment::Name(name) => text.push_str(&format!("[{name:?}]")),
            Segment::Index(index) => text.push_str(&format!("[{index}]")),
            Segment::Computed => text.push_str("[…]"),
        }
    }
    text
}

/// Whether the name can follow a dot.
pub(super) fn is_plain(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

//! Explains which look-up of an expression found no value.

use serde_json::Value;

use super::lookup::{Lookup, Segment, path_text};

/// The largest number of names that an explanation lists.
const LISTED: usize = 20;

/// Explains the first look-up that leads to nothing or to null. The explanation has names and no values, because values
/// may be secret.
pub(crate) fn explain(lookups: &[Lookup], context: &Value) -> Option<String> {
    lookups.iter().find_map(|lookup| explain_path(&lookup.path, context))
}

/// Explains the first look-up that leads to nothing. A look-up may lead to null.
pub(super) fn explain_absent(lookups: &[Lookup], context: &Value) -> Option<String> {
    lookups.iter().find_map(|lookup| follow(&lookup.path, context).err())
}

fn explain_path(path: &[Segment], context: &Value) -> Option<String> {
    match follow(path, context) {
        Ok(Some(Value::Null)) => Some(null(path)),
        Ok(_) => None,
        Err(absent) => Some(absent),
    }
}

/// The value of a look-up, unless a part of its path is computed. The error says what is absent.
fn follow<'v>(path: &[Segment], context: &'v Value) -> Result<Option<&'v Value>, String> {
    let mut value = context;
    for (depth, segment) in path.iter().enumerate() {
        let next = match segment {
            Segment::Name(name) => value.get(name),
            Segment::Index(index) => item(value, *index),
            Segment::Computed => return Ok(None),
        };
        match next {
            Some(next) => value = next,
            None => return Err(absent(&path[..depth], segment, value)),
        }
    }
    Ok(Some(value))
}

fn item(value: &Value, index: i64) -> Option<&Value> {
    let items = value.as_array()?;
    let from_end = usize::try_from(index.unsigned_abs()).ok()?;
    if index < 0 { items.get(items.len().checked_sub(from_end)?) } else { items.get(from_end) }
}

fn absent(parent: &[Segment], segment: &Segment, value: &Value) -> String {
    let parent_text = path_text(parent);
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
                _ if parent_text == "variables" => no_variable(name),
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
            format!("`{parent_text}` is {kind}, so it has no `{}`", path_text(std::slice::from_ref(segment)))
        }
    }
}

fn no_variable(name: &str) -> String {
    format!(
        "there is no variable `{name}`; set it with `windlass variable set {name} VALUE`, or write \
         variables.{name} | default(…)"
    )
}

fn null(path: &[Segment]) -> String {
    match path {
        [Segment::Name(jobs), Segment::Name(job), Segment::Name(output)]
            if jobs == "jobs" && output == "output" =>
        {
            format!(
                "job `{job}` has no output; its key `output`, or `outputs` of the workflow that it calls, says where \
                 the output comes from"
            )
        }
        [Segment::Name(params), Segment::Name(name)] if params == "params" => {
            format!(
                "parameter `{name}` has no value; give it one, or write {{{{ params.{name} | default(\"\") }}}}"
            )
        }
        _ => format!("`{}` is null", path_text(path)),
    }
}

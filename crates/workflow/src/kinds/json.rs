//! JSON values in a file whose texts may be templates.

use serde_json::{Map, Number, Value as Json};

use crate::key::Key;
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::{Node, Value};
use crate::{expect, limits};

/// Reads any value as JSON. Texts in it may be templates, as the key says.
pub(super) fn read_json<'t>(
    node: &'t Node<'_>,
    key: &Key,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Json> {
    match &node.value {
        Value::Text(_) => {
            templates.add(node, key);
            expect::text_up_to(node, &format!("a text in `{}`", key.name()), limits::SCRIPT_BYTES, findings)
                .map(Json::from)
        }
        Value::Integer(integer) => Some(Json::from(*integer)),
        Value::Number(number) => {
            let json = Number::from_f64(*number).map(Json::Number);
            if json.is_none() {
                findings.push(Finding::new(node.span.clone(), "JSON has no such number"));
            }
            json
        }
        Value::Boolean(boolean) => Some(Json::from(*boolean)),
        Value::Date(date) => Some(Json::from(date.clone())),
        Value::Null => Some(Json::Null),
        Value::Broken => None,
        Value::List(items) => {
            let items: Vec<Option<Json>> =
                items.iter().map(|item| read_json(item, key, templates, findings)).collect();
            items.into_iter().collect::<Option<Vec<Json>>>().map(Json::from)
        }
        Value::Table(entries) => {
            let mut object = Map::new();
            for entry in entries {
                let value = read_json(&entry.node, key, templates, findings)?;
                object.insert(entry.key.to_string(), value);
            }
            Some(Json::Object(object))
        }
    }
}

/// Calls `see` with each text in a JSON value, without the keys of objects.
pub(super) fn each_text(json: &Json, see: &mut dyn FnMut(&str)) {
    match json {
        Json::String(text) => see(text),
        Json::Array(items) => items.iter().for_each(|item| each_text(item, see)),
        Json::Object(fields) => fields.values().for_each(|value| each_text(value, see)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// The value with each text in it, without the keys of objects, replaced by what `map` gives for it.
pub(crate) fn map_texts<E>(json: &Json, map: &mut dyn FnMut(&str) -> Result<Json, E>) -> Result<Json, E> {
    Ok(match json {
        Json::String(text) => map(text)?,
        Json::Array(items) => {
            Json::Array(items.iter().map(|item| map_texts(item, map)).collect::<Result<_, E>>()?)
        }
        Json::Object(fields) => {
            let mut field = |(name, value): (&String, &Json)| Ok((name.clone(), map_texts(value, map)?));
            Json::Object(fields.iter().map(&mut field).collect::<Result<_, E>>()?)
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => json.clone(),
    })
}

//! The JSON Schema of workflow files, made from the list of keys. Editors complete and check files with it.
//!
//! A schema says less than `windlass validate`: it knows the tables, their keys, the types of values and the words. It knows
//! neither the names in a file nor the limits.

use serde_json::{Map, Value as Json, json};

use crate::include;
use crate::key::{Key, Table, TextKind, ValueType};
use crate::keys;
use crate::kinds;
use crate::support::Accepted;

/// A duration without a template. `duration.rs` has the whole rule.
const DURATION: &str = r"^\s*([0-9]+\s*[a-z]+\s*)+$";

/// The schema, in JSON Schema 2020-12.
#[must_use]
pub fn schema() -> Json {
    let mut root = table(Table::Workflow);
    let definitions: Map<String, Json> =
        keys::tables().map(|known| (name(known).to_owned(), table(known))).collect();
    if let Json::Object(root) = &mut root {
        root.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        root.insert("title".to_owned(), json!("A Windlass workflow"));
        root.insert("$defs".to_owned(), Json::Object(definitions));
    }
    root
}

/// The name of a table in `$defs`.
fn name(table: Table) -> &'static str {
    // Its noun is that of the `concurrency` of a job.
    if table == Table::RunConcurrency {
        return "run-concurrency";
    }
    table.noun().trim_start_matches("a ").trim_matches('`')
}

fn table(known: Table) -> Json {
    let supported = || known.keys().filter(|key| Accepted::Supported.accepts(key.support));
    let properties: Map<String, Json> =
        supported().map(|key| (key.name().to_owned(), property(key))).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    let has = |key: &str| supported().any(|known| known.name() == key);
    if let Some(rule) = rule(known, has) {
        schema["allOf"] = json!([rule]);
    }
    schema
}

/// What the types of a table's keys do not say: which of them must be there, and which exclude each other.
fn rule(known: Table, has: impl Fn(&str) -> bool) -> Option<Json> {
    match known {
        Table::Workflow => Some(has_jobs_or_is_included()),
        Table::LocalWorkflow => Some(json!({ "required": ["jobs"] })),
        Table::Job => Some(one_of(&kinds::action_key_names())),
        Table::Schedule => Some(one_of(&["cron", "every", "at"])),
        Table::Trigger => Some(one_of(&["event", "after"])),
        Table::Http => {
            let body = at_most_one(&["json", "body", "form"]);
            Some(json!({ "required": ["url"], "allOf": [body] }))
        }
        Table::ForEach => Some(one_of(&["in", "matrix"])),
        Table::WaitFor | Table::Signal => Some(json!({ "required": ["event"] })),
        Table::Approval => Some(json!({ "required": ["prompt"] })),
        Table::Repeat => Some(json!({ "required": ["until", "every"] })),
        Table::Artifact => Some(json!({ "required": ["glob"] })),
        Table::Container => Some(json!({ "required": ["image"] })),
        Table::Auth => Some(one_of(&["bearer", "basic"])),
        Table::Secret => has("env").then(|| at_most_one(&["env", "file", "command"])),
        Table::Param
        | Table::Defaults
        | Table::Workspace
        | Table::Retry
        | Table::Concurrency
        | Table::RunConcurrency
        | Table::Sleep => None,
    }
}

/// A file without jobs is there for others to include, and has only what can be included.
fn has_jobs_or_is_included() -> Json {
    let is_included =
        json!({ "minProperties": 1, "propertyNames": { "enum": include::keys_of_included_files() } });
    json!({ "anyOf": [{ "required": ["jobs"] }, is_included] })
}

fn one_of(keys: &[&str]) -> Json {
    let choices: Vec<Json> = keys.iter().map(|key| json!({ "required": [key] })).collect();
    json!({ "oneOf": choices })
}

fn at_most_one(keys: &[&str]) -> Json {
    let mut choices: Vec<Json> = keys.iter().map(|key| json!({ "required": [key] })).collect();
    choices.push(json!({ "not": { "anyOf": choices } }));
    json!({ "oneOf": choices })
}

fn property(key: &Key) -> Json {
    let mut types: Vec<Json> = key.types.iter().map(|value_type| value(*value_type, key)).collect();
    let mut schema = if types.len() == 1 { types.remove(0) } else { json!({ "anyOf": types }) };
    let about = match key.default {
        Some(default) => format!("{}; default: {default}", key.about),
        None => key.about.to_owned(),
    };
    if schema == json!(true) {
        schema = json!({});
    }
    schema["description"] = json!(about);
    schema
}

fn value(value_type: ValueType, key: &Key) -> Json {
    let simple = json!({ "type": ["string", "number", "boolean"] });
    match value_type {
        ValueType::Text | ValueType::Instant => json!({ "type": "string" }),
        ValueType::Word => json!({ "enum": key.words }),
        ValueType::Boolean => json!({ "type": "boolean" }),
        ValueType::Integer => json!({ "type": "integer" }),
        ValueType::Number => json!({ "type": "number" }),
        ValueType::Duration if key.text == TextKind::Plain => {
            json!({ "type": "string", "pattern": DURATION })
        }
        ValueType::Duration => json!({ "type": "string" }),
        ValueType::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        ValueType::Words => json!({ "type": "array", "items": { "type": ["string", "number"] } }),
        ValueType::TextsOrTables(table) => {
            let item = json!({ "anyOf": [{ "type": "string" }, reference(table)] });
            json!({ "type": "array", "items": item })
        }
        ValueType::Items => json!({ "type": "array" }),
        ValueType::Lists => json!({ "type": "object", "additionalProperties": { "type": "array" } }),
        ValueType::AnyValues => json!({ "type": "object" }),
        ValueType::Values => json!({ "type": "object", "additionalProperties": simple }),
        ValueType::Json => json!(true),
        ValueType::Table(table) => reference(table),
        ValueType::Tables(table) => json!({ "type": "object", "additionalProperties": reference(table) }),
        ValueType::List(table) => json!({ "type": "array", "items": reference(table) }),
    }
}

fn reference(table: Table) -> Json {
    json!({ "$ref": format!("#/$defs/{}", name(table)) })
}

//! What the views have in common in JSON Schema (draft 2020-12).
//!
//! The schema of a view comes from its type: each field is always there, and no other field may be. A field whose text
//! is one of a few words names them with one of the functions here.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::{Transform, transform_subschemas};
use schemars::{Schema, json_schema};
use serde_json::Value;
use windlass_engine::{JobStatus, RunStatus};
use windlass_workflow::model::RunHandler;

/// A generator for the schemas of views.
#[must_use]
pub fn schema_generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().for_serialize().into_generator()
}

/// Makes objects exact: every field is there, and no other. An object without named fields is a map, and stays open.
pub fn make_exact(schema: &mut Schema) {
    Exact.transform(schema);
}

struct Exact;

impl Transform for Exact {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        // Where numbers end is a matter of the type in Rust, and says nothing to a reader.
        if schema.get("format").is_some_and(|format| format != "date-time") {
            schema.remove("format");
            schema.remove("minimum");
        }
        let Some(Value::Object(properties)) = schema.get("properties") else { return };
        let required: Vec<Value> = properties.keys().map(|name| Value::from(name.as_str())).collect();
        schema.insert("required".to_owned(), Value::from(required));
        schema.insert("additionalProperties".to_owned(), Value::from(false));
    }
}

/// The states of a job.
pub(crate) fn job_status(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": JobStatus::ALL.map(JobStatus::as_str) })
}

/// The states of a run.
pub(crate) fn run_status(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": RunStatus::ALL.map(RunStatus::as_str) })
}

/// The tables of the jobs for the end of a run, or null.
pub(crate) fn run_handler(_generator: &mut SchemaGenerator) -> Schema {
    let names = RunHandler::ALL.map(|handler| Value::from(handler.key()));
    let names: Vec<Value> = names.into_iter().chain(std::iter::once(Value::Null)).collect();
    json_schema!({ "type": ["string", "null"], "enum": names })
}

//! The OpenAPI 3.1 document. It is made from the list of routes, so it has every route and no other. Its schemas are those of
//! the views, which the command line prints too.

use std::sync::LazyLock;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use windlass_views::{make_exact, schema_generator};

use crate::problem::ProblemView;
use crate::route::{self, Allowed, Document, QueryParameter, QueryRule, Route, ValueSort, Work};

pub(super) static DOCUMENT: LazyLock<Value> = LazyLock::new(|| document(&route::all()));

const ABOUT: &str = "The same JSON as `-o json` of the command line. Every request needs a token: \
                     `Authorization: Bearer TOKEN`. `windlass token add` makes one.";

fn document(routes: &[Route]) -> Value {
    let mut generator = schema_generator();
    // A body may leave fields out, so its schema is another one than that of an answer.
    let mut bodies = SchemaSettings::draft2020_12().into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let Some(described) = route.document else { continue };
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] =
            operation(route, described, &mut generator, &mut bodies);
    }
    let problem = generator.subschema_for::<ProblemView<'_>>().to_value();
    let mut schemas = Map::new();
    for (name, schema) in generator.take_definitions(true) {
        let mut schema = schema.try_into().unwrap_or_default();
        make_exact(&mut schema);
        schemas.insert(name, schema.to_value());
    }
    schemas.extend(bodies.take_definitions(true));
    let mut document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Windlass", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "responses": {
                "Problem": {
                    "description": "The request has no other answer.",
                    "content": { "application/problem+json": { "schema": problem } },
                },
            },
            "schemas": schemas,
        },
    });
    move_references_of(&mut document);
    document
}

fn operation(
    route: &Route,
    described: Document,
    generator: &mut SchemaGenerator,
    bodies: &mut SchemaGenerator,
) -> Value {
    let answer = (described.answer)(generator).to_value();
    // Of a stream, the schema is that of the data of an event.
    let content_type = match route.work {
        Work::Stream { .. } => "text/event-stream",
        Work::AtOnce(_) | Work::Read(_) | Work::Write(_) => "application/json",
    };
    let parameters: Vec<Value> =
        path_parameters(route.path).into_iter().chain(query_parameters(route)).collect();
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": described.summary,
        "description": format!("Needs the role `{}`.", role(route)),
        "parameters": parameters,
        "responses": {
            "2XX": { "description": "Done.", "content": { (content_type): { "schema": answer } } },
            "default": { "$ref": "#/components/responses/Problem" },
        },
    });
    if let Some(body) = described.body {
        let schema = body(bodies).to_value();
        operation["requestBody"] = json!({ "content": { "application/json": { "schema": schema } } });
    }
    operation
}

fn role(route: &Route) -> &'static str {
    match route.allowed {
        Allowed::Role(role) => role.as_str(),
        Allowed::Everybody { .. } | Allowed::WithSecret { .. } => "none",
    }
}

/// A name for programs that are made from the document: `get_runs_run_id_jobs`.
fn operation_id(route: &Route) -> String {
    let words = route.path.trim_start_matches("/api/v1/").replace(['{', '}'], "").replace(['/', '.'], "_");
    format!("{}_{words}", route.method.as_str().to_ascii_lowercase())
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let schema = |name: &str| match name.ends_with("_id") {
        true => json!({ "type": "integer", "minimum": 0 }),
        false => json!({ "type": "string", "minLength": 1 }),
    };
    names
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": schema(name) }))
        .collect()
}

fn query_parameters(route: &Route) -> Vec<Value> {
    let known = match route.query {
        QueryRule::Known(known) => known,
        QueryRule::ByHandler => &[],
    };
    known.iter().map(query_parameter).collect()
}

fn query_parameter(parameter: &QueryParameter) -> Value {
    let schema = match parameter.value {
        ValueSort::Text => json!({ "type": "string" }),
        ValueSort::Integer { least, most: i64::MAX } => json!({ "type": "integer", "minimum": least }),
        ValueSort::Integer { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
        ValueSort::Instant => json!({ "type": "string", "format": "date-time" }),
        ValueSort::Boolean => json!({ "type": "boolean" }),
    };
    json!({ "name": parameter.name, "in": "query", "description": parameter.about, "schema": schema })
}

/// The schemas are elsewhere in an OpenAPI document than in a schema.
fn move_references_of(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let ("$ref", Value::String(text)) = (name.as_str(), &mut *field) {
                    *text = text.replace("#/$defs/", "#/components/schemas/");
                } else {
                    move_references_of(field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(move_references_of),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

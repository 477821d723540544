//! The OpenAPI 3.1 document. It is made from the list of routes, so it has every route and no other. Its schemas are those of
//! the views, which the command line prints too.

use std::sync::LazyLock;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use windlass_engine::store::IDEMPOTENCY_KEY_BYTES_MAX;
use windlass_views::{make_exact, schema_generator};

use crate::problem::ProblemView;
use crate::route::{self, Allowed, Document, Idempotency, QueryParameter, QueryRule, Route, ValueSort, Work};

pub(crate) static DOCUMENT: LazyLock<Value> = LazyLock::new(|| document(&route::all()));

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
    let (content_type, answer) = match route.work {
        Work::Stream { .. } => ("text/event-stream", event(answer)),
        Work::AtOnce(_) | Work::Read(_) | Work::Write(_) | Work::CheckedWrite { .. } => {
            ("application/json", answer)
        }
    };
    let parameters: Vec<Value> = path_parameters(route.path)
        .into_iter()
        .chain(query_parameters(route))
        .chain(key_parameter(route))
        .collect();
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": described.summary,
        "description": format!("Needs the role `{}`.", role(route)),
        "parameters": parameters,
        "responses": problems(route),
    });
    operation["responses"]["2XX"] =
        json!({ "description": "Done.", "content": { (content_type): { "schema": answer } } });
    if !route.method.changes() {
        operation["responses"]["304"] =
            json!({ "description": "The answer is the one whose ETag was sent in If-None-Match." });
    }
    if let Some(body) = described.body {
        let schema = body(bodies).to_value();
        operation["requestBody"] = json!({ "content": { "application/json": { "schema": schema } } });
        for name in described.text_bodies {
            operation["requestBody"]["content"][*name] = json!({ "schema": { "type": "string" } });
        }
    }
    operation
}

/// An event of a stream. Its data is JSON as text: what the stream is for, or nothing, as of an event that ends it.
fn event(data: Value) -> Value {
    let data = json!({ "anyOf": [data, { "type": "object", "maxProperties": 0 }] });
    let data = json!({ "type": "string", "contentMediaType": "application/json", "contentSchema": data });
    json!({
        "type": "object",
        "properties": { "event": { "type": "string" }, "id": { "type": "string" }, "data": data },
    })
}

/// The statuses of an operation that has another answer than the wanted one. 500 is none of them, because it is a defect.
fn problems(route: &Route) -> Value {
    let mut statuses = vec![400, 401, 403, 421, 429, 503];
    if route.path.contains('{') || route.method.changes() {
        statuses.push(404);
    }
    if route.method.changes() {
        statuses.extend([408, 409, 413, 415]);
    }
    let problem = || json!({ "$ref": "#/components/responses/Problem" });
    statuses.into_iter().map(|status: u16| (status.to_string(), problem())).collect()
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

/// The header that makes a repeated request the same request.
fn key_parameter(route: &Route) -> Option<Value> {
    let about = match route.idempotency {
        Idempotency::NoKey => return None,
        Idempotency::Kept => {
            "The same caller's same request with the same key is made once within a day, and gets the same answer. \
             Another request with the key is refused."
        }
        Idempotency::Own(about) => about,
    };
    let schema = json!({ "type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_BYTES_MAX, "pattern": "^[!-~]*$" });
    Some(json!({ "name": "Idempotency-Key", "in": "header", "description": about, "schema": schema }))
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

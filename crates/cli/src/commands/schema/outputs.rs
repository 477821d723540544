//! What each verb prints with `-o json`, as JSON Schema (draft 2020-12).
//!
//! A new verb needs a line in [`outputs`], or one in [`NO_JSON`] if it prints something else than data. A test compares
//! the two lists with the command line, and the tests of the binary check all that it prints against these schemas.

use schemars::generate::SchemaGenerator;
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Map, Value, json};
use windlass_views::{
    AppliedView, ArtifactView, AuditView, BackfillView, BackupView, CancelledJob, CancelledRun, ChangedQueue,
    ChangedSchedule, ChangedWorkflow, CheckView, CopiedView, DefinitionView, DeletedJob, DeletedJobs,
    DeletedVariable, DoctorView, EnqueuedView, ErrorView, FormattedFile, ImportView, InspectedJob,
    InspectedRun, InspectedSchedule, JobView, LogView, MigratedView, NewTokenView, NotifyView,
    OccurrenceView, OpenedView, PlanView, PrunedView, QueueView, RegistrationView, RestoredView, RetriedJobs,
    RetriedRun, RetryPreviewView, RunView, ScheduleView, SignalView, StatsView, SubmittedView, TestedCase,
    TokenView, TriedTarget, VacuumedView, ValidatedFile, VariableView, VersionView, WhyRunView, WhyView,
    WrittenFile, make_exact, schema_generator,
};

/// The verbs that print no JSON, and what they print.
#[cfg(test)]
const NO_JSON: &[(&str, &str)] = &[
    ("serve", "a log"),
    ("worker", "a log"),
    #[cfg(feature = "web")]
    ("web", "a log"),
    ("graph", "a drawing"),
    ("top", "a screen"),
    ("schema", "a schema"),
    ("completions", "a script"),
    ("man", "manual pages"),
];

/// One JSON document that a verb prints.
#[derive(Clone, Copy)]
enum Shape {
    /// An object, in one line with `-o jsonl`.
    Object(SchemaOf),
    /// A list, one item a line with `-o jsonl`.
    List(SchemaOf),
}

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

fn object<T: JsonSchema>() -> Shape {
    Shape::Object(SchemaGenerator::subschema_for::<T>)
}

fn list<T: JsonSchema>() -> Shape {
    Shape::List(SchemaGenerator::subschema_for::<T>)
}

/// The verbs in alphabetical order, and the last line of standard error when a command fails.
fn outputs() -> Vec<(&'static str, Vec<Shape>)> {
    vec![
        ("apply", vec![list::<AppliedView>()]),
        ("approve", vec![object::<JobView>()]),
        ("artifacts", vec![list::<ArtifactView>(), object::<WrittenFile>()]),
        ("audit", vec![list::<AuditView>()]),
        ("bench", vec![object::<windlass_bench::Report>()]),
        ("cancel", vec![object::<CancelledRun>(), object::<CancelledJob>()]),
        ("change", vec![object::<JobView>()]),
        ("db backup", vec![object::<BackupView>()]),
        ("db check", vec![object::<CheckView>()]),
        ("db copy", vec![object::<CopiedView>()]),
        ("db migrate", vec![object::<MigratedView>()]),
        ("db prune", vec![object::<PrunedView>()]),
        ("db restore", vec![object::<RestoredView>()]),
        ("db vacuum", vec![object::<VacuumedView>()]),
        ("delete", vec![list::<DeletedJob>(), object::<DeletedJobs>()]),
        ("doctor", vec![object::<DoctorView>()]),
        ("enqueue", vec![object::<EnqueuedView>(), list::<EnqueuedView>()]),
        ("error", vec![object::<ErrorView>()]),
        ("fmt", vec![list::<FormattedFile>()]),
        ("import crontab", vec![object::<ImportView>()]),
        ("import dagu", vec![object::<ImportView>()]),
        ("init", vec![list::<WrittenFile>()]),
        ("inspect", vec![object::<InspectedRun>(), object::<InspectedJob>()]),
        ("jobs", vec![list::<JobView>()]),
        ("logs", vec![list::<LogView>()]),
        ("notify", vec![object::<NotifyView>(), list::<TriedTarget>()]),
        ("open", vec![object::<OpenedView>()]),
        ("plan", vec![object::<PlanView>()]),
        ("queue", vec![list::<QueueView>()]),
        ("queue drain", vec![object::<ChangedQueue>()]),
        ("queue limit", vec![object::<ChangedQueue>()]),
        ("queue list", vec![list::<QueueView>()]),
        ("queue pause", vec![object::<ChangedQueue>()]),
        ("queue resume", vec![object::<ChangedQueue>()]),
        ("reject", vec![object::<JobView>()]),
        ("rerun", vec![object::<InspectedRun>(), object::<SubmittedView>()]),
        ("resume", vec![object::<InspectedRun>(), list::<InspectedRun>()]),
        (
            "retry",
            vec![
                object::<InspectedRun>(),
                object::<RetriedRun>(),
                object::<JobView>(),
                object::<RetriedJobs>(),
                object::<RetryPreviewView>(),
            ],
        ),
        ("run", vec![object::<InspectedRun>(), object::<SubmittedView>(), object::<PlanView>()]),
        ("runs", vec![list::<RunView>()]),
        ("schedule", vec![list::<ScheduleView>()]),
        ("schedule add", vec![object::<ChangedSchedule>()]),
        ("schedule backfill", vec![object::<BackfillView>()]),
        ("schedule list", vec![list::<ScheduleView>()]),
        ("schedule next", vec![list::<OccurrenceView>()]),
        ("schedule pause", vec![object::<ChangedSchedule>()]),
        ("schedule remove", vec![object::<ChangedSchedule>()]),
        ("schedule resume", vec![object::<ChangedSchedule>()]),
        ("schedule show", vec![object::<InspectedSchedule>()]),
        ("schedule fire", vec![object::<SubmittedView>()]),
        ("signal", vec![object::<SignalView>()]),
        ("stats", vec![object::<StatsView>()]),
        ("submit", vec![object::<SubmittedView>()]),
        ("test", vec![list::<TestedCase>()]),
        ("token", vec![list::<TokenView>()]),
        ("token add", vec![object::<NewTokenView>()]),
        ("token list", vec![list::<TokenView>()]),
        ("token revoke", vec![object::<TokenView>()]),
        ("validate", vec![list::<ValidatedFile>()]),
        ("variable", vec![list::<VariableView>()]),
        ("variable delete", vec![object::<DeletedVariable>()]),
        ("variable get", vec![object::<VariableView>()]),
        ("variable list", vec![list::<VariableView>()]),
        ("variable set", vec![object::<VariableView>()]),
        ("watch", vec![object::<InspectedRun>()]),
        ("why", vec![object::<WhyView>(), object::<WhyRunView>()]),
        ("workflows", vec![list::<RegistrationView>()]),
        ("workflows history", vec![list::<VersionView>()]),
        ("workflows list", vec![list::<RegistrationView>()]),
        ("workflows pause", vec![object::<ChangedWorkflow>()]),
        ("workflows remove", vec![object::<ChangedWorkflow>()]),
        ("workflows resume", vec![object::<ChangedWorkflow>()]),
        ("workflows show", vec![object::<DefinitionView>()]),
    ]
}

/// The names of the verbs that print JSON.
pub(super) fn verbs() -> Vec<&'static str> {
    outputs().into_iter().map(|(verb, _shapes)| verb).collect()
}

/// One schema with the output of each verb under its name.
pub(super) fn of_all_verbs() -> Value {
    let mut generator = schema_generator();
    let properties: Map<String, Value> = outputs()
        .into_iter()
        .map(|(verb, shapes)| (verb.to_owned(), document(&mut generator, &shapes).to_value()))
        .collect();
    let description = "What each verb of windlass prints with -o json, under the name of the verb. With -o jsonl, each item \
         of a list is a line. `error` is the last line of standard error when a command fails.";
    let schema = json_schema!({
        "title": "Output of windlass", "description": description, "type": "object", "properties": properties,
    });
    complete(schema, generator)
}

/// The schema of what one verb prints.
pub(super) fn of_verb(verb: &str) -> Option<Value> {
    let (_verb, shapes) = outputs().into_iter().find(|(known, _shapes)| *known == verb)?;
    let mut generator = schema_generator();
    let schema = document(&mut generator, &shapes);
    Some(complete(schema, generator))
}

fn document(generator: &mut SchemaGenerator, shapes: &[Shape]) -> Schema {
    let mut schemas: Vec<Schema> = shapes
        .iter()
        .map(|shape| match shape {
            Shape::Object(schema_of) => schema_of(generator),
            Shape::List(schema_of) => json_schema!({ "type": "array", "items": schema_of(generator) }),
        })
        .collect();
    match schemas.len() {
        1 => schemas.remove(0),
        _several => json_schema!({ "anyOf": schemas }),
    }
}

/// Adds the definitions of the views, each of them exact.
fn complete(schema: Schema, mut generator: SchemaGenerator) -> Value {
    let mut definitions = generator.take_definitions(true);
    for definition in definitions.values_mut() {
        if let Ok(schema) = <&mut Schema>::try_from(definition) {
            make_exact(schema);
        }
    }
    let mut complete = Map::new();
    complete.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    if let Value::Object(keywords) = schema.to_value() {
        complete.extend(keywords);
    }
    complete.insert("$defs".to_owned(), Value::Object(definitions));
    Value::Object(complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each verb that can be called, as `schedule list`.
    fn callable(command: &clap::Command, before: &str, found: &mut Vec<String>) {
        for verb in command.get_subcommands() {
            let name = format!("{before}{}", verb.get_name());
            if !verb.is_subcommand_required_set() {
                found.push(name.clone());
            }
            callable(verb, &format!("{name} "), found);
        }
    }

    #[test]
    fn each_verb_has_a_schema() {
        let mut called = Vec::new();
        callable(&crate::cli::command(), "", &mut called);
        let without: Vec<&str> = NO_JSON.iter().map(|(verb, _printed)| *verb).collect();
        let known = verbs();
        for verb in &called {
            assert!(
                known.contains(&verb.as_str()) || without.contains(&verb.as_str()),
                "`{verb}` has no schema: add what it prints with -o json to `outputs` in {}, with a view of \
                 crates/views that derives JsonSchema, and a call to `CALLS` in tests/cli/schemas.rs; or add it to \
                 `NO_JSON`",
                file!()
            );
        }
        for verb in known.into_iter().filter(|verb| *verb != "error").chain(without) {
            assert!(called.iter().any(|called| called == verb), "`{verb}` is no verb");
        }
    }
}

//! Reads a case.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};
use windlass_workflow::Workflow;
use windlass_workflow::params::{self, ParamError, Supplied};
use windlass_workflow::strict::{Named, Table};

use super::{Case, Others, WorkflowJobs, expect, fake, people};

/// When a run begins if its case does not say it: 2026-01-01 00:00 UTC.
const DEFAULT_NOW_MS: i64 = 1_767_225_600_000;

/// Reads a case. `names` are those of the cases before it.
pub(super) fn take(
    table: &mut Table<'_, '_>,
    workflow: &Workflow,
    jobs: &WorkflowJobs<'_>,
    names: &mut Vec<String>,
) -> Case {
    let name = take_name(table, names);
    let params = take_params(table, workflow);
    let now_ms = table.instant_ms("now").unwrap_or(DEFAULT_NOW_MS);
    let others = table.word("others", &[("succeed", Others::Succeed)]).unwrap_or_default();
    let mut fakes = BTreeMap::new();
    table.named("jobs", |mut named| {
        if let Some(job) = find(&mut named, jobs) {
            let attempts = fake::take(&mut named, job);
            fakes.insert(named.name().to_owned(), attempts);
        }
    });
    let variables = take_variables(table, "variables");
    let events = people::take_events(table);
    let approvals = people::take_approvals(table, jobs);
    let cancel_after_ms = table.duration_ms("cancel_after", 0..=fake::LONGEST_MS);
    let expect = expect::take(table, workflow, jobs);
    Case { name, params, now_ms, others, jobs: fakes, variables, events, approvals, cancel_after_ms, expect }
}

/// The job with the name of the entry. Reports a name that no job has.
pub(super) fn find<'w>(
    named: &mut Named<'_, '_>,
    jobs: &WorkflowJobs<'w>,
) -> Option<&'w windlass_workflow::Job> {
    let found = jobs.find(named.name());
    if found.is_none() {
        named.unknown("the workflow has no job", jobs.names());
    }
    found
}

fn take_name(table: &mut Table<'_, '_>, names: &mut Vec<String>) -> String {
    let name = match table.text("name") {
        Some(name) => name,
        None => {
            table.refuse_key("name", "a case needs a `name`", "say in a few words what it shows");
            return String::new();
        }
    };
    if names.contains(&name) {
        table.refuse_key("name", format!("two cases have the name \"{name}\""), "rename one of them");
    }
    names.push(name.clone());
    name
}

fn take_params(table: &mut Table<'_, '_>, workflow: &Workflow) -> Map<String, Json> {
    let mut given = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    table.named("params", |mut named| {
        let name = named.name().to_owned();
        let Some(param) = workflow.params.iter().find(|param| param.name == name) else {
            named.unknown(
                "the workflow has no parameter",
                workflow.params.iter().map(|param| param.name.as_str()),
            );
            return;
        };
        let Some(value) = named.value() else { return };
        let alone = std::slice::from_ref(param);
        match params::bind(alone, vec![(name.clone(), Supplied::Json(value.clone()))]) {
            Ok(_bound) => given.push((name, Supplied::Json(value))),
            Err(errors) => {
                for error in errors {
                    named.refuse_value(format!("`{name}` has a wrong value"), reason(&error));
                }
                wrong.push(name);
            }
        }
    });
    params::bind(&workflow.params, given).unwrap_or_else(|errors| {
        // A value that was reported is not missing.
        let is_new =
            |error: &ParamError| !matches!(error, ParamError::Missing { name, .. } if wrong.contains(name));
        for error in errors.into_iter().filter(is_new) {
            table.refuse_key("params", error.to_string(), "give it a value in [case.params]");
        }
        Map::new()
    })
}

/// Reads variables with their values.
pub(super) fn take_variables(table: &mut Table<'_, '_>, key: &'static str) -> BTreeMap<String, Json> {
    let mut variables = BTreeMap::new();
    table.named(key, |mut named| {
        let name = named.name().to_owned();
        if let Err(reason) = windlass_workflow::check_variable_name(&name) {
            named.refuse_name(format!("`{name}` can't be the name of a variable"), reason);
            return;
        }
        variables.extend(named.value().map(|value| (name, value)));
    });
    variables
}

fn reason(error: &ParamError) -> String {
    match error {
        ParamError::Invalid { reason, .. } => reason.clone(),
        ParamError::Unknown { .. } | ParamError::Missing { .. } | ParamError::Repeated { .. } => {
            error.to_string()
        }
    }
}

//! Reads how a run is to end.

use std::collections::BTreeMap;

use windlass_engine::{JobStatus, RunStatus};
use windlass_workflow::Workflow;
use windlass_workflow::strict::{Named, Table};

use super::{Expect, ExpectedJob, WorkflowJobs, case};

/// The states in which a run ends.
const RUN_ENDS: [(&str, RunStatus); 3] = [
    ("SUCCESSFUL", RunStatus::Successful),
    ("FAILED", RunStatus::Failed),
    ("CANCELLED", RunStatus::Cancelled),
];
/// The states in which a job ends.
const JOB_ENDS: [(&str, JobStatus); 4] = [
    ("SUCCESSFUL", JobStatus::Successful),
    ("FAILED", JobStatus::Failed),
    ("SKIPPED", JobStatus::Skipped),
    ("CANCELLED", JobStatus::Cancelled),
];
const ATTEMPTS_MAX: i64 = 1_000_000;

/// Reads `expect`. A case without it expects a success.
pub(super) fn take(table: &mut Table<'_, '_>, workflow: &Workflow, jobs: &WorkflowJobs<'_>) -> Expect {
    let expect = table.table("expect", |table| {
        let status = table.word("status", &RUN_ENDS).unwrap_or(RunStatus::Successful);
        let mut expected = BTreeMap::new();
        table.named("jobs", |mut named| {
            if case::find(&mut named, jobs).is_some() {
                let job = take_job(&mut named);
                expected.insert(named.name().to_owned(), job);
            }
        });
        let mut outputs = BTreeMap::new();
        table.named("outputs", |mut named| {
            let known = workflow.outputs.keys().map(String::as_str);
            match workflow.outputs.contains_key(named.name()) {
                true => outputs.extend(named.value().map(|value| (named.name().to_owned(), value))),
                false => named.unknown("the workflow has no output", known),
            }
        });
        let variables = case::take_variables(table, "variables");
        Expect { status, jobs: expected, outputs, variables }
    });
    expect.unwrap_or(Expect {
        status: RunStatus::Successful,
        jobs: BTreeMap::new(),
        outputs: BTreeMap::new(),
        variables: BTreeMap::new(),
    })
}

/// A state, or a table with more.
fn take_job(named: &mut Named<'_, '_>) -> ExpectedJob {
    if !named.is_table() {
        return ExpectedJob { status: named.word(&JOB_ENDS), ..ExpectedJob::default() };
    }
    let job = named.table("an expected job", |table| ExpectedJob {
        status: table.word("status", &JOB_ENDS),
        attempts: table.integer("attempts", 0..=ATTEMPTS_MAX),
        error: table.text("error"),
        output: table.value("output"),
    });
    job.unwrap_or_default()
}

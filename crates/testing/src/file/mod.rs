//! Reads a test file. All its errors are reported at once.

mod case;
mod expect;
mod fake;
mod jobs;
mod people;

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};
use windlass_engine::store::{NewSignal, Verdict};
use windlass_engine::{JobStatus, RunStatus};
use windlass_worker::FakeEnd;
use windlass_workflow::{Report, Source, Workflow, strict};

pub(crate) use jobs::{WorkflowJobs, without_items};

/// The end of the names of test files.
pub const EXTENSION: &str = ".test.toml";

/// A test file: the cases of one workflow.
#[derive(Debug, Clone)]
pub struct TestFile {
    /// The cases, in the order of the file. There is at least one.
    pub cases: Vec<Case>,
}

/// A case: what happens around a run, and how it is to end.
#[derive(Debug, Clone)]
pub struct Case {
    /// Unique within the file.
    pub name: String,
    /// The values of the workflow's parameters, bound and complete.
    pub params: Map<String, Json>,
    /// When the run begins, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// What happens to jobs without a fake.
    pub others: Others,
    /// The attempts of jobs, by the names of the jobs.
    pub jobs: BTreeMap<String, Vec<FakeAttempt>>,
    /// The variables that are set before the run, as JSON.
    pub variables: BTreeMap<String, Json>,
    /// The signals that are sent.
    pub events: Vec<Event>,
    /// What people decide about approvals, by the names of the jobs.
    pub approvals: BTreeMap<String, Approval>,
    /// When a person cancels the run, in milliseconds after its beginning.
    pub cancel_after_ms: Option<i64>,
    /// How the run is to end.
    pub expect: Expect,
}

/// What happens to jobs without a fake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Others {
    /// The case fails if one of them begins.
    #[default]
    Refused,
    /// They succeed at once, without an output.
    Succeed,
}

/// One attempt of a fake job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeAttempt {
    /// How long it takes, in milliseconds.
    pub takes_ms: i64,
    /// How it ends.
    pub end: FakeEnd,
}

/// A signal that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// How long after the beginning of the run, in milliseconds.
    pub after_ms: i64,
    /// The signal.
    pub signal: NewSignal,
}

/// What a person decides about an approval.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// How long after the job began to wait, in milliseconds.
    pub after_ms: i64,
    /// The decision.
    pub verdict: Verdict,
}

/// How a run is to end.
#[derive(Debug, Clone, PartialEq)]
pub struct Expect {
    /// The state of the run.
    pub status: RunStatus,
    /// What is expected of jobs, by their names.
    pub jobs: BTreeMap<String, ExpectedJob>,
    /// The outputs of the run, by their names.
    pub outputs: BTreeMap<String, Json>,
    /// The variables after the run, by their names.
    pub variables: BTreeMap<String, Json>,
}

/// What is expected of a job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExpectedJob {
    /// Its state.
    pub status: Option<JobStatus>,
    /// How many of its attempts begin.
    pub attempts: Option<i64>,
    /// A part of its last error.
    pub error: Option<String>,
    /// Its output.
    pub output: Option<Json>,
}

/// Reads a test file of a workflow.
///
/// # Errors
/// All errors of the file.
pub fn read(source: &Source, workflow: &Workflow) -> Result<TestFile, Report> {
    const HELP: &str = "write a case: [[case]] with a `name`, the fakes of its jobs, and what is expected";
    let jobs = WorkflowJobs::of(workflow);
    strict::read(source, "a test file", |table| {
        let mut names: Vec<String> = Vec::new();
        let cases = table.tables("case", "a case", |table| case::take(table, workflow, &jobs, &mut names));
        let cases = cases.unwrap_or_else(|| {
            table.refuse("the test file has no cases", HELP);
            Vec::new()
        });
        TestFile { cases }
    })
}

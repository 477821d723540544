//! Runs the cases of test files that are written in a test.
#![allow(clippy::unwrap_used, dead_code, reason = "each test file uses a part")]

use windlass_testing::{Case, Crashes, Difference, Observed, Subject, check, crash_everywhere, file, run};
use windlass_workflow::{Source, Workflow};

/// A case and what was seen of it.
pub(crate) struct TestedCase {
    pub(crate) case: Case,
    pub(crate) observed: Observed,
    pub(crate) differences: Vec<Difference>,
}

pub(crate) fn workflow(text: &str) -> Workflow {
    let source = Source::new("w.toml", text.into()).unwrap();
    windlass_workflow::parse(&source).unwrap_or_else(|report| panic!("{report}"))
}

/// The errors of a test file.
pub(crate) fn errors(workflow_text: &str, cases: &str) -> String {
    let source = Source::new("w.test.toml", cases.into()).unwrap();
    file::read(&source, &workflow(workflow_text)).unwrap_err().to_string()
}

/// Runs the only case.
pub(crate) fn tested(workflow_text: &str, cases: &str) -> TestedCase {
    let workflow = workflow(workflow_text);
    let case = only_case(&workflow, cases);
    let observed = run(subject(&workflow), &case).unwrap();
    let differences = check(&case, &observed);
    TestedCase { case, observed, differences }
}

fn subject(workflow: &Workflow) -> Subject<'_> {
    Subject { workflow, folder: None }
}

fn only_case(workflow: &Workflow, cases: &str) -> Case {
    let source = Source::new("w.test.toml", cases.into()).unwrap();
    let file = file::read(&source, workflow).unwrap_or_else(|report| panic!("{report}"));
    let [case] = <[Case; 1]>::try_from(file.cases).unwrap();
    case
}

pub(crate) fn observe(workflow_text: &str, cases: &str) -> Observed {
    tested(workflow_text, cases).observed
}

pub(crate) fn differences(workflow_text: &str, cases: &str) -> Vec<Difference> {
    tested(workflow_text, cases).differences
}

/// Ends the engine after each commit of the only case.
pub(crate) fn crashes(workflow_text: &str, cases: &str) -> Crashes {
    let workflow = workflow(workflow_text);
    let case = only_case(&workflow, cases);
    let undisturbed = run(subject(&workflow), &case).unwrap();
    crash_everywhere(subject(&workflow), &case, &undisturbed).unwrap()
}

//! Jobs that no end of their parents leads to, and conditions that are always the same.

use serde_json::json;

use super::{Budget, JobInFile, WorkflowInFile};
use crate::graph::Graph;
use crate::model::{Job, When, Workflow};
use crate::report::{Finding, Findings};

pub(super) fn check(file: &WorkflowInFile<'_, '_>, findings: &mut Findings) {
    if file.jobs.iter().any(|job| job.job.when == When::AnyFailed) {
        check_any_failed(file, findings);
    }
    for job in &file.jobs {
        check_condition(job, findings);
    }
}

fn check_any_failed(file: &WorkflowInFile<'_, '_>, findings: &mut Findings) {
    let workflow = file.workflow;
    let edges: usize = workflow.jobs.iter().map(|job| job.needs.len()).sum();
    if !Budget::new().take(workflow.jobs.len() + edges) {
        return;
    }
    let can_break = can_break(workflow);
    for found in file.jobs.iter().filter(|job| job.job.when == When::AnyFailed) {
        if found.job.needs.iter().any(|parent| can_break[*parent]) {
            continue;
        }
        let span = found.key("when").map_or(found.entry.key_span.clone(), |when| when.node.span.clone());
        let name = &found.job.name;
        findings.push(
            Finding::new(
                span,
                format!("job `{name}` runs only if one of the jobs that it needs is cancelled"),
            )
            .label("a failure with `allow_failure` does not count as one")
            .help(format!(
                "remove `allow_failure` from a job that `{name}` needs, or write when = \"all_finished\" and \
                     if = \"jobs.{}.status == 'FAILED'\"",
                found.job.needs.first().map_or("NAME", |parent| workflow.jobs[*parent].name.as_str())
            )),
        );
    }
}

/// Of each job, whether it can end FAILED without `allow_failure`, or SKIPPED because a job before it did. Cancelling is left
/// out.
fn can_break(workflow: &Workflow) -> Vec<bool> {
    let mut can_break = vec![false; workflow.jobs.len()];
    for index in Graph::new(workflow).order() {
        let job = &workflow.jobs[index];
        can_break[index] = !job.allow_failure
            || (skips_after_failure(job) && job.needs.iter().any(|parent| can_break[*parent]));
    }
    can_break
}

fn skips_after_failure(job: &Job) -> bool {
    match job.when {
        When::AllSuccessful | When::NoneFailed | When::AnySuccessful => true,
        When::AnyFailed | When::AllFinished => false,
    }
}

/// Warns of a condition that reads nothing.
fn check_condition(found: &JobInFile<'_, '_>, findings: &mut Findings) {
    let (Some(condition), Some(entry)) = (&found.job.condition, found.key("if")) else { return };
    if found.reads.iter().any(|read| read.key == "if") {
        return;
    }
    let Ok(holds) = condition.holds(&json!({})) else { return };
    let (message, help) = match holds {
        true => ("the condition is always true", "remove `if`"),
        false => {
            ("the condition is never true, so the job never runs", "remove the job, or correct its `if`")
        }
    };
    findings.push(Finding::new(entry.node.span.clone(), message).label("it reads nothing").help(help));
}

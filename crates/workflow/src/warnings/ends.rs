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
        check_conditions(job, findings);
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

/// Warns of conditions that read nothing.
fn check_conditions(found: &JobInFile<'_, '_>, findings: &mut Findings) {
    let job = found.job;
    for (key, condition, is_true, is_false) in [
        (
            "if",
            &job.condition,
            ("the condition is always true", "remove `if`"),
            ("the condition is never true, so the job never runs", "remove the job, or correct its `if`"),
        ),
        (
            "success_if",
            &job.success_if,
            (
                "every attempt counts as a success, whatever its exit code is",
                "name the exit codes, as in exit_code in [0, 1], or write allow_failure = true",
            ),
            ("the condition is never true, so the job always fails", "remove `success_if`, or correct it"),
        ),
        (
            "skip_if",
            &job.skip_if,
            ("the condition is always true, so the job never succeeds", "remove `skip_if`, or correct it"),
            ("the condition is never true", "remove `skip_if`"),
        ),
    ] {
        let (Some(condition), Some(entry)) = (condition, found.key(key)) else { continue };
        if found.reads.iter().any(|read| read.key == key) {
            continue;
        }
        let Ok(holds) = condition.holds(&json!({})) else { continue };
        let (message, help) = if holds { is_true } else { is_false };
        findings.push(Finding::new(entry.node.span.clone(), message).label("it reads nothing").help(help));
    }
}

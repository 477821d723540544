//! Checks what the jobs of a workflow that a program made read of other jobs.

use super::within_job;
use crate::field::{Checked, WorkflowError, refuse};
use crate::files::check_is_kept;
use crate::for_each::ForEach;
use crate::graph::Graph;
use crate::handlers::{Order, order};
use crate::job_names::JobNames;
use crate::limits;
use crate::model::{Job, Workflow};

/// A job that reads another. Both are indices.
struct JobReader {
    reader: usize,
    read: usize,
    /// The field that reads it.
    field: &'static str,
}

/// Checks that every job that is read is over before the reader starts. The indices and the names must be checked, and the
/// graph must have no cycles.
pub(super) fn check(workflow: &Workflow, names: &JobNames<'_>) -> Checked {
    let mut indirect = Vec::new();
    for (reader, job) in workflow.jobs.iter().enumerate() {
        for (read, field) in reads(job, names) {
            if read == reader {
                let error =
                    WorkflowError { field: field.to_owned(), reason: "it reads the job itself".to_owned() };
                return Err(within_job(workflow, reader, error));
            }
            match order(job.handler, workflow.jobs[read].handler) {
                Order::Before => (),
                Order::Same if job.needs.binary_search(&read).is_ok() => (),
                Order::Same => indirect.push(JobReader { reader, read, field }),
                Order::NotBefore => {
                    let name = &workflow.jobs[read].name;
                    let reason =
                        format!("it reads `{name}`, jobs[{read}], which is not over when the job starts");
                    return Err(within_job(
                        workflow,
                        reader,
                        WorkflowError { field: field.to_owned(), reason },
                    ));
                }
            }
        }
    }
    check_indirect(workflow, &indirect)?;
    check_inputs(workflow, names)
}

/// The jobs that a job reads, each with the field that reads it.
fn reads(job: &Job, names: &JobNames<'_>) -> Vec<(usize, &'static str)> {
    let mut reads: Vec<(usize, &'static str)> = job.uses.iter().map(|used| (*used, "uses")).collect();
    for (expression, field) in [
        (job.condition.as_ref(), "condition"),
        (job.for_each.as_deref().and_then(ForEach::expression), "for_each"),
        (job.success_if.as_ref(), "success_if"),
        (job.skip_if.as_ref(), "skip_if"),
        (job.retry.condition.as_ref(), "retry.condition"),
        (job.repeat.as_ref().map(|repeat| &repeat.until), "repeat.until"),
    ] {
        let read = expression.iter().flat_map(|expression| expression.reads());
        reads.extend(read.filter_map(|read| Some((names.index(&read.job)?, field))));
    }
    for (_name, expression) in job.set_variables.iter().flat_map(|variables| variables.iter()) {
        let read = expression.reads();
        reads.extend(read.iter().filter_map(|read| Some((names.index(&read.job)?, "set_variables"))));
    }
    let inputs = job.action.inputs().iter().filter_map(|input| names.index(&input.job));
    reads.extend(inputs.map(|read| (read, "action.inputs")));
    reads
}

/// Checks that jobs keep the files that others get from them.
fn check_inputs(workflow: &Workflow, names: &JobNames<'_>) -> Checked {
    for (reader, job) in workflow.jobs.iter().enumerate() {
        for input in job.action.inputs() {
            let Some(read) = names.index(&input.job) else { continue };
            let artifacts = workflow.jobs[read].action.artifacts();
            if let Err(reason) = check_is_kept(artifacts, &input.job, &input.path) {
                let field = "action.inputs".to_owned();
                return Err(within_job(workflow, reader, WorkflowError { field, reason }));
            }
        }
    }
    Ok(())
}

fn check_indirect(workflow: &Workflow, indirect: &[JobReader]) -> Checked {
    let mut read: Vec<usize> = indirect.iter().map(|indirect| indirect.read).collect();
    read.sort_unstable();
    read.dedup();
    if read.len() > limits::INDIRECT_OUTPUTS {
        let reason = format!(
            "outputs of {} jobs are read by jobs that need them only indirectly; the limit is {}",
            read.len(),
            limits::INDIRECT_OUTPUTS
        );
        return refuse("jobs", reason);
    }
    let pairs: Vec<(usize, usize)> =
        indirect.iter().map(|indirect| (indirect.read, indirect.reader)).collect();
    let answers = Graph::new(workflow).are_ancestors(&pairs);
    match indirect.iter().zip(answers).find(|(_indirect, is_ancestor)| !is_ancestor) {
        Some((JobReader { reader, read, field }, _)) => {
            let name = &workflow.jobs[*read].name;
            let verb = if *field == "uses" { "lists" } else { "reads" };
            let reason = format!("it {verb} `{name}`, jobs[{read}], which the job does not need");
            Err(within_job(workflow, *reader, WorkflowError { field: (*field).to_owned(), reason }))
        }
        None => Ok(()),
    }
}

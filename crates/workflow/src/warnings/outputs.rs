//! Reads of outputs that may be missing when the reader starts.

use std::collections::HashMap;

use super::reads::TextRead;
use super::{Budget, JobInFile, WorkflowInFile};
use crate::expression::IfAbsent;
use crate::graph::Graph;
use crate::kinds::Action;
use crate::kinds::call::Call;
use crate::kinds::shell::{OutputSource, Program, Shell};
use crate::model::{Job, OnFull, RunHandler, When, Workflow};
use crate::report::{Finding, Findings};

/// Warns of each output that is read without `default`, of a job that may end without it.
pub(super) fn check(file: &WorkflowInFile<'_, '_>, findings: &mut Findings) {
    let index: HashMap<&str, usize> =
        file.workflow.jobs.iter().enumerate().map(|(index, job)| (job.name.as_str(), index)).collect();
    let mut certainty = Certainty::of(file.workflow);
    let of_jobs = file.jobs.iter().flat_map(|job| job.reads.iter().map(move |read| (Some(job), read)));
    let of_outputs = file.shared_reads.iter().filter(|read| read.key == "outputs").map(|read| (None, read));
    for (reader, read) in of_jobs.chain(of_outputs) {
        let Some(&read_job) = output_of(read).and_then(|name| index.get(name)) else { continue };
        let source = &file.workflow.jobs[read_job];
        let is_intended = reader.is_some_and(|reader| asks_about(reader, &source.name));
        if read.if_absent == IfAbsent::Instead || is_intended {
            continue;
        }
        let reader_job = reader.and_then(|reader| index.get(reader.job.name.as_str()).copied());
        if nothing_writes_it(source) {
            findings.push(unwritten(source, read));
        } else if let Some(missing) = why_missing(read_job, reader_job, &mut certainty) {
            findings.push(finding(reader, read, missing));
        }
    }
}

/// The job whose output is read.
fn output_of(read: &TextRead) -> Option<&str> {
    match read.path.as_slice() {
        [jobs, name, output, ..] if jobs == "jobs" && output == "output" => Some(name),
        _ => None,
    }
}

/// Whether the script of the job prints something and writes no output, so that its author may have forgotten `output`. Programs
/// of its own may write to the file of the output.
fn nothing_writes_it(source: &Job) -> bool {
    let Action::Shell(Shell { program: Program::Script { text, .. }, output: OutputSource::File, .. }) =
        &source.action
    else {
        return false;
    };
    let prints =
        |line: &str| line.split_whitespace().next().is_some_and(|word| ["echo", "printf"].contains(&word));
    source.for_each.is_none() && !text.contains("WINDLASS_OUTPUT") && text.lines().all(prints)
}

fn unwritten(source: &Job, read: &TextRead) -> Finding {
    Finding::new(read.span.clone(), format!("job `{}` has no output", source.name))
        .label("its script prints something, and writes nothing to the file of the output")
        .help(format!(
            "add output = \"text\" to `{}`, or write to \"$WINDLASS_OUTPUT\" in its script",
            source.name
        ))
}

/// Whether the `if` of the reader looks at the job in another way, so that its author thought of how it ends.
fn asks_about(reader: &JobInFile<'_, '_>, name: &str) -> bool {
    reader
        .reads
        .iter()
        .any(|read| read.key == "if" && read.name_after("jobs") == Some(name) && output_of(read).is_none())
}

/// Why the output of a job may be missing for its reader. Nothing as a reader stands for `outputs`.
fn why_missing(read: usize, reader: Option<usize>, certainty: &mut Certainty<'_>) -> Option<Missing> {
    let source = &certainty.workflow.jobs[read];
    if let Some(never) = why_never(source, certainty.workflow) {
        return Some(never);
    }
    // The list of the outputs is there once there are items, whatever became of them. A reader that also starts if the group was
    // skipped is rarely meant so, and a warning would be said of each that collects after failures.
    if source.for_each.is_some() || certainty.is_successful_before(read, reader) {
        return None;
    }
    let reason = match source.allow_failure {
        true => format!("`{}` may fail, because it has `allow_failure`", source.name),
        false => format!("`{}` may not be SUCCESSFUL here", source.name),
    };
    let next_step = match reader {
        Some(_job) => format!(
            "without it the job fails; add | default(\"…\"), or run the job only if = \"jobs.{}.status == 'SUCCESSFUL'\"",
            source.name
        ),
        None => "add | default(\"…\")".to_owned(),
    };
    Some(Missing { reason, next_step })
}

/// Why an output may be missing, and what its reader can do.
struct Missing {
    reason: String,
    next_step: String,
}

/// Why the job has no output, however it ends.
fn why_never(source: &Job, workflow: &Workflow) -> Option<Missing> {
    match &source.action {
        Action::Sleep(_) => Some(Missing {
            reason: format!("`{}` only sleeps, so it never has an output", source.name),
            next_step: "read the output of another job".to_owned(),
        }),
        Action::Call(call) if has_no_outputs(workflow, call) => Some(Missing {
            reason: format!("the workflow `{}` has no `outputs`", call.workflow),
            next_step: format!("add `outputs` to the workflow `{}`", call.workflow),
        }),
        Action::Shell(_)
        | Action::Http(_)
        | Action::WaitFor(_)
        | Action::Approval(_)
        | Action::Signal(_)
        | Action::Call(_) => None,
    }
}

/// Whether a call starts a known workflow that gives nothing back.
fn has_no_outputs(caller: &Workflow, call: &Call) -> bool {
    let called = call.called.and_then(|index| caller.workflows.get(index));
    called.is_some_and(|workflow| workflow.outputs.is_empty())
}

fn finding(reader: Option<&JobInFile<'_, '_>>, read: &TextRead, missing: Missing) -> Finding {
    let message = match reader {
        Some(reader) => format!("the output that job `{}` reads may be missing", reader.job.name),
        None => "the output that `outputs` reads may be missing".to_owned(),
    };
    Finding::new(read.span.clone(), message).label(missing.reason).help(missing.next_step)
}

/// Which jobs are SUCCESSFUL for sure when another one starts.
struct Certainty<'w> {
    workflow: &'w Workflow,
    graph: Graph,
    order: Vec<usize>,
    steps: usize,
    budget: Budget,
    /// Of a job that is read, for each job whether it starts only after that one was SUCCESSFUL.
    known: HashMap<usize, Vec<bool>>,
    /// Of each job, whether it is executed in every successful run. Computed at the first need.
    always: Option<Vec<bool>>,
}

impl Certainty<'_> {
    fn of(workflow: &Workflow) -> Certainty<'_> {
        let edges: usize = workflow.jobs.iter().map(|job| job.needs.len()).sum();
        let graph = Graph::new(workflow);
        let order = graph.order();
        let steps = workflow.jobs.len() + edges;
        Certainty {
            workflow,
            graph,
            order,
            steps,
            budget: Budget::new(),
            known: HashMap::new(),
            always: None,
        }
    }

    /// Whether `read` is SUCCESSFUL whenever `reader` starts. If that takes too many steps, the answer is yes.
    fn is_successful_before(&mut self, read: usize, reader: Option<usize>) -> bool {
        let source = &self.workflow.jobs[read];
        let Some(reader) = reader else {
            // `outputs` are evaluated after a success of the run.
            return source.handler.is_none() && !source.allow_failure && self.is_always_executed(read);
        };
        let job = &self.workflow.jobs[reader];
        if source.handler != job.handler {
            return job.handler == Some(RunHandler::OnSuccess)
                && source.handler.is_none()
                && !source.allow_failure
                && self.is_always_executed(read);
        }
        if job.when == When::AllSuccessful && job.needs.binary_search(&read).is_ok() && !source.allow_failure
        {
            return true;
        }
        if !self.known.contains_key(&read) {
            if !self.budget.take(self.steps) {
                return true;
            }
            let starts_after = self.starts_after(read);
            self.known.insert(read, starts_after);
        }
        self.known.get(&read).is_none_or(|starts_after| starts_after[reader])
    }

    /// For each job, whether it starts only after `read` was SUCCESSFUL.
    fn starts_after(&self, read: usize) -> Vec<bool> {
        let mut starts_after = vec![false; self.graph.job_count()];
        for index in &self.order {
            let job = &self.workflow.jobs[*index];
            // A parent that is good was executed, so what was before it is known too.
            let shows = |parent: &usize| match *parent == read {
                true => !self.workflow.jobs[read].allow_failure,
                false => starts_after[*parent],
            };
            starts_after[*index] = match job.when {
                When::AllSuccessful => job.needs.iter().any(shows),
                // One of them is good, and it is unknown which.
                When::NoneFailed | When::AnySuccessful => {
                    !job.needs.is_empty() && job.needs.iter().all(shows)
                }
                When::AnyFailed | When::AllFinished => false,
            };
        }
        starts_after
    }

    /// Whether the job is executed in every run that is successful.
    fn is_always_executed(&mut self, index: usize) -> bool {
        if self.always.is_none() && self.budget.take(self.steps) {
            let mut always = vec![false; self.graph.job_count()];
            for index in &self.order {
                let job = &self.workflow.jobs[*index];
                let may_skip_itself = job.condition.is_some()
                    || job.skip_if.is_some()
                    || job
                        .concurrency
                        .as_ref()
                        .is_some_and(|concurrency| concurrency.on_full == OnFull::Skip);
                let is_reached = match job.when {
                    When::AllSuccessful => job.needs.iter().all(|parent| always[*parent]),
                    When::NoneFailed | When::AnySuccessful => job.needs.iter().any(|parent| always[*parent]),
                    When::AnyFailed => false,
                    When::AllFinished => true,
                };
                always[*index] = is_reached && !may_skip_itself;
            }
            self.always = Some(always);
        }
        self.always.as_ref().is_none_or(|always| always[index])
    }
}

//! Checks one job of a workflow that a program made, and what it reads of others.

use super::text::{self, Rule, Texts};
use super::{Checked, WorkflowError, in_range, optional_duration, refuse, within, within_job};
use crate::graph::Graph;
use crate::limits;
use crate::model::{Action, Concurrency, Job, Retry, Workflow};
use crate::template::{self, Reader};

/// Checks all but the graph. Places are below the job.
pub(super) fn check(index: usize, job: &Job, texts: &Texts<'_>) -> Checked {
    text::name(&job.name, "name", Rule::Job)?;
    text::optional(job.description.as_deref(), "description")?;
    let mut read = check_action(&job.action, texts)?;
    read.extend(text::env(&job.env, "env", texts, Reader::Job)?);
    if let Some(dir) = &job.dir {
        text::filled(dir, "dir")?;
        read.extend(text::outputs_read(dir, "dir", texts, Reader::Job)?);
    }
    check_retry(&job.retry)?;
    optional_duration(job.timeout_ms, "timeout_ms")?;
    text::name(&job.queue, "queue", Rule::Queue)?;
    in_range(job.priority, -limits::PRIORITY..=limits::PRIORITY, "priority")?;
    in_range(job.max_interruptions, 0..=limits::ATTEMPTS, "max_interruptions")?;
    check_requires(&job.requires)?;
    in_range(job.version, 0..=limits::VERSION, "version")?;
    if let Some(concurrency) = &job.concurrency {
        check_concurrency(concurrency, texts)?;
    }
    check_read(index, job, &read, texts)
}

/// Returns the jobs whose outputs the templates read.
fn check_action(action: &Action, texts: &Texts<'_>) -> Result<Vec<usize>, WorkflowError> {
    match action {
        Action::Run { script, shell } => {
            if script.trim().is_empty() {
                refuse("action.script", "it is empty")?;
            }
            text::up_to(script, limits::SCRIPT_BYTES, "action.script")?;
            check_items(shell, "action.shell")?;
            match shell.first().is_some_and(|program| program.trim().is_empty()) {
                true => refuse("action.shell", "it names no program").map(|()| Vec::new()),
                false => Ok(Vec::new()),
            }
        }
        Action::Command(command) => {
            check_items(command, "action")?;
            if command.first().is_none_or(|program| program.trim().is_empty()) {
                refuse("action", "the command names no program")?;
            }
            let mut read = Vec::new();
            for (at, item) in command.iter().enumerate().filter(|(_at, item)| template::is_template(item)) {
                read.extend(text::outputs_read(item, &format!("action[{at}]"), texts, Reader::Job)?);
            }
            Ok(read)
        }
    }
}

fn check_items(items: &[String], place: &str) -> Checked {
    within(items.len(), limits::COMMAND_ITEMS, place)?;
    items.iter().enumerate().try_for_each(|(at, item)| {
        text::plain(item, place).map_err(|error| WorkflowError { place: format!("{place}[{at}]"), ..error })
    })
}

fn check_retry(retry: &Retry) -> Checked {
    in_range(retry.max_attempts, 1..=limits::ATTEMPTS, "retry.max_attempts")?;
    in_range(retry.delay_ms, 0..=limits::DURATION_MS, "retry.delay_ms")?;
    in_range(retry.max_delay_ms, retry.delay_ms..=limits::DURATION_MS, "retry.max_delay_ms")?;
    // Also NaN is outside.
    for (value, allowed, place) in [
        (retry.factor, 1.0..=limits::RETRY_FACTOR, "retry.factor"),
        (retry.jitter, 0.0..=1.0, "retry.jitter"),
    ] {
        if !allowed.contains(&value) {
            return refuse(
                place,
                format!("it is {value}, and must be {} to {}", allowed.start(), allowed.end()),
            );
        }
    }
    Ok(())
}

fn check_requires(requires: &[String]) -> Checked {
    within(requires.len(), limits::CAPABILITIES, "requires")?;
    for (at, capability) in requires.iter().enumerate() {
        text::name(capability, &format!("requires[{at}]"), Rule::Capability)?;
    }
    match requires.windows(2).position(|pair| pair[0] >= pair[1]) {
        Some(at) => refuse(format!("requires[{}]", at + 1), "the list must be sorted, without duplicates"),
        None => Ok(()),
    }
}

fn check_concurrency(concurrency: &Concurrency, texts: &Texts<'_>) -> Checked {
    text::filled(&concurrency.key, "concurrency.key")?;
    text::outputs_read(&concurrency.key, "concurrency.key", texts, Reader::Key)?;
    in_range(concurrency.limit, 1..=limits::CONCURRENCY, "concurrency.limit")
}

/// What templates read must be listed in `uses`: the engine looks up no other outputs.
fn check_read(index: usize, job: &Job, read: &[usize], texts: &Texts<'_>) -> Checked {
    let Some(used) = read.iter().find(|used| job.uses.binary_search(used).is_err()) else { return Ok(()) };
    if *used == index {
        return refuse("uses", "a template reads the output of the job itself");
    }
    let name = texts.names.iter().nth(*used).unwrap_or_default();
    refuse("uses", format!("a template reads the output of `{name}`, jobs[{used}]: add {used} to the list"))
}

/// Every index names another job; the list is ascending, without duplicates.
pub(super) fn check_indices(list: &[usize], field: &str, job: usize, jobs: usize) -> Checked {
    let mut before = None;
    for (at, index) in list.iter().enumerate() {
        let place = || format!("{field}[{at}]");
        if *index >= jobs {
            return refuse(place(), format!("it is {index}, and the last job is jobs[{}]", jobs - 1));
        }
        if *index == job {
            return refuse(place(), format!("it is {index}, the job itself"));
        }
        if before.is_some_and(|before| before >= *index) {
            return refuse(place(), "the list must be ascending, without duplicates");
        }
        before = Some(*index);
    }
    Ok(())
}

/// Every job whose output is read is over before its reader starts. The graph is free of cycles, and the indices
/// are right.
pub(super) fn check_uses(workflow: &Workflow) -> Checked {
    let mut indirect = Vec::new();
    for (reader, job) in workflow.jobs.iter().enumerate() {
        let uses = job.uses.iter().filter(|used| job.needs.binary_search(used).is_err());
        indirect.extend(uses.map(|used| (*used, reader)));
    }
    let mut read: Vec<usize> = indirect.iter().map(|(used, _reader)| *used).collect();
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
    let answers = Graph::new(workflow).are_ancestors(&indirect);
    match indirect.iter().zip(answers).find(|(_pair, is_ancestor)| !is_ancestor) {
        Some(((used, reader), _)) => {
            let name = &workflow.jobs[*used].name;
            let reason = format!("it lists `{name}`, jobs[{used}], which the job does not need");
            Err(within_job(workflow, *reader, WorkflowError { place: "uses".to_owned(), reason }))
        }
        None => Ok(()),
    }
}

//! Checks one job of a workflow that a program made.

use crate::expression::Place;
use crate::field::{self, Checked, KnownNames, in_range, optional_duration, refuse, within};
use crate::for_each::ForEach;
use crate::kinds::Action;
use crate::limits;
use crate::model::{Concurrency, Job, Retry, When};
use crate::names::NameKind;

/// Checks everything but the graph. The fields in errors are relative to the job.
pub(super) fn check(index: usize, job: &Job, names: &KnownNames<'_>) -> Checked {
    field::name(&job.name, "name", NameKind::Job)?;
    field::optional(job.description.as_deref(), "description")?;
    let read = job.action.check(names)?;
    check_retry(&job.retry)?;
    check_conditions(job, names)?;
    check_repeat(job)?;
    check_set_variables(job, names)?;
    if let Some(for_each) = &job.for_each {
        check_for_each(for_each, names)?;
    }
    optional_duration(job.deadline_ms, "deadline_ms")?;
    check_secrets(job, names)?;
    optional_duration(job.timeout_ms, "timeout_ms")?;
    if matches!(job.action, Action::Call(_)) && job.concurrency.is_some() {
        return refuse(
            "concurrency",
            "no worker executes this job; the jobs of the called workflow may have keys",
        );
    }
    field::name(&job.queue, "queue", NameKind::Queue)?;
    in_range(job.priority, -limits::PRIORITY..=limits::PRIORITY, "priority")?;
    in_range(job.max_interruptions, 0..=limits::ATTEMPTS, "max_interruptions")?;
    check_requires(&job.requires)?;
    in_range(job.code_version, 0..=limits::CODE_VERSION, "code_version")?;
    if let Some(concurrency) = &job.concurrency {
        check_concurrency(concurrency, names)?;
    }
    if job.action.is_wait() && job.concurrency.is_some() {
        refuse("concurrency", "no worker executes this job")?;
    }
    if job.action.is_wait() && job.deadline_ms.is_some() {
        refuse("deadline_ms", "no worker executes this job")?;
    }
    check_uses_lists(index, job, &read, names)
}

fn check_repeat(job: &Job) -> Checked {
    let Some(repeat) = &job.repeat else { return Ok(()) };
    if job.action.is_wait() {
        return refuse("repeat", "no worker executes this job");
    }
    if matches!(job.action, Action::Call(_)) {
        return refuse("repeat", "no worker executes this job; the jobs of the called workflow may repeat");
    }
    in_range(repeat.every_ms, 1..=limits::DURATION_MS, "repeat.every_ms")?;
    in_range(repeat.max, 1..=limits::ROUNDS, "repeat.max")
}

fn check_set_variables(job: &Job, names: &KnownNames<'_>) -> Checked {
    let Some(variables) = &job.set_variables else { return Ok(()) };
    if !job.action.is_claimed() {
        return refuse(
            "set_variables",
            "no worker executes this job; a job with a process or a request can set them",
        );
    }
    within(variables.len(), limits::SET_VARIABLES, "set_variables")?;
    for (name, expression) in variables.iter() {
        let field = format!("set_variables.{name}");
        field::name(name, &field, NameKind::Variable)?;
        field::value(expression, &field, names, job.action.end_place())?;
    }
    Ok(())
}

fn check_retry(retry: &Retry) -> Checked {
    in_range(retry.max_attempts, 1..=limits::ATTEMPTS, "retry.max_attempts")?;
    in_range(retry.delay_ms, 0..=limits::DURATION_MS, "retry.delay_ms")?;
    in_range(retry.max_delay_ms, retry.delay_ms..=limits::DURATION_MS, "retry.max_delay_ms")?;
    // NaN is outside of every range, so it is refused here too.
    for (value, allowed, field) in [
        (retry.factor, 1.0..=limits::RETRY_FACTOR, "retry.factor"),
        (retry.jitter, 0.0..=1.0, "retry.jitter"),
    ] {
        if !allowed.contains(&value) {
            return refuse(
                field,
                format!("it is {value}, and must be {} to {}", allowed.start(), allowed.end()),
            );
        }
    }
    Ok(())
}

fn check_conditions(job: &Job, names: &KnownNames<'_>) -> Checked {
    if job.when != When::default() && job.needs.is_empty() {
        return refuse("when", "it says how the needed jobs must have ended, and the job needs none");
    }
    if job.retry.condition.is_some() && job.retry.max_attempts == 1 {
        return refuse("retry.condition", "it says when to try again, and `max_attempts` is 1");
    }
    field::condition(job.condition.as_ref(), "condition", names, Place::Condition)?;
    for (expression, field) in [
        (&job.success_if, "success_if"),
        (&job.skip_if, "skip_if"),
        (&job.retry.condition, "retry.condition"),
        (&job.repeat.as_ref().map(|repeat| repeat.until.clone()), "repeat.until"),
    ] {
        field::condition(expression.as_ref(), field, names, job.action.end_place())?;
    }
    Ok(())
}

fn check_for_each(for_each: &ForEach, names: &KnownNames<'_>) -> Checked {
    in_range(for_each.max_parallel.unwrap_or(1), 1..=limits::ITEMS, "for_each.max_parallel")?;
    in_range(for_each.limit, 1..=limits::ITEMS, "for_each.limit")?;
    if let Some(Err(error)) = for_each.written_count().map(|count| for_each.check_count(count)) {
        return refuse("for_each", error);
    }
    for text in for_each.texts() {
        field::outputs_read(text, "for_each", names, Place::Workflow)?;
    }
    field::condition(for_each.expression(), "for_each", names, Place::Items)
}

fn check_secrets(job: &Job, names: &KnownNames<'_>) -> Checked {
    let secrets = &job.secrets;
    if !secrets.is_empty() && !job.action.has_process() {
        return refuse("secrets", "they are variables of a process, and the job starts none");
    }
    for (at, secret) in secrets.iter().enumerate() {
        if job.action.sets_variable(secret) {
            return refuse(format!("secrets[{at}]"), format!("`env` sets the variable `{secret}` too"));
        }
        if !names.secrets.contains(&secret.as_str()) {
            return refuse(format!("secrets[{at}]"), format!("the workflow has no secret `{secret}`"));
        }
    }
    match secrets.windows(2).position(|pair| pair[0] >= pair[1]) {
        Some(at) => refuse(format!("secrets[{}]", at + 1), "the list must be sorted, without duplicates"),
        None => Ok(()),
    }
}

fn check_requires(requires: &[String]) -> Checked {
    within(requires.len(), limits::CAPABILITIES, "requires")?;
    for (at, capability) in requires.iter().enumerate() {
        field::name(capability, &format!("requires[{at}]"), NameKind::Capability)?;
    }
    match requires.windows(2).position(|pair| pair[0] >= pair[1]) {
        Some(at) => refuse(format!("requires[{}]", at + 1), "the list must be sorted, without duplicates"),
        None => Ok(()),
    }
}

pub(super) fn check_concurrency(concurrency: &Concurrency, names: &KnownNames<'_>) -> Checked {
    field::filled(&concurrency.key, "concurrency.key")?;
    field::outputs_read(&concurrency.key, "concurrency.key", names, Place::ConcurrencyKey)?;
    in_range(concurrency.limit, 1..=limits::CONCURRENCY, "concurrency.limit")
}

/// Checks that `uses` lists every job whose output a template reads, because the engine looks up no other outputs.
fn check_uses_lists(index: usize, job: &Job, read: &[usize], names: &KnownNames<'_>) -> Checked {
    let Some(used) = read.iter().find(|used| job.uses.binary_search(used).is_err()) else { return Ok(()) };
    if *used == index {
        return refuse("uses", "a template reads the output of the job itself");
    }
    let name = names.jobs.iter().nth(*used).unwrap_or_default();
    refuse("uses", format!("a template reads the output of `{name}`, jobs[{used}]: add {used} to the list"))
}

/// Checks that every index names another job, and that the list is ascending, without duplicates.
pub(super) fn check_indices(list: &[usize], field: &str, job: usize, jobs: usize) -> Checked {
    let mut before = None;
    for (at, index) in list.iter().enumerate() {
        let item = || format!("{field}[{at}]");
        if *index >= jobs {
            return refuse(item(), format!("it is {index}, and the last job is jobs[{}]", jobs - 1));
        }
        if *index == job {
            return refuse(item(), format!("it is {index}, the job itself"));
        }
        if before.is_some_and(|before| before >= *index) {
            return refuse(item(), "the list must be ascending, without duplicates");
        }
        before = Some(*index);
    }
    Ok(())
}

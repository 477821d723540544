//! The words for each reason.

use windlass::JobStatus;
use windlass::store::{Job, Reason};

use crate::cli::{GlobalOptions, quoted};
use crate::describe;
use crate::style::{headline, printable};
use crate::time;

/// Parents that are named; the others are counted.
const MAX_PARENTS_NAMED: usize = 8;
/// Columns of an error.
const ERROR_COLUMNS: usize = 400;

/// The reason as a word for programs.
pub(super) fn kind(reason: &Reason) -> &'static str {
    match reason {
        Reason::WaitsForParents(_) => "waits_for_parents",
        Reason::WaitsForTime { .. } => "waits_for_time",
        Reason::NobodyKeepsTime => "nobody_keeps_time",
        Reason::QueuePaused(_) => "queue_paused",
        Reason::NoWorker { .. } => "no_worker",
        Reason::NoCapability { .. } => "no_capability",
        Reason::WorkersTooOld { .. } => "workers_too_old",
        Reason::QueueFull { .. } => "queue_full",
        Reason::QueueRate { .. } => "queue_rate",
        Reason::NotItsTurn { .. } => "not_its_turn",
        Reason::KeyTaken { .. } => "key_taken",
        Reason::WorkersBusy { .. } => "workers_busy",
        Reason::Behind(_) => "behind",
        Reason::Runs { .. } => "runs",
        Reason::WaitsForEvent => "waits_for_event",
        Reason::Over(_) => "over",
    }
}

/// The reason as a sentence for people.
pub(crate) fn sentence(reason: &Reason, job: &Job, now_ms: i64, global: &GlobalOptions) -> String {
    match reason {
        Reason::WaitsForParents(parents) => waits_for_parents(parents),
        Reason::WaitsForTime { execute_after, failures } => {
            waits_for_time(*execute_after, *failures, job.max_attempts, now_ms)
        }
        Reason::NobodyKeepsTime if job.status == JobStatus::Waiting => {
            format!("No worker is alive to let it go then; {} does, and executes it.", executor(job, global))
        }
        Reason::NobodyKeepsTime => format!(
            "Its time has come, but no worker is alive to notice; {} executes it.",
            executor(job, global)
        ),
        Reason::QueuePaused(queue) => {
            format!(
                "Its queue `{}` is paused: nothing is claimed from it until `{}`.",
                printable(queue),
                global.hint(&format!("queue resume {}", quoted(queue)))
            )
        }
        Reason::NoWorker { alive: 0, .. } => {
            format!("No worker is alive; {} executes it.", executor(job, global))
        }
        Reason::NoWorker { kind, queue, alive } => format!(
            "{} alive, but none takes jobs of kind `{}` from the queue `{}` (or of this run); {} does.",
            workers(*alive),
            printable(kind),
            printable(queue),
            executor(job, global)
        ),
        Reason::NoCapability { requires } => format!(
            "No worker that is alive has all that it requires ({}); {} executes it.",
            printable(&requires.join(", ")),
            executor(job, global)
        ),
        Reason::WorkersTooOld { version, newest } => format!(
            "It asks for a worker of version {version} or later, and the newest that is alive has {newest}; {} executes it.",
            executor(job, global)
        ),
        Reason::QueueFull { queue, limit: 0, .. } => format!(
            "Its queue `{}` lets no job run: its limit is 0, and `{}` lifts it.",
            printable(queue),
            global.hint(&format!("queue limit {} --no-max-running", quoted(queue)))
        ),
        Reason::QueueFull { queue, limit, running } => format!(
            "Its queue `{}` is full: {running} of its jobs run, and {limit} may at a time.",
            printable(queue)
        ),
        Reason::QueueRate { queue, rate, next_at } => format!(
            "Its queue `{}` may start {} within {}, and has{}.",
            printable(queue),
            if rate.jobs == 1 { "1 job".to_owned() } else { format!("{} jobs", rate.jobs) },
            time::duration(rate.interval_ms),
            next_at
                .map(|at| format!("; the next may start at {}", describe::instant(at, now_ms)))
                .unwrap_or_default(),
        ),
        Reason::NotItsTurn { queue, turn_job_id } => format!(
            "Its queue `{}` goes by arrival, one job at a time: it is the turn of j{turn_job_id}.",
            printable(queue)
        ),
        Reason::KeyTaken { key, limit, holders } => format!(
            "{} with its concurrency key `{}` may go at a time, and {} {}.",
            if *limit == 1 { "One job".to_owned() } else { format!("{limit} jobs") },
            printable(key),
            if holders.is_empty() { "the scheduler will let it go".to_owned() } else { holders.join(", ") },
            match holders.len() {
                0 => "in a moment",
                1 => "does",
                _several => "do",
            },
        ),
        Reason::WorkersBusy { workers: takers, threads, running } if running >= threads => format!(
            "It could run now, but {} that {} it {} busy: {running} of {threads} threads run other jobs.",
            if *takers == 1 { "the one worker".to_owned() } else { format!("all {takers} workers") },
            if *takers == 1 { "takes" } else { "take" },
            if *takers == 1 { "is" } else { "are" },
        ),
        Reason::WorkersBusy { threads, running, .. } => {
            format!(
                "A worker has room for it ({running} of {threads} threads are in use) and will claim it at once."
            )
        }
        Reason::Behind(0) => "It is the next in its queue.".to_owned(),
        Reason::Behind(1) => "One job comes before it in its queue.".to_owned(),
        Reason::Behind(jobs) => format!("{jobs} jobs come before it in its queue."),
        Reason::Runs { worker_id, process, stopping } => {
            runs(job, *worker_id, process.as_ref(), *stopping, now_ms, global)
        }
        Reason::WaitsForEvent => "It waits for something from outside and holds no thread.".to_owned(),
        Reason::Over(error) => over(job, error.as_deref(), global),
    }
}

fn waits_for_parents(parents: &[(String, JobStatus)]) -> String {
    let named: Vec<String> = parents
        .iter()
        .take(MAX_PARENTS_NAMED)
        .map(|(label, status)| format!("{} ({status})", printable(label)))
        .collect();
    let hidden = parents.len() - named.len();
    let more = if hidden > 0 { format!(" and {hidden} more") } else { String::new() };
    match parents.len() {
        1 => format!("It waits for a job that is not over: {}.", named.join(", ")),
        count => format!("It waits for {count} jobs that are not over: {}{more}.", named.join(", ")),
    }
}

fn waits_for_time(execute_after: i64, failures: i64, max_attempts: i64, now_ms: i64) -> String {
    let when = describe::instant(execute_after, now_ms);
    match failures {
        ..=0 => format!("Its time comes at {when}."),
        1 => format!("It failed once (of {max_attempts} times allowed); the next attempt comes at {when}."),
        _ => format!("It failed {failures} of {max_attempts} times; the next attempt comes at {when}."),
    }
}

fn runs(
    job: &Job,
    worker_id: i64,
    process: Option<&(String, i64)>,
    stopping: bool,
    now_ms: i64,
    global: &GlobalOptions,
) -> String {
    let Some((host, pid)) = process else {
        let resume = executor(job, global);
        return format!("Its worker {worker_id} is gone; whoever works next takes the job back: {resume}.");
    };
    let since = job.started_at.map(|at| format!(" for {}", time::elapsed(now_ms - at))).unwrap_or_default();
    let place = format!("worker {worker_id} (process {pid} on {})", printable(host));
    let attempt = job.attempt;
    match stopping {
        true => format!("It was asked to stop; attempt {attempt} still ends on {place}."),
        false => format!("Attempt {attempt} has been running{since} on {place}."),
    }
}

fn over(job: &Job, error: Option<&str>, global: &GlobalOptions) -> String {
    let took = describe::span(job.started_at, job.finished_at, 0);
    let prefix = if job.status == JobStatus::Cancelled { "cancelled: " } else { "skipped: " };
    let error = error.map(|error| error.strip_prefix(prefix).unwrap_or(error));
    let reason = error.map(|error| headline(error, ERROR_COLUMNS)).filter(|error| !error.is_empty());
    let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let logs = global.hint(&format!("logs j{}", job.id));
    let retry = job.run_id.map(|run_id| global.hint(&format!("retry {run_id}")));
    let again = retry.map(|retry| format!(" `{retry}` executes it again.")).unwrap_or_default();
    match job.status {
        JobStatus::Successful => format!("It is done: attempt {} took {took}.", job.attempt),
        JobStatus::Failed => {
            let times = if job.failures > 1 { format!(" {} times", job.failures) } else { String::new() };
            format!("It failed{times}{because}. `{logs}` shows what it wrote.{again}")
        }
        JobStatus::Skipped => format!("It can never run{because}.{again}"),
        // "cancelled at once: …" says it itself.
        JobStatus::Cancelled if because.starts_with(": cancelled") => {
            format!("It was {}.{again}", because.trim_start_matches(": "))
        }
        JobStatus::Cancelled => format!("It was cancelled{because}.{again}"),
        JobStatus::Blocked
        | JobStatus::Scheduled
        | JobStatus::Pending
        | JobStatus::Running
        | JobStatus::Waiting => String::new(),
    }
}

/// What would execute the job, as a command.
fn executor(job: &Job, global: &GlobalOptions) -> String {
    if job.kind != "shell" {
        return format!("a program that registers a handler for the kind `{}`", printable(&job.kind));
    }
    let scope = match job.run_id {
        Some(run_id) => format!("resume {run_id}"),
        None if job.queue == windlass::workflow::model::DEFAULT_QUEUE => "worker".to_owned(),
        None => format!("worker --queue {}", quoted(&job.queue)),
    };
    let requires: Vec<String> = serde_json::from_str(&job.requires).unwrap_or_default();
    format!("`{}`", global.hint(&format!("{scope}{}", worker_capabilities(&requires, job.version))))
}

/// The options of a worker that may execute the job.
pub(crate) fn worker_capabilities(requires: &[String], version: i64) -> String {
    let mut options = String::new();
    if !requires.is_empty() {
        options.push_str(&format!(" --capability {}", quoted(&requires.join(","))));
    }
    if version > 0 {
        options.push_str(&format!(" --code-version {version}"));
    }
    options
}

fn workers(count: i64) -> String {
    match count {
        1 => "One worker is".to_owned(),
        count => format!("{count} workers are"),
    }
}

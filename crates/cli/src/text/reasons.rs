//! The reasons why a job is not running, as sentences.

use windlass_engine::JobStatus;
use windlass_engine::store::{BrokenBefore, Job, Reason, RunSlot};

use crate::arguments::GlobalOptions;
use crate::shell_words::quoted;
use crate::text::style::{headline, printable};
use crate::text::values::counted;
use crate::text::{runs_and_jobs, time};

/// How many parents are named. The others are counted.
const MAX_PARENTS_NAMED: usize = 8;
/// How many columns of an error are shown.
const ERROR_COLUMNS: usize = 400;

/// The reason as a sentence for people.
pub(crate) fn sentence(reason: &Reason, job: &Job, now_ms: i64, global: &GlobalOptions) -> String {
    match reason {
        Reason::WaitsForParents(parents) => waits_for_parents(parents),
        Reason::WaitsForTime { execute_after, failures } => {
            waits_for_time(*execute_after, *failures, job.max_attempts, now_ms)
        }
        Reason::WaitsForRound { execute_after, round, max, until } => format!(
            "Round {round} of at most {max} begins at {}; it repeats until {}.",
            time::instant(*execute_after, now_ms),
            headline(until, ERROR_COLUMNS)
        ),
        Reason::Sleeps { until } => format!("It sleeps until {}.", time::instant(*until, now_ms)),
        Reason::NoScheduler if job.status == JobStatus::Waiting => {
            format!("No worker is alive to make it claimable; {}.", start_worker(job, global))
        }
        Reason::NoScheduler => {
            format!("Its time has come, but no worker is alive; {}.", start_worker(job, global))
        }
        Reason::QueuePaused(queue) => {
            format!(
                "Its queue `{}` is paused; `{}` ends the pause.",
                printable(queue),
                global.hint(&format!("queue resume {}", quoted(queue)))
            )
        }
        Reason::NoWorker { alive: 0, .. } => {
            format!("No worker is alive; {}.", start_worker(job, global))
        }
        Reason::NoWorker { kind, queue, alive } => format!(
            "{} alive, but none takes jobs of kind `{}` from the queue `{}` or of this run; {}.",
            workers(*alive),
            printable(kind),
            printable(queue),
            start_worker(job, global)
        ),
        Reason::NoCapability { requires } => format!(
            "No live worker has the required capabilities ({}); {}.",
            printable(&requires.join(", ")),
            start_worker(job, global)
        ),
        Reason::WorkersTooOld { code_version, newest } => format!(
            "It requires a worker with code version {code_version} or later, and the newest live worker has {newest}; {}.",
            start_worker(job, global)
        ),
        Reason::QueueFull { queue, limit: 0, .. } => format!(
            "Its queue `{}` has a limit of 0 running jobs; `{}` removes the limit.",
            printable(queue),
            global.hint(&format!("queue limit {} --no-max-running", quoted(queue)))
        ),
        Reason::QueueFull { queue, limit, running } => format!(
            "Its queue `{}` is full: {running} jobs are running, and the limit is {limit}.",
            printable(queue)
        ),
        Reason::QueueRate { queue, rate, next_at } => format!(
            "Its queue `{}` may start {} within {}, and has done so{}.",
            printable(queue),
            if rate.jobs == 1 { "1 job".to_owned() } else { format!("{} jobs", rate.jobs) },
            time::duration(rate.interval_ms),
            next_at
                .map(|at| format!("; the next may start at {}", time::instant(at, now_ms)))
                .unwrap_or_default(),
        ),
        Reason::NotItsTurn { queue, turn_job_id } => format!(
            "Its queue `{}` runs one job at a time in order of arrival; job j{turn_job_id} is next.",
            printable(queue)
        ),
        Reason::KeyTaken { key, limit, holders } => key_taken(key, *limit, holders),
        Reason::WorkersBusy { workers: able_workers, threads, running } if running >= threads => format!(
            "It could run now, but {} that can take it {} busy: {running} of {threads} threads run other jobs.",
            if *able_workers == 1 {
                "the one worker".to_owned()
            } else {
                format!("all {able_workers} workers")
            },
            if *able_workers == 1 { "is" } else { "are" },
        ),
        Reason::WorkersBusy { threads, running, .. } => {
            format!("A worker has a free thread ({running} of {threads} are busy) and will claim it at once.")
        }
        Reason::Behind(0) => "It is next in its queue.".to_owned(),
        Reason::Behind(1) => "1 job is before it in its queue.".to_owned(),
        Reason::Behind(jobs) => format!("{jobs} jobs are before it in its queue."),
        Reason::Runs { worker_id, process, stopping } => {
            runs(job, *worker_id, process.as_ref(), *stopping, now_ms, global)
        }
        Reason::WaitsForRun { run_id, workflow, status, stopping } => {
            let run = format!("run {run_id} of `{}`, which is {status}", printable(workflow));
            let shown = global.hint(&format!("inspect {run_id}"));
            match stopping {
                true => format!("It is stopping: it waits for the end of {run}; `{shown}` shows its jobs."),
                false => format!("It waits for {run}; `{shown}` shows its jobs."),
            }
        }
        Reason::WaitsForEndOfRun => "It is a handler: it waits for the jobs of its run to end.".to_owned(),
        Reason::WaitsForDecision => {
            "The jobs that it needs have ended. The scheduler decides next whether it runs.".to_owned()
        }
        Reason::WaitsForEvent { event, key, deadline_at } => {
            let mut verb = format!("signal {}", quoted(event));
            if let Some(key) = key {
                verb.push_str(&format!(" --key {}", quoted(key)));
            }
            let named = key.as_ref().map(|key| format!(" with the key `{}`", printable(key)));
            format!(
                "It waits for the event `{}`{}{}; `{}` sends it.",
                printable(event),
                named.unwrap_or_default(),
                at_most_until(*deadline_at, now_ms),
                global.hint(&verb)
            )
        }
        Reason::WaitsForApproval { prompt, deadline_at } => {
            let job_name = job.name.as_deref().unwrap_or_default();
            let address = format!("{} {}", job.run_id.unwrap_or_default(), quoted(job_name));
            format!(
                "It waits for an approval{}: {} `{}` or `{}` decides it.",
                at_most_until(*deadline_at, now_ms),
                headline(prompt, ERROR_COLUMNS),
                global.hint(&format!("approve {address}")),
                global.hint(&format!("reject {address} --reason TEXT"))
            )
        }
        Reason::WaitsForItems { unfinished, running, items } => format!(
            "It waits for its items: {unfinished} of {items} have not ended, and {running} of them {}.",
            if *running == 1 { "runs" } else { "run" }
        ),
        Reason::RunWaitsForSlot(slot) => run_waits_for_slot("Its run", slot),
        Reason::WaitsForTurn { group, max_parallel } => format!(
            "It waits for its turn: {} runs {} at a time (`max_parallel`).",
            printable(group),
            counted(*max_parallel, "item", "items")
        ),
        Reason::HasDeadline(at_ms) => {
            format!("It fails if it is not over by {}, its deadline.", time::instant(*at_ms, now_ms))
        }
        Reason::Over { error, broken } => over(job, error.as_deref(), broken, global),
    }
}

/// Why a run does not begin. `run` begins the sentence.
pub(crate) fn run_waits_for_slot(run: &str, RunSlot { key, limit, holders }: &RunSlot) -> String {
    let allowed = counted(*limit, "run", "runs");
    let named: Vec<String> = holders.iter().map(ToString::to_string).collect();
    let taken = match named.as_slice() {
        [] => "a slot is free, and the scheduler will let it begin soon".to_owned(),
        [only] => format!("run {only} has the slot"),
        several => format!("runs {} have slots", several.join(", ")),
    };
    format!(
        "{run} waits for a slot of the concurrency key `{}`, which allows {allowed} at a time; {taken}.",
        printable(key)
    )
}

/// The end of a wait, as a part of a sentence.
fn at_most_until(deadline_at: Option<i64>, now_ms: i64) -> String {
    deadline_at.map(|at| format!(", until {} at the latest", time::instant(at, now_ms))).unwrap_or_default()
}

fn key_taken(key: &str, limit: i64, holders: &[String]) -> String {
    let key = printable(key);
    let allowed = counted(limit, "job", "jobs");
    match holders.len() {
        0 => format!(
            "Its concurrency key `{key}` allows {allowed} at a time; a slot is free, and the scheduler will release this job soon."
        ),
        1 => format!(
            "Its concurrency key `{key}` allows {allowed} at a time; {} has the slot.",
            holders.join(", ")
        ),
        _several => format!(
            "Its concurrency key `{key}` allows {allowed} at a time; {} have the slots.",
            holders.join(", ")
        ),
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
        1 => format!("It waits for an unfinished job: {}.", named.join(", ")),
        count => format!("It waits for {count} unfinished jobs: {}{more}.", named.join(", ")),
    }
}

fn waits_for_time(execute_after: i64, failures: i64, max_attempts: i64, now_ms: i64) -> String {
    let when = time::instant(execute_after, now_ms);
    match failures {
        ..=0 => format!("It starts at {when}."),
        1 => format!("It failed 1 of {max_attempts} times; the next attempt starts at {when}."),
        _ => format!("It failed {failures} of {max_attempts} times; the next attempt starts at {when}."),
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
        let resume = start_worker(job, global);
        return format!("Its worker {worker_id} is gone; the next worker rescues the job: {resume}.");
    };
    let since = job.started_at.map(|at| format!(" for {}", time::elapsed(now_ms - at))).unwrap_or_default();
    let worker = format!("worker {worker_id} (process {pid} on {})", printable(host));
    let attempt = job.attempt;
    match stopping {
        true => format!("It is stopping: attempt {attempt} has not ended yet on {worker}."),
        false => format!("Attempt {attempt} has been running{since} on {worker}."),
    }
}

fn over(job: &Job, error: Option<&str>, broken: &BrokenBefore, global: &GlobalOptions) -> String {
    let took = runs_and_jobs::span(job.started_at, job.finished_at, 0);
    let prefix = if job.status == JobStatus::Cancelled { "cancelled: " } else { "skipped: " };
    let error = error.map(|error| error.strip_prefix(prefix).unwrap_or(error));
    let reason = error.map(|error| headline(error, ERROR_COLUMNS)).filter(|error| !error.is_empty());
    let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let logs = global.hint(&format!("logs j{}", job.id));
    // A retry leaves a job alone that was not needed.
    let is_retried = job.status != JobStatus::Skipped || job.upstream_failed;
    let retry = job
        .root_run_id
        .or(job.run_id)
        .filter(|_run_id| is_retried)
        .map(|run_id| global.hint(&format!("retry {run_id}")));
    let after = retry.as_ref().map(|retry| format!(" `{retry}` reruns what failed, and then this job."));
    let again = retry.map(|retry| format!(" `{retry}` runs it again.")).unwrap_or_default();
    match job.status {
        // A wait, an approval or a group of items, which no worker executes.
        JobStatus::Successful if job.attempt == 0 => format!("It succeeded, and took {took}."),
        JobStatus::Successful => format!("It succeeded: attempt {} took {took}.", job.attempt),
        JobStatus::Failed => {
            let times = if job.failures > 1 { format!(" {} times", job.failures) } else { String::new() };
            format!("It failed{times}{because}. `{logs}` shows its output.{again}")
        }
        JobStatus::Skipped => {
            let because = after_broken(broken).unwrap_or(because);
            format!("It was skipped{because}.{}", after.unwrap_or_default())
        }
        // The reason "cancelled at once: …" contains the word already.
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

/// The jobs because of which a job was skipped, if the reason in its row names only one of them.
fn after_broken(broken: &BrokenBefore) -> Option<String> {
    let named: Vec<String> =
        broken.named.iter().map(|(name, status)| format!("`{}` is {status}", printable(name))).collect();
    let (last, others) = named.split_last().filter(|(_last, others)| !others.is_empty())?;
    Some(match broken.has_more {
        true => format!(": {}, {last}, and more jobs before it did not succeed", others.join(", ")),
        false => format!(": {} and {last}", others.join(", ")),
    })
}

/// The next step: which worker to start.
fn start_worker(job: &Job, global: &GlobalOptions) -> String {
    if !windlass_workflow::kinds::is_built_in(&job.kind) {
        return format!("start a program that has a handler for `{}`", printable(&job.kind));
    }
    let scope = match job.root_run_id.or(job.run_id) {
        Some(run_id) => format!("resume {run_id}"),
        None if job.queue == windlass_workflow::model::DEFAULT_QUEUE => "worker".to_owned(),
        None => format!("worker --queue {}", quoted(&job.queue)),
    };
    let requires: Vec<String> = serde_json::from_str(&job.requires).unwrap_or_default();
    format!(
        "start one with `{}`",
        global.hint(&format!("{scope}{}", worker_options(&requires, job.code_version)))
    )
}

/// The options of a worker that may execute a job with these requirements.
pub(crate) fn worker_options(requires: &[String], code_version: i64) -> String {
    let mut options = String::new();
    if !requires.is_empty() {
        options.push_str(&format!(" --capability {}", quoted(&requires.join(","))));
    }
    if code_version > 0 {
        options.push_str(&format!(" --code-version {code_version}"));
    }
    options
}

fn workers(count: i64) -> String {
    match count {
        1 => "One worker is".to_owned(),
        count => format!("{count} workers are"),
    }
}

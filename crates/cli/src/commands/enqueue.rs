//! `windlass enqueue`: adds jobs that belong to no run.

mod check;
mod payloads;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::Value;
use windlass_engine::store::{CONCURRENCY_LIMIT_MAX, NewJob};
use windlass_views::EnqueuedView;
use windlass_workflow::model::{self, Concurrency};
use windlass_workflow::{kinds, limits};

use crate::arguments::{GlobalOptions, OutputFormat, parse_duration, parse_instant, parse_name};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::shell_words::quoted;
use crate::text::reasons;
use crate::{executors, stderr};
use check::{check_payload, similar_kind};

/// Add single jobs, and print their ids
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EnqueueArgs {
    /// What executes the job: `shell`, or the kind of a handler in your program
    #[arg(value_name = "KIND", add = complete::kind())]
    kind: String,

    /// A payload that was written without --payload
    #[arg(hide = true)]
    misplaced: Option<String>,

    /// The input of the job: a JSON value
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = parse_json)]
    payload: Value,

    /// Add many jobs: a file with one JSON payload per line, or `-` for standard input. The number of each job is
    /// printed as soon as the job is accepted
    #[arg(long, value_name = "FILE", conflicts_with = "payload")]
    payloads: Option<PathBuf>,

    /// The queue of the job
    #[arg(long, value_name = "QUEUE", default_value = "default", add = complete::queue())]
    queue: String,

    /// The priority: low, normal, high, critical, or an integer; higher runs first
    #[arg(long, value_name = "P", default_value = "normal", allow_hyphen_values = true)]
    #[arg(value_parser = parse_priority)]
    priority: i64,

    /// Start the job after this delay, for example 10m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "at")]
    delay: Option<Duration>,

    /// Start the job at this time
    #[arg(long, value_name = "TIME", value_parser = parse_instant)]
    at: Option<i64>,

    /// Capabilities that a worker must have, separated by commas, for example gpu
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = parse_name)]
    requires: Vec<String>,

    /// The lowest version of your code on a worker that may execute the job
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    code_version: i64,

    /// A key that limits how many jobs with the same key run at a time
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    concurrency_key: Option<String>,

    /// How many jobs with that key may run at a time [default: 1]
    #[arg(long, value_name = "N", requires = "concurrency_key")]
    #[arg(value_parser = clap::value_parser!(i64).range(1..=CONCURRENCY_LIMIT_MAX))]
    concurrency_limit: Option<i64>,

    /// What to do when that many jobs already run [default: wait]
    #[arg(long, value_name = "WHAT", requires = "concurrency_key")]
    on_full: Option<OnFull>,

    /// How many times the job may fail in all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
    max_attempts: Option<i64>,
}

/// What happens to a job when all slots of its concurrency key are taken. The comments are the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum OnFull {
    /// The job waits
    Wait,
    /// The job is skipped
    Skip,
    /// The oldest running job with that key is cancelled
    #[value(alias = "cancel-oldest")]
    CancelOldest,
}

impl From<OnFull> for model::OnFull {
    fn from(on_full: OnFull) -> model::OnFull {
        match on_full {
            OnFull::Wait => model::OnFull::Wait,
            OnFull::Skip => model::OnFull::Skip,
            OnFull::CancelOldest => model::OnFull::CancelOldest,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  windlass enqueue shell --payload '{\"run\": \"./sync.sh\"}'
  windlass enqueue shell --payload '{\"command\": [\"du\", \"-sh\", \".\"]}' --delay 10m
  windlass enqueue send-mail --payload '{\"to\": 7}' --queue mail --priority high
  windlass enqueue send-mail --payloads mails.jsonl --queue mail
  windlass enqueue sync --concurrency-key tenant-7 --on-full skip
  windlass enqueue shell --payload '{\"run\": \"./x.sh\"}' --at '2026-11-21 06:00'";

/// Adds the job, or the jobs, and prints the numbers.
pub(crate) fn execute(global: &GlobalOptions, args: EnqueueArgs) -> Result<(), Failure> {
    if let Some(misplaced) = &args.misplaced {
        let (kind, payload) = (quoted(&args.kind), quoted(misplaced));
        return Err(Failure::usage(
            format!("the input of a job is an option, and {payload} stands alone"),
            format!("write `windlass enqueue {kind} --payload {payload}`"),
        ));
    }
    let executor = match kinds::is_built_in(&args.kind) {
        true => {
            let worker = format!("worker{}", reasons::worker_options(&args.requires, args.code_version));
            format!("start a worker with `{}`", global.hint(&worker))
        }
        false => format!("a program with a handler for `{}` must run", args.kind),
    };
    let mut job = NewJob::new(args.kind, args.payload.to_string());
    job.queue = args.queue;
    job.priority = args.priority;
    job.execute_after = args.at;
    job.delay_ms = args.delay.map(milliseconds);
    job.max_attempts = args.max_attempts.unwrap_or(job.max_attempts);
    job.requires = args.requires;
    job.code_version = args.code_version;
    job.concurrency = args.concurrency_key.map(|key| Concurrency {
        key,
        limit: args.concurrency_limit.unwrap_or(1),
        on_full: args.on_full.unwrap_or(OnFull::Wait).into(),
    });
    match args.payloads {
        None => enqueue_one(global, job, &executor),
        Some(path) => enqueue_many(global, &job, &path, &executor),
    }
}

fn enqueue_one(global: &GlobalOptions, job: NewJob, executor: &str) -> Result<(), Failure> {
    check_payload(&job.kind, &job.payload)?;
    let similar_kind = similar_kind(&job.kind);
    let database = Database::existing_or_new(global)?;
    for job_id in database.change("a job without a run", |store| store.jobs().enqueue(vec![job]))? {
        let view = EnqueuedView { job_id };
        Output { format: global.output }.object(&view, |_| format!("j{job_id}"))?;
        let why = global.hint(&format!("why j{job_id}"));
        let executor = executors::of_job(&database, job_id, &format!("to execute it, {executor}"))?;
        stderr::note(&format!("job j{job_id} is accepted; {executor}; `{why}` shows its state"));
        if let Some(similar_kind) = &similar_kind {
            let cancel = global.hint(&format!("cancel j{job_id}"));
            stderr::warn(&format!("warning: {similar_kind} `{cancel}` cancels the job"));
        }
    }
    Ok(())
}

/// Adds a job for each payload. The numbers are printed group by group, or as one JSON document at the end.
fn enqueue_many(
    global: &GlobalOptions,
    template: &NewJob,
    path: &Path,
    executor: &str,
) -> Result<(), Failure> {
    let mut lines = payloads::open(path, &template.kind)?;
    let database = Database::existing_or_new(global)?;
    let output = Output { format: global.output };
    let (mut accepted, mut of_document) = (0, Vec::new());
    while let Some(group) = lines.next_group() {
        let jobs: Vec<NewJob> =
            group.payloads.into_iter().map(|payload| NewJob { payload, ..template.clone() }).collect();
        let ids = match jobs.is_empty() {
            true => Vec::new(),
            false => {
                let subject = format!("{} jobs of kind {}", jobs.len(), template.kind);
                database.change(subject, |store| store.jobs().enqueue(jobs))?
            }
        };
        accepted += ids.len();
        let views = ids.iter().map(|job_id| EnqueuedView { job_id: *job_id });
        match global.output {
            OutputFormat::Json => of_document.extend(views),
            OutputFormat::Text | OutputFormat::Jsonl => {
                output.list(&views.collect::<Vec<_>>(), |_| numbers(&ids))?
            }
        }
        if let Some(broken) = group.broken {
            if global.output == OutputFormat::Json {
                output.list(&of_document, |_| String::new())?;
            }
            stderr::note(&format!("{accepted} jobs are accepted"));
            return Err(broken);
        }
    }
    if global.output == OutputFormat::Json {
        output.list(&of_document, |_| String::new())?;
    }
    stderr::note(&format!("{accepted} jobs are accepted; to execute them, {executor}"));
    if let Some(similar_kind) = similar_kind(&template.kind) {
        stderr::warn(&format!("warning: {similar_kind}"));
    }
    Ok(())
}

fn numbers(ids: &[i64]) -> String {
    ids.iter().map(|job_id| format!("j{job_id}")).collect::<Vec<_>>().join("\n")
}

pub(super) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn parse_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| {
        format!("not JSON ({error}); quote it for the shell, for example --payload '{{\"to\": 7}}'")
    })
}

pub(super) fn parse_priority(text: &str) -> Result<i64, String> {
    let most = limits::PRIORITY;
    match text.to_ascii_lowercase().as_str() {
        "low" => Ok(-10),
        "normal" => Ok(0),
        "high" => Ok(10),
        "critical" => Ok(20),
        number => number.parse().ok().filter(|priority| (-most..=most).contains(priority)).ok_or_else(|| {
            format!("write low, normal, high, critical, or an integer from -{most} to {most}")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn priorities() {
        let cases = [("low", -10), ("Normal", 0), ("high", 10), ("critical", 20), ("-7", -7), ("1000", 1000)];
        for (text, expected) in cases {
            assert_eq!(parse_priority(text), Ok(expected), "{text}");
        }
        for text in ["", "urgent", "1001", "1.5"] {
            assert!(parse_priority(text).is_err(), "{text}");
        }
    }

    #[test]
    fn payloads_are_json() {
        assert_eq!(parse_json("[1]"), Ok(json!([1])));
        let error = parse_json("{run: x}").expect_err("no JSON");
        assert!(error.contains("column 2"), "{error}");
    }
}

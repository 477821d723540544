//! What failed since the last visit, by cause.

use windlass_engine::store::{FAILURES_MAX, FailureGroup, Failures};

use super::Visited;
use crate::pages::frame::Reader;
use crate::pages::times::grouped;
use crate::pages::url;

/// So many causes are shown; the rest is one line.
const CAUSES_SHOWN: usize = 8;
/// So many runs of a cause are retried without a preview.
const RETRIED_AT_ONCE: usize = 50;

/// The card with the causes.
pub(super) struct FailuresCard {
    pub(super) title: String,
    pub(super) summary: String,
    pub(super) causes: Vec<Cause>,
    pub(super) more: Option<String>,
    pub(super) is_marked: bool,
    /// The instant up to which the reader may mark failures as seen.
    pub(super) seen_ms: i64,
}

/// Runs that failed in the same way.
pub(super) struct Cause {
    pub(super) count: usize,
    /// What is counted.
    pub(super) noun: &'static str,
    pub(super) workflow: String,
    pub(super) job: String,
    pub(super) error: String,
    pub(super) when: String,
    /// Whether these are runs, and not jobs without one.
    pub(super) is_of_runs: bool,
    /// The run that failed last, or the job without a run.
    pub(super) href: Option<String>,
    pub(super) retry: Retry,
}

/// How all of a cause are retried.
pub(super) enum Retry {
    /// By the preview of this address.
    Preview(String),
    /// At once, by a form with these fields: they are few.
    AtOnce(Vec<(&'static str, String)>),
    /// By a form with these fields: since when, the kind, and the error.
    Jobs { since_ms: i64, kind: String, error: String },
}

impl FailuresCard {
    pub(super) fn new(failures: &Failures, visited: Visited, reader: &Reader) -> FailuresCard {
        let since = reader.times.day_and_minute(failures.since_ms);
        let is_marked = visited.is_marked();
        let is_complete = failures.since_ms <= visited.since_ms();
        let (runs, jobs) = (failures.runs(), failures.jobs());
        let hidden = failures.groups.len().saturating_sub(CAUSES_SHOWN);
        FailuresCard {
            title: match (is_marked || !is_complete, runs + jobs) {
                (true, 0) => format!("Nothing failed since {since}"),
                (false, 0) => "Nothing failed in the last 24 hours".to_owned(),
                (true, _) => format!("Failed since {since}"),
                (false, _) => "Failed in the last 24 hours".to_owned(),
            },
            summary: {
                let causes = count(failures.groups.len(), "cause");
                let found = match (runs, jobs) {
                    (0, 0) => String::new(),
                    (_, 0) => format!("{}, {causes}", count(runs, "run")),
                    (0, _) => format!("{}, {causes}", count(jobs, "job")),
                    (_, _) => {
                        format!("{}, {}, {causes}", count(runs, "run"), count(jobs, "job without a run"))
                    }
                };
                match is_complete {
                    true => found,
                    false => format!("{found}, in the newest {} failed jobs", grouped(FAILURES_MAX)),
                }
            },
            causes: failures
                .groups
                .iter()
                .take(CAUSES_SHOWN)
                .map(|group| cause(group, failures.since_ms, reader))
                .collect(),
            more: (hidden > 0).then(|| format!("and {}", count(hidden, "more cause"))),
            is_marked,
            seen_ms: failures.groups.iter().map(|group| group.last_at + 1).max().unwrap_or(failures.since_ms),
        }
    }
}

fn cause(group: &FailureGroup, since_ms: i64, reader: &Reader) -> Cause {
    let last = reader.times.minute(group.last_at);
    let from = since_ms.to_string();
    let batch = [
        ("action", "retry".to_owned()),
        ("failed_since", from),
        ("workflow", group.workflow.clone()),
        ("job", group.job.clone()),
        ("error", group.error.clone()),
    ];
    let is_of_runs = group.job_ids.is_empty();
    let count = group.run_ids.len() + group.job_ids.len();
    Cause {
        count,
        noun: match (is_of_runs, count) {
            (true, 1) => "run",
            (true, _) => "runs",
            (false, 1) => "job",
            (false, _) => "jobs",
        },
        workflow: match is_of_runs {
            true => group.workflow.clone(),
            false => "without a run".to_owned(),
        },
        job: group.job.clone(),
        error: match group.error.is_empty() {
            true => "no error was reported".to_owned(),
            false => group.error.clone(),
        },
        when: if count == 1 { format!("at {last}") } else { format!("last {last}") },
        href: match (group.run_ids.first(), group.job_ids.first()) {
            (Some(id), _) => Some(format!("{}/runs/{id}", reader.base)),
            (None, Some(id)) => Some(format!("{}/jobs/{id}", reader.base)),
            (None, None) => None,
        },
        is_of_runs,
        retry: match is_of_runs {
            true if count <= RETRIED_AT_ONCE => Retry::AtOnce(batch.to_vec()),
            true => {
                let pairs = batch.iter().map(|(name, value)| (*name, value.as_str()));
                Retry::Preview(format!("{}/runs/batch{}", reader.base, url::query(pairs)))
            }
            false => Retry::Jobs { since_ms, kind: group.job.clone(), error: group.error.clone() },
        },
    }
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

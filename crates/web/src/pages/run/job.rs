//! Everything about one job of a run.

use serde_json::Value as Json;
use windlass_engine::store::{Artifact, Attempt, Job, JobsOfRun, OpenApproval};
use windlass_engine::{JobStatus, RunStatus};

use super::log::{LogData, LogPanel};
use super::{Panel, RunQuery, TableRow, table_row};
use crate::pages::approvals::{Decision, LeadsTo, Sent};
use crate::pages::frame::Reader;
use crate::pages::look::{Failure, Look};
use crate::pages::prose;
use crate::pages::times::{Stamp, Times, duration, grouped};

/// So many items are shown at a time.
pub const ITEMS_OF_WINDOW: i64 = 100;
/// The longest JSON that is shown, in bytes.
const JSON_BYTES_MAX: usize = 64 * 1024;

/// What the page knows about the job.
#[derive(Debug)]
pub struct JobData {
    /// The job.
    pub job: Job,
    /// Its attempts that did not succeed, and those before a retry.
    pub attempts: Vec<Attempt>,
    /// Its output, if that is shown.
    pub log: Option<LogData>,
    /// Why it is in its state, in sentences, if that is shown.
    pub reasons: Vec<String>,
    /// Its part of the definition as JSON, if that is shown.
    pub definition: Option<String>,
    /// The files that it kept.
    pub artifacts: Vec<Artifact>,
    /// The names of the jobs that it needs.
    pub needs: Vec<String>,
    /// A window of its items, if that is shown.
    pub items: Option<JobsOfRun>,
    /// Whether it has items.
    pub is_group: bool,
    /// The run that it has started: its id, its workflow, and its state.
    pub started_run: Option<(i64, String, RunStatus)>,
    /// The question, if it waits for a person.
    pub approval: Option<OpenApproval>,
}

/// The page on which the card stands: that of a run, or that of a job without one.
pub(super) struct CardPage<'p> {
    /// Its path.
    pub(super) path: String,
    /// What is asked for.
    pub(super) query: &'p RunQuery,
    /// The params of the run.
    pub(super) params: Option<&'p str>,
}

/// The card of the job.
pub(super) struct JobCard {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) look: Look,
    pub(super) panels: Vec<PanelLink>,
    pub(super) panel: Shown,
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) hidden: Vec<(&'static str, String)>,
    pub(super) decision: Option<Decision>,
    pub(super) started_run: Option<(i64, String, Look)>,
    /// Why it has not started, where its output will be.
    pub(super) reasons: Vec<Vec<prose::Part>>,
}

/// A link to a part of what is known.
pub(super) struct PanelLink {
    pub(super) label: String,
    pub(super) href: String,
    pub(super) is_current: bool,
}

/// What is shown of the job.
pub(super) enum Shown {
    Log(LogPanel),
    Attempts(Vec<AttemptRow>),
    Data(Vec<(&'static str, String)>),
    Why(Vec<Vec<prose::Part>>),
    Definition(String),
    Items(ItemsWindow),
}

/// A window of the items of a job with `for_each`.
pub(super) struct ItemsWindow {
    pub(super) rows: Vec<TableRow>,
    pub(super) text: String,
    pub(super) previous: Option<String>,
    pub(super) next: Option<String>,
}

/// An attempt.
pub(super) struct AttemptRow {
    pub(super) number: i64,
    pub(super) outcome: String,
    pub(super) class: &'static str,
    pub(super) started: Option<Stamp>,
    pub(super) took: String,
    pub(super) worker: String,
    pub(super) error: String,
    pub(super) href: String,
}

impl JobCard {
    pub(super) fn new(data: &JobData, page: &CardPage<'_>, reader: &Reader) -> JobCard {
        let job = &data.job;
        let query = page.query.of_job(job.id);
        let href = |query: &RunQuery| format!("{}{}{}#job", reader.base, page.path, query.to_query());
        JobCard {
            id: job.id,
            name: job.name.clone().unwrap_or_else(|| format!("job {}", job.id)),
            look: Look::of_job(job.status, Failure::of(job.allow_failure)),
            panels: panels(data, &query, page, href),
            panel: match page.query.panel {
                Panel::Log => {
                    Shown::Log(LogPanel::new(&data.log.clone().unwrap_or_default(), &query, &reader.times))
                }
                Panel::Attempts => Shown::Attempts(attempts(data, &query, reader, href)),
                Panel::Data => Shown::Data(values(data, page)),
                Panel::Why => Shown::Why(reasons(data, &reader.times)),
                Panel::Items => Shown::Items(items(data, page, reader, href)),
                Panel::Definition => Shown::Definition(
                    data.definition.clone().unwrap_or_else(|| "The definition has no such job.".to_owned()),
                ),
            },
            facts: facts(data),
            started_run: data
                .started_run
                .as_ref()
                .map(|(id, workflow, status)| (*id, workflow.clone(), Look::of_run(*status))),
            reasons: reasons(data, &reader.times),
            hidden: vec![("view", query.view.name().to_owned()), ("job", job.id.to_string())],
            decision: data
                .approval
                .as_ref()
                .map(|open| Decision::new(open, &Sent::default(), LeadsTo::Run, reader)),
        }
    }
}

fn reasons(data: &JobData, times: &Times) -> Vec<Vec<prose::Part>> {
    data.reasons.iter().map(|reason| prose::parts_for(reason, times)).collect()
}

/// The items that failed first, then those that run.
fn items(
    data: &JobData,
    page: &CardPage<'_>,
    reader: &Reader,
    href: impl Fn(&RunQuery) -> String,
) -> ItemsWindow {
    let Some(found) = &data.items else {
        return ItemsWindow { rows: vec![], text: "It has no items.".to_owned(), previous: None, next: None };
    };
    let from = page.query.items;
    let shown = found.rows.len() as i64;
    let at = |items: i64| href(&RunQuery { panel: Panel::Items, items, ..page.query.of_job(data.job.id) });
    ItemsWindow {
        rows: found.rows.iter().map(|job| table_row(job, None, &reader.times)).collect(),
        text: match shown {
            0 => format!("None of {} items", grouped(found.matching)),
            _ => {
                let [first, last] = [from + 1, from + shown].map(grouped);
                format!("{first} to {last} of {} items, those that failed first", grouped(found.matching))
            }
        },
        previous: (from > 0).then(|| at((from - ITEMS_OF_WINDOW).max(0))),
        next: (from + shown < found.matching).then(|| at(from + shown)),
    }
}

fn panels(
    data: &JobData,
    query: &RunQuery,
    page: &CardPage<'_>,
    href: impl Fn(&RunQuery) -> String,
) -> Vec<PanelLink> {
    let job = &data.job;
    let attempts = match job.attempt {
        0 => "Attempts".to_owned(),
        count => format!("Attempts {count}"),
    };
    let first = match data.is_group {
        true => (Panel::Items, "Items".to_owned()),
        false => (Panel::Log, "Log".to_owned()),
    };
    // A job without a run is not in a definition.
    let definition = page.params.map(|_params| (Panel::Definition, "Definition".to_owned()));
    [
        first,
        (Panel::Attempts, attempts),
        (Panel::Data, "In and out".to_owned()),
        (Panel::Why, "Why".to_owned()),
    ]
    .into_iter()
    .chain(definition)
    .map(|(panel, label)| PanelLink {
        label,
        href: href(&RunQuery { panel, ..query.clone() }),
        is_current: panel == page.query.panel,
    })
    .collect()
}

fn attempts(
    data: &JobData,
    query: &RunQuery,
    reader: &Reader,
    href: impl Fn(&RunQuery) -> String,
) -> Vec<AttemptRow> {
    let job = &data.job;
    let row =
        |number: i64, outcome: &str, class, started_at: Option<i64>, finished_at: Option<i64>| AttemptRow {
            number,
            outcome: outcome.replace('_', " "),
            class,
            started: started_at.map(|at| reader.times.stamp(at)),
            took: match (started_at, finished_at) {
                (Some(from), Some(until)) => duration(until - from),
                (_, None) | (None, _) => String::new(),
            },
            worker: String::new(),
            error: String::new(),
            href: href(&RunQuery { attempt: Some(number), ..query.clone() }),
        };
    let worker = |id: Option<i64>| id.map_or_else(String::new, |id| id.to_string());
    let mut rows: Vec<AttemptRow> = data
        .attempts
        .iter()
        .map(|attempt| {
            let class = match attempt.outcome.as_str() {
                "cancelled" => "off",
                "successful" => "ok",
                _ => "bad",
            };
            AttemptRow {
                worker: worker(attempt.worker_id),
                error: attempt.error.clone().unwrap_or_default(),
                ..row(attempt.attempt, &attempt.outcome, class, attempt.started_at, Some(attempt.finished_at))
            }
        })
        .collect();
    match job.status {
        JobStatus::Running => rows.push(AttemptRow {
            worker: worker(job.worker_id),
            ..row(job.attempt, "running", "run", job.started_at, Some(reader.times.now_ms))
        }),
        JobStatus::Successful if job.started_at.is_some() => rows.push(AttemptRow {
            worker: worker(job.worker_id),
            ..row(job.attempt, "successful", "ok", job.started_at, job.finished_at)
        }),
        JobStatus::Blocked
        | JobStatus::Scheduled
        | JobStatus::Pending
        | JobStatus::Waiting
        | JobStatus::Successful
        | JobStatus::Failed
        | JobStatus::Skipped
        | JobStatus::Cancelled => {}
    }
    rows
}

/// What the job got and gave, each as JSON.
fn values(data: &JobData, page: &CardPage<'_>) -> Vec<(&'static str, String)> {
    let mut values = Vec::new();
    values.extend(page.params.map(|params| ("Params of the run", pretty(params))));
    values.extend(data.job.item.as_deref().map(|item| ("Item", pretty(item))));
    values.push(("Payload", pretty(&data.job.payload)));
    values.extend(data.job.output.as_deref().map(|output| ("Output", pretty(output))));
    let files = data.artifacts.iter().map(|file| format!("{}  {} bytes", file.path, file.bytes));
    let files: Vec<String> = files.collect();
    if !files.is_empty() {
        values.push(("Files that it kept", files.join("\n")));
    }
    values
}

/// JSON with line breaks, as far as it is not too long.
fn pretty(json: &str) -> String {
    let text = match serde_json::from_str::<Json>(json) {
        Ok(value) => serde_json::to_string_pretty(&value).unwrap_or_else(|_| json.to_owned()),
        Err(_no_json) => json.to_owned(),
    };
    match text.len() <= JSON_BYTES_MAX {
        true => text,
        false => {
            format!("{}\n… {} bytes in all", &text[..text.floor_char_boundary(JSON_BYTES_MAX)], text.len())
        }
    }
}

/// What is known besides: each with its name.
fn facts(data: &JobData) -> Vec<(&'static str, String)> {
    let job = &data.job;
    let mut facts = vec![("kind", job.kind.clone()), ("queue", job.queue.clone())];
    if !data.needs.is_empty() {
        facts.push(("needs", data.needs.join(", ")));
    }
    facts.extend(job.concurrency_key.as_ref().map(|key| ("key", key.clone())));
    facts.extend(job.exit_code.map(|code| ("exit code", code.to_string())));
    facts
}

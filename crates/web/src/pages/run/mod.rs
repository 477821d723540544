//! The page of a run: what failed, when what ran, what needs what, and everything about one of its jobs.

mod axis;
mod graph;
mod job;
mod life;
mod log;
mod query;
pub mod read;
pub mod single;
mod timeline;
mod tree;

use std::collections::BTreeMap;

use askama::Template;
use windlass_engine::store::{Attempt, FocusedJob, JobCounts, JobOfRun, Run, Taken, Triggered, first_line};
use windlass_engine::{JobStatus, RunSource, RunStatus, StopReason};
use windlass_system::first_error::summary;

pub use job::{ITEMS_OF_WINDOW, JobData};
pub use log::{LINES_BEFORE_ERROR, LINES_OF_WINDOW, LINES_READ_MAX, LogData, line_html};

pub use life::{LifePart, life_of};
pub use query::{JobState, Panel, RunQuery, View};

use super::fields::FieldSort;
use super::frame::{Frame, Reader, Section};
use super::look::Look;
use super::runs::{look_of, params_in_a_line, slot_in_words, took_ms};
use super::times::{Stamp, Times, duration, grouped};
use graph::Graph;
use job::{CardPage, JobCard, Shown};
use timeline::Timeline;
use tree::Tree;
pub use tree::{TREE_RUNS_MAX, TreeRun};

/// A run with more jobs than this is shown by windows of so many.
pub const JOBS_OF_WINDOW: i64 = 200;

/// What the page shows.
#[derive(Debug)]
pub struct RunData {
    /// What is asked for.
    pub query: RunQuery,
    /// The run.
    pub run: Run,
    /// The version of the registered workflow with its definition.
    pub version: Option<i64>,
    /// How many definitions it has had.
    pub definitions: usize,
    /// The job that started it: its run, its id, and its name.
    pub parent: Option<Parent>,
    /// The run at the top of all calls, and the runs below it.
    pub tree: Vec<TreeRun>,
    /// The name of the schedule that started it.
    pub schedule: Option<String>,
    /// The runs that hold the slots for which it waits.
    pub slot_holders: Vec<i64>,
    /// How long runs of the workflow usually take.
    pub usual_ms: Option<i64>,
    /// How many jobs are in each state.
    pub counts: JobCounts,
    /// The job to look at first.
    pub focused: Option<FocusedJob>,
    /// The trigger that started it.
    pub trigger: Option<Triggered>,
    /// Who cancelled it, if that is known.
    pub cancelled_by: Option<String>,
    /// The jobs of the window; for the graph, all of them, or those around one of them.
    pub jobs: Vec<JobOfRun>,
    /// The job in the middle of the graph, if that does not show all jobs.
    pub middle: Option<i64>,
    /// How many jobs match, in all windows.
    pub matching: i64,
    /// The attempts of these jobs that did not succeed, and those before a retry.
    pub attempts: BTreeMap<i64, Vec<Attempt>>,
    /// What needs what, for the graph: the needed job first.
    pub edges: Vec<(i64, i64)>,
    /// What is known about the error.
    pub failure: Option<FailureData>,
    /// The job below the picture.
    pub job: Option<JobData>,
}

/// The job that started a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Its run.
    pub run_id: Option<i64>,
    /// Its id.
    pub job_id: i64,
    /// Its name.
    pub name: String,
}

/// The error of a run, and how it was in other runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureData {
    /// The job that failed.
    pub job: FocusedJob,
    /// Other runs with the same workflow, job and first line of the error.
    pub others: OtherRuns,
    /// The last success before the run: its id, and when it was accepted.
    pub last_successful: Option<(i64, i64)>,
    /// The number of the first error's line, if the output has one, and its text.
    pub first_error: Option<(i64, String)>,
    /// Where the failure began, if that was in a run that this one called.
    pub called: Option<CalledFailure>,
}

/// The failure of a called run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledFailure {
    /// The workflow of the called run.
    pub workflow: String,
    /// The job of it that failed.
    pub job: FocusedJob,
}

/// The runs that failed as one run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtherRuns {
    /// Nobody knows: it failed before the newest failures.
    Unknown,
    /// There is none.
    None {
        /// The instant since which this is known; `None` if it is for all time.
        known_since: Option<i64>,
    },
    /// There are others.
    Some {
        /// The one that failed last first.
        run_ids: Vec<i64>,
        /// When the first of all these runs failed, as far as that is known.
        first_at: i64,
        /// The instant since which this is known; `None` if it is for all time.
        known_since: Option<i64>,
    },
}

/// So many other runs are named.
const OTHERS_NAMED: usize = 5;

/// The box with the error.
struct FailureBox {
    title: String,
    text: String,
    others: Option<Others>,
    last_successful: Option<(i64, String)>,
    first_error: Option<(i64, String)>,
    called: Option<Called>,
}

/// The failure of a called run: whose it is, its error, and the address of the job.
struct Called {
    name: String,
    error: String,
    href: String,
}

/// What is said about other runs: a text, and links to some of them.
struct Others {
    text: String,
    run_ids: Vec<i64>,
    more: Option<String>,
}

/// A link above the picture.
struct Choice {
    label: &'static str,
    href: String,
    is_current: bool,
}

/// The pages of a large run.
struct Windows {
    text: String,
    previous: Option<String>,
    next: Option<String>,
    states: Vec<(&'static str, &'static str, bool)>,
    name: String,
    hidden: Vec<(&'static str, String)>,
}

/// A row of the table.
struct TableRow {
    id: i64,
    name: String,
    look: Look,
    kind: String,
    queue: String,
    attempts: String,
    started: Option<Stamp>,
    took: String,
    error: String,
    is_current: bool,
}

enum Picture {
    Timeline(Timeline),
    Graph(Graph),
    Table(Vec<TableRow>),
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage<'d> {
    frame: Frame,
    run: &'d Run,
    look: Look,
    created_day: String,
    created_second: String,
    created: Stamp,
    by: String,
    /// The run whose end started it.
    ended_run: Option<i64>,
    took: Option<String>,
    usual: Option<String>,
    successful: String,
    /// How many failed, if that is more than none.
    failed: Option<String>,
    total: String,
    params: String,
    version: Option<i64>,
    replaced: Option<String>,
    tree: Option<Tree>,
    failure: Option<FailureBox>,
    stop: Option<String>,
    views: Vec<Choice>,
    picture: Picture,
    windows: Option<Windows>,
    job: Option<JobCard>,
    current: Option<i64>,
    can_cancel: bool,
    can_retry: bool,
    can_retry_from: bool,
    /// The run that is retried instead of this one.
    retried: Option<i64>,
    is_over: bool,
    data: &'d RunData,
}

impl RunPage<'_> {
    /// The address of a job below the same picture.
    fn job_href(&self, id: &i64) -> String {
        format!("{}/runs/{}{}#job", self.frame.base, self.run.id, self.data.query.of_job(*id).to_query())
    }

    fn is_current(&self, id: &i64) -> bool {
        self.current == Some(*id)
    }
}

/// The page of a run.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn page(data: &RunData, reader: &Reader) -> askama::Result<String> {
    let (run, times) = (&data.run, &reader.times);
    let title = format!("{} #{}", run.workflow, run.id);
    let frame = Frame::new(reader, Section::Runs, &title);
    let current = data.job.as_ref().map(|job| job.job.id);
    let is_over = run.status.is_terminal();
    // The engine retries a run that a job has started only with the run at the top.
    let retried = run.root_run_id;
    let path = format!("/runs/{}", run.id);
    let card_page = CardPage { path, query: &data.query, params: Some(&run.params) };
    RunPage {
        look: look_of(run.status, data.focused.as_ref()),
        created_day: times.day(run.created_at),
        created_second: times.second(run.created_at),
        created: times.stamp(run.created_at),
        by: started_by(run, data),
        ended_run: data.trigger.as_ref().and_then(|triggered| match triggered.taken {
            Some(Taken::EndOfRun(id)) => Some(id),
            Some(Taken::Event { .. }) | None => None,
        }),
        took: took_ms(run, times.now_ms).map(duration),
        usual: data.usual_ms.map(duration),
        successful: grouped(data.counts.of(JobStatus::Successful)),
        failed: Some(data.counts.of(JobStatus::Failed)).filter(|count| *count > 0).map(grouped),
        total: grouped(data.counts.total()),
        params: params_in_a_line(&run.params),
        version: data.version,
        replaced: (data.definitions > 1).then(|| format!("definition {}", data.definitions)),
        tree: Tree::new(&data.tree, run.id, reader),
        failure: data.failure.as_ref().map(|failure| failure_box(failure, data, reader)),
        stop: note(data),
        views: views(data, reader),
        picture: match data.query.view {
            View::Timeline => {
                Picture::Timeline(Timeline::new(&data.jobs, &data.attempts, run.created_at, times))
            }
            View::Graph => {
                let around = data.middle.map(|middle| (middle, data.matching));
                Picture::Graph(Graph::new(&data.jobs, &data.edges, current, around))
            }
            View::Table => {
                Picture::Table(data.jobs.iter().map(|job| table_row(job, current, times)).collect())
            }
        },
        windows: windows(data, reader),
        job: data.job.as_ref().map(|job| JobCard::new(job, &card_page, reader)),
        current,
        can_cancel: !is_over && frame.may_run(),
        can_retry: is_over && run.status != RunStatus::Successful && retried.is_none() && frame.may_run(),
        can_retry_from: is_over && retried.is_none() && frame.may_run(),
        retried: retried.filter(|_| is_over),
        is_over,
        frame,
        run,
        data,
    }
    .render()
}

/// Why the run does not go on, or why it ended before its jobs.
fn note(data: &RunData) -> Option<String> {
    let run = &data.run;
    if let Some((key, limit)) = run.concurrency.as_ref().filter(|_| run.waits_for.is_some()) {
        return Some(format!("It {}.", slot_in_words(key, *limit, &data.slot_holders)));
    }
    let is_told = |reason: &StopReason| data.failure.is_none() || *reason == StopReason::Cancelled;
    run.stop_reason.filter(is_told).map(|reason| match reason {
        StopReason::Cancelled => {
            let by = data.cancelled_by.as_ref().map_or_else(String::new, |name| format!(" by {name}"));
            format!("It was cancelled{by} before its jobs had finished.")
        }
        StopReason::TimedOut => "It reached its timeout before its jobs had finished.".to_owned(),
        StopReason::Skipped => "It was skipped, because its concurrency key had no free slot.".to_owned(),
    })
}

fn started_by(run: &Run, data: &RunData) -> String {
    let name = data.schedule.as_deref().unwrap_or_default();
    let person = run.started_by.as_deref().unwrap_or("hand");
    match run.source {
        None if run.parent_job_id.is_some() => "by job".to_owned(),
        None => match &run.run_key {
            Some(key) => format!("by {person}, key {key}"),
            None => format!("by {person}"),
        },
        Some(RunSource::Schedule) => format!("by schedule {name}"),
        Some(RunSource::Catchup) => format!("by schedule {name}, to catch up"),
        Some(RunSource::Backfill) => format!("by schedule {name}, to fill the past"),
        Some(RunSource::Manual) => format!("by {person} for schedule {name}"),
        Some(RunSource::Event) => match &data.trigger {
            None => "by an event".to_owned(),
            Some(Triggered { trigger, taken }) => match taken {
                Some(Taken::Event { id, .. }) => format!("by trigger {trigger}, event {id}"),
                Some(Taken::EndOfRun(_)) => format!("by trigger {trigger}, after"),
                None => format!("by trigger {trigger}"),
            },
        },
    }
}

fn failure_box(failure: &FailureData, data: &RunData, reader: &Reader) -> FailureBox {
    let text = failure.first_error.as_ref().map_or_else(String::new, |(_, text)| {
        super::escape::without_terminal_sequences(text).trim().to_owned()
    });
    let error = failure.job.error.as_deref().map_or("", first_line);
    let query = RunQuery { attempt: Some(failure.job.attempt), ..data.query.of_job(failure.job.id) };
    FailureBox {
        title: failure_title(&failure.job.name, failure.job.failures, error, &text),
        text,
        others: others(&failure.others, data.run.id, &reader.times),
        last_successful: failure.last_successful.map(|(id, at)| (id, reader.times.minute(at))),
        called: failure.called.as_ref().map(|CalledFailure { workflow, job }| Called {
            name: format!("{workflow} #{} / {}", job.run_id, job.name),
            error: job.error.as_deref().map_or("failed", first_line).to_owned(),
            href: format!("{}/runs/{}?job={}#job", reader.base, job.run_id, job.id),
        }),
        first_error: failure.first_error.as_ref().map(|(line, _)| {
            let query = RunQuery { line: Some(*line), ..query.clone() }.to_query();
            (*line, format!("{}/runs/{}{query}#L{line}", reader.base, data.run.id))
        }),
    }
}

/// `load failed after 3 attempts: exit code 1`. The error of a job may end with a line of its output, which stands below.
fn failure_title(name: &str, failures: i64, error: &str, below: &str) -> String {
    let error = match below.is_empty() {
        true => error,
        false => {
            error.find(&summary(&[below], 0)).map_or(error, |at| error[..at].trim_end().trim_end_matches(':'))
        }
    };
    let attempts = match failures {
        0 | 1 => String::new(),
        count => format!(" after {count} attempts"),
    };
    match error.is_empty() {
        true => format!("{name} failed{attempts}"),
        false => format!("{name} failed{attempts}: {error}"),
    }
}

/// What is said about other runs with the error. Nothing is said if nobody knows.
fn others(others: &OtherRuns, run_id: i64, times: &Times) -> Option<Others> {
    let (run_ids, first_at, known_since) = match others {
        OtherRuns::Unknown => return None,
        OtherRuns::None { known_since } => {
            let since = known_since.map_or_else(String::new, |at| format!(" since {}", times.minute(at)));
            let text = format!("No other run{since} failed like this");
            return Some(Others { text, run_ids: vec![], more: None });
        }
        OtherRuns::Some { run_ids, first_at, known_since } => (run_ids, times.minute(*first_at), known_since),
    };
    let later = run_ids.iter().filter(|id| **id > run_id).count();
    let count = match (run_ids.len(), later) {
        (1, 1) => "1 later run".to_owned(),
        (1, _) => "1 other run".to_owned(),
        (count, later) if count == later => format!("{count} later runs"),
        (count, _) => format!("{count} other runs"),
    };
    let since = if known_since.is_some() { "at least since" } else { "since" };
    Some(Others {
        text: format!("The same {since} {first_at} in {count}:"),
        run_ids: run_ids.iter().copied().take(OTHERS_NAMED).collect(),
        more: (run_ids.len() > OTHERS_NAMED).then(|| format!("and {} more", run_ids.len() - OTHERS_NAMED)),
    })
}

fn views(data: &RunData, reader: &Reader) -> Vec<Choice> {
    [(View::Timeline, "Timeline"), (View::Graph, "Graph"), (View::Table, "Table")]
        .into_iter()
        .map(|(view, label)| {
            let query = RunQuery { view, ..data.query.clone() };
            Choice {
                label,
                href: format!("{}/runs/{}{}", reader.base, data.run.id, query.to_query()),
                is_current: view == data.query.view,
            }
        })
        .collect()
}

/// The links between the windows, if the jobs do not fit into one, or are filtered.
fn windows(data: &RunData, reader: &Reader) -> Option<Windows> {
    let query = &data.query;
    let is_filtered = query.state != JobState::Any || query.name.is_some();
    if data.query.view == View::Graph || (data.counts.total() <= JOBS_OF_WINDOW && !is_filtered) {
        return None;
    }
    let shown = data.jobs.len() as i64;
    let href = |offset| {
        let query = RunQuery {
            offset,
            job: None,
            attempt: None,
            line: None,
            from: None,
            find: None,
            ..query.clone()
        };
        format!("{}/runs/{}{}", reader.base, data.run.id, query.to_query())
    };
    let states = [
        (JobState::Any, "any state"),
        (JobState::Failed, "failed"),
        (JobState::Running, "running"),
        (JobState::Unfinished, "unfinished"),
        (JobState::Successful, "successful"),
    ];
    Some(Windows {
        text: match shown {
            0 => format!("None of {} jobs", grouped(data.counts.total())),
            _ => {
                let [from, to] = [query.offset + 1, query.offset + shown].map(grouped);
                format!("{from} to {to} of {}", grouped(data.matching))
            }
        },
        previous: (query.offset > 0).then(|| href((query.offset - JOBS_OF_WINDOW).max(0))),
        next: (query.offset + shown < data.matching).then(|| href(query.offset + shown)),
        states: states
            .into_iter()
            .map(|(state, words)| (state.name(), words, state == query.state))
            .collect(),
        name: query.name.clone().unwrap_or_default(),
        hidden: match query.view {
            View::Timeline => vec![],
            View::Graph | View::Table => vec![("view", query.view.name().to_owned())],
        },
    })
}

fn table_row(job: &JobOfRun, current: Option<i64>, times: &Times) -> TableRow {
    let ended = job.finished_at.or((job.status == JobStatus::Running).then_some(times.now_ms));
    TableRow {
        id: job.id,
        name: job.name.clone(),
        look: Look::of_job(job.status, super::look::Failure::of(job.allow_failure)),
        kind: job.kind.clone(),
        queue: job.queue.clone(),
        attempts: if job.attempt == 0 { String::new() } else { job.attempt.to_string() },
        started: job.started_at.map(|at| times.stamp(at)),
        took: match (job.started_at, ended) {
            (Some(from), Some(until)) => duration(until - from),
            (_, None) | (None, _) => String::new(),
        },
        error: job.error.as_deref().map_or("", first_line).to_owned(),
        is_current: current == Some(job.id),
    }
}

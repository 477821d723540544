//! The page Runs: what failed and why, what runs, and the list of runs.

mod failures;
mod filter;
mod histogram;
mod picture;
pub mod read;
mod row;

use std::collections::BTreeMap;

use askama::Template;
use windlass_engine::RunStatus;
use windlass_engine::store::{Count, Failures, FocusedJob, HistogramPart, JobCounts, Page, Run, Triggered};

pub use filter::{Filter, Since, Tab, Trigger, with_instants};
pub(crate) use picture::Picture;
pub(super) use row::{look_of, params_in_a_line, slot_in_words, took_ms, value_as_text};

use super::frame::{Frame, Reader, Section};
use super::look::{CANCELLED, FAILED, Look, RUNNING, SUCCESSFUL, WAITING};
use failures::{FailuresCard, Retry};
use histogram::HistogramCard;
use row::RunRow;

/// The most runs of a page.
pub const RUNS_OF_PAGE: i64 = 50;

/// What the page shows.
#[derive(Debug)]
pub struct RunsData {
    /// What is asked for.
    pub filter: Filter,
    /// The runs that match.
    pub runs: Page<Run>,
    /// The job to look at first, by run.
    pub focused: BTreeMap<i64, FocusedJob>,
    /// How many jobs are in each state, by run, of runs that are not too large.
    pub counts_of_jobs: BTreeMap<i64, JobCounts>,
    /// The runs that hold slots of keys for which runs of the page wait, by key.
    pub slot_holders: BTreeMap<String, Vec<i64>>,
    /// How long runs usually take, by workflow.
    pub usual_ms: BTreeMap<String, i64>,
    /// The names of schedules, by id.
    pub schedules: BTreeMap<i64, String>,
    /// How triggers started runs, by run.
    pub triggered: BTreeMap<i64, Triggered>,
    /// How many runs are in each state.
    pub counts: Vec<(RunStatus, Count)>,
    /// What failed since the last visit.
    pub failures: Failures,
    /// Whether the reader has told when the last visit was.
    pub visited: Visited,
    /// The runs of the last 24 hours.
    pub histogram: Vec<HistogramPart>,
    /// What is wrong with the system.
    pub notes: Vec<Note>,
    /// The names of registered workflows.
    pub workflows: Vec<String>,
}

/// Since when failures are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visited {
    /// Since the reader marked them as seen, at this instant in milliseconds.
    Marked(i64),
    /// For a day, which began at this instant.
    Never(i64),
}

impl Visited {
    fn is_marked(self) -> bool {
        match self {
            Visited::Marked(_) => true,
            Visited::Never(_) => false,
        }
    }

    /// The instant since which failures are asked for.
    fn since_ms(self) -> i64 {
        match self {
            Visited::Marked(since_ms) | Visited::Never(since_ms) => since_ms,
        }
    }
}

/// Something that is wrong, with a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it is about, as `Schedule` or `Queue`.
    pub about: &'static str,
    /// Its name, and the path of its page.
    pub subject: Option<(String, String)>,
    /// What is wrong with it.
    pub text: String,
}

/// A tab above the list.
struct TabLink {
    label: &'static str,
    look: Option<Look>,
    count: Option<String>,
    href: String,
    is_current: bool,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage<'d> {
    frame: Frame,
    notes: &'d [Note],
    failures: FailuresCard,
    histogram: HistogramCard,
    tabs: Vec<TabLink>,
    filter: &'d Filter,
    workflows: &'d [String],
    rows: Vec<RunRow>,
    newest: Option<String>,
    older: Option<String>,
    found: String,
    all_matching: Vec<(&'static str, String)>,
    /// The beginning and the end of the time, as fields of the form have them.
    from: String,
    until: String,
}

/// The page Runs.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn page(data: &RunsData, reader: &Reader) -> askama::Result<String> {
    let frame = Frame::new(reader, Section::Runs, "Runs");
    let href = |filter: &Filter| format!("{}/runs{}", reader.base, filter.query());
    let older = data.runs.next.map(|before| href(&Filter { before: Some(before), ..data.filter.clone() }));
    let newest = data.filter.before.map(|_| href(&Filter { before: None, ..data.filter.clone() }));
    RunsPage {
        failures: FailuresCard::new(&data.failures, data.visited, reader),
        histogram: HistogramCard::new(&data.histogram, &reader.times),
        tabs: tabs(data, reader),
        filter: &data.filter,
        workflows: &data.workflows,
        rows: data.runs.rows.iter().map(|run| RunRow::new(run, data, reader)).collect(),
        found: found(data, reader),
        all_matching: data.filter.pairs(),
        from: data.filter.from_ms.map_or_else(String::new, |at_ms| reader.times.field(at_ms)),
        until: data.filter.until_ms.map_or_else(String::new, |at_ms| reader.times.field(at_ms)),
        newest,
        older,
        notes: &data.notes,
        frame,
    }
    .render()
}

fn tabs(data: &RunsData, reader: &Reader) -> Vec<TabLink> {
    let tabs = [
        (Tab::All, "All", None),
        (Tab::Running, "Running or waiting", Some(RUNNING)),
        (Tab::Pending, "Pending", Some(WAITING)),
        (Tab::Failed, "Failed", Some(FAILED)),
        (Tab::Cancelled, "Cancelled", Some(CANCELLED)),
        (Tab::Successful, "Successful", Some(SUCCESSFUL)),
    ];
    tabs.into_iter()
        .map(|(tab, label, look)| {
            let filter = Filter { tab, before: None, ..data.filter.clone() };
            let count = data.counts.iter().find(|(status, _)| tab.status() == Some(*status));
            TabLink {
                label,
                look,
                // That many runs succeed is no news.
                count: count
                    .filter(|(status, count)| *status != RunStatus::Successful && count.number > 0)
                    .map(|(_, count)| count.to_string()),
                href: format!("{}/runs{}", reader.base, filter.query()),
                is_current: tab == data.filter.tab,
            }
        })
        .collect()
}

/// What the foot of the list says about how much was looked at.
fn found(data: &RunsData, reader: &Reader) -> String {
    let range = data.filter.time_in_words(&reader.times);
    match (data.runs.rows.len(), data.runs.searched_to) {
        (0, None) => format!("No run {range}"),
        (0, Some(id)) => format!("None found down to run {id}"),
        (count, Some(id)) => format!("{count} found down to run {id}"),
        (1, None) => format!("1 run {range}"),
        (count, None) if data.runs.next.is_some() => format!("The newest {count} {range}"),
        (count, None) => format!("{count} runs {range}"),
    }
}

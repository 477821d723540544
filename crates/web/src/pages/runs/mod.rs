//! The page Runs: what failed and why, what runs, and the list of runs.

mod failures;
mod filter;
mod histogram;
pub mod read;
mod row;

use std::collections::BTreeMap;

use askama::Template;
use windlass_engine::RunStatus;
use windlass_engine::store::{Count, Failures, FocusedJob, HistogramPart, JobCounts, Page, Run};

pub use filter::{Filter, Since, Tab, Trigger};
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
    /// How many runs are in each state; empty if the filter can't be counted.
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
    /// Since the reader marked them as seen.
    Marked,
    /// For a day.
    Never,
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
        found: found(data),
        all_matching: data.filter.pairs(),
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
        (Tab::Running, "Running", Some(RUNNING)),
        (Tab::Waiting, "Waiting", Some(WAITING)),
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
fn found(data: &RunsData) -> String {
    let range = data.filter.time_in_words();
    match (data.runs.rows.len(), data.runs.searched_to) {
        (0, None) => format!("No run {range}"),
        (0, Some(id)) => format!("None found down to run {id}"),
        (count, Some(id)) => format!("{count} found down to run {id}"),
        (1, None) => format!("1 run {range}"),
        (count, None) if data.runs.next.is_some() => format!("The newest {count} {range}"),
        (count, None) => format!("{count} runs {range}"),
    }
}

//! The pages about workflows: all of them, and one.

pub mod read;
mod schedules;

use std::collections::BTreeMap;

use askama::Template;
use windlass_engine::store::{
    FocusedJob, JobInGrid, ListedVersion, Occurrence, Registration, RunSummary, Schedule,
};
use windlass_engine::{JobStatus, RunStatus};

use super::frame::{Frame, Reader, Section};
use super::look::{Failure, Look};
use super::runs::look_of;
use super::times::{Stamp, Times, duration};
use super::url;
use schedules::ScheduleRow;

/// The newest runs of a workflow that a strip shows.
pub const RUNS_OF_STRIP: i64 = 30;
/// The newest runs whose jobs are shown, and how many jobs.
pub const RUNS_OF_GRID: i64 = 20;
const JOBS_OF_GRID: usize = 60;
/// The height of a strip, and of its shortest bar.
const STRIP_HEIGHT: f64 = 24.0;
const BAR_MIN: f64 = 4.0;

/// What is shown of each workflow.
#[derive(Debug)]
pub struct WorkflowSummary {
    /// Its registration.
    pub registration: Registration,
    /// Its newest runs, the newest first.
    pub runs: Vec<RunSummary>,
    /// Its schedules.
    pub schedules: Vec<Schedule>,
}

/// A page of the list of workflows.
#[derive(Debug)]
pub struct WorkflowList {
    /// The workflows, by name.
    pub rows: Vec<WorkflowSummary>,
    /// The job to look at in the newest run of each, if that is unfinished.
    pub focused: BTreeMap<i64, FocusedJob>,
    /// The name after which the next page begins.
    pub next: Option<String>,
    /// Whether it is the first page.
    pub is_first: bool,
}

/// What is shown of one workflow.
#[derive(Debug)]
pub struct WorkflowData {
    /// Its name.
    pub name: String,
    /// Its registration, if it is registered.
    pub registration: Option<Registration>,
    /// What it is for.
    pub description: Option<String>,
    /// Its newest runs, the newest first.
    pub runs: Vec<RunSummary>,
    /// The jobs of the newest of them.
    pub jobs: Vec<(i64, Vec<JobInGrid>)>,
    /// How long its runs usually take.
    pub usual_ms: Option<i64>,
    /// Its schedules, with the occurrences that were skipped last.
    pub schedules: Vec<(Schedule, Vec<Occurrence>)>,
    /// Its versions, the newest first.
    pub versions: Vec<ListedVersion>,
}

/// A bar of a strip: a run.
struct StripBar {
    id: i64,
    class: &'static str,
    x: String,
    y: String,
    height: String,
    title: String,
}

struct Strip {
    bars: Vec<StripBar>,
    width: String,
    label: String,
}

struct Row {
    name: String,
    href: String,
    version: i64,
    is_paused: bool,
    strip: Strip,
    last: Option<(i64, Look, Stamp)>,
    next: Option<Stamp>,
    schedule: String,
}

#[derive(Template)]
#[template(path = "workflows.html")]
struct WorkflowsPage {
    frame: Frame,
    rows: Vec<Row>,
    next: Option<String>,
    is_first: bool,
}

/// The list of workflows.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn list(workflows: &WorkflowList, reader: &Reader) -> askama::Result<String> {
    let row = |workflow: &WorkflowSummary| {
        let name = &workflow.registration.name;
        Row {
            href: format!("{}/workflows/{}", reader.base, url::encode(name)),
            version: workflow.registration.version,
            is_paused: workflow.registration.paused_at.is_some(),
            strip: strip(&workflow.runs, &reader.times),
            last: workflow.runs.first().map(|run| {
                let look = look_of(run.status, workflows.focused.get(&run.id));
                (run.id, look, reader.times.stamp(run.created_at))
            }),
            next: next_at(&workflow.schedules).map(|at| reader.times.stamp(at)),
            schedule: match workflow.schedules.as_slice() {
                [] => "no schedule".to_owned(),
                [one] => one.name.clone(),
                several => format!("{} schedules", several.len()),
            },
            name: name.clone(),
        }
    };
    WorkflowsPage {
        frame: Frame::new(reader, Section::Workflows, "Workflows"),
        rows: workflows.rows.iter().map(row).collect(),
        next: workflows
            .next
            .as_ref()
            .map(|name| format!("{}/workflows{}", reader.base, url::query([("after", name.as_str())]))),
        is_first: workflows.is_first,
    }
    .render()
}

fn next_at(schedules: &[Schedule]) -> Option<i64> {
    schedules.iter().filter(|schedule| schedule.is_active()).filter_map(|schedule| schedule.next_at).min()
}

fn class(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Pending => "q",
        RunStatus::Running => "r",
        RunStatus::Successful => "k",
        RunStatus::Failed => "f",
        RunStatus::Cancelled => "c",
    }
}

/// The newest runs as bars, the newest to the right. The height is the duration.
fn strip(runs: &[RunSummary], times: &Times) -> Strip {
    let took_ms = |run: &RunSummary| {
        let ended = run.finished_at.unwrap_or(times.now_ms);
        run.started_at.map_or(0, |started_at| (ended - started_at).max(0))
    };
    let longest = runs.iter().map(took_ms).max().unwrap_or(0).max(1) as f64;
    let places = (0..RUNS_OF_STRIP).rev().map(|place| place as f64 * 8.0);
    let bars = runs.iter().zip(places).map(|(run, x)| {
        let height = (took_ms(run) as f64 / longest * STRIP_HEIGHT).max(BAR_MIN);
        StripBar {
            id: run.id,
            class: class(run.status),
            x: format!("{x:.0}"),
            y: format!("{:.1}", STRIP_HEIGHT - height),
            height: format!("{height:.1}"),
            title: format!(
                "#{}: {}, {}",
                run.id,
                Look::of_run(run.status).word.to_lowercase(),
                duration(took_ms(run))
            ),
        }
    });
    let failed = runs.iter().filter(|run| run.status == RunStatus::Failed).count();
    Strip {
        bars: bars.collect(),
        width: format!("{:.0}", RUNS_OF_STRIP as f64 * 8.0 - 2.0),
        label: format!("The last {} runs, {failed} of them failed", runs.len()),
    }
}

/// A job in the newest runs.
struct GridRow {
    name: String,
    cells: Vec<Option<GridCell>>,
    /// The median of the last attempts that succeeded, and the last of them.
    usual: String,
    last: String,
}

struct GridCell {
    run_id: i64,
    job_id: i64,
    look: Look,
}

struct VersionRow {
    version: i64,
    href: String,
    applied: Stamp,
    file: String,
    is_active: bool,
}

#[derive(Template)]
#[template(path = "workflow.html")]
struct WorkflowPage {
    frame: Frame,
    name: String,
    href: String,
    runs_href: String,
    description: String,
    version: Option<i64>,
    is_paused: bool,
    usual: Option<String>,
    strip: Strip,
    run_ids: Vec<i64>,
    grid: Vec<GridRow>,
    schedules: Vec<ScheduleRow>,
    versions: Vec<VersionRow>,
    newest_run: i64,
}

/// The page of a workflow.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn page(data: &WorkflowData, reader: &Reader) -> askama::Result<String> {
    let times = &reader.times;
    let active = data.registration.as_ref().map(|registration| registration.version);
    WorkflowPage {
        href: format!("{}/workflows/{}", reader.base, url::encode(&data.name)),
        runs_href: format!("{}/runs?since=ever&workflow={}", reader.base, url::encode(&data.name)),
        description: data.description.clone().unwrap_or_default(),
        version: active,
        is_paused: data.registration.as_ref().is_some_and(|registration| registration.paused_at.is_some()),
        usual: data.usual_ms.map(duration),
        strip: strip(&data.runs, times),
        run_ids: data.jobs.iter().map(|(id, _)| *id).collect(),
        grid: grid(&data.jobs),
        schedules: data
            .schedules
            .iter()
            .map(|(schedule, skipped)| ScheduleRow::new(schedule, skipped, reader))
            .collect(),
        versions: data
            .versions
            .iter()
            .map(|version| VersionRow {
                version: version.version,
                href: format!(
                    "{}/workflows/{}/versions/{}",
                    reader.base,
                    url::encode(&data.name),
                    version.version
                ),
                applied: times.stamp(version.applied_at),
                file: version.file.clone().unwrap_or_default(),
                is_active: active == Some(version.version),
            })
            .collect(),
        newest_run: data.runs.first().map_or(0, |run| run.id),
        name: data.name.clone(),
        frame: Frame::new(reader, Section::Workflows, &data.name),
    }
    .render()
}

/// The jobs by runs: a row for each job of the newest run, and a cell for each run, the oldest first.
fn grid(runs: &[(i64, Vec<JobInGrid>)]) -> Vec<GridRow> {
    let Some((_, newest)) = runs.last() else { return Vec::new() };
    let own = newest.iter().take(JOBS_OF_GRID);
    own.map(|job| {
        let (usual, last) = durations(runs, &job.name);
        GridRow {
            usual,
            last,
            name: job.name.clone(),
            cells: runs
                .iter()
                .map(|(run_id, jobs)| {
                    let found = jobs.iter().find(|other| other.name == job.name)?;
                    Some(GridCell {
                        run_id: *run_id,
                        job_id: found.id,
                        look: Look::of_job(found.status, Failure::of(found.allow_failure)),
                    })
                })
                .collect(),
        }
    })
    .collect()
}

/// How long the attempts of a job took that succeeded in these runs: the one in the middle, and the newest one.
fn durations(runs: &[(i64, Vec<JobInGrid>)], name: &str) -> (String, String) {
    let took = |jobs: &[JobInGrid]| {
        let job = jobs.iter().find(|job| job.name == name && job.status == JobStatus::Successful)?;
        Some((job.finished_at? - job.started_at?).max(0))
    };
    let mut all: Vec<i64> = runs.iter().filter_map(|(_run_id, jobs)| took(jobs)).collect();
    let last = all.last().copied();
    all.sort_unstable();
    let usual = all.get(all.len() / 2).copied();
    (usual.map_or_else(String::new, duration), last.map_or_else(String::new, duration))
}

//! Reads what the page Runs shows.

use std::collections::BTreeMap;

use windlass_engine::store::{Count, Cursor, Page, Run, RunFilter, Schedule, SearchBound};
use windlass_engine::{Error, Result, RunSource, RunStatus, Store};
use windlass_views::FindingView;

use super::{Filter, Note, Picture, RunsData, Tab, Visited};
use crate::pages::times::{Times, grouped};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 3_600_000;
/// Where the counts of unfinished runs of a time stop.
const COUNTED_MAX: i64 = 999;
/// The same for filters that compare row by row, which read a row of `runs` for each that matches.
const COMPARED_MAX: i64 = 99;
/// So many paused queues are named.
const QUEUES_NAMED_MAX: i64 = 5;
/// Failures of so many days are shown at most, however long ago the last visit was.
const VISIT_DAYS_MAX: i64 = 30;
/// The most workflows in the list of the filter.
const WORKFLOWS_MAX: usize = 500;

/// When the reader said that the failures before are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastVisit(pub Option<i64>);

/// Reads what the page shows for a filter.
///
/// `findings` is what the fast checks found.
///
/// # Errors
/// Returns the database's error, and [`windlass_engine::Error::Invalid`] for texts that can't be searched for.
pub(crate) fn read(
    store: &Store,
    filter: Filter,
    visit: LastVisit,
    findings: Vec<FindingView>,
    picture: &Picture,
    times: &Times,
) -> Result<RunsData> {
    let now_ms = times.now_ms;
    // A page of runs that are compared looks at half as many rows as one search may, because it reads much else: a quarter here,
    // and two eighths to count.
    let search = if filter.compares_rows() { SearchBound::one_of(4) } else { SearchBound::default() };
    let runs = store.runs().list_full(&RunFilter { search, ..of_store(store, &filter, now_ms)? })?;
    let ids = |wanted: fn(&Run) -> bool| -> Vec<i64> {
        runs.rows.iter().filter(|run| wanted(run)).map(|run| run.id).collect()
    };
    let interesting = ids(|run| run.status != RunStatus::Successful);
    let mut workflows: Vec<&str> = runs.rows.iter().map(|run| run.workflow.as_str()).collect();
    workflows.sort_unstable();
    workflows.dedup();
    // A day began at a full minute, so the page stays the same while nothing changes.
    let visited = match visit.0 {
        Some(at_ms) => Visited::Marked(at_ms.clamp(now_ms - VISIT_DAYS_MAX * DAY_MS, now_ms)),
        None => Visited::Never((now_ms - DAY_MS).div_euclid(MINUTE_MS) * MINUTE_MS),
    };
    Ok(RunsData {
        focused: store.runs().focused_jobs(&interesting)?,
        slot_holders: store.runs().slot_holders_of(&keys_waited_for(&runs.rows))?,
        counts_of_jobs: store.runs().job_counts_of_small(&interesting)?,
        usual_ms: store.runs().usual_durations(&workflows)?,
        schedules: schedules(store, &runs)?,
        triggered: store.runs().triggered(&ids(|run| run.source == Some(RunSource::Event)))?,
        counts: counts(store, &filter, now_ms)?,
        failures: store.runs().failures_since(visited.since_ms())?,
        visited,
        histogram: picture.read(store, now_ms)?,
        notes: notes(store, times, findings)?,
        workflows: names_of_workflows(store, &filter, &workflows)?,
        runs,
        filter,
    })
}

/// The keys for a slot of which runs wait.
fn keys_waited_for(runs: &[Run]) -> Vec<&str> {
    let waiting = runs.iter().filter(|run| run.waits_for.is_some());
    let mut keys: Vec<&str> =
        waiting.filter_map(|run| run.concurrency.as_ref()).map(|(key, _limit)| key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The names of the schedules that started the runs.
fn schedules(store: &Store, runs: &Page<Run>) -> Result<BTreeMap<i64, String>> {
    let mut ids: Vec<i64> = runs.rows.iter().filter_map(|run| run.schedule_id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().map(|id| Ok((id, store.schedules().get(id)?.name))).collect()
}

fn names_of_workflows(store: &Store, filter: &Filter, of_page: &[&str]) -> Result<Vec<String>> {
    let registered = store.registrations().list()?.into_iter().map(|registration| registration.name);
    let mut names: Vec<String> = registered.take(WORKFLOWS_MAX).collect();
    names.extend(of_page.iter().map(|name| (*name).to_owned()));
    names.extend(filter.workflow.clone());
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// The filter of the store. The name of what started the runs is that of a schedule, or else of a trigger.
///
/// # Errors
/// Returns the database's error, and [`Error::Invalid`] for a name that several schedules have.
pub(in crate::pages) fn of_store(store: &Store, filter: &Filter, now_ms: i64) -> Result<RunFilter> {
    let wanted = filter.of_store(now_ms);
    let Some(by) = &filter.by else { return Ok(wanted) };
    let (workflow, name) = match by.split_once('/') {
        Some((workflow, name)) => (Some(workflow.to_owned()), name),
        None => (filter.workflow.clone(), by.as_str()),
    };
    let is_meant = |schedule: &Schedule| {
        schedule.name == name && workflow.as_ref().is_none_or(|workflow| *workflow == schedule.workflow)
    };
    let schedules: Vec<Schedule> = store.schedules().list()?.into_iter().filter(is_meant).collect();
    match schedules.as_slice() {
        [] => Ok(RunFilter { trigger: Some(name.to_owned()), workflow, ..wanted }),
        [one] => Ok(RunFilter { schedule_id: Some(one.id), ..wanted }),
        several => {
            let keys: Vec<String> = several.iter().take(5).map(Schedule::key).collect();
            let reason = format!("several schedules are called `{name}`; write one of {}", keys.join(", "));
            Err(Error::invalid("find runs by what started them", reason))
        }
    }
}

/// How many runs are in each state. Unfinished ones are of all times, unless the reader has chosen the time. Successful ones are not
/// looked for row by row, because the page does not show their number.
fn counts(store: &Store, filter: &Filter, now_ms: i64) -> Result<Vec<(RunStatus, Count)>> {
    let by_index = match filter.compares_rows() {
        false => store.runs().counts(filter.workflow.as_deref(), filter.created(now_ms))?,
        true => Vec::new(),
    };
    if !filter.compares_rows() && !filter.has_chosen_time() {
        return Ok(by_index);
    }
    let of_tab = |tab| Filter { tab, before: None, ..filter.clone() };
    let (mut finished, unfinished): (Vec<RunStatus>, Vec<RunStatus>) =
        RunStatus::ALL.into_iter().partition(|status| status.is_terminal());
    let mut counts = counts_by_rows(store, &of_tab(Tab::Running), unfinished, now_ms)?;
    if filter.compares_rows() {
        finished.retain(|status| *status != RunStatus::Successful);
        counts.extend(counts_by_rows(store, &of_tab(Tab::Failed), finished, now_ms)?);
    } else {
        counts.extend(by_index.into_iter().filter(|(status, _)| status.is_terminal()));
    }
    Ok(counts)
}

/// The same for some states, from the newest runs that match.
fn counts_by_rows(
    store: &Store,
    filter: &Filter,
    statuses: Vec<RunStatus>,
    now_ms: i64,
) -> Result<Vec<(RunStatus, Count)>> {
    let wanted = of_store(store, filter, now_ms)?;
    let cursor = Cursor::newest(if filter.compares_rows() { COMPARED_MAX } else { COUNTED_MAX });
    let search = if filter.compares_rows() { SearchBound::one_of(8) } else { SearchBound::one_of(4) };
    let page = store.runs().list(&RunFilter { statuses: statuses.clone(), cursor, search, ..wanted })?;
    let count = |status| Count {
        number: page.rows.iter().filter(|run| run.status == status).count() as i64,
        is_exact: page.next.is_none(),
    };
    Ok(statuses.into_iter().map(|status| (status, count(status))).collect())
}

/// What is wrong with the system: the late schedules and the paused queues by their names, and what else the checks found.
fn notes(store: &Store, times: &Times, findings: Vec<FindingView>) -> Result<Vec<Note>> {
    let mut notes = Vec::new();
    let late = store.upkeep().late_schedules()?;
    let is_named_here = |finding: &FindingView| {
        finding.about == "queues" || (finding.about == "schedules" && !late.is_empty())
    };
    for finding in findings.into_iter().filter(|finding| !is_named_here(finding)) {
        notes.push(Note { about: finding.about, subject: None, text: finding.message });
    }
    for (name, due_at) in &late {
        let late = crate::pages::times::rough_duration(times.now_ms - due_at);
        let path = name.split_once('/').map_or(name.as_str(), |(workflow, _)| workflow);
        notes.push(Note {
            about: "schedule",
            subject: Some((name.clone(), format!("/workflows/{}", crate::pages::url::encode(path)))),
            text: format!("is {late} late"),
        });
    }
    for queue in store.queues().paused_with_jobs(QUEUES_NAMED_MAX)? {
        let since = times.minute(queue.paused_at);
        let number =
            format!("{}{}", grouped(queue.pending.number), if queue.pending.is_exact { "" } else { "+" });
        let wait = match number.as_str() {
            // Its jobs are not ready yet.
            "0" => String::new(),
            "1" => ", 1 job waits".to_owned(),
            number => format!(", {number} jobs wait"),
        };
        notes.push(Note {
            about: "queue",
            subject: Some((queue.name, "/queues".to_owned())),
            text: format!("has been paused since {since}{wait}"),
        });
    }
    Ok(notes)
}

/// The path of what a text names: a run by its number or key, a job by `j` and its number, a workflow; otherwise the list of
/// runs with this key, which says that there is none.
///
/// # Errors
/// Returns the database's error.
pub fn find(store: &Store, text: &str) -> Result<String> {
    let number = |text: &str| text.parse::<i64>().ok();
    if let Some(id) = number(text.trim_start_matches('#'))
        && store.runs().find(id)?.is_some()
    {
        return Ok(format!("/runs/{id}"));
    }
    if let Some(id) = text.strip_prefix('j').and_then(number)
        && let Ok(job) = store.jobs().get(id)
    {
        return Ok(match job.run_id {
            Some(run_id) => format!("/runs/{run_id}?job={id}"),
            None => format!("/jobs/{id}"),
        });
    }
    if store.registrations().get(text)?.is_some() {
        return Ok(format!("/workflows/{}", crate::pages::url::encode(text)));
    }
    let filter = RunFilter { run_key: Some(text.to_owned()), ..RunFilter::newest(1) };
    if let Some(run) = store.runs().list(&filter)?.rows.first() {
        return Ok(format!("/runs/{}", run.id));
    }
    let of_workflow = RunFilter { workflow: Some(text.to_owned()), ..RunFilter::newest(1) };
    Ok(match store.runs().list(&of_workflow)?.rows.is_empty() {
        false => format!("/workflows/{}", crate::pages::url::encode(text)),
        true => format!("/runs?key={}", crate::pages::url::encode(text)),
    })
}

//! Reads what the page Runs shows.

use std::collections::BTreeMap;

use windlass_engine::store::{Page, Run, RunFilter};
use windlass_engine::{Result, RunStatus, Store};

use super::{Filter, Note, RunsData, Visited};
use crate::pages::times::Times;

const DAY_MS: i64 = 24 * 3_600_000;
/// The parts of the picture of the last 24 hours.
const PARTS: usize = 48;
/// Failures of so many days are shown at most, however long ago the last visit was.
const VISIT_DAYS_MAX: i64 = 30;
/// The most workflows in the list of the filter.
const WORKFLOWS_MAX: usize = 500;

/// When the reader said that the failures before are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastVisit(pub Option<i64>);

/// Reads what the page shows for a filter.
///
/// # Errors
/// Returns the database's error, and [`windlass_engine::Error::Invalid`] for texts that can't be searched for.
pub fn read(store: &Store, filter: Filter, visit: LastVisit, times: &Times) -> Result<RunsData> {
    let now_ms = times.now_ms;
    let runs = store.runs().list_full(&filter.of_store(now_ms))?;
    let ids = |wanted: fn(&Run) -> bool| -> Vec<i64> {
        runs.rows.iter().filter(|run| wanted(run)).map(|run| run.id).collect()
    };
    let interesting = ids(|run| run.status != RunStatus::Successful);
    let mut workflows: Vec<&str> = runs.rows.iter().map(|run| run.workflow.as_str()).collect();
    workflows.sort_unstable();
    workflows.dedup();
    let visited = if visit.0.is_some() { Visited::Marked } else { Visited::Never };
    let since_ms = visit.0.unwrap_or(now_ms - DAY_MS).clamp(now_ms - VISIT_DAYS_MAX * DAY_MS, now_ms);
    let counted =
        filter.param.is_none() && filter.key.is_none() && filter.tag.is_none() && filter.trigger.is_none();
    let paused = store.queues().paused()?;
    Ok(RunsData {
        focused: store.runs().focused_jobs(&interesting)?,
        slot_holders: store.runs().slot_holders_of(&keys_waited_for(&runs.rows))?,
        counts_of_jobs: store.runs().job_counts_of_small(&interesting)?,
        usual_ms: store.runs().usual_durations(&workflows)?,
        schedules: schedules(store, &runs)?,
        counts: match counted {
            true => store.runs().counts(filter.workflow.as_deref(), filter.created(now_ms))?,
            false => Vec::new(),
        },
        failures: store.runs().failures_since(since_ms)?,
        visited,
        histogram: store.runs().histogram(now_ms - DAY_MS, now_ms, PARTS)?,
        notes: notes(store, times, &paused)?,
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

/// What is wrong with the system, as far as it is fast to find out.
fn notes(store: &Store, times: &Times, paused: &[String]) -> Result<Vec<Note>> {
    let health = store.upkeep().health()?;
    let mut notes = Vec::new();
    let waiting = health.pending + health.overdue;
    if health.live_workers == 0 && waiting + health.running > 0 {
        let text = format!("No worker is alive, and {waiting} jobs are ready or overdue");
        notes.push(Note { about: "Workers", subject: None, text });
    }
    for (name, due_at) in &health.late_schedules {
        let late = crate::pages::times::rough_duration(times.now_ms - due_at);
        let path = name.split_once('/').map_or(name.as_str(), |(workflow, _)| workflow);
        notes.push(Note {
            about: "Schedule",
            subject: Some((name.clone(), format!("/workflows/{}", crate::pages::url::encode(path)))),
            text: format!("is {late} late"),
        });
    }
    for name in paused.iter().take(5) {
        let subject = Some((name.clone(), "/queues".to_owned()));
        notes.push(Note { about: "Queue", subject, text: "is paused".to_owned() });
    }
    if health.orphans > 0 {
        let text = format!("{} running jobs have no living worker", health.orphans);
        notes.push(Note { about: "Workers", subject: None, text });
    }
    for (_id, host, lacking) in &health.short_workers {
        notes.push(Note {
            about: "Worker",
            subject: None,
            text: format!("on {host} can't start jobs: {lacking}"),
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
        && let Some(run_id) = job.run_id
    {
        return Ok(format!("/runs/{run_id}?job={id}"));
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

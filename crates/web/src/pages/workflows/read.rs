//! Reads what the pages about workflows show.

use std::collections::BTreeMap;

use windlass_engine::store::{OccurrenceStatus, Registration, RunFilter, Schedule};
use windlass_engine::{Error, Result, Store};

use super::{RUNS_OF_GRID, RUNS_OF_STRIP, WorkflowData, WorkflowList, WorkflowSummary};

/// The most workflows of a page of the list.
pub const WORKFLOWS_OF_PAGE: usize = 200;
/// The most jobs of a run in the grid.
const JOBS_READ: i64 = 200;
const VERSIONS_SHOWN: i64 = 20;
const SKIPPED_SHOWN: i64 = 5;

/// A page of the registered workflows with their newest runs: those after a name.
///
/// # Errors
/// Returns the database's error.
pub fn list(store: &Store, after: Option<&str>) -> Result<WorkflowList> {
    let mut registrations = store.registrations().list()?;
    registrations.retain(|registration| after.is_none_or(|after| registration.name.as_str() > after));
    let has_more = registrations.len() > WORKFLOWS_OF_PAGE;
    registrations.truncate(WORKFLOWS_OF_PAGE);
    let next = registrations.last().filter(|_| has_more).map(|last| last.name.clone());
    let names: Vec<&str> = registrations.iter().map(|registration| registration.name.as_str()).collect();
    let mut newest = store.runs().newest_of_each(&names, RUNS_OF_STRIP)?;
    let mut schedules: BTreeMap<String, Vec<Schedule>> = BTreeMap::new();
    for schedule in store.schedules().list()? {
        schedules.entry(schedule.workflow.clone()).or_default().push(schedule);
    }
    let row = |registration: Registration| WorkflowSummary {
        runs: newest.remove(&registration.name).unwrap_or_default(),
        schedules: schedules.remove(&registration.name).unwrap_or_default(),
        registration,
    };
    let rows: Vec<WorkflowSummary> = registrations.into_iter().map(row).collect();
    let newest_runs = rows.iter().filter_map(|workflow| workflow.runs.first());
    let unfinished: Vec<i64> =
        newest_runs.filter(|run| !run.status.is_terminal()).map(|run| run.id).collect();
    let focused = match unfinished.is_empty() {
        true => BTreeMap::new(),
        false => store.runs().focused_jobs(&unfinished)?,
    };
    Ok(WorkflowList { rows, focused, next, is_first: after.is_none() })
}

fn newest(store: &Store, workflow: &str) -> Result<Vec<windlass_engine::store::RunSummary>> {
    let filter = RunFilter { workflow: Some(workflow.to_owned()), ..RunFilter::newest(RUNS_OF_STRIP) };
    Ok(store.runs().list(&filter)?.rows)
}

/// One workflow. It need not be registered, if it has runs.
///
/// # Errors
/// [`Error::NotFound`] and the database's.
pub fn one(store: &Store, name: &str) -> Result<WorkflowData> {
    let found = store.registrations().workflow(name)?;
    let runs = newest(store, name)?;
    if found.is_none() && runs.is_empty() {
        return Err(Error::not_found(format!("the workflow {name}")));
    }
    let mut compared: Vec<i64> = runs.iter().take(RUNS_OF_GRID as usize).map(|run| run.id).collect();
    compared.reverse();
    let mut first_jobs = store.jobs().first_of_each(&compared, JOBS_READ)?;
    let jobs = compared.into_iter().map(|id| (id, first_jobs.remove(&id).unwrap_or_default())).collect();
    let mut schedules = Vec::new();
    for schedule in store.schedules().list()?.into_iter().filter(|schedule| schedule.workflow == name) {
        let skipped = store.schedules().occurrences(schedule.id, OccurrenceStatus::Skipped, SKIPPED_SHOWN)?;
        schedules.push((schedule, skipped));
    }
    Ok(WorkflowData {
        name: name.to_owned(),
        description: found.as_ref().and_then(|(_, workflow)| workflow.description.clone()),
        registration: found.map(|(registration, _)| registration),
        usual_ms: store.runs().usual_durations(&[name])?.remove(name),
        versions: store.registrations().newest_versions(name, VERSIONS_SHOWN)?,
        jobs,
        runs,
        schedules,
    })
}

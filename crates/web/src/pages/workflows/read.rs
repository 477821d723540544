//! Reads what the pages about workflows show.

use windlass_engine::store::{JobOrder, JobPart, JobWindow, OccurrenceStatus, RunFilter, Schedule};
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
    let schedules = store.schedules().list()?;
    let mut registrations = store.registrations().list()?;
    registrations.retain(|registration| after.is_none_or(|after| registration.name.as_str() > after));
    let has_more = registrations.len() > WORKFLOWS_OF_PAGE;
    registrations.truncate(WORKFLOWS_OF_PAGE);
    let next = registrations.last().filter(|_| has_more).map(|last| last.name.clone());
    let rows: Result<Vec<WorkflowSummary>> = registrations
        .into_iter()
        .map(|registration| {
            let own = |schedule: &&Schedule| schedule.workflow == registration.name;
            Ok(WorkflowSummary {
                runs: newest(store, &registration.name)?,
                schedules: schedules.iter().filter(own).cloned().collect(),
                registration,
            })
        })
        .collect();
    Ok(WorkflowList { rows: rows?, next, is_first: after.is_none() })
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
    let mut jobs = Vec::new();
    for run in runs.iter().take(RUNS_OF_GRID as usize).rev() {
        let window = JobWindow {
            statuses: vec![],
            name: None,
            part: JobPart::WithoutItems,
            order: JobOrder::Definition,
            offset: 0,
            limit: JOBS_READ,
        };
        jobs.push((run.id, store.jobs().window(run.id, &window)?.rows));
    }
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
        versions: store.registrations().versions(name, None, VERSIONS_SHOWN)?,
        jobs,
        runs,
        schedules,
    })
}

//! Reads what became of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value as Json;
use windlass_engine::store::Job;
use windlass_engine::{JobStatus, Result, WaitsFor};

use super::engine::{Engine, INTERRUPTED};
use super::world::World;
use super::{Interruptions, Observed, ObservedJob};

/// Runs that are read at once.
const PAGE: i64 = 1_000;
/// What stands for the temporary folder in outputs, so that those of two runs can be compared.
const FOLDER: &str = "/case";

/// Reads the run of a case at its end, with the runs below it.
pub(super) fn observe(
    engine: &mut Engine,
    world: &World,
    folder: &Path,
    stuck: Vec<(String, String)>,
    commits: u64,
) -> Result<Observed> {
    let run = engine.store().runs().get(engine.run_id())?;
    let mut jobs = BTreeMap::new();
    for run_id in all_runs(engine)? {
        let mut rows = engine.store().jobs().of_run(run_id)?;
        engine.store().jobs().collect_outputs(&mut rows)?;
        for row in rows {
            let name = engine.name(row.id)?;
            let output = row.output.as_deref().and_then(|json| output_in(folder, json));
            let begun = world.begun(&name);
            // A job that calls a workflow again has several runs, whose jobs have the same names.
            let mut interruptions =
                jobs.get(&name).map_or_else(Interruptions::default, |job: &ObservedJob| job.interruptions);
            if begun.len() > 1 || row.interruptions > 0 {
                add_interruptions(engine, &row, &begun, &mut interruptions)?;
            }
            let attempts = begun.len() as i64;
            let (status, error) = (row.status, row.last_error);
            // The last run of a job that calls a workflow counts.
            jobs.insert(name, ObservedJob { status, output, error, attempts, interruptions });
        }
    }
    let outputs = engine.store().runs().outputs(run.id)?;
    let variables = read_variables(engine)?;
    let took_ms = run.finished_at.unwrap_or_else(|| world.clock().now_ms()) - world.case().now_ms;
    let without_fake = world.without_fake();
    Ok(Observed { status: run.status, took_ms, jobs, outputs, variables, without_fake, stuck, commits })
}

/// The output of a job. The path of a file in the workspace of a run begins with the temporary folder.
fn output_in(folder: &Path, json: &str) -> Option<Json> {
    let folder = folder.to_str().unwrap_or(FOLDER);
    serde_json::from_str(&json.replace(folder, FOLDER)).ok()
}

fn read_variables(engine: &Engine) -> Result<BTreeMap<String, Json>> {
    let mut variables: BTreeMap<String, Json> = BTreeMap::new();
    loop {
        let after = variables.keys().next_back().cloned();
        let page = engine.store().variables().list(after.as_deref())?;
        if page.is_empty() {
            return Ok(variables);
        }
        let value = |json: &str| serde_json::from_str(json).unwrap_or_default();
        variables.extend(page.into_iter().map(|variable| (variable.name, value(&variable.value))));
    }
}

/// Adds what interrupted a job, of whose attempts these have begun.
fn add_interruptions(
    engine: &Engine,
    job: &Job,
    begun: &BTreeSet<(i64, i64)>,
    interruptions: &mut Interruptions,
) -> Result<()> {
    let recorded = engine.store().jobs().attempts(job.id)?;
    let last = begun.range((job.id, 0)..=(job.id, i64::MAX)).next_back();
    let is_late = job.deadline_at.zip(job.finished_at).is_some_and(|(deadline, end)| end >= deadline);
    let is_stopped = is_late || job.status == JobStatus::Cancelled;
    let keys = recorded.iter().filter(|attempt| attempt.outcome == INTERRUPTED);
    for key in keys.map(|attempt| (job.id, attempt.attempt)).filter(|key| begun.contains(key)) {
        interruptions.attempts += 1;
        interruptions.stopped += i64::from(is_stopped && last == Some(&key));
        interruptions.has_failed |= job.status == JobStatus::Failed;
    }
    Ok(())
}

/// The run of the case and the runs below it.
fn all_runs(engine: &Engine) -> Result<Vec<i64>> {
    let mut ids = vec![engine.run_id()];
    loop {
        let after = ids.last().copied().unwrap_or(0);
        let below = engine.store().runs().below(engine.run_id(), after, PAGE)?;
        let is_last = below.len() < PAGE as usize;
        ids.extend(below.into_iter().map(|run| run.run_id));
        if is_last {
            return Ok(ids);
        }
    }
}

/// The jobs that wait for something from outside, each with what it waits for.
pub(super) fn stuck_jobs(engine: &mut Engine) -> Result<Vec<(String, String)>> {
    let mut stuck = Vec::new();
    for job in engine.waiting_jobs()? {
        match job.waits_for {
            Some(waits_for @ (WaitsFor::Event | WaitsFor::Approval | WaitsFor::Slot)) => {
                stuck.push((engine.name(job.id)?, waits_for.as_str().to_owned()));
            }
            Some(WaitsFor::Decision | WaitsFor::Items | WaitsFor::Run) | None => {}
        }
    }
    if stuck.is_empty() {
        stuck.push(("of the run".to_owned(), "nothing that is known".to_owned()));
    }
    stuck.sort();
    Ok(stuck)
}

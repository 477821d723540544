//! Reads what became of a run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use windlass_engine::{Result, WaitsFor};

use super::engine::{Engine, INTERRUPTED};
use super::world::World;
use super::{Observed, ObservedJob};

/// Runs that are read at once.
const PAGE: i64 = 1_000;

/// Reads the run of a case at its end, with the runs below it.
pub(super) fn observe(
    engine: &mut Engine,
    world: &World,
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
            let output = row.output.as_deref().and_then(|json| serde_json::from_str(json).ok());
            let begun = world.begun(&name);
            // A job that calls a workflow again has several runs, whose jobs have the same names.
            let earlier = jobs.get(&name).map_or(0, |job: &ObservedJob| job.interrupted);
            let interrupted = if begun.len() > 1 || row.interruptions > 0 {
                earlier + interrupted(engine, row.id, &begun)?
            } else {
                earlier
            };
            let attempts = begun.len() as i64;
            let (status, error) = (row.status, row.last_error);
            // The last run of a job that calls a workflow counts.
            jobs.insert(name, ObservedJob { status, output, error, attempts, interrupted });
        }
    }
    let outputs = engine.store().runs().outputs(run.id)?;
    let variables = read_variables(engine)?;
    let took_ms = run.finished_at.unwrap_or_else(|| world.clock().now_ms()) - world.case().now_ms;
    let without_fake = world.without_fake();
    Ok(Observed { status: run.status, took_ms, jobs, outputs, variables, without_fake, stuck, commits })
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

/// How many of the attempts that have begun were interrupted.
fn interrupted(engine: &Engine, job_id: i64, begun: &BTreeSet<(i64, i64)>) -> Result<i64> {
    let recorded = engine.store().jobs().attempts(job_id)?;
    let interrupted = recorded.iter().filter(|attempt| attempt.outcome == INTERRUPTED);
    Ok(interrupted.filter(|attempt| begun.contains(&(job_id, attempt.attempt))).count() as i64)
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

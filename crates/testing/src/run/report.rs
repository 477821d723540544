//! Reads what became of a run.

use std::collections::BTreeMap;

use windlass_engine::Result;

use super::engine::Engine;
use super::world::World;
use super::{Observed, ObservedJob};

/// Reads the run of a case at its end.
pub(super) fn observe(
    engine: &mut Engine,
    world: &World,
    stuck: Vec<(String, String)>,
    commits: u64,
) -> Result<Observed> {
    let run = engine.store().runs().get(engine.run_id())?;
    let mut rows = engine.store().jobs().of_run(run.id)?;
    engine.store().jobs().collect_outputs(&mut rows)?;
    let mut jobs = BTreeMap::new();
    for row in rows {
        let name = engine.name(row.id)?;
        let output = row.output.as_deref().and_then(|json| serde_json::from_str(json).ok());
        let attempts = world.begun(&name);
        let (status, error, interruptions) = (row.status, row.last_error, row.interruptions);
        jobs.insert(name, ObservedJob { status, output, error, attempts, interruptions });
    }
    let took_ms = run.finished_at.unwrap_or_else(|| world.clock().now_ms()) - world.case().now_ms;
    Ok(Observed { status: run.status, took_ms, jobs, without_fake: world.without_fake(), stuck, commits })
}

/// The jobs that wait, each with what it waits for.
pub(super) fn stuck_jobs(engine: &mut Engine) -> Result<Vec<(String, String)>> {
    let rows = engine.store().jobs().of_run(engine.run_id())?;
    let mut stuck = Vec::new();
    for row in rows.into_iter().filter(|row| !row.status.is_terminal()) {
        let Some(waits_for) = row.waits_for else { continue };
        stuck.push((engine.name(row.id)?, waits_for.as_str().to_owned()));
    }
    Ok(stuck)
}

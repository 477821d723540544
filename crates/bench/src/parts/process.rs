//! Jobs that start `true`, with their output captured: one after the other, and several at a time. Compared with the same
//! processes without Windlass.

use std::time::Duration;
use windlass_engine::HasStore;

use windlass_worker::{Handlers, WorkerOptions};
use windlass_workflow::Workflow;

use super::{ms_each, per_second};
use crate::error::BenchError;
use crate::raw::{spawn_chain, spawn_fan};
use crate::record::Record;
use crate::report::Unit::{Milliseconds, PerSecond};
use crate::scratch::Scratch;
use crate::{noop, workflows};

/// The processes at a time.
const THREADS: usize = 8;
/// The number of commits that a reference has for each process.
const COMMITS: f64 = 1.5;

pub(crate) fn measure(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let (links, jobs) = (scratch.sizes().process_chain, scratch.sizes().process_fan);
    for _round in 0..scratch.plan.rounds {
        let spawn_ms = ms_each(spawn_chain(links, &scratch.plan.interruption)?, links);
        record.machine("raw_spawn", "start `true` and wait for its end", Milliseconds, spawn_ms);
        let database = scratch.new_database()?;
        let commit_ms = ms_each(database.raw(scratch.plan.durability)?.commits(links)?, links);
        record.machine(
            "raw_spawn_and_commits",
            "`true`, and one and a half single commits",
            Milliseconds,
            spawn_ms + COMMITS * commit_ms,
        );
        let database = scratch.new_database()?;
        let turns = database
            .raw(scratch.plan.durability)?
            .processes_and_commits(links, &scratch.plan.interruption)?;
        record.machine(
            "raw_spawn_and_commits_by_turns",
            "`true`, and one and a half single commits, by turns",
            Milliseconds,
            ms_each(turns, links),
        );
        let link_ms = ms_each(run(scratch, workflows::chain(links), 1)?, links);
        record.windlass("process_link", "a link of a chain of processes", Milliseconds, link_ms);
        let rate = per_second(jobs, spawn_fan(jobs, THREADS, &scratch.plan.interruption)?);
        let about = format!("processes `true` from {THREADS} threads");
        record.machine("raw_spawns", about, PerSecond, rate);
        let rate = per_second(jobs, run(scratch, workflows::wide(jobs), THREADS)?);
        let about = format!("jobs that are processes, on {THREADS} threads");
        record.windlass("process_fan", about, PerSecond, rate);
    }
    record.compare("process_link", "raw_spawn");
    record.compare("process_link", "raw_spawn_and_commits");
    record.compare("process_link", "raw_spawn_and_commits_by_turns");
    record.compare("process_fan", "raw_spawns");
    Ok(())
}

/// Executes a run. Returns its time by the clock of the tables.
fn run(scratch: &Scratch<'_>, workflow: Workflow, threads: usize) -> Result<Duration, BenchError> {
    let database = scratch.new_database()?;
    let windlass = database.open(scratch.plan.durability)?;
    let run_id = windlass.submit(noop::new_run(workflow))?.run_id;
    let threads = i64::try_from(threads).unwrap_or(windlass_worker::THREADS_MAX);
    let _engine = windlass
        .start(Handlers::with_built_in_kinds(), WorkerOptions { threads, ..WorkerOptions::default() })?;
    noop::wait_for_run(&windlass, run_id, noop::SLOW_TICK, &scratch.plan.interruption)?;
    // The times in the tables are more exact, because polling takes time itself.
    let run = windlass.store().runs().get(run_id)?;
    let (began, ended) = (run.started_at.unwrap_or_default(), run.finished_at.unwrap_or_default());
    Ok(Duration::from_millis(u64::try_from(ended - began).unwrap_or(0)))
}

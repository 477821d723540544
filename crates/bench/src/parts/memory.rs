//! The most memory that a process uses while it drains many jobs, and while it executes a large graph; the processor time of an
//! idle `serve`. Each is measured in a process of its own, with the numbers of the kernel.

use std::process::Stdio;
use std::time::{Duration, Instant};
use windlass_engine::HasStore;

use crate::children::{self, ChildTask, Started};
use crate::error::BenchError;
use crate::idle::Usage;
use crate::noop;
use crate::raw::Rows;
use crate::record::Record;
use crate::report::Unit::{Bytes, Count, PercentOfCore, Seconds};
use crate::scratch::Scratch;

/// The pause before a service is measured, so that its start has ended.
const SETTLE: Duration = Duration::from_millis(1_500);
/// How long it is measured in each round.
const WINDOW: Duration = Duration::from_secs(2);

pub(crate) fn measure(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    drain(scratch, record)?;
    graph(scratch, record)?;
    idle(scratch, record)
}

/// Measured only once, because it takes long.
fn drain(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let jobs = scratch.sizes().memory_drain;
    let database = scratch.new_database()?;
    drop(database.open(scratch.plan.durability)?);
    database.fill(Rows::Pending(jobs), &scratch.plan.interruption)?;
    let report = children::measure(scratch, &database.address(), ChildTask::Drain(jobs))?;
    let about = format!("most memory held while {jobs} jobs are drained");
    record.windlass("drain_peak", about, Bytes, report.peak_bytes as f64);
    record.windlass("drain_time", "to drain them", Seconds, report.execute_s);
    Ok(())
}

fn graph(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let jobs = scratch.sizes().memory_graph;
    let database = scratch.new_database()?;
    drop(database.open(scratch.plan.durability)?);
    let report = children::measure(scratch, &database.address(), ChildTask::Graph(jobs))?;
    let about =
        format!("most memory held while a graph of {jobs} jobs, three edges each, is submitted and executed");
    record.windlass("graph_peak", about, Bytes, report.peak_bytes as f64);
    record.windlass("graph_submit", "to submit it", Seconds, report.submit_s);
    record.windlass("graph_run", "to execute it", Seconds, report.execute_s);
    Ok(())
}

fn idle(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let database = scratch.new_database()?;
    let windlass = database.open(scratch.plan.durability)?;
    let mut command = children::command(scratch, &database.address(), &["serve"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut started = Started { child: command.spawn().map_err(BenchError::machine("start a process"))? };
    noop::wait_until(&scratch.plan.interruption, "the start of `serve`", || {
        match started.child.try_wait().map_err(BenchError::machine("wait for a process"))? {
            Some(status) => Err(BenchError::Child(format!("`serve` ended with {status}"))),
            None => Ok(!windlass.store().workers().live()?.is_empty()),
        }
    })?;
    drop(windlass);
    pause(scratch, SETTLE)?;
    for _round in 0..scratch.plan.rounds {
        let began = Instant::now();
        let before = Usage::of(started.child.id())?;
        pause(scratch, WINDOW)?;
        let used = Usage::of(started.child.id())?.since(before);
        let seconds = began.elapsed().as_secs_f64();
        let percent = used.cpu_ns as f64 / 1_000_000_000.0 / seconds * 100.0;
        record.windlass("idle_serve_cpu", "an idle `serve`: of one core", PercentOfCore, percent);
        let wake_ups = used.wake_ups as f64 / seconds;
        record.windlass("idle_serve_wake_ups", "an idle `serve`: wake-ups a second", Count, wake_ups);
    }
    Ok(())
}

fn pause(scratch: &Scratch<'_>, how_long: Duration) -> Result<(), BenchError> {
    let began = Instant::now();
    noop::wait_until(&scratch.plan.interruption, "a pause", || Ok(began.elapsed() >= how_long))
}

//! The most memory that a process holds while it drains many jobs, and while it executes a large graph; what an idle
//! `serve` uses of the processor. Each in a process of its own, which is measured by the kernel.

use std::process::Stdio;
use std::time::{Duration, Instant};
use windlass_engine::HasStore;

use crate::children::{self, ChildTask, Started};
use crate::error::BenchError;
use crate::idle::Usage;
use crate::noop;
use crate::place::Scratch;
use crate::raw::Rows;
use crate::record::Record;
use crate::report::Unit::{Bytes, Count, PercentOfCore, Seconds};

/// How long a service has been idle before it is looked at: what follows its start is over then.
const SETTLE: Duration = Duration::from_millis(1_500);
/// How long it is looked at in each round.
const WINDOW: Duration = Duration::from_secs(2);

pub(crate) fn measure(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    drain(scratch, record)?;
    graph(scratch, record)?;
    idle(scratch, record)
}

/// Once: it takes long.
fn drain(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let jobs = scratch.sizes().memory_drain;
    let fresh = scratch.fresh()?;
    drop(fresh.open(scratch.plan.durability)?);
    fresh.fill(Rows::Pending(jobs), &scratch.plan.interruption)?;
    let report = children::measure(scratch, &fresh.address(), ChildTask::Drain(jobs))?;
    let about = format!("most memory held while {jobs} jobs are drained");
    record.windlass("drain_peak", about, Bytes, report.peak_bytes as f64);
    record.windlass("drain_time", "to drain them", Seconds, report.execute_s);
    Ok(())
}

fn graph(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let jobs = scratch.sizes().memory_graph;
    let fresh = scratch.fresh()?;
    drop(fresh.open(scratch.plan.durability)?);
    let report = children::measure(scratch, &fresh.address(), ChildTask::Graph(jobs))?;
    let about =
        format!("most memory held while a graph of {jobs} jobs, three edges each, is submitted and executed");
    record.windlass("graph_peak", about, Bytes, report.peak_bytes as f64);
    record.windlass("graph_submit", "to submit it", Seconds, report.submit_s);
    record.windlass("graph_run", "to execute it", Seconds, report.execute_s);
    Ok(())
}

fn idle(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let fresh = scratch.fresh()?;
    let windlass = fresh.open(scratch.plan.durability)?;
    let mut command = children::command(scratch, &fresh.address(), &["serve"]);
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

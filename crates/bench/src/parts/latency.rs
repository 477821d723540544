//! How soon a job starts when nothing else is to be done: from the moment at which its enqueueing is acknowledged
//! to that at which its handler is entered. Enqueued by the process that executes it, and by another one.

use std::time::Duration;

use windlass::store::NewJob;
use windlass::{Windlass, WorkerOptions};

use super::ms_each;
use crate::children::Producer;
use crate::error::BenchError;
use crate::noop::{self, NOOP, Noops, monotonic_ns};
use crate::place::Scratch;
use crate::record::Record;
use crate::report::Unit::Milliseconds;
use crate::statistics::percentile;

/// Between the start of a job and the next request: the worker has nothing to do then. Odd, so that it falls into
/// step with no clock.
const PAUSE: Duration = Duration::from_micros(7_300);
/// What is told of the starts of a round.
const PERCENTILES: [(usize, &str); 3] = [(50, "p50"), (99, "p99"), (100, "max")];

pub(crate) fn measure(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let samples = scratch.sizes().latency;
    for _round in 0..scratch.plan.rounds {
        let fresh = scratch.fresh()?;
        let commits = fresh.raw(scratch.plan.durability)?.commits(samples)?;
        record.machine("raw_commit", "a single commit of one row", Milliseconds, ms_each(commits, samples));
        let own = own_process(scratch, samples)?;
        note(record, "own_process", "a job of this process starts", &own);
        let other = other_process(scratch, samples)?;
        note(record, "other_process", "a job of another process starts", &other);
    }
    for (_percent, name) in PERCENTILES {
        record.compare(format!("own_process_{name}"), "raw_commit");
        record.compare(format!("other_process_{name}"), "raw_commit");
    }
    Ok(())
}

fn note(record: &mut Record, name: &str, about: &str, starts_ms: &[f64]) {
    for (percent, percentile_name) in PERCENTILES {
        let value = percentile(starts_ms, percent).unwrap_or(f64::NAN);
        let about = format!("{about}, {percentile_name} of {}", starts_ms.len());
        record.windlass(format!("{name}_{percentile_name}"), about, Milliseconds, value);
    }
}

fn own_process(scratch: &Scratch<'_>, samples: usize) -> Result<Vec<f64>, BenchError> {
    let fresh = scratch.fresh()?;
    let windlass = fresh.open(scratch.plan.durability)?;
    starts(scratch, &windlass, samples, || {
        windlass.store().enqueue(vec![NewJob::new(NOOP, "null")])?;
        Ok(monotonic_ns())
    })
}

fn other_process(scratch: &Scratch<'_>, samples: usize) -> Result<Vec<f64>, BenchError> {
    let fresh = scratch.fresh()?;
    let windlass = fresh.open(scratch.plan.durability)?;
    let mut producer = Producer::start(scratch, &fresh.address())?;
    // It opens the database before its first answer.
    starts(scratch, &windlass, samples, || producer.enqueue())
}

/// Milliseconds of each start after a first one, which nobody counts.
fn starts(
    scratch: &Scratch<'_>,
    windlass: &Windlass,
    samples: usize,
    mut enqueue: impl FnMut() -> Result<i64, BenchError>,
) -> Result<Vec<f64>, BenchError> {
    let noops = Noops::default();
    let _engine = windlass.start(noops.handlers(), WorkerOptions::default())?;
    let mut starts_ms = Vec::with_capacity(samples);
    for sample in 0..=samples {
        std::thread::sleep(PAUSE);
        let acknowledged_ns = enqueue()?;
        noop::wait_until(scratch.plan, "the start of a job", || Ok(noops.entered() > sample))?;
        if sample > 0 {
            // The handler may be entered before the answer has come back.
            let start_ns = (noops.entered_ns() - acknowledged_ns).max(0);
            starts_ms.push(start_ns as f64 / 1_000_000.0);
        }
    }
    Ok(starts_ms)
}

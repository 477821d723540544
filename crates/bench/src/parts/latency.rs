//! How soon a job starts: from the moment at which its enqueueing is acknowledged to that at which its handler is
//! entered. Enqueued by the process that executes it, and by another one; on a worker that has been idle for a
//! while, and on one that has just executed another job.

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

/// How long nothing has happened before a job comes.
#[derive(Debug, Clone, Copy)]
struct Rest {
    name: &'static str,
    about: &'static str,
    pause: Duration,
}

/// Longer than whatever a worker still does after its last commit. Odd, so that it falls into step with no clock.
const IDLE: Rest = Rest { name: "idle", about: "worker idle", pause: Duration::from_micros(131_700) };
/// Right after another job.
const SOON: Rest = Rest { name: "soon", about: "right after another", pause: Duration::from_micros(7_300) };
/// What is told of the starts of a round.
const PERCENTILES: [(usize, &str); 2] = [(50, "p50"), (100, "max")];

/// Starts of a job, of all rounds.
struct Starts {
    name: String,
    about: String,
    all_ms: Vec<f64>,
}

pub(crate) fn measure(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let sizes = scratch.sizes();
    let mut starts: Vec<Starts> = Vec::new();
    for _round in 0..scratch.plan.rounds {
        let fresh = scratch.fresh()?;
        let time = fresh.raw(scratch.plan.durability)?.commits(sizes.enqueue_one)?;
        let ms = ms_each(time, sizes.enqueue_one);
        record.machine("raw_commit", "a single commit of one row", Milliseconds, ms);
        for (rest, samples) in [(IDLE, sizes.starts_idle), (SOON, sizes.starts_soon)] {
            let own = own_process(scratch, samples, rest)?;
            note(record, &mut starts, "own_process", "of this process", rest, own);
            let other = other_process(scratch, samples, rest)?;
            note(record, &mut starts, "other_process", "of another process", rest, other);
        }
    }
    for Starts { name, about, all_ms } in starts {
        let value = percentile(&all_ms, 99).unwrap_or(f64::NAN);
        record.windlass(
            format!("{name}_p99"),
            format!("{about}: p99 of all {}", all_ms.len()),
            Milliseconds,
            value,
        );
        for (_percent, percentile_name) in PERCENTILES {
            record.compare(format!("{name}_{percentile_name}"), "raw_commit");
        }
    }
    Ok(())
}

fn note(record: &mut Record, starts: &mut Vec<Starts>, name: &str, whose: &str, rest: Rest, ms: Vec<f64>) {
    let name = format!("{name}_{}", rest.name);
    let about = format!("a job {whose} starts, {}", rest.about);
    for (percent, percentile_name) in PERCENTILES {
        let value = percentile(&ms, percent).unwrap_or(f64::NAN);
        let about = format!("{about}: {percentile_name} of {}", ms.len());
        record.windlass(format!("{name}_{percentile_name}"), about, Milliseconds, value);
    }
    match starts.iter_mut().find(|known| known.name == name) {
        Some(known) => known.all_ms.extend(ms),
        None => starts.push(Starts { name, about, all_ms: ms }),
    }
}

fn own_process(scratch: &Scratch<'_>, samples: usize, rest: Rest) -> Result<Vec<f64>, BenchError> {
    let fresh = scratch.fresh()?;
    let windlass = fresh.open(scratch.plan.durability)?;
    starts(scratch, &windlass, samples, rest, || {
        windlass.store().enqueue(vec![NewJob::new(NOOP, "null")])?;
        Ok(monotonic_ns())
    })
}

fn other_process(scratch: &Scratch<'_>, samples: usize, rest: Rest) -> Result<Vec<f64>, BenchError> {
    let fresh = scratch.fresh()?;
    let windlass = fresh.open(scratch.plan.durability)?;
    let mut producer = Producer::start(scratch, &fresh.address())?;
    // It opens the database before its first answer.
    starts(scratch, &windlass, samples, rest, || producer.enqueue())
}

/// Milliseconds of each start after a first one, which nobody counts.
fn starts(
    scratch: &Scratch<'_>,
    windlass: &Windlass,
    samples: usize,
    rest: Rest,
    mut enqueue: impl FnMut() -> Result<i64, BenchError>,
) -> Result<Vec<f64>, BenchError> {
    let noops = Noops::default();
    let _engine = windlass.start(noops.handlers(), WorkerOptions::default())?;
    let mut starts_ms = Vec::with_capacity(samples);
    for sample in 0..=samples {
        std::thread::sleep(rest.pause);
        let acknowledged_ns = enqueue()?;
        noop::wait_until(&scratch.plan.interruption, "the start of a job", || Ok(noops.entered() > sample))?;
        if sample > 0 {
            // The handler may be entered before the answer has come back.
            let start_ns = (noops.entered_ns() - acknowledged_ns).max(0);
            starts_ms.push(start_ns as f64 / 1_000_000.0);
        }
    }
    Ok(starts_ms)
}

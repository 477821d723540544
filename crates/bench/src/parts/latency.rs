//! How soon a job starts: from the moment at which its enqueueing is acknowledged to that at which its handler is
//! entered. Enqueued by the process that executes it, and by another one; on a worker that has been idle for a
//! while, and on one that has just executed another job.
//!
//! Between an acknowledgement and a start there is one commit at least, the claim. So beside each start, after the
//! same rest, two single commits are done, of which the second is timed: what the disk alone makes of it, in its
//! good moments and in its bad ones.

use std::time::Duration;
use windlass_engine::HasStore;

use windlass::Windlass;
use windlass_engine::store::NewJob;
use windlass_worker::WorkerOptions;

use super::ms_each;
use crate::children::Producer;
use crate::error::BenchError;
use crate::noop::{self, NOOP, Noops, monotonic_ns};
use crate::place::Scratch;
use crate::raw::Raw;
use crate::record::Record;
use crate::report::Kind;
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
/// What is told of the samples of a round.
const PERCENTILES: [(usize, &str); 2] = [(50, "p50"), (100, "max")];

/// What is measured again and again: the first part of its figures' names, and what they are about.
#[derive(Debug, Clone, Copy)]
struct Subject {
    name: &'static str,
    about: &'static str,
    kind: Kind,
}

const OWN: Subject =
    Subject { name: "own_process", about: "a job of this process starts", kind: Kind::Windlass };
const OTHER: Subject =
    Subject { name: "other_process", about: "a job of another process starts", kind: Kind::Windlass };
const COMMIT: Subject =
    Subject { name: "commit", about: "the second of two single commits", kind: Kind::Machine };

/// Its samples after one rest, in milliseconds, of all rounds.
struct Samples {
    subject: Subject,
    rest: Rest,
    all_ms: Vec<f64>,
}

/// What the samples of a round are.
struct Round {
    starts_ms: Vec<f64>,
    commits_ms: Vec<f64>,
}

pub(crate) fn measure(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let sizes = scratch.sizes();
    let mut all: Vec<Samples> = Vec::new();
    for _round in 0..scratch.plan.rounds {
        let fresh = scratch.fresh()?;
        let mut raw = fresh.raw(scratch.plan.durability)?;
        let time = raw.commits(sizes.enqueue_one)?;
        let ms = ms_each(time, sizes.enqueue_one);
        record.machine("raw_commit", "a single commit of one row", Milliseconds, ms);
        for (rest, samples) in [(IDLE, sizes.starts_idle), (SOON, sizes.starts_soon)] {
            let own = own_process(scratch, &mut raw, samples, rest)?;
            let other = other_process(scratch, &mut raw, samples, rest)?;
            note(record, &mut all, OWN, rest, own.starts_ms);
            note(record, &mut all, OTHER, rest, other.starts_ms);
            note(record, &mut all, COMMIT, rest, [own.commits_ms, other.commits_ms].concat());
        }
    }
    for Samples { subject, rest, all_ms } in &all {
        let (name, about) = (name(*subject, *rest), about(*subject, *rest));
        let value = percentile(all_ms, 99).unwrap_or(f64::NAN);
        let about = format!("{about}: p99 of all {}", all_ms.len());
        record.figure(format!("{name}_p99"), about, subject.kind, Milliseconds, value);
        if subject.kind == Kind::Windlass {
            record.compare(format!("{name}_p50"), "raw_commit");
            for percentile_name in ["p50", "max", "p99"] {
                let beside = self::name(COMMIT, *rest);
                record.compare(format!("{name}_{percentile_name}"), format!("{beside}_{percentile_name}"));
            }
        }
    }
    Ok(())
}

fn name(subject: Subject, rest: Rest) -> String {
    format!("{}_{}", subject.name, rest.name)
}

fn about(subject: Subject, rest: Rest) -> String {
    let Rest { about, pause, .. } = rest;
    match subject.kind {
        Kind::Windlass => format!("{}, {about}", subject.about),
        Kind::Machine => {
            format!("{}, after {} ms of rest", subject.about, pause.as_micros() as f64 / 1_000.0)
        }
    }
}

fn note(record: &mut Record, all: &mut Vec<Samples>, subject: Subject, rest: Rest, ms: Vec<f64>) {
    let (name, about) = (name(subject, rest), about(subject, rest));
    for (percent, percentile_name) in PERCENTILES {
        let value = percentile(&ms, percent).unwrap_or(f64::NAN);
        let about = format!("{about}: {percentile_name} of {}", ms.len());
        record.figure(format!("{name}_{percentile_name}"), about, subject.kind, Milliseconds, value);
    }
    match all.iter_mut().find(|known| known.subject.name == subject.name && known.rest.name == rest.name) {
        Some(known) => known.all_ms.extend(ms),
        None => all.push(Samples { subject, rest, all_ms: ms }),
    }
}

fn own_process(
    scratch: &Scratch<'_>,
    raw: &mut Raw,
    samples: usize,
    rest: Rest,
) -> Result<Round, BenchError> {
    let fresh = scratch.fresh()?;
    let windlass = fresh.open(scratch.plan.durability)?;
    starts(scratch, &windlass, raw, samples, rest, || {
        windlass.store().jobs().enqueue(vec![NewJob::new(NOOP, "null")])?;
        Ok(monotonic_ns())
    })
}

fn other_process(
    scratch: &Scratch<'_>,
    raw: &mut Raw,
    samples: usize,
    rest: Rest,
) -> Result<Round, BenchError> {
    let fresh = scratch.fresh()?;
    let windlass = fresh.open(scratch.plan.durability)?;
    let mut producer = Producer::start(scratch, &fresh.address())?;
    // It opens the database before its first answer.
    starts(scratch, &windlass, raw, samples, rest, || producer.enqueue())
}

/// Each start after a first one, which nobody counts, and the commits beside them.
fn starts(
    scratch: &Scratch<'_>,
    windlass: &Windlass,
    raw: &mut Raw,
    samples: usize,
    rest: Rest,
    mut enqueue: impl FnMut() -> Result<i64, BenchError>,
) -> Result<Round, BenchError> {
    let noops = Noops::default();
    let _engine = windlass.start(noops.handlers(), WorkerOptions::default())?;
    let mut round = Round { starts_ms: Vec::with_capacity(samples), commits_ms: Vec::with_capacity(samples) };
    for sample in 0..=samples {
        std::thread::sleep(rest.pause);
        raw.commits(1)?;
        let commit = raw.commits(1)?;
        std::thread::sleep(rest.pause);
        let acknowledged_ns = enqueue()?;
        noop::wait_until(&scratch.plan.interruption, "the start of a job", || Ok(noops.entered() > sample))?;
        if sample > 0 {
            // The handler may be entered before the answer has come back.
            let start_ns = (noops.entered_ns() - acknowledged_ns).max(0);
            round.starts_ms.push(start_ns as f64 / 1_000_000.0);
            round.commits_ms.push(ms_each(commit, 1));
        }
    }
    Ok(round)
}

//! How soon a job starts: the time from the answer to its enqueueing until its handler is called. The job is enqueued by the
//! process that executes it, or by another one; the worker has been idle for a while, or has just executed another job.
//!
//! At least one commit, the claim, lies between the answer and the start. So for comparison each start is preceded by two single
//! commits after the same pause. The second one is timed. It shows how much of the time is due to the disk.

use std::time::Duration;
use windlass_engine::HasStore;

use windlass::Windlass;
use windlass_engine::store::NewJob;
use windlass_worker::WorkerOptions;

use super::ms_each;
use crate::children::Producer;
use crate::error::BenchError;
use crate::noop::{self, NOOP, Noops, monotonic_ns};
use crate::raw::Raw;
use crate::record::Record;
use crate::report::Kind;
use crate::report::Unit::Milliseconds;
use crate::scratch::Scratch;
use crate::statistics::percentile;

/// The pause before each job.
#[derive(Debug, Clone, Copy)]
struct Pause {
    name: &'static str,
    about: &'static str,
    length: Duration,
}

/// Longer than a worker is busy after its last commit. An odd number, so that it does not match a timer's interval.
const IDLE: Pause = Pause { name: "idle", about: "worker idle", length: Duration::from_micros(131_700) };
/// A job soon after another one.
const SOON: Pause =
    Pause { name: "soon", about: "right after another", length: Duration::from_micros(7_300) };
/// The percentiles that are reported for each round.
const PERCENTILES: [(usize, &str); 2] = [(50, "p50"), (100, "max")];

/// Something that is measured repeatedly: the first part of its figures' names, and their description.
#[derive(Debug, Clone, Copy)]
struct Subject {
    name: &'static str,
    about: &'static str,
    kind: Kind,
}

const OWN_PROCESS: Subject =
    Subject { name: "own_process", about: "a job of this process starts", kind: Kind::Windlass };
const OTHER_PROCESS: Subject =
    Subject { name: "other_process", about: "a job of another process starts", kind: Kind::Windlass };
const COMMIT: Subject =
    Subject { name: "commit", about: "the second of two single commits", kind: Kind::Machine };

/// The samples of a subject with one pause, in milliseconds, of all rounds.
struct Samples {
    subject: Subject,
    pause: Pause,
    all_ms: Vec<f64>,
}

/// The samples of a round.
struct Round {
    starts_ms: Vec<f64>,
    commits_ms: Vec<f64>,
}

pub(crate) fn measure(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let sizes = scratch.sizes();
    let mut all: Vec<Samples> = Vec::new();
    for _round in 0..scratch.plan.rounds {
        let database = scratch.new_database()?;
        let mut raw = database.raw(scratch.plan.durability)?;
        let time = raw.commits(sizes.enqueue_one)?;
        let ms = ms_each(time, sizes.enqueue_one);
        record.machine("raw_commit", "a single commit of one row", Milliseconds, ms);
        for (pause, samples) in [(IDLE, sizes.starts_idle), (SOON, sizes.starts_soon)] {
            let own = own_process(scratch, &mut raw, samples, pause)?;
            let other = other_process(scratch, &mut raw, samples, pause)?;
            record_samples(record, &mut all, OWN_PROCESS, pause, own.starts_ms);
            record_samples(record, &mut all, OTHER_PROCESS, pause, other.starts_ms);
            record_samples(record, &mut all, COMMIT, pause, [own.commits_ms, other.commits_ms].concat());
        }
    }
    for Samples { subject, pause, all_ms } in &all {
        let (name, about) = (name(*subject, *pause), about(*subject, *pause));
        let value = percentile(all_ms, 99).unwrap_or(f64::NAN);
        let about = format!("{about}: p99 of all {}", all_ms.len());
        record.figure(format!("{name}_p99"), about, subject.kind, Milliseconds, value);
        if subject.kind == Kind::Windlass {
            record.compare(format!("{name}_p50"), "raw_commit");
            for percentile_name in ["p50", "max", "p99"] {
                let reference = self::name(COMMIT, *pause);
                record.compare(format!("{name}_{percentile_name}"), format!("{reference}_{percentile_name}"));
            }
        }
    }
    Ok(())
}

fn name(subject: Subject, pause: Pause) -> String {
    format!("{}_{}", subject.name, pause.name)
}

fn about(subject: Subject, pause: Pause) -> String {
    let Pause { about, length, .. } = pause;
    match subject.kind {
        Kind::Windlass => format!("{}, {about}", subject.about),
        Kind::Machine => {
            format!("{}, after {} ms of rest", subject.about, length.as_micros() as f64 / 1_000.0)
        }
    }
}

fn record_samples(record: &mut Record, all: &mut Vec<Samples>, subject: Subject, pause: Pause, ms: Vec<f64>) {
    let (name, about) = (name(subject, pause), about(subject, pause));
    for (percent, percentile_name) in PERCENTILES {
        let value = percentile(&ms, percent).unwrap_or(f64::NAN);
        let about = format!("{about}: {percentile_name} of {}", ms.len());
        record.figure(format!("{name}_{percentile_name}"), about, subject.kind, Milliseconds, value);
    }
    match all.iter_mut().find(|known| known.subject.name == subject.name && known.pause.name == pause.name) {
        Some(known) => known.all_ms.extend(ms),
        None => all.push(Samples { subject, pause, all_ms: ms }),
    }
}

fn own_process(
    scratch: &Scratch<'_>,
    raw: &mut Raw,
    samples: usize,
    pause: Pause,
) -> Result<Round, BenchError> {
    let database = scratch.new_database()?;
    let windlass = database.open(scratch.plan.durability)?;
    starts(scratch, &windlass, raw, samples, pause, || {
        windlass.store().jobs().enqueue(vec![NewJob::new(NOOP, "null")])?;
        Ok(monotonic_ns())
    })
}

fn other_process(
    scratch: &Scratch<'_>,
    raw: &mut Raw,
    samples: usize,
    pause: Pause,
) -> Result<Round, BenchError> {
    let database = scratch.new_database()?;
    let windlass = database.open(scratch.plan.durability)?;
    let mut producer = Producer::start(scratch, &database.address())?;
    // It opens the database before its first answer.
    starts(scratch, &windlass, raw, samples, pause, || producer.enqueue())
}

/// Measures starts and commits. The first start is not counted.
fn starts(
    scratch: &Scratch<'_>,
    windlass: &Windlass,
    raw: &mut Raw,
    samples: usize,
    pause: Pause,
    mut enqueue: impl FnMut() -> Result<i64, BenchError>,
) -> Result<Round, BenchError> {
    let noops = Noops::default();
    let _engine = windlass.start(noops.handlers(), WorkerOptions::default())?;
    let mut round = Round { starts_ms: Vec::with_capacity(samples), commits_ms: Vec::with_capacity(samples) };
    for sample in 0..=samples {
        std::thread::sleep(pause.length);
        raw.commits(1)?;
        let commit = raw.commits(1)?;
        std::thread::sleep(pause.length);
        let acknowledged_ns = enqueue()?;
        noop::wait_until(&scratch.plan.interruption, "the start of a job", || Ok(noops.entered() > sample))?;
        if sample > 0 {
            // The handler may be called before the answer arrives.
            let start_ns = (noops.entered_ns() - acknowledged_ns).max(0);
            round.starts_ms.push(start_ns as f64 / 1_000_000.0);
            round.commits_ms.push(ms_each(commit, 1));
        }
    }
    Ok(round)
}

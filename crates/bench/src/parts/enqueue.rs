//! Enqueueing: one by one from one thread and from eight, and as one batch.

use std::time::{Duration, Instant};
use windlass_engine::HasStore;

use windlass::Windlass;
use windlass_engine::store::NewJob;

use super::per_second;
use crate::error::BenchError;
use crate::noop::NOOP;
use crate::record::Record;
use crate::report::Unit::PerSecond;
use crate::scratch::Scratch;

/// The threads that enqueue at the same time.
const THREADS: usize = 8;
/// The rows in a transaction of the reference for a batch.
const GROUP: usize = 1_000;

pub(crate) fn measure(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let (sizes, durability) = (scratch.sizes(), scratch.plan.durability);
    for _round in 0..scratch.plan.rounds {
        let database = scratch.new_database()?;
        let commits = database.raw(durability)?.commits(sizes.enqueue_one)?;
        record.machine(
            "raw_commits",
            "single commits, each of one row",
            PerSecond,
            per_second(sizes.enqueue_one, commits),
        );
        for (name, threads, jobs) in
            [("enqueue_1_thread", 1, sizes.enqueue_one), ("enqueue_8_threads", THREADS, sizes.enqueue_eight)]
        {
            let database = scratch.new_database()?;
            let windlass = database.open(durability)?;
            let time = one_by_one(&windlass, threads, jobs / threads)?;
            let about = match threads {
                1 => "jobs accepted one by one".to_owned(),
                threads => format!("jobs accepted one by one from each of {threads} threads"),
            };
            record.windlass(name, about, PerSecond, per_second(jobs / threads * threads, time));
        }
        let database = scratch.new_database()?;
        let time = database.raw(durability)?.inserts(sizes.batch, GROUP, &scratch.plan.interruption)?;
        record.machine(
            "raw_inserts_1000",
            format!("raw rows inserted in transactions of {GROUP}"),
            PerSecond,
            per_second(sizes.batch, time),
        );
        let database = scratch.new_database()?;
        let windlass = database.open(durability)?;
        let jobs = vec![NewJob::new(NOOP, "null"); sizes.batch];
        let began = Instant::now();
        windlass.store().jobs().enqueue(jobs)?;
        record.windlass(
            "enqueue_batch",
            "jobs accepted as one batch",
            PerSecond,
            per_second(sizes.batch, began.elapsed()),
        );
    }
    record.compare("enqueue_1_thread", "raw_commits");
    record.compare("enqueue_8_threads", "raw_commits");
    record.compare("enqueue_batch", "raw_inserts_1000");
    Ok(())
}

/// Enqueues jobs from several threads. Each thread waits for an answer before it enqueues the next job.
fn one_by_one(windlass: &Windlass, threads: usize, jobs_each: usize) -> Result<Duration, BenchError> {
    let enqueue = || -> Result<(), BenchError> {
        for _job in 0..jobs_each {
            windlass.store().jobs().enqueue(vec![NewJob::new(NOOP, "null")])?;
        }
        Ok(())
    };
    let began = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|_thread| std::thread::Builder::new().spawn_scoped(scope, enqueue))
            .collect::<std::io::Result<_>>()
            .map_err(BenchError::machine("start a thread"))?;
        let panicked = |_panic| BenchError::Child("a thread that enqueues panicked".to_owned());
        threads.into_iter().try_for_each(|thread| thread.join().map_err(panicked)?)
    })?;
    Ok(began.elapsed())
}

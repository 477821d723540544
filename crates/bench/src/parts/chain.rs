//! A run of no-op jobs one after the other: the time and the commits for each job, compared with single commits.
//!
//! On SQLite the commits of Windlass's writer are counted. At full durability each of them flushes the log once. The flushes of
//! checkpoints are not counted. On PostgreSQL all transactions of the server that wrote meanwhile are counted.

use std::sync::{Arc, Mutex, PoisonError};

use windlass::Windlass;
use windlass_engine::transition::Outcome;
use windlass_worker::{Attempt, Handlers, WorkerOptions};

use super::ms_each;
use crate::error::BenchError;
use crate::noop::{self, monotonic_ns};
use crate::record::Record;
use crate::report::Unit::{Count, Milliseconds};
use crate::scratch::{Scratch, ScratchDatabase};
use crate::workflows;

pub(crate) fn measure(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let links = scratch.sizes().chain;
    for _round in 0..scratch.plan.rounds {
        let database = scratch.new_database()?;
        let rows = scratch.sizes().enqueue_one;
        let time = database.raw(scratch.plan.durability)?.commits(rows)?;
        record.machine("raw_commit", "a single commit of one row", Milliseconds, ms_each(time, rows));
        let Link { ms, commits } = link(scratch, links)?;
        record.windlass("chain_link", "a link of a chain of no-op jobs", Milliseconds, ms);
        record.windlass("chain_commits", "commits a link", Count, commits);
    }
    record.compare("chain_link", "raw_commit");
    Ok(())
}

/// The costs of one link.
struct Link {
    ms: f64,
    commits: f64,
}

/// A reading inside a job: the time, and the number of commits so far.
#[derive(Debug, Clone, Copy)]
struct Reading {
    at_ns: i64,
    commits: i64,
}

/// Measures a chain from its first job to its last one, without the start of the worker.
fn link(scratch: &Scratch<'_>, links: usize) -> Result<Link, BenchError> {
    let database = scratch.new_database()?;
    let windlass = database.open(scratch.plan.durability)?;
    let run_id = windlass.submit(noop::new_run(workflows::chain(links)))?.run_id;
    let readings = Arc::new(Mutex::new(Vec::new()));
    let handlers = reading_handlers(CommitCounter::of(&database, &windlass), links, Arc::clone(&readings));
    let _engine = windlass.start(handlers, WorkerOptions::default())?;
    noop::wait_for_run(&windlass, run_id, noop::SLOW_TICK, &scratch.plan.interruption)?;
    let readings = std::mem::take(&mut *readings.lock().unwrap_or_else(PoisonError::into_inner));
    let readings = readings.into_iter().collect::<Result<Vec<Reading>, BenchError>>()?;
    let [first, last] = readings.as_slice() else {
        return Err(BenchError::Child(format!(
            "{} jobs of the chain were measured, not two",
            readings.len()
        )));
    };
    let passed = (links - 1) as f64;
    Ok(Link {
        ms: (last.at_ns - first.at_ns) as f64 / 1_000_000.0 / passed,
        commits: (last.commits - first.commits) as f64 / passed,
    })
}

/// Handlers of no-op jobs. The first and the last job of the chain make a reading. The time of the reading itself is not
/// counted.
fn reading_handlers(
    counter: CommitCounter,
    links: usize,
    readings: Arc<Mutex<Vec<Result<Reading, BenchError>>>>,
) -> Handlers {
    let mut handlers = Handlers::new();
    let (first, last) = ("j0".to_owned(), format!("j{}", links - 1));
    handlers.register("shell", move |attempt: &Attempt| {
        let name = attempt.job().name.as_deref();
        let is_first = name == Some(first.as_str());
        if is_first || name == Some(last.as_str()) {
            let entered_ns = monotonic_ns();
            let commits = counter.commits();
            let at_ns = if is_first { monotonic_ns() } else { entered_ns };
            let reading = commits.map(|commits| Reading { at_ns, commits });
            readings.lock().unwrap_or_else(PoisonError::into_inner).push(reading);
        }
        Outcome::Successful { output: None }
    });
    handlers
}

/// Counts commits.
enum CommitCounter {
    File(Windlass),
    #[cfg(feature = "postgres")]
    Server {
        url: String,
        schema: String,
    },
}

impl CommitCounter {
    fn of(database: &ScratchDatabase, windlass: &Windlass) -> CommitCounter {
        match database {
            ScratchDatabase::Folder(_) => CommitCounter::File(windlass.clone()),
            #[cfg(feature = "postgres")]
            ScratchDatabase::Schema { url, schema } => {
                CommitCounter::Server { url: url.clone(), schema: schema.clone() }
            }
        }
    }

    fn commits(&self) -> Result<i64, BenchError> {
        match self {
            CommitCounter::File(windlass) => {
                let commits = windlass.file().map_or(0, windlass_db::sqlite::SqliteDatabase::commits);
                Ok(i64::try_from(commits).unwrap_or(i64::MAX))
            }
            #[cfg(feature = "postgres")]
            CommitCounter::Server { url, schema } => crate::raw::postgres::next_transaction(url, schema),
        }
    }
}

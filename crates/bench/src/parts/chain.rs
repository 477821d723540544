//! A run of no-op jobs one after the other: time and commits a link, beside single commits.
//!
//! On SQLite the commits of Windlass's only writer are counted: at full durability each is one flush
//! of the log to the disk. The flushes of checkpoints, up to three every thousand pages, are not among them. On
//! PostgreSQL the transactions are counted that wrote on the whole server meanwhile.

use std::sync::{Arc, Mutex, PoisonError};

use windlass::Windlass;
use windlass_engine::transition::Outcome;
use windlass_worker::{Attempt, Handlers, WorkerOptions};

use super::ms_each;
use crate::error::BenchError;
use crate::noop::{self, monotonic_ns};
use crate::place::{Fresh, Scratch};
use crate::record::Record;
use crate::report::Unit::{Count, Milliseconds};
use crate::workflows;

pub(crate) fn measure(scratch: &Scratch<'_>, record: &mut Record) -> Result<(), BenchError> {
    let links = scratch.sizes().chain;
    for _round in 0..scratch.plan.rounds {
        let fresh = scratch.fresh()?;
        let rows = scratch.sizes().enqueue_one;
        let time = fresh.raw(scratch.plan.durability)?.commits(rows)?;
        record.machine("raw_commit", "a single commit of one row", Milliseconds, ms_each(time, rows));
        let Link { ms, commits } = link(scratch, links)?;
        record.windlass("chain_link", "a link of a chain of no-op jobs", Milliseconds, ms);
        record.windlass("chain_commits", "commits a link", Count, commits);
    }
    record.compare("chain_link", "raw_commit");
    Ok(())
}

/// What one link costs.
struct Link {
    ms: f64,
    commits: f64,
}

/// A look from inside a job: when it was, and how many commits there were so far.
#[derive(Debug, Clone, Copy)]
struct Look {
    at_ns: i64,
    commits: i64,
}

/// From the first job to the last one, so that nothing of the worker's own start is in it.
fn link(scratch: &Scratch<'_>, links: usize) -> Result<Link, BenchError> {
    let fresh = scratch.fresh()?;
    let windlass = fresh.open(scratch.plan.durability)?;
    let run_id = windlass.submit(noop::new_run(workflows::chain(links)))?.run_id;
    let looks = Arc::new(Mutex::new(Vec::new()));
    let handlers = looking(Counter::of(&fresh, &windlass), links, Arc::clone(&looks));
    let _engine = windlass.start(handlers, WorkerOptions::default())?;
    noop::wait_for_run(&windlass, run_id, noop::SELDOM, &scratch.plan.interruption)?;
    let looks = std::mem::take(&mut *looks.lock().unwrap_or_else(PoisonError::into_inner));
    let looks = looks.into_iter().collect::<Result<Vec<Look>, BenchError>>()?;
    let [first, last] = looks.as_slice() else {
        return Err(BenchError::Child(format!("{} jobs of the chain looked, not two", looks.len())));
    };
    let passed = (links - 1) as f64;
    Ok(Link {
        ms: (last.at_ns - first.at_ns) as f64 / 1_000_000.0 / passed,
        commits: (last.commits - first.commits) as f64 / passed,
    })
}

/// No-op jobs of which the first and the last look. What a look takes is in neither link.
fn looking(counter: Counter, links: usize, looks: Arc<Mutex<Vec<Result<Look, BenchError>>>>) -> Handlers {
    let mut handlers = Handlers::new();
    let (first, last) = ("j0".to_owned(), format!("j{}", links - 1));
    handlers.register("shell", move |attempt: &Attempt| {
        let name = attempt.job().name.as_deref();
        let is_first = name == Some(first.as_str());
        if is_first || name == Some(last.as_str()) {
            let entered_ns = monotonic_ns();
            let commits = counter.commits();
            let at_ns = if is_first { monotonic_ns() } else { entered_ns };
            let look = commits.map(|commits| Look { at_ns, commits });
            looks.lock().unwrap_or_else(PoisonError::into_inner).push(look);
        }
        Outcome::Successful { output: None }
    });
    handlers
}

/// What counts commits.
enum Counter {
    File(Windlass),
    #[cfg(feature = "postgres")]
    Server {
        url: String,
        schema: String,
    },
}

impl Counter {
    fn of(fresh: &Fresh, windlass: &Windlass) -> Counter {
        match fresh {
            Fresh::Folder(_) => Counter::File(windlass.clone()),
            #[cfg(feature = "postgres")]
            Fresh::Schema { url, schema } => Counter::Server { url: url.clone(), schema: schema.clone() },
        }
    }

    fn commits(&self) -> Result<i64, BenchError> {
        match self {
            Counter::File(windlass) => {
                let commits = windlass.file().map_or(0, windlass_db::sqlite::SqliteDatabase::commits);
                Ok(i64::try_from(commits).unwrap_or(i64::MAX))
            }
            #[cfg(feature = "postgres")]
            Counter::Server { url, schema } => crate::raw::postgres::next_transaction(url, schema),
        }
    }
}

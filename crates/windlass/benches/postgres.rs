//! What the engine does on a PostgreSQL server beside what the same server does with raw rows, as ratios of
//! one run.
//!
//! `WINDLASS_BENCH_POSTGRES=postgres://… cargo bench -p windlass --bench postgres`. The tables lie in the
//! schema `windlass_bench`, which is dropped before and after. Every figure is the median of [`ROUNDS`]
//! rounds that take turns.
#![allow(clippy::unwrap_used, missing_docs)]

use std::time::Instant;

use windlass::store::NewJob;
use windlass::transition::Outcome;
use windlass::{Attempt, Durability, Handlers, Options, PostgresAddress, Windlass, WorkerOptions};

const ROUNDS: usize = 3;
const DRAIN_JOBS: usize = 50_000;
/// Workers of one process that drain together.
const WORKERS: [usize; 3] = [1, 2, 4];
const SCHEMA: &str = "windlass_bench";

fn main() {
    let Ok(url) = std::env::var("WINDLASS_BENCH_POSTGRES") else {
        eprintln!("WINDLASS_BENCH_POSTGRES names no server: postgres://USER@HOST/DATABASE");
        return;
    };
    for durability in [Durability::Full, Durability::Normal] {
        let mut raw = Vec::new();
        let mut ours = WORKERS.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            raw.push(raw_rate(&url, durability, DRAIN_JOBS, 1_000));
            for (workers, rates) in WORKERS.iter().zip(&mut ours) {
                rates.push(drain_rate(&url, durability, *workers, DRAIN_JOBS));
            }
        }
        let raw = median(&mut raw);
        println!("{durability:?}: raw rows {raw:.0}/s in transactions of 1,000");
        for (workers, rates) in WORKERS.iter().zip(&mut ours) {
            let ours = median(rates);
            println!("drain {durability:?}, {workers} workers: {ours:.0} jobs/s, ratio {:.2}", ours / raw);
        }
    }
}

fn drain_rate(url: &str, durability: Durability, workers: usize, jobs: usize) -> f64 {
    let mut client = fresh(url);
    let url = format!("{url}{}schema={SCHEMA}", if url.contains('?') { '&' } else { '?' });
    let address = PostgresAddress::parse(&url, &|name| std::env::var(name).ok()).unwrap();
    let options = Options { durability, ..Options::default() };
    let windlass = Windlass::open_postgres(&address, options).unwrap();
    windlass.store().enqueue(vec![NewJob::new("noop", "null"); jobs]).unwrap();
    let handlers = || {
        let mut handlers = Handlers::new();
        handlers.register("noop", |_: &Attempt| Outcome::Successful { output: None });
        handlers
    };
    let began = Instant::now();
    let engines: Vec<_> =
        (0..workers).map(|_| windlass.start(handlers(), WorkerOptions::default()).unwrap()).collect();
    while windlass.store().active_jobs().unwrap() > 0 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let rate = jobs as f64 / began.elapsed().as_secs_f64();
    drop(engines);
    drop(windlass);
    client.batch_execute(&format!("DROP SCHEMA {SCHEMA} CASCADE")).unwrap();
    rate
}

/// Rows a second through insert, claim and finish, each as one statement for `group` rows.
fn raw_rate(url: &str, durability: Durability, rows: usize, group: usize) -> f64 {
    let mut client = fresh(url);
    let synchronous = match durability {
        Durability::Full => "on",
        Durability::Normal => "off",
    };
    client
        .batch_execute(&format!(
            "CREATE SCHEMA {SCHEMA}; SET search_path = {SCHEMA}; SET synchronous_commit = {synchronous};
             CREATE TABLE work (id BIGINT PRIMARY KEY, payload TEXT NOT NULL, status TEXT NOT NULL);
             CREATE INDEX work_pending ON work (id) WHERE status = 'PENDING';"
        ))
        .unwrap();
    let began = Instant::now();
    for first in (0..rows).step_by(group) {
        let last = first + group - 1;
        for sql in [
            format!(
                "INSERT INTO work SELECT n, 'null', 'PENDING' FROM generate_series({first}, {last}) AS n"
            ),
            format!("UPDATE work SET status = 'RUNNING' WHERE id BETWEEN {first} AND {last}"),
            format!("UPDATE work SET status = 'DONE' WHERE id BETWEEN {first} AND {last}"),
        ] {
            client.batch_execute(&sql).unwrap();
        }
    }
    let rate = rows as f64 / began.elapsed().as_secs_f64();
    client.batch_execute(&format!("DROP SCHEMA {SCHEMA} CASCADE")).unwrap();
    rate
}

fn fresh(url: &str) -> postgres::Client {
    let mut client = postgres::Client::connect(url, postgres::NoTls).unwrap();
    client.batch_execute(&format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")).unwrap();
    client
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

//! What the engine costs beside what the same SQLite library can do at all, as ratios of one run.
//!
//! `cargo bench -p windlass --bench engine` prints a table; `-- drain` measures only that part. Every figure is the median of
//! [`ROUNDS`] rounds that take turns, so that a machine whose speed drifts does not decide a ratio.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;
use std::time::{Duration, Instant};

use windlass::store::{NewJob, NewRun};
use windlass::transition::Outcome;
use windlass::workflow::{Action, Job, OnInterrupt, OutputSource, Retry, Workflow};
use windlass::{Attempt, Durability, Engine, Handlers, Options, Windlass, WorkerOptions};

const ROUNDS: usize = 5;
const DRAIN_JOBS: usize = 100_000;
/// Few enough that no checkpoint starts the WAL anew while its commits are counted.
const CHAIN_LINKS: usize = 100;

fn main() {
    let wanted = std::env::args().nth(1).filter(|argument| !argument.starts_with('-'));
    let parts: [(&str, fn()); 3] = [("drain", drain), ("chain", chain), ("claim", claim)];
    for (name, measure) in parts {
        if wanted.as_deref().is_none_or(|wanted| name.contains(wanted)) {
            measure();
        }
    }
}

/// 100,000 no-op handler jobs against claim and finish of raw rows; and the same jobs enqueued in one batch
/// against raw inserts.
fn drain() {
    for durability in [Durability::Full, Durability::Normal] {
        let (mut raw, mut raw_inserts) = (Vec::new(), Vec::new());
        let (mut drained, mut enqueued) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (inserts, rows) = raw_rates(durability, DRAIN_JOBS, 1_000);
            raw_inserts.push(inserts);
            raw.push(rows);
            let (enqueue, drain) = drain_rates(durability, DRAIN_JOBS);
            enqueued.push(enqueue);
            drained.push(drain);
        }
        let (raw, raw_inserts) = (median(&mut raw), median(&mut raw_inserts));
        let (drained, enqueued) = (median(&mut drained), median(&mut enqueued));
        println!(
            "drain {durability:?}: {drained:.0} jobs/s, raw rows {raw:.0}/s: ratio {:.2}",
            drained / raw
        );
        println!(
            "enqueue {durability:?}: {enqueued:.0} jobs/s in one batch, raw inserts {raw_inserts:.0}/s: ratio {:.2}",
            enqueued / raw_inserts
        );
    }
}

/// A chain of no-op handler jobs, one after the other, against single-row commits.
fn chain() {
    let (mut raw, mut ours) = (Vec::new(), Vec::new());
    let mut flushes = 0.0;
    for _ in 0..ROUNDS {
        raw.push(raw_commit_us(Durability::Full, CHAIN_LINKS));
        let (link_us, commits) = chain_link(CHAIN_LINKS);
        ours.push(link_us);
        flushes = commits;
    }
    let (raw, ours) = (median(&mut raw), median(&mut ours));
    println!(
        "chain: {ours:.0} us a link, single-row commit {raw:.0} us: ratio {:.2}; {flushes:.3} commits a link",
        ours / raw
    );
}

/// Claiming and finishing with 1,000 and with 1,000,000 rows behind that are finished or in the future.
fn claim() {
    let (small, large) = (Filled::with(1_000), Filled::with(1_000_000));
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..2 * ROUNDS {
        few.push(small.claim_rate());
        many.push(large.claim_rate());
    }
    let (few, many) = (median(&mut few), median(&mut many));
    println!(
        "claim: {few:.0} jobs/s with 1,000 rows behind, {many:.0} with 1,000,000: ratio {:.2}",
        many / few
    );
}

/// Jobs a second enqueued in one batch, and then from the start of a worker until all are over.
fn drain_rates(durability: Durability, jobs: usize) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let windlass = open(folder.path(), durability);
    let batch = vec![NewJob::new("noop", "null"); jobs];
    let began = Instant::now();
    windlass.store().enqueue(batch).unwrap();
    let enqueue = jobs as f64 / began.elapsed().as_secs_f64();
    let began = Instant::now();
    let engine = start(&windlass);
    wait_until_idle(&windlass);
    let drain = jobs as f64 / began.elapsed().as_secs_f64();
    drop(engine);
    (enqueue, drain)
}

fn chain_link(links: usize) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let windlass = open(folder.path(), Durability::Full);
    let jobs = (0..links).map(link).collect();
    let workflow = Workflow {
        name: "chain".to_owned(),
        description: None,
        timeout_ms: None,
        params: Vec::new(),
        env: Default::default(),
        schedules: Vec::new(),
        jobs,
    };
    let run = NewRun { workflow, params: Default::default(), dir: None, run_key: None, occasion: None };
    let run_id = windlass.submit(run).unwrap().run_id;
    let before = commits(folder.path());
    let began = Instant::now();
    let mut handlers = Handlers::new();
    handlers.register("shell", |_: &Attempt| Outcome::Successful { output: None });
    let engine = windlass.start(handlers, WorkerOptions::default()).unwrap();
    while !windlass.store().run(run_id).unwrap().status.is_terminal() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let run = windlass.store().run(run_id).unwrap();
    let _wall = began.elapsed();
    let link_us = (run.finished_at.unwrap() - run.started_at.unwrap()) as f64 * 1_000.0 / links as f64;
    drop(engine);
    // Registering and leaving are the worker's, not the links'.
    let commits = (commits(folder.path()) - before - 2) as f64 / links as f64;
    (link_us, commits)
}

fn link(index: usize) -> Job {
    Job {
        name: format!("link{index}"),
        description: None,
        action: Action::Command(vec!["true".to_owned()]),
        needs: index.checked_sub(1).into_iter().collect(),
        uses: Vec::new(),
        env: Default::default(),
        dir: None,
        retry: Retry::default(),
        timeout_ms: None,
        queue: "default".to_owned(),
        priority: 0,
        allow_failure: false,
        on_interrupt: OnInterrupt::Rerun,
        max_interruptions: 25,
        output: OutputSource::File,
        requires: Vec::new(),
        version: 0,
        concurrency: None,
    }
}

/// A database with many rows that can't be claimed.
struct Filled {
    windlass: Windlass,
    _folder: tempfile::TempDir,
}

impl Filled {
    fn with(rows: i64) -> Filled {
        let folder = tempfile::tempdir().unwrap();
        let windlass = open(folder.path(), Durability::Normal);
        let raw = rusqlite::Connection::open(folder.path().join("windlass.db")).unwrap();
        raw.execute_batch(&format!(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {rows})
             INSERT INTO jobs (kind, status, execute_after, finished_at)
             SELECT 'noop', CASE n % 2 WHEN 0 THEN 'SUCCESSFUL' ELSE 'SCHEDULED' END,
                    4102444800000, CASE n % 2 WHEN 0 THEN 1 END
             FROM n;"
        ))
        .unwrap();
        Filled { windlass, _folder: folder }
    }

    fn claim_rate(&self) -> f64 {
        const JOBS: usize = 20_000;
        self.windlass.store().enqueue(vec![NewJob::new("noop", "null"); JOBS]).unwrap();
        let began = Instant::now();
        let engine = start(&self.windlass);
        wait_for_pending(&self.windlass);
        engine.drain();
        engine.join().unwrap();
        JOBS as f64 / began.elapsed().as_secs_f64()
    }
}

fn open(folder: &Path, durability: Durability) -> Windlass {
    Windlass::open_with(folder.join("windlass.db"), Options { durability, ..Options::default() }).unwrap()
}

fn start(windlass: &Windlass) -> Engine {
    let mut handlers = Handlers::new();
    handlers.register("noop", |_: &Attempt| Outcome::Successful { output: None });
    windlass.start(handlers, WorkerOptions::default()).unwrap()
}

fn wait_until_idle(windlass: &Windlass) {
    while windlass.store().active_jobs().unwrap() > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn wait_for_pending(windlass: &Windlass) {
    let request = windlass::store::ClaimRequest {
        worker_id: 0,
        scope: windlass::store::Scope::Everything,
        abilities: windlass::store::Abilities::of_kinds(vec!["noop".to_owned()]),
        limit: 1,
        idle: 1,
    };
    while windlass.store().has_claimable(&request).unwrap() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Commits are counted by the frames that end one in the WAL: whatever thread or connection made them.
fn commits(folder: &Path) -> i64 {
    let wal = std::fs::read(folder.join("windlass.db-wal")).unwrap_or_default();
    let page = 4_096;
    (0..)
        .map(|frame| 32 + frame * (page + 24))
        .take_while(|offset| offset + 24 <= wal.len())
        .filter(|offset| wal[offset + 4..offset + 8] != [0; 4])
        .count() as i64
}

fn raw_database(folder: &Path, durability: Durability) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(folder.join("raw.db")).unwrap();
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
    };
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};
             CREATE TABLE work (id INTEGER PRIMARY KEY, payload TEXT NOT NULL, status TEXT NOT NULL);
             CREATE INDEX work_pending ON work (id) WHERE status = 'PENDING';"
        ))
        .unwrap();
    connection
}

/// What the same SQLite library can do with a queue: a table of the few columns that one needs, and one partial
/// index for claiming. Every statement is prepared once; each transaction holds `group` rows.
///
/// Returns rows a second through the inserts, and through claim and finish without the inserts. A claim selects
/// the `group` lowest ids and updates each by its id; a finish updates each by its id in another transaction.
fn raw_rates(durability: Durability, rows: usize, group: usize) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let mut connection = raw_database(folder.path(), durability);
    let began = Instant::now();
    for _ in (0..rows).step_by(group) {
        let transaction = connection.transaction().unwrap();
        {
            let mut insert = transaction
                .prepare_cached("INSERT INTO work (payload, status) VALUES ('null', 'PENDING')")
                .unwrap();
            for _ in 0..group {
                insert.execute([]).unwrap();
            }
        }
        transaction.commit().unwrap();
    }
    let inserts = rows as f64 / began.elapsed().as_secs_f64();
    let began = Instant::now();
    for _ in (0..rows).step_by(group) {
        let transaction = connection.transaction().unwrap();
        let ids: Vec<i64> = transaction
            .prepare_cached("SELECT id FROM work WHERE status = 'PENDING' ORDER BY id LIMIT ?1")
            .unwrap()
            .query_map([group as i64], |row| row.get(0))
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        update_each(&transaction, "UPDATE work SET status = 'RUNNING' WHERE id = ?1", &ids);
        transaction.commit().unwrap();
        let transaction = connection.transaction().unwrap();
        update_each(&transaction, "UPDATE work SET status = 'SUCCESSFUL' WHERE id = ?1", &ids);
        transaction.commit().unwrap();
    }
    (inserts, rows as f64 / began.elapsed().as_secs_f64())
}

fn update_each(transaction: &rusqlite::Transaction<'_>, sql: &str, ids: &[i64]) {
    let mut update = transaction.prepare_cached(sql).unwrap();
    for id in ids {
        update.execute([*id]).unwrap();
    }
}

/// Microseconds of a transaction that inserts one row.
fn raw_commit_us(durability: Durability, commits: usize) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let connection = raw_database(folder.path(), durability);
    let began = Instant::now();
    for id in 0..commits {
        connection
            .prepare_cached("INSERT INTO work (id, payload, status) VALUES (?1, 'null', 'PENDING')")
            .unwrap()
            .execute([id as i64])
            .unwrap();
    }
    began.elapsed().as_micros() as f64 / commits as f64
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

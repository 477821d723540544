//! What monitors read: bounded, whatever the tables have, and measured by the store itself.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::time::Instant;

use support::{Bench, failure, graph, noop, success};
use windlass_engine::measurements::MEASURED_QUEUES_MAX;
use windlass_engine::store::{NewJob, OTHER_STATES_MAX, PENDING_OF_ONE_MAX, QueueMetrics};
use windlass_engine::{RunStatus, WorkerStatus};

/// Inserts PENDING jobs into queues that are numbered from 0, as many into each.
fn fill(bench: &Bench, queues: i64, of_each: i64) {
    bench.raw().execute(&format!(
        "INSERT INTO jobs (kind, queue, status, execute_after, updated_at)
         WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {})
         SELECT 'noop', CASE WHEN {queues} = 1 THEN 'mail' ELSE 'queue' || CAST(n % {queues} AS TEXT) END, 'PENDING', 0, n
         FROM numbers",
        queues * of_each - 1
    ));
}

#[test]
fn unfinished_jobs_are_counted_by_queue_and_state() {
    let bench = Bench::new();
    let worker = bench.worker();
    let now_ms = bench.clock.now_ms();
    bench.submit(graph(vec![vec![], vec![0], vec![0]]));
    bench.enqueue(NewJob { queue: "mail".to_owned(), execute_after: Some(now_ms + 1_000), ..noop() });
    support::limit(&bench.store, "narrow");
    bench.store.jobs().enqueue(support::limited_jobs("narrow")).unwrap();
    bench.claim(worker, 1);
    let metrics = bench.store.upkeep().metrics(None).unwrap();
    assert_eq!(metrics.workers, [(WorkerStatus::Alive, 1)]);
    let mail = QueueMetrics { scheduled: 1, ..QueueMetrics::default() };
    assert_eq!(metrics.queues["mail"], mail);
    let all = |of: fn(&QueueMetrics) -> i64| metrics.queues.values().map(of).sum::<i64>();
    let listed = bench.store.queues().list().unwrap();
    assert_eq!(all(|queue| queue.pending), listed.iter().map(|queue| queue.pending).sum::<i64>());
    assert_eq!(all(|queue| queue.running), 1);
    assert_eq!(all(|queue| queue.waiting), listed.iter().map(|queue| queue.waiting).sum::<i64>());
}

#[test]
fn the_oldest_job_is_that_of_all_kinds_of_a_queue() {
    let bench = Bench::new();
    bench.raw().execute(
        "INSERT INTO jobs (kind, queue, status, execute_after, updated_at) VALUES
         ('a', 'mail', 'PENDING', 700, 800), ('b', 'mail', 'PENDING', 500, 400), ('b', 'other', 'PENDING', 1, 2)",
    );
    let queues = bench.store.upkeep().metrics(None).unwrap().queues;
    assert_eq!(queues["mail"].oldest_pending_at, Some(500));
    assert_eq!(queues["other"].oldest_pending_at, Some(2));
}

#[test]
fn ten_thousand_queues_are_a_hundred() {
    let bench = Bench::new();
    fill(&bench, 10_000, 2);
    let queues = bench.store.upkeep().metrics(None).unwrap().queues;
    assert_eq!(queues.len(), MEASURED_QUEUES_MAX);
    assert_eq!(queues.values().map(|queue| queue.pending).sum::<i64>(), 20_000);
    assert_eq!(queues["queue0"].pending, 2);
    // Running jobs of queues that no list has yet.
    bench.raw().execute("UPDATE jobs SET status = 'RUNNING', worker_id = 1 WHERE queue > 'queue5'");
    let queues = bench.store.upkeep().metrics(None).unwrap().queues;
    assert_eq!(queues.len(), MEASURED_QUEUES_MAX);
    assert!(queues.values().map(|queue| queue.running).sum::<i64>() <= OTHER_STATES_MAX);
}

#[test]
fn a_million_jobs_are_not_counted_one_by_one() {
    let bench = Bench::new();
    fill(&bench, 1, 1_000_000);
    bench.store.upkeep().metrics(None).unwrap();
    let began = Instant::now();
    let queues = bench.store.upkeep().metrics(None).unwrap().queues;
    println!("{:?}", began.elapsed());
    assert_eq!((queues.len(), queues["mail"].pending), (1, PENDING_OF_ONE_MAX));
}

#[test]
fn runs_that_end_are_counted_once() {
    let bench = Bench::new();
    let worker = bench.worker();
    let first = bench.store.upkeep().metrics(None).unwrap();
    assert_eq!(first.ended_runs, []);
    let run = |outcome| {
        bench.submit(graph(vec![vec![]]));
        let claimed = bench.claim(worker, 1);
        bench.finish(worker, &claimed[0], outcome);
    };
    bench.clock.advance_ms(10_000);
    run(success());
    run(success());
    let early = bench.store.upkeep().metrics(Some(first.ends_until)).unwrap();
    assert!(early.ended_runs.iter().all(|(_, ended)| *ended == 0), "{early:?}");
    bench.clock.advance_ms(10_000);
    let second = bench.store.upkeep().metrics(Some(early.ends_until)).unwrap();
    let successful = |metrics: &windlass_engine::store::DatabaseMetrics| {
        metrics.ended_runs.iter().find(|(status, _)| *status == RunStatus::Successful).unwrap().1
    };
    assert_eq!(successful(&second), 2);
    bench.clock.advance_ms(10_000);
    let third = bench.store.upkeep().metrics(Some(second.ends_until)).unwrap();
    assert_eq!(successful(&third), 0);
}

#[test]
fn more_ends_than_are_read_at_a_time_are_read_later() {
    let bench = Bench::new();
    let now_ms = bench.clock.now_ms();
    bench.raw().execute(&format!(
        "INSERT INTO runs (workflow, status, finished_at)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 25000)
         SELECT 'w', 'FAILED', {now_ms} - 20000 + n / 3 FROM numbers"
    ));
    let (mut from, mut ended) = (0, 0);
    for _reading in 0..4 {
        let metrics = bench.store.upkeep().metrics(Some(from)).unwrap();
        ended += metrics.ended_runs.iter().map(|(_, ended)| ended).sum::<i64>();
        from = metrics.ends_until;
    }
    assert_eq!((ended, from), (25_000, now_ms - 5_000));
}

#[test]
fn the_store_measures_what_workers_and_schedulers_do() {
    let bench = Bench::new();
    let worker = bench.worker();
    let before = bench.store.measurements().commits.values().count;
    bench.enqueue(noop());
    bench.clock.advance_ms(3_000);
    let claimed = bench.claim(worker, 1);
    let waits = bench.store.measurements().job_waits.values();
    assert_eq!((waits.count, waits.sum_s), (1, 3.0));
    bench.finish(worker, &claimed[0], failure());
    // The worker does not own it any more.
    bench.finish(worker, &claimed[0], success());
    let attempts = bench.store.measurements().attempts();
    let counted: Vec<_> = attempts.iter().filter(|(_, n)| *n > 0).map(|(of, n)| (of.as_str(), *n)).collect();
    assert_eq!(counted, [("failed", 1)]);
    assert!(bench.store.measurements().commits.values().count >= before + 3);
}

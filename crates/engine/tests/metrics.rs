//! What monitors read: bounded, whatever the tables have, and measured by the store itself.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::time::Instant;

use support::{Bench, failure, graph, limit, limited_jobs, noop, request, success};
use windlass_engine::measurements::MEASURED_QUEUES_MAX;
use windlass_engine::store::{Claims, NewJob, OTHER_STATES_MAX, PENDING_OF_ONE_MAX, QueueMetrics, Scope};
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
    assert_eq!(all(|queue| queue.pending), listed.iter().map(|queue| queue.pending.number).sum::<i64>());
    assert_eq!(all(|queue| queue.running), 1);
    assert_eq!(all(|queue| queue.waiting), listed.iter().map(|queue| queue.waiting.number).sum::<i64>());
}

#[test]
fn the_oldest_job_is_that_of_all_kinds_of_a_queue() {
    let bench = Bench::new();
    bench.raw().execute(
        "INSERT INTO jobs (kind, queue, status, execute_after, updated_at) VALUES
         ('a', 'mail', 'PENDING', 700, 800), ('b', 'mail', 'PENDING', 500, 400), ('c', 'mail', 'PENDING', 900, 900),
         ('b', 'other', 'PENDING', 1, 2)",
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
    // Transactions that commit later may still have ends of this time.
    bench.clock.advance_ms(4_999);
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

/// How many waits were measured, and their sum in seconds.
fn waits(bench: &Bench) -> (u64, f64) {
    let waits = bench.store.measurements().job_waits.values();
    (waits.count, waits.sum_s)
}

/// When a job was accepted, became claimable and was claimed, in seconds after an instant.
fn seconds(bench: &Bench, job_id: i64, since_ms: i64) -> (i64, Option<i64>, Option<i64>) {
    let job = bench.store.jobs().get(job_id).unwrap();
    let after = |at_ms: i64| (at_ms - since_ms) / 1_000;
    (after(job.created_at), job.ready_at.map(after), job.started_at.map(after))
}

#[test]
fn a_job_after_another_waits_from_the_end_of_the_other() {
    let bench = Bench::new();
    let (worker, began_ms) = (bench.worker(), bench.clock.now_ms());
    let run_id = bench.submit(graph(vec![vec![], vec![0], vec![0]]));
    let ids: Vec<i64> = bench.store.jobs().of_run(run_id).unwrap().iter().map(|job| job.id).collect();
    assert_eq!(seconds(&bench, ids[0], began_ms), (0, Some(0), None));
    assert_eq!(seconds(&bench, ids[1], began_ms), (0, None, None), "it waits for the first job");
    bench.clock.advance_ms(1_000);
    let first = bench.claim(worker, 1);
    assert_eq!(waits(&bench), (1, 1.0));
    bench.clock.advance_ms(2_000);
    bench.finish(worker, &first[0], success());
    assert_eq!(seconds(&bench, ids[1], began_ms), (0, Some(3), None));
    bench.clock.advance_ms(4_000);
    let others = bench.claim(worker, 2);
    assert_eq!(waits(&bench), (3, 9.0));
    bench.clock.advance_ms(1_000);
    bench.finish(worker, &others[0], success());
    assert_eq!(seconds(&bench, others[0].id, began_ms), (0, Some(3), Some(7)));
}

#[test]
fn a_job_that_is_claimed_with_the_end_before_it_does_not_wait() {
    let bench = Bench::new();
    let (worker, began_ms) = (bench.worker(), bench.clock.now_ms());
    bench.submit(graph(vec![vec![], vec![0]]));
    let first = bench.claim(worker, 1);
    bench.clock.advance_ms(5_000);
    let ends = [(worker, first[0].clone(), success())];
    let (_finished, claims) = bench.finish_all_and_claim(&ends, Some(request(worker, Scope::Everything, 1)));
    let Claims::Jobs(jobs) = claims else { panic!("the worker is fenced") };
    assert_eq!(waits(&bench), (2, 0.0));
    assert_eq!(seconds(&bench, jobs[0].id, began_ms), (0, Some(5), Some(5)));
}

#[test]
fn a_retry_is_ready_when_its_time_has_come_and_the_attempt_keeps_its_own() {
    let bench = Bench::new();
    let (worker, began_ms) = (bench.worker(), bench.clock.now_ms());
    let job_id = bench.enqueue(noop());
    bench.clock.advance_ms(3_000);
    let first = bench.claim(worker, 1);
    bench.finish(worker, &first[0], failure());
    let due_at = bench.store.jobs().get(job_id).unwrap().execute_after;
    bench.clock.advance_ms(due_at - bench.clock.now_ms());
    bench.store.for_scheduler().promote_due().unwrap();
    assert_eq!(bench.store.jobs().get(job_id).unwrap().ready_at, Some(due_at));
    bench.clock.advance_ms(2_000);
    let again = bench.claim(worker, 1);
    assert_eq!((again[0].ready_at, waits(&bench)), (due_at, (2, 5.0)));
    bench.finish(worker, &again[0], failure());
    let ready: Vec<Option<i64>> =
        bench.store.jobs().attempts(job_id).unwrap().iter().map(|attempt| attempt.ready_at).collect();
    assert_eq!(ready, [Some(began_ms), Some(due_at)]);
}

#[test]
fn a_job_with_a_key_is_ready_when_it_gets_its_slot() {
    let bench = Bench::new();
    let (worker, began_ms) = (bench.worker(), bench.clock.now_ms());
    limit(&bench.store, "narrow");
    let ids = bench.store.jobs().enqueue(limited_jobs("narrow")[..2].to_vec()).unwrap();
    let first = bench.claim(worker, 1);
    assert_eq!((first[0].id, seconds(&bench, ids[1], began_ms)), (ids[0], (0, None, None)));
    bench.clock.advance_ms(6_000);
    bench.finish(worker, &first[0], success());
    bench.clock.advance_ms(1_000);
    bench.claim(worker, 1);
    assert_eq!(seconds(&bench, ids[1], began_ms), (0, Some(6), Some(7)));
    assert_eq!(waits(&bench), (2, 1.0));
}

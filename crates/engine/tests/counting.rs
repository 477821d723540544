//! Counts of all jobs and runs: exact where an index answers, and stopped at a bound elsewhere.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, graph, noop};
use windlass_engine::store::{COUNT_MAX, Count, NewJob};
use windlass_engine::{JobStatus, RunStatus};

fn exact(number: i64) -> Count {
    Count { number, is_exact: true }
}

#[test]
fn small_tables_are_counted_exactly() {
    let bench = Bench::new();
    let worker = bench.worker();
    bench.submit(graph(vec![vec![], vec![0], vec![0]]));
    bench.enqueue(NewJob { execute_after: Some(2_000_000), ..noop() });
    support::limit(&bench.store, "narrow");
    bench.store.jobs().enqueue(support::limited_jobs("narrow")).unwrap();
    let claimed = bench.claim(worker, 1);
    bench.finish(worker, &claimed[0], support::success());
    bench.raw().execute(
        "INSERT INTO jobs (kind, status, finished_at) VALUES ('x', 'FAILED', 1), ('x', 'SKIPPED', 1)",
    );
    let stats = bench.store.upkeep().stats().unwrap();
    assert_eq!(stats, bench.store.upkeep().exact_stats().unwrap());
    assert_eq!(stats.jobs_of(JobStatus::Scheduled), exact(1));
    assert!(stats.jobs.of(JobStatus::Waiting) > 0 && stats.jobs.of(JobStatus::Pending) > 0);
}

#[test]
fn finished_jobs_and_runs_are_counted_up_to_a_bound() {
    let bench = Bench::new();
    let raw = bench.raw();
    raw.execute(
        "INSERT INTO jobs (kind, status, finished_at)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 200010)
         SELECT 'noop', CASE WHEN n <= 5 THEN 'SKIPPED' WHEN n % 2 = 1 THEN 'FAILED' ELSE 'SUCCESSFUL' END, n
         FROM numbers",
    );
    raw.execute(
        "INSERT INTO runs (workflow, status, finished_at)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100010)
         SELECT 'w', CASE WHEN n <= 3 THEN 'FAILED' ELSE 'SUCCESSFUL' END, n FROM numbers",
    );
    bench.submit(graph(vec![vec![], vec![0], vec![0]]));
    bench.enqueue(noop());
    let stats = bench.store.upkeep().stats().unwrap();
    let run = |status: RunStatus| stats.runs.iter().find(|(of, _count)| *of == status).unwrap().1;
    assert_eq!(run(RunStatus::Successful), Count { number: COUNT_MAX, is_exact: false });
    assert_eq!(run(RunStatus::Successful).to_string(), "100000+");
    assert_eq!((run(RunStatus::Failed), run(RunStatus::Pending)), (exact(3), exact(1)));
    let job = |status| stats.jobs_of(status);
    assert_eq!(job(JobStatus::Failed), Count { number: COUNT_MAX, is_exact: false });
    assert_eq!((job(JobStatus::Pending), job(JobStatus::Blocked)), (exact(2), exact(2)));
    // Among the newest 100,000 jobs, of which four are not finished.
    assert!(
        !job(JobStatus::Successful).is_exact
            && (49_990..=50_000).contains(&job(JobStatus::Successful).number)
    );
    assert_eq!(job(JobStatus::Skipped), Count { number: 0, is_exact: false });

    let stats = bench.store.upkeep().exact_stats().unwrap();
    assert_eq!(stats.jobs_of(JobStatus::Failed), exact(100_002));
    assert_eq!(stats.jobs_of(JobStatus::Skipped), exact(5));
    assert!(stats.runs.iter().all(|(_status, count)| count.is_exact));
}

/// A count that a finding tells, for each queue and kind; it stops too.
#[test]
fn old_pending_jobs_are_counted_for_each_claim_partition() {
    let bench = Bench::new();
    let of_queue = |queue: &str| NewJob { queue: queue.to_owned(), ..noop() };
    bench.store.jobs().enqueue(vec![of_queue("busy"); 1_500]).unwrap();
    bench.store.jobs().enqueue(vec![of_queue("calm"); 3]).unwrap();
    bench.clock.advance_ms(61_000);
    bench.store.jobs().enqueue(vec![of_queue("calm"), of_queue("fresh")]).unwrap();
    let health = bench.store.upkeep().health().unwrap();
    let counts: Vec<Count> = health.old_pending.iter().map(|old| old.jobs).collect();
    assert_eq!(counts, [Count { number: 1_001, is_exact: false }, exact(3)]);
    assert_eq!(health.pending, exact(1_505));
    let firsts: Vec<i64> = health.old_pending.iter().map(|old| old.first_id).collect();
    assert_eq!(bench.store.jobs().get(firsts[1]).unwrap().queue, "calm");
}

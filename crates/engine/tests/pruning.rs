//! Pruning: what is old goes, in steps that keep nobody waiting, and what is left stays whole.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, failure, graph, noop, success};
use windlass_engine::store::{NewJob, Pruned, Selection};
use windlass_engine::{Error, JobStatus, RunStatus, WorkerStatus};

/// Everything that waits fails for good.
fn fail_all(bench: &Bench) {
    let worker = bench.worker();
    loop {
        let jobs = bench.claim(worker, 1_000);
        if jobs.is_empty() {
            break;
        }
        for mut job in jobs {
            job.facts.max_attempts = 1;
            bench.finish(worker, &job, failure());
        }
    }
}

#[test]
fn what_is_old_goes_and_what_is_not_stays() {
    let bench = Bench::new();
    let worker = bench.worker();
    for _ in 0..300 {
        bench.store.set_worker_status(bench.worker(), WorkerStatus::Stopped).unwrap();
    }
    let old = bench.submit(graph(vec![vec![], vec![0]]));
    bench.enqueue(noop());
    fail_all(&bench);
    bench.clock.advance_ms(1_000);
    let before_ms = bench.clock.now_ms();
    let kept = bench.submit(graph(vec![vec![]]));
    let alone = bench.enqueue(noop());
    for job in bench.claim(worker, 10) {
        bench.finish(worker, &job, success());
    }
    let waiting = bench.enqueue(NewJob { execute_after: Some(before_ms - 10), ..noop() });
    assert_eq!(bench.store.prune_step(before_ms).unwrap(), Pruned { jobs: 3, runs: 1 });
    assert_eq!(bench.store.prune_step(before_ms).unwrap(), Pruned::default());
    assert!(bench.store.find_run(old).unwrap().is_none());
    let count = |sql| bench.raw().value::<i64>(sql);
    assert_eq!(count("SELECT count(*) FROM workers WHERE status = 'STOPPED'"), 0);
    assert_eq!(count("SELECT count(*) FROM workflows"), 1, "the other definition has no run any more");
    assert_eq!(bench.store.run(kept).unwrap().status, RunStatus::Successful);
    assert_eq!(bench.store.job(alone).unwrap().status, JobStatus::Successful);
    assert_eq!(bench.store.job(waiting).unwrap().status, JobStatus::Pending);
    bench.assert_sound();
}

#[test]
fn a_run_that_was_pruned_in_part_is_not_retried() {
    let bench = Bench::new();
    let run_id =
        bench.submit(graph((0..700).map(|index| if index == 0 { vec![] } else { vec![0] }).collect()));
    fail_all(&bench);
    bench.clock.advance_ms(1_000);
    assert_eq!(bench.store.prune_step(bench.clock.now_ms()).unwrap(), Pruned { jobs: 500, runs: 0 });
    let refused = bench.store.retry_run(run_id, Selection::Failed).unwrap_err();
    assert!(
        matches!(&refused, Error::Conflict { reason, .. } if reason.contains("200 of its 700 jobs")),
        "{refused}"
    );
    assert!(bench.claim(bench.worker(), 10).is_empty(), "no child starts without its parent");
    assert_eq!(bench.store.prune_step(bench.clock.now_ms()).unwrap(), Pruned { jobs: 200, runs: 1 });
}

//! Concurrency keys with more jobs and more keys than one transaction, or one step of the scheduler, handles.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::time::Duration;

use support::{Bench, graph, noop};
use windlass_engine::JobStatus;
use windlass_engine::store::NewJob;
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::model::{Concurrency, OnFull};

fn key(key: &str, limit: i64) -> Concurrency {
    Concurrency { key: key.to_owned(), limit, on_full: OnFull::Wait }
}

fn count(bench: &Bench, status: JobStatus) -> i64 {
    bench.store.upkeep().stats().unwrap().jobs.of(status)
}

#[test]
fn jobs_that_one_transaction_does_not_admit_are_left_to_the_scheduler() {
    let bench = Bench::new();
    let mut workflow = graph(vec![vec![]; 250]);
    for job in &mut workflow.jobs {
        job.concurrency = Some(key("k", 240));
    }
    let listener = bench.store.listen(WakeUps::DUE);
    bench.submit(workflow);
    assert_eq!(count(&bench, JobStatus::Pending), 100);
    assert!(listener.wait(Duration::from_secs(30)).intersects(WakeUps::DUE), "more slots are free");
    for pending in [200, 240, 240] {
        bench.store.for_scheduler().admit_waiting("").unwrap();
        assert_eq!(count(&bench, JobStatus::Pending), pending);
    }
    bench.assert_sound();
}

#[test]
fn each_of_many_keys_has_its_turn() {
    let bench = Bench::new();
    let keyed = |number: usize| NewJob { concurrency: Some(key(&format!("k{number:03}"), 1)), ..noop() };
    bench.store.jobs().enqueue((0..450).map(|job| keyed(job / 2)).collect()).unwrap();
    // Their slots become free without a wake-up.
    bench.raw().execute("UPDATE jobs SET status = 'SUCCESSFUL', finished_at = 1 WHERE status = 'PENDING'");
    let cursor = bench.store.for_scheduler().admit_waiting("").unwrap();
    assert_eq!((cursor.as_str(), count(&bench, JobStatus::Pending)), ("k199", 200));
    assert_eq!(
        bench.store.for_scheduler().admit_waiting(&cursor).unwrap(),
        "",
        "it starts again after the last key"
    );
    assert_eq!(count(&bench, JobStatus::Pending), 225);
    bench.assert_sound();
}

//! Pruning: old rows are deleted in small steps, and the remaining rows stay consistent.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::Arc;

use support::faulty::{Call, Faulty};
use support::{Bench, failure, graph, noop, open, success};
use windlass_engine::store::{Change, LogLine, LogStream, NewJob, Prune, Pruned, RetrySelection, Subject};
use windlass_engine::{Error, JobStatus, Random, RunStatus, Store, WorkerStatus};
use windlass_workflow::model::{Concurrency, OnFull};

/// Executes all pending jobs, and fails them for good.
fn fail_all(bench: &Bench) {
    let worker = bench.worker();
    loop {
        let jobs = bench.claim(worker, 1_000);
        if jobs.is_empty() {
            break;
        }
        for mut job in jobs {
            job.retry_state.max_attempts = 1;
            bench.finish(worker, &job, failure());
        }
    }
}

#[test]
fn old_rows_are_deleted_and_others_stay() {
    let bench = Bench::new();
    let worker = bench.worker();
    for _ in 0..300 {
        bench.store.for_workers().set_status(bench.worker(), WorkerStatus::Stopped).unwrap();
    }
    let mut tagged = graph(vec![vec![], vec![0]]);
    tagged.tags = vec!["etl".to_owned()];
    let old = bench.submit(tagged);
    assert_eq!(bench.raw().value::<i64>("SELECT run_id FROM run_tags WHERE tag = 'etl'"), old);
    assert_eq!(bench.store.runs().get(old).unwrap().tags, ["etl"]);
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
    assert_eq!(
        bench.store.for_scheduler().prune_step(support::older_than(before_ms)).unwrap(),
        Pruned { jobs: 3, runs: 1, ..Pruned::default() }
    );
    let leftovers = |count| Pruned { leftovers: count, ..Pruned::default() };
    for expected in [leftovers(201), leftovers(100), leftovers(0)] {
        assert_eq!(bench.store.for_scheduler().prune_step(support::older_than(before_ms)).unwrap(), expected);
    }
    assert!(bench.store.runs().find(old).unwrap().is_none());
    let count = |sql| bench.raw().value::<i64>(sql);
    assert_eq!(count("SELECT count(*) FROM run_tags"), 0);
    assert_eq!(count("SELECT count(*) FROM workers WHERE status = 'STOPPED'"), 0);
    assert_eq!(count("SELECT count(*) FROM workflows"), 1, "the other definition has no run any more");
    assert_eq!(bench.store.runs().get(kept).unwrap().status, RunStatus::Successful);
    assert_eq!(bench.store.jobs().get(alone).unwrap().status, JobStatus::Successful);
    assert_eq!(bench.store.jobs().get(waiting).unwrap().status, JobStatus::Pending);
    bench.assert_sound();
}

#[test]
fn a_run_that_was_pruned_in_part_is_not_retried() {
    let bench = Bench::new();
    let run_id =
        bench.submit(graph((0..700).map(|index| if index == 0 { vec![] } else { vec![0] }).collect()));
    fail_all(&bench);
    bench.clock.advance_ms(1_000);
    assert_eq!(
        bench.store.for_scheduler().prune_step(support::older_than(bench.clock.now_ms())).unwrap(),
        Pruned { jobs: 500, ..Pruned::default() }
    );
    let refused = bench.store.runs().retry(run_id, RetrySelection::Failed).unwrap_err();
    assert!(
        matches!(&refused, Error::Conflict { reason, .. } if reason.contains("200 of its 700 jobs")),
        "{refused}"
    );
    assert!(bench.claim(bench.worker(), 10).is_empty(), "no child starts without its parent");
    assert_eq!(
        bench.store.for_scheduler().prune_step(support::older_than(bench.clock.now_ms())).unwrap(),
        Pruned { jobs: 200, runs: 1, ..Pruned::default() }
    );
}

#[test]
fn the_newest_runs_of_each_workflow_are_kept() {
    let bench = Bench::new();
    let named =
        |name: &str| windlass_workflow::Workflow { name: name.to_owned(), ..graph(vec![vec![], vec![0]]) };
    for round in 0..5 {
        bench.submit(named("a"));
        if round < 2 {
            bench.submit(named("b"));
        }
        fail_all(&bench);
    }
    let alone = bench.enqueue(noop());
    fail_all(&bench);
    let waiting = bench.submit(named("a"));
    let keep = |keep_runs| Prune { before_ms: None, keep_runs: Some(keep_runs), ..Prune::default() };
    // All ended at the same instant. The last ones count as the newest.
    assert_eq!(
        bench.store.for_scheduler().prune_step(keep(2)).unwrap(),
        Pruned { jobs: 6, runs: 3, ..Pruned::default() }
    );
    assert_eq!(bench.store.for_scheduler().prune_step(keep(2)).unwrap(), Pruned::default());
    let left = |workflow: &str| {
        let sql = format!("SELECT id FROM runs WHERE workflow = '{workflow}' ORDER BY id");
        bench.raw().rows(&sql, |row| row.get::<_, i64>(0))
    };
    assert_eq!((left("a"), left("b")), (vec![6, 7, waiting], vec![2, 4]));
    assert!(bench.store.jobs().get(alone).is_ok(), "no run of a workflow");
    assert_eq!(bench.store.for_scheduler().prune_step(keep(0)).unwrap().runs, 4);
    assert_eq!(bench.store.runs().get(waiting).unwrap().status, RunStatus::Pending);
    bench.assert_sound();
}

#[test]
fn a_retried_run_is_not_pruned() {
    let bench = Bench::new();
    let run_id = bench.submit(graph(vec![vec![]]));
    fail_all(&bench);
    bench.store.runs().retry(run_id, RetrySelection::Failed).unwrap();
    let all = Prune { before_ms: Some(i64::MAX), keep_runs: Some(0), ..Prune::default() };
    assert_eq!(bench.store.for_scheduler().prune_step(all).unwrap(), Pruned::default());
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Pending);
}

/// A store in which `act` runs between the search for old rows and the transaction that deletes them.
fn store_interrupted_by(bench: &Bench, act: impl Fn() + Send + Sync + 'static) -> Store {
    let before = move |call| {
        if call == Call::Write("prune") {
            act();
        }
        Ok(())
    };
    let database = Faulty::new(open(&bench.database, &bench.clock), Arc::new(before));
    Store::new(database, bench.clock.clone(), Random::from_seed(1))
}

#[test]
fn a_run_that_is_retried_during_pruning_is_not_pruned() {
    for (what, is_over_again) in [("it was retried", false), ("it was retried, and failed again", true)] {
        let bench = Arc::new(Bench::new());
        let run_id = bench.submit(graph(vec![vec![], vec![0]]));
        fail_all(&bench);
        bench.clock.advance_ms(1_000);
        let old = support::older_than(bench.clock.now_ms());
        let other = Arc::clone(&bench);
        let interrupted = store_interrupted_by(&bench, move || {
            other.store.runs().retry(run_id, RetrySelection::Failed).unwrap();
            if is_over_again {
                fail_all(&other);
            }
        });
        for prune in [old, Prune { before_ms: None, keep_runs: Some(0), ..Prune::default() }] {
            if bench.store.runs().get(run_id).unwrap().finished_at.is_none() {
                fail_all(&bench);
            }
            assert_eq!(
                interrupted.for_scheduler().prune_step(prune).unwrap(),
                Pruned::default(),
                "{what}: {prune:?}"
            );
            assert_eq!(bench.store.jobs().of_run(run_id).unwrap().len(), 2, "{what}: {prune:?}");
            bench.assert_sound();
            bench.clock.advance_ms(1_000);
        }
    }
}

#[test]
fn a_standalone_job_is_pruned_only_when_it_is_finished() {
    let bench = Bench::new();
    let worker = bench.worker();
    let key = Concurrency { key: "k".to_owned(), limit: 1, on_full: OnFull::Wait };
    let keyed = || NewJob { concurrency: Some(key.clone()), kind: "other".to_owned(), ..noop() };
    let later = NewJob { execute_after: Some(bench.clock.now_ms() + 1), ..noop() };
    bench.store.jobs().enqueue(vec![noop(), noop(), noop(), keyed(), keyed(), later]).unwrap();
    assert_eq!(bench.claim(worker, 3).len(), 3);
    // A reported job is unfinished, because it may be retried.
    bench.raw().execute("UPDATE jobs SET status = 'FAILED' WHERE id = 2");
    bench.raw().execute("UPDATE jobs SET status = 'SUCCESSFUL' WHERE id = 3");
    let states = || bench.raw().rows("SELECT status FROM jobs ORDER BY id", |row| row.get::<_, String>(0));
    let before = states();
    assert_eq!(before, ["RUNNING", "FAILED", "SUCCESSFUL", "PENDING", "WAITING", "SCHEDULED"]);
    bench.clock.advance_ms(1_000_000_000);
    let all = Prune { before_ms: Some(i64::MAX), keep_runs: Some(0), ..Prune::default() };
    assert_eq!(bench.store.for_scheduler().prune_step(all).unwrap(), Pruned::default());
    assert_eq!(states(), before);
}

#[test]
fn a_run_that_ended_exactly_at_the_limit_stays() {
    let bench = Bench::new();
    bench.submit(graph(vec![vec![]]));
    bench.enqueue(noop());
    fail_all(&bench);
    let instant = bench.clock.now_ms();
    assert_eq!(
        bench.store.for_scheduler().prune_step(support::older_than(instant)).unwrap(),
        Pruned::default()
    );
    let next = bench.store.for_scheduler().prune_step(support::older_than(instant + 1)).unwrap();
    assert_eq!(next, Pruned { jobs: 2, runs: 1, ..Pruned::default() });
}

#[test]
fn much_output_is_deleted_in_steps() {
    let bench = Bench::new();
    let worker = bench.worker();
    let id = bench.enqueue(noop());
    let other = bench.enqueue(noop());
    let jobs = bench.claim(worker, 2);
    let line = |job_id: i64, number: i64| LogLine {
        job_id,
        attempt: 1,
        line: number,
        at: 1,
        stream: LogStream::Stdout,
        text: "x".to_owned(),
    };
    let lines = (1..=45_000).map(|number| line(id, number)).chain([line(other, 1)]).collect();
    bench.store.for_workers().append_logs(std::sync::Arc::new(lines)).unwrap();
    for job in &jobs {
        bench.finish(worker, job, success());
    }
    let step = || bench.store.for_scheduler().prune_step(support::older_than(i64::MAX)).unwrap();
    let of_lines = |lines| Pruned { lines, ..Pruned::default() };
    assert_eq!([step(), step()], [of_lines(20_000), of_lines(20_000)]);
    assert_eq!(step(), Pruned { jobs: 2, ..Pruned::default() });
    assert_eq!(bench.raw().value::<i64>("SELECT count(*) FROM job_logs"), 0);
}

#[test]
fn leftovers_are_deleted_and_registered_versions_stay() {
    let bench = Bench::new();
    let raw = bench.raw();
    raw.execute(
        "INSERT INTO workflows (id, name, hash, definition, created_at)
             VALUES (1, 'w', 'a', '{}', 1), (2, 'w', 'b', '{}', 1), (3, 'w', 'c', '{}', 1);
         INSERT INTO registration_versions (name, version, workflow_id, applied_at) VALUES ('w', 1, 2, 1);
         INSERT INTO workers (id, host, pid, process, status, lease_ms, heartbeat_at, started_at, stopped_at)
             VALUES (1, 'h', 1, 'x', 'DEAD', 1, 1, 1, 1), (2, 'h', 1, 'x', 'DEAD', 1, 1, 1, 1);
         INSERT INTO jobs (kind, status, worker_id) VALUES ('noop', 'RUNNING', 2);
         INSERT INTO schedules (id, workflow, name) VALUES (1, 'w', 's');
         INSERT INTO occurrences (schedule_id, scheduled_for, status, source, start_after, updated_at)
             VALUES (1, 1, 'SKIPPED', 'schedule', 1, 1), (1, 2, 'WAITING', 'schedule', 1, 1)",
    );
    let pruned = bench.store.for_scheduler().prune_step(support::older_than(bench.clock.now_ms())).unwrap();
    assert_eq!(pruned, Pruned { leftovers: 4, ..Pruned::default() });
    let ids = |sql: &str| raw.rows(sql, |row| row.get::<_, i64>(0));
    assert_eq!(ids("SELECT id FROM workflows"), [2]);
    assert_eq!(ids("SELECT id FROM workers"), [2], "it owns a job");
    assert_eq!(ids("SELECT scheduled_for FROM occurrences"), [2]);
}

#[test]
fn a_partly_pruned_run_breaks_no_invariant() {
    let bench = Bench::new();
    let worker = bench.worker();
    bench.submit(graph(vec![vec![]; 501]));
    for (index, mut job) in bench.claim(worker, 1_000).into_iter().enumerate() {
        job.retry_state.max_attempts = 1;
        bench.finish(worker, &job, if index == 0 { failure() } else { success() });
    }
    bench.clock.advance_ms(1_000);
    let old = support::older_than(bench.clock.now_ms());
    assert_eq!(
        bench.store.for_scheduler().prune_step(old).unwrap(),
        Pruned { jobs: 500, ..Pruned::default() }
    );
    bench.assert_sound();
    assert_eq!(
        bench.store.for_scheduler().prune_step(old).unwrap(),
        Pruned { jobs: 1, runs: 1, ..Pruned::default() }
    );
}

#[test]
fn dispatched_events_are_deleted_after_their_time_unless_a_run_can_wait_for_them() {
    const DAY_MS: i64 = 86_400_000;
    let bench = Bench::new();
    let count = || -> i64 { bench.raw().value("SELECT count(*) FROM events") };
    let signal = || {
        let (name, payload) = ("paid".to_owned(), "1".to_owned());
        let signal = windlass_engine::store::NewSignal { name, key: None, payload, event_id: None };
        bench.store.events().signal(signal).unwrap();
    };
    let prune = |keep_events_ms| {
        let prune = Prune { keep_events_ms, ..Prune::default() };
        while bench.store.for_scheduler().prune_step(prune).unwrap() != Pruned::default() {}
    };
    signal();
    bench.clock.advance_ms(3 * DAY_MS);
    prune(Some(DAY_MS));
    assert_eq!(count(), 1, "it is not dispatched");
    while bench.store.for_scheduler().dispatch_events().unwrap() {}
    prune(None);
    assert_eq!(count(), 1, "a week is not over");
    prune(Some(DAY_MS));
    assert_eq!(count(), 0);
    bench.submit(graph(vec![vec![]]));
    bench.clock.advance_ms(DAY_MS);
    signal();
    while bench.store.for_scheduler().dispatch_events().unwrap() {}
    bench.clock.advance_ms(9 * DAY_MS);
    prune(None);
    assert_eq!(count(), 1, "the run is older than the event");
}

const DAY_MS: i64 = 24 * 3_600 * 1_000;

#[test]
fn old_lines_of_the_audit_are_deleted_and_never_more_than_a_million_stay() {
    let bench = Bench::new();
    let subject = Subject::Queue("mail".to_owned());
    let change = Change { caller: "ada".to_owned(), address: None, subject, traceparent: None };
    let recorded = bench.store.recorded(change);
    let lines = || bench.raw().value::<i64>("SELECT count(*) FROM audit");
    recorded.queues().pause("mail").unwrap();
    bench.clock.advance_ms(60 * DAY_MS);
    recorded.queues().resume("mail").unwrap();
    let prune = |prune: Prune| bench.store.for_scheduler().prune_step(prune).unwrap();
    let of_a_day = || support::older_than(bench.clock.now_ms() - DAY_MS);
    assert_eq!((prune(of_a_day()), lines()), (Pruned::default(), 2), "90 days are kept");
    bench.clock.advance_ms(31 * DAY_MS);
    assert_eq!((prune(Prune::default()), lines()), (Pruned::default(), 2), "no age is set");
    let of_a_year = support::older_than(bench.clock.now_ms() - 365 * DAY_MS);
    assert_eq!((prune(of_a_year), lines()), (Pruned::default(), 2), "runs are kept for a year");
    assert_eq!((prune(of_a_day()).leftovers, lines()), (1, 1));
    bench.raw().execute(
        "INSERT INTO audit (id, at, caller, action, subject) VALUES (1000002, 1, 'ada', 'pause a queue', 'queue mail')",
    );
    assert_eq!((prune(Prune::default()).leftovers, lines()), (1, 1), "the newest million stay");
}

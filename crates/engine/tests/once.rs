//! Promise: a change with a key is made once, whoever asks again and however often, and returns what it returned first.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::Barrier;

use support::{Bench, graph, noop};
use windlass_engine::store::{
    AuditFilter, Cancellation, Change, IdempotencyKey, KEPT_ANSWER_BYTES_MAX, KeptAnswer, NewRegistration,
    Prune, Pruned, RetrySelection, Subject,
};
use windlass_engine::{Error, Store};
use windlass_workflow::Workflow;
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule};

const DAY_MS: i64 = 24 * 3_600 * 1_000;

fn key(caller: &str, key: &str, request: &str) -> IdempotencyKey {
    IdempotencyKey { caller: caller.to_owned(), key: key.to_owned(), request: request.to_owned() }
}

/// The store for one request of `ada` about this subject.
fn once(bench: &Bench, key: IdempotencyKey, subject: Subject) -> Store {
    bench.store.once(key).recorded(Change {
        caller: "ada".to_owned(),
        address: None,
        subject,
        traceparent: None,
    })
}

/// How many changes are recorded.
fn lines(bench: &Bench) -> usize {
    bench.store.access().audit(&AuditFilter::default()).unwrap().rows.len()
}

fn jobs(bench: &Bench) -> i64 {
    bench.raw().value("SELECT count(*) FROM jobs")
}

#[test]
fn a_job_is_made_once_for_each_caller_and_key() {
    let bench = Bench::new();
    let enqueue = |key| once(&bench, key, "a job".into()).jobs().enqueue(vec![noop()]);
    let first = enqueue(key("token 1", "k", "r")).unwrap();
    assert_eq!(enqueue(key("token 1", "k", "r")).unwrap(), first, "the same job");
    assert_eq!((jobs(&bench), lines(&bench)), (1, 1));
    let other = enqueue(key("token 1", "k", "another request")).unwrap_err();
    assert!(matches!(&other, Error::Conflict { .. }), "{other}");
    assert_eq!((jobs(&bench), lines(&bench)), (1, 1), "it made nothing");
    assert_ne!(enqueue(key("token 2", "k", "r")).unwrap(), first, "another caller");
    assert_ne!(enqueue(key("token 1", "l", "r")).unwrap(), first, "another key");
    assert_eq!((jobs(&bench), lines(&bench)), (3, 3));
    bench.assert_sound();
}

#[test]
fn a_change_that_is_refused_leaves_no_key() {
    let bench = Bench::new();
    let retry = |request: &str| {
        let store = once(&bench, key("token 1", "k", request), Subject::Run(1));
        store.runs().retry(1, RetrySelection::Failed)
    };
    assert!(retry("r").is_err(), "there is no run");
    let run_id = bench.submit(graph(vec![vec![]]));
    assert!(retry("r").is_err(), "the run is not over");
    bench.store.runs().cancel(run_id).unwrap();
    assert_eq!(retry("another request").unwrap(), 1, "the key is free");
}

#[test]
fn each_change_that_can_have_a_key_returns_the_same_again() {
    let bench = Bench::new();
    let run_id = bench.submit(graph(vec![vec![], vec![0]]));
    let cancel = || once(&bench, key("t", "1", "r"), Subject::Run(run_id)).runs().cancel(run_id).unwrap();
    assert_eq!([cancel(), cancel()], [Cancellation { cancelled: 2, stopping: 0 }; 2]);
    let retry = || {
        let store = once(&bench, key("t", "2", "r"), Subject::Run(run_id));
        store.runs().retry(run_id, RetrySelection::Failed).unwrap()
    };
    assert_eq!([retry(), retry()], [2, 2]);
    let job_id = bench.enqueue(noop());
    bench.store.jobs().cancel(job_id).unwrap();
    for _time in 0..2 {
        once(&bench, key("t", "3", "r"), Subject::Job(job_id)).jobs().retry(job_id).unwrap();
    }
    let schedule_id = schedule(&bench);
    let fire = || {
        let subject = Subject::Schedule { id: schedule_id, key: "w/s".to_owned() };
        once(&bench, key("t", "4", "r"), subject).schedules().fire(schedule_id).unwrap()
    };
    assert_eq!(fire(), fire());
    assert_eq!(lines(&bench), 4);
    bench.assert_sound();
}

fn schedule(bench: &Bench) -> i64 {
    let schedule = Schedule {
        name: "s".to_owned(),
        rule: Rule::EveryMs(DAY_MS),
        timezone: "UTC".to_owned(),
        overlap: Overlap::Allow,
        catchup: Catchup::Last,
        catchup_window_ms: None,
        catchup_max: 1,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: Default::default(),
    };
    let workflow = Workflow { name: "w".to_owned(), schedules: vec![schedule], ..graph(vec![vec![]]) };
    bench.store.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
    bench.store.schedules().list().unwrap()[0].id
}

/// A request of several transactions that was interrupted goes on with those that are left.
#[test]
fn the_changes_of_one_request_are_told_apart() {
    let bench = Bench::new();
    let runs: Vec<i64> = (0..3).map(|_run| bench.submit(graph(vec![vec![]]))).collect();
    let cancel = |run_id: i64| {
        once(&bench, key("t", "batch", "r"), Subject::Run(run_id)).runs().cancel(run_id).unwrap()
    };
    let first = [cancel(runs[0]), cancel(runs[1])];
    let all: Vec<Cancellation> = runs.iter().map(|run_id| cancel(*run_id)).collect();
    assert_eq!((all[0], all[1]), (first[0], first[1]));
    assert_eq!(all[2].cancelled, 1);
    assert_eq!(lines(&bench), 3);
    assert_eq!(bench.raw().value::<i64>("SELECT count(*) FROM idempotency_keys"), 1);
}

#[test]
fn of_requests_at_the_same_time_one_changes_and_all_return_the_same() {
    const THREADS: usize = 6;
    let bench = Bench::new();
    for round in 0..10 {
        let barrier = Barrier::new(THREADS);
        let ids: Vec<Vec<i64>> = std::thread::scope(|scope| {
            let ask = || {
                let store = once(&bench, key("t", &round.to_string(), "r"), "a job".into());
                barrier.wait();
                store.jobs().enqueue(vec![noop()]).unwrap()
            };
            let threads: Vec<_> = (0..THREADS).map(|_thread| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }
    assert_eq!((jobs(&bench), lines(&bench)), (10, 10));
}

#[test]
fn the_first_answer_is_kept_and_only_for_its_request() {
    let bench = Bench::new();
    let access = bench.store.access();
    let answer = |body: &str| KeptAnswer { status: 201, body: body.to_owned() };
    let mine = key("token 1", "k", "r");
    assert_eq!(access.kept_answer(&mine).unwrap(), None);
    once(&bench, mine.clone(), "a job".into()).jobs().enqueue(vec![noop()]).unwrap();
    assert_eq!(access.kept_answer(&mine).unwrap(), None, "the change is made, and the answer is not known");
    assert_eq!(access.keep_answer(&mine, &answer("first")).unwrap(), answer("first"));
    assert_eq!(access.keep_answer(&mine, &answer("second")).unwrap(), answer("first"));
    assert_eq!(access.kept_answer(&mine).unwrap(), Some(answer("first")));
    assert_eq!(access.kept_answer(&key("token 2", "k", "r")).unwrap(), None, "of another caller");
    assert!(access.kept_answer(&key("token 1", "k", "other")).unwrap_err().is_conflict());
    assert!(access.keep_answer(&key("token 1", "k", "other"), &answer("x")).unwrap_err().is_conflict());
    // An answer about nothing that was changed is kept too.
    assert_eq!(access.keep_answer(&key("t", "n", "r"), &answer("nothing")).unwrap(), answer("nothing"));
    assert_eq!(access.kept_answer(&key("t", "n", "r")).unwrap(), Some(answer("nothing")));
    let long = answer(&"x".repeat(KEPT_ANSWER_BYTES_MAX + 1));
    assert_eq!(access.keep_answer(&key("t", "long", "r"), &long).unwrap(), long);
    assert_eq!(access.kept_answer(&key("t", "long", "r")).unwrap(), None, "too long to be kept");
}

#[test]
fn keys_are_deleted_after_a_day_a_limited_number_at_a_time() {
    let bench = Bench::new();
    let answer = KeptAnswer { status: 200, body: "{}".to_owned() };
    let keep = |name: &str| bench.store.access().keep_answer(&key("t", name, "r"), &answer).unwrap();
    let kept = || bench.raw().value::<i64>("SELECT count(*) FROM idempotency_keys");
    let prune = || bench.store.for_scheduler().prune_step(Prune::default()).unwrap();
    for number in 0..250 {
        keep(&number.to_string());
    }
    bench.clock.advance_ms(DAY_MS);
    keep("new");
    assert_eq!((prune(), kept()), (Pruned::default(), 251), "a day is not over");
    bench.clock.advance_ms(1);
    assert_eq!((prune().leftovers, kept()), (200, 51), "a limited number");
    assert_eq!((prune().leftovers, kept()), (50, 1));
    assert_eq!((prune(), kept()), (Pruned::default(), 1));
}

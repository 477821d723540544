//! Handlers in a Rust program: results, retries, panics, and requests to stop.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use windlass_engine::HasStore;

use support::{Bench, wait_for};
use windlass::{Attempt, Handlers, JobStatus, NewJob, Outcome, WorkerOptions, failed_for_good, typed};
use windlass_test_database::Access;

fn quick_retries(kind: &str) -> NewJob {
    NewJob { max_attempts: 3, ..NewJob::new(kind, "null") }
}

#[test]
fn a_typed_handler_gets_its_payload_and_returns_its_result() {
    let bench = Bench::new();
    let mut handlers = Handlers::new();
    handlers.register("add", typed(|_: &Attempt, (a, b): (i64, i64)| Ok::<_, String>(a + b)));
    let engine = bench.windlass.start(handlers, WorkerOptions::default()).unwrap();
    let sum = bench.windlass.enqueue("add", &(2, 3)).unwrap();
    let wrong = bench.windlass.enqueue("add", &"no pair").unwrap();
    bench.wait_for_job(sum, JobStatus::Successful);
    bench.wait_for_job(wrong, JobStatus::Failed);
    assert_eq!(bench.windlass.jobs().get(sum).unwrap().output.as_deref(), Some("5"));
    let refused = bench.windlass.jobs().get(wrong).unwrap();
    assert_eq!((refused.attempt, refused.failures), (1, 1), "a wrong payload is not retried");
    engine.drain();
    engine.join().unwrap();
    bench.assert_sound();
}

#[test]
fn a_panic_fails_only_its_attempt() {
    let bench = Bench::new();
    let mut handlers = Handlers::new();
    handlers.register("panics", |attempt: &Attempt| -> Outcome { panic!("attempt {}", attempt.number()) });
    handlers.register("works", |_: &Attempt| Outcome::Successful { output: None });
    let options = WorkerOptions { threads: 1, ..WorkerOptions::default() };
    let engine = bench.windlass.start(handlers, options).unwrap();
    let job = NewJob { max_attempts: 1, ..NewJob::new("panics", "null") };
    let ids = bench.windlass.jobs().enqueue(vec![job, NewJob::new("works", "null")]).unwrap();
    bench.wait_for_job(ids[0], JobStatus::Failed);
    bench.wait_for_job(ids[1], JobStatus::Successful);
    let error = bench.windlass.jobs().get(ids[0]).unwrap().last_error.unwrap();
    assert_eq!(error, "the handler panicked: attempt 1");
    drop(engine);
    bench.assert_sound();
}

#[test]
fn a_failure_is_retried_until_no_attempts_are_left() {
    let bench = Bench::new();
    let mut handlers = Handlers::new();
    handlers.register("fails", typed(|_: &Attempt, (): ()| Err::<(), _>("no luck")));
    handlers.register("hopeless", |_: &Attempt| failed_for_good("never"));
    let engine = bench.windlass.start(handlers, WorkerOptions::default()).unwrap();
    let jobs = vec![quick_retries("fails"), quick_retries("hopeless")];
    let ids = bench.windlass.jobs().enqueue(jobs).unwrap();
    bench.wait_for_job(ids[1], JobStatus::Failed);
    assert_eq!(bench.windlass.jobs().get(ids[1]).unwrap().attempt, 1);
    bench.wait_for_job(ids[0], JobStatus::Failed);
    let job = bench.windlass.jobs().get(ids[0]).unwrap();
    assert_eq!((job.attempt, job.failures), (3, 3));
    let attempts = bench.windlass.jobs().attempts(ids[0]).unwrap();
    let outcomes: Vec<(i64, &str)> =
        attempts.iter().map(|attempt| (attempt.attempt, attempt.outcome.as_str())).collect();
    assert_eq!(outcomes, [(1, "failed"), (2, "failed"), (3, "failed")]);
    let waits: Vec<i64> =
        attempts.windows(2).map(|pair| pair[1].started_at.unwrap() - pair[0].finished_at).collect();
    assert!(waits[0] >= 900 && waits[1] >= 1_800, "the waits grow: {waits:?}");
    drop(engine);
    bench.assert_sound();
}

#[test]
fn a_timeout_and_a_cancellation_reach_a_handler() {
    let bench = Bench::new();
    let mut handlers = Handlers::new();
    let (begin, begun) = std::sync::mpsc::channel();
    let begin = std::sync::Mutex::new(begin);
    handlers.register("waits", move |attempt: &Attempt| {
        begin.lock().unwrap().send(()).unwrap();
        let cause = attempt.stop().wait(Duration::from_secs(60));
        failed_for_good(format!("{cause:?}"))
    });
    let engine = bench.windlass.start(handlers, WorkerOptions::default()).unwrap();
    let timed = NewJob { max_attempts: 1, timeout_ms: Some(30), ..NewJob::new("waits", "null") };
    let ids = bench.windlass.jobs().enqueue(vec![timed, NewJob::new("waits", "null")]).unwrap();
    // RUNNING is not enough: a job that is cancelled before its handler starts has no attempt to record.
    for _job in &ids {
        begun.recv_timeout(Duration::from_secs(60)).unwrap();
    }
    bench.windlass.jobs().cancel(ids[1]).unwrap();
    bench.wait_for_job(ids[0], JobStatus::Failed);
    bench.wait_for_job(ids[1], JobStatus::Cancelled);
    let outcome = |id| bench.windlass.jobs().attempts(id).unwrap()[0].outcome.clone();
    assert_eq!((outcome(ids[0]), outcome(ids[1])), ("timed_out".to_owned(), "cancelled".to_owned()));
    drop(engine);
    bench.assert_sound();
}

#[test]
fn many_short_jobs_are_each_executed_once() {
    let bench = Bench::new();
    let executed = Arc::new(AtomicI64::new(0));
    let mut handlers = Handlers::new();
    let count = Arc::clone(&executed);
    handlers.register("count", move |_: &Attempt| {
        count.fetch_add(1, Ordering::Relaxed);
        Outcome::Successful { output: None }
    });
    let jobs = 5_000;
    bench.windlass.jobs().enqueue(vec![NewJob::new("count", "null"); jobs]).unwrap();
    let engines: Vec<_> =
        (0..2).map(|_| bench.windlass.start(handlers.clone(), WorkerOptions::default()).unwrap()).collect();
    support::wait_for("the queue to drain", || {
        (bench.windlass.jobs().count_active().unwrap() == 0).then_some(())
    });
    for engine in engines {
        engine.drain();
        engine.join().unwrap();
    }
    assert_eq!(executed.load(Ordering::Relaxed), jobs as i64);
    bench.assert_sound();
}

#[test]
fn jobs_of_a_stopped_worker_are_taken_over_by_the_next() {
    let bench = Bench::new();
    let started = Arc::new(AtomicI64::new(0));
    let mut handlers = Handlers::new();
    let count = Arc::clone(&started);
    handlers.register("slow", move |attempt: &Attempt| {
        count.fetch_add(1, Ordering::Relaxed);
        if attempt.number() == 1 {
            attempt.stop().wait(Duration::from_secs(60));
            return windlass::failed("stopped");
        }
        Outcome::Successful { output: None }
    });
    let engine = bench.windlass.start(handlers.clone(), WorkerOptions::default()).unwrap();
    let id = bench.windlass.enqueue("slow", &()).unwrap();
    // RUNNING is not enough: a claim that no thread has started is given back and does not count.
    support::wait_for("the handler's start", || (started.load(Ordering::Relaxed) == 1).then_some(()));
    engine.leave();
    engine.join().unwrap();
    let left = bench.windlass.jobs().get(id).unwrap();
    assert_eq!((left.status, left.interruptions, left.failures), (JobStatus::Pending, 1, 0));
    let next = bench.windlass.start(handlers, WorkerOptions::default()).unwrap();
    bench.wait_for_job(id, JobStatus::Successful);
    drop(next);
    bench.assert_sound();
}

/// A worker with one thread, which a job occupies until the returned gate opens. Many short jobs before it have made
/// the worker prefetch.
fn occupied_worker(bench: &Bench) -> (windlass::Engine, Arc<std::sync::Barrier>, i64) {
    let gate = Arc::new(std::sync::Barrier::new(2));
    let wait = Arc::clone(&gate);
    let mut handlers = Handlers::new();
    handlers.register("noop", |_: &Attempt| Outcome::Successful { output: None });
    handlers.register("long", move |_: &Attempt| {
        wait.wait();
        Outcome::Successful { output: None }
    });
    let options = WorkerOptions { threads: 1, ..WorkerOptions::default() };
    let engine = bench.windlass.start(handlers, options).unwrap();
    let store = bench.windlass.store();
    store.jobs().enqueue(vec![NewJob::new("noop", "null"); 3_000]).unwrap();
    support::wait_for("the short jobs", || (store.jobs().count_active().unwrap() == 0).then_some(()));
    let long = NewJob { priority: 10, ..NewJob::new("long", "null") };
    let ids = store.jobs().enqueue([vec![long], vec![NewJob::new("noop", "null"); 20]].concat()).unwrap();
    bench.wait_for_job(ids[0], JobStatus::Running);
    (engine, gate, ids[1])
}

#[test]
fn a_long_job_does_not_block_prefetched_jobs() {
    let bench = Bench::new();
    let (engine, gate, first) = occupied_worker(&bench);
    let store = bench.windlass.store();
    // Even if wake-ups arrive all the time.
    support::wait_for("the others to be given back", || {
        store.jobs().enqueue(vec![NewJob::new("unknown", "null")]).unwrap();
        (first..first + 20).all(|id| store.jobs().get(id).unwrap().status == JobStatus::Pending).then_some(())
    });
    let before = store.jobs().get(first).unwrap().updated_at;
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(store.jobs().get(first).unwrap().updated_at, before, "given back once, not again and again");
    gate.wait();
    bench.wait_for_job(first + 19, JobStatus::Successful);
    assert_eq!(store.jobs().get(first).unwrap().attempt, 1, "a claim that was given back does not count");
    drop(engine);
    bench.assert_sound();
}

#[test]
fn a_fenced_worker_registers_once_and_continues() {
    let bench = Bench::new();
    let mut handlers = Handlers::new();
    handlers.register("waits", |attempt: &Attempt| match attempt.stop().wait(Duration::from_millis(1)) {
        None => Outcome::Successful { output: None },
        Some(cause) => windlass::failed(format!("{cause:?}")),
    });
    let options = WorkerOptions { lease_ms: 100, ..WorkerOptions::default() };
    let engine = bench.windlass.start(handlers, options).unwrap();
    let store = bench.windlass.store();
    for round in 0..30 {
        let ids = store.jobs().enqueue(vec![NewJob::new("waits", "null"); 20]).unwrap();
        let lost = engine.worker_id();
        let heartbeats = |id| store.workers().live().unwrap().into_iter().find(|worker| worker.id == id);
        if let Some(worker) = heartbeats(lost) {
            store.for_scheduler().rescue(vec![(lost, worker.heartbeats)]).unwrap();
        }
        for id in ids {
            bench.wait_for_job(id, JobStatus::Successful);
        }
        assert!(store.workers().live().unwrap().len() <= 1, "round {round}: one identity at a time");
    }
    drop(engine);
    bench.assert_sound();
}

#[test]
fn a_result_that_the_database_refuses_fails_only_its_job() {
    let bench = Bench::new();
    bench.database.sql(Access::Write).execute_either(
        "CREATE TRIGGER refuse BEFORE UPDATE ON jobs WHEN NEW.output = '666'
         BEGIN SELECT RAISE(ABORT, 'not this one'); END;
         CREATE TRIGGER never BEFORE UPDATE ON jobs WHEN OLD.payload = '667' AND NEW.status <> 'RUNNING'
         BEGIN SELECT RAISE(ABORT, 'not at all'); END;",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END $$;
         CREATE TRIGGER refuse BEFORE UPDATE ON jobs FOR EACH ROW WHEN (NEW.output = '666')
         EXECUTE FUNCTION refuse('not this one');
         CREATE TRIGGER never BEFORE UPDATE ON jobs FOR EACH ROW
         WHEN (OLD.payload = '667' AND NEW.status <> 'RUNNING')
         EXECUTE FUNCTION refuse('not at all');",
    );
    let mut handlers = Handlers::new();
    handlers.register("echo", typed(|_: &Attempt, number: i64| Ok::<_, String>(number)));
    let jobs = (660..680).map(|number| NewJob::new("echo", number.to_string())).collect();
    let ids = bench.windlass.jobs().enqueue(jobs).unwrap();
    let engine = bench.windlass.start(handlers, WorkerOptions::default()).unwrap();
    bench.wait_for_job(ids[6], JobStatus::Failed);
    let error = bench.windlass.jobs().get(ids[6]).unwrap().last_error.unwrap();
    assert!(error.starts_with("the result could not be stored") && error.contains("not this one"), "{error}");
    for id in ids.iter().filter(|id| **id != ids[6] && **id != ids[7]) {
        bench.wait_for_job(*id, JobStatus::Successful);
    }
    assert_eq!(
        bench.windlass.jobs().get(ids[7]).unwrap().status,
        JobStatus::Running,
        "no result can be stored"
    );
    let after = bench.windlass.enqueue("echo", &1).unwrap();
    bench.wait_for_job(after, JobStatus::Successful);
    drop(engine);
}

/// On PostgreSQL, large sets are claimed while others are finished. If one transaction fails, the result of the other
/// must not be lost.
#[test]
fn a_refused_result_among_thousands_loses_no_other_job() {
    const JOBS: i64 = 4_000;
    let bench = Bench::new();
    bench.database.sql(Access::Write).execute_either(
        "CREATE TRIGGER refuse BEFORE UPDATE ON jobs WHEN NEW.output = '1234'
         BEGIN SELECT RAISE(ABORT, 'not this one'); END;",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;
         CREATE TRIGGER refuse BEFORE UPDATE ON jobs FOR EACH ROW WHEN (NEW.output = '1234')
         EXECUTE FUNCTION refuse();",
    );
    let mut handlers = Handlers::new();
    handlers.register("echo", typed(|_: &Attempt, number: i64| Ok::<_, String>(number)));
    let jobs = (0..JOBS).map(|number| NewJob::new("echo", number.to_string())).collect();
    bench.windlass.jobs().enqueue(jobs).unwrap();
    let engine = bench.windlass.start(handlers, WorkerOptions::default()).unwrap();
    let ended = || {
        let stats = bench.windlass.upkeep().stats().unwrap();
        let of = |status| stats.jobs.of(status);
        (of(JobStatus::Successful) + of(JobStatus::Failed) == JOBS).then(|| of(JobStatus::Failed))
    };
    assert_eq!(wait_for("every job to end", ended), 1, "only the refused job failed");
    drop(engine);
    bench.assert_sound();
}

/// A job that must not be interrupted is never prefetched. It is claimed only when a thread is free, and prefetched
/// jobs must not delay it.
#[test]
fn a_job_that_is_never_prefetched_is_claimed_among_many_short_ones() {
    const EACH: usize = 3_000;
    let bench = Bench::new();
    let executed = Arc::new(AtomicI64::new(0));
    let before = Arc::new(AtomicI64::new(-1));
    let mut handlers = Handlers::new();
    let count = Arc::clone(&executed);
    handlers.register("short", move |_: &Attempt| {
        std::thread::sleep(Duration::from_micros(200));
        count.fetch_add(1, Ordering::Relaxed);
        Outcome::Successful { output: None }
    });
    let (seen, count) = (Arc::clone(&before), Arc::clone(&executed));
    handlers.register("careful", move |_: &Attempt| {
        seen.store(count.load(Ordering::Relaxed), Ordering::Relaxed);
        Outcome::Successful { output: None }
    });
    let of = |kind: &str, priority: i64| NewJob { priority, ..NewJob::new(kind, "null") };
    let jobs = [vec![of("short", 2); EACH], vec![of("careful", 1)], vec![of("short", 0); EACH]].concat();
    bench.windlass.jobs().enqueue(jobs).unwrap();
    bench.database.sql(Access::Write).execute("UPDATE jobs SET on_interrupt = 'fail' WHERE kind = 'careful'");
    let options = WorkerOptions { threads: 2, ..WorkerOptions::default() };
    let engine = bench.windlass.start(handlers, options).unwrap();
    wait_for("the queue to drain", || (bench.windlass.jobs().count_active().unwrap() == 0).then_some(()));
    let before = before.load(Ordering::Relaxed);
    assert!(before < (EACH + EACH / 2) as i64, "{before} others were executed before it");
    drop(engine);
    bench.assert_sound();
}

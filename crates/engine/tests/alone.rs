//! Jobs that stand alone: retrying one or many, changing what waits, deleting.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, failure, graph, noop, success};
use windlass_engine::store::{
    DEAD_LETTERS_BATCH, DeadLetterCursor, DeadLetters, Job, JobChange, NewJob, Order, QueueLimits, Setting,
    StartTime,
};
use windlass_engine::transition::{Outcome, Repeat};
use windlass_engine::{Error, JobStatus};
use windlass_workflow::model::{Concurrency, OnFull};

fn fails(error: &str) -> Outcome {
    Outcome::Failed { error: error.to_owned(), repeat: Repeat::Pointless }
}

/// A job of this kind that failed with this error.
fn dead(bench: &Bench, worker: i64, kind: &str, error: &str) -> i64 {
    let id = bench.enqueue(NewJob::new(kind, "null"));
    let claimed = bench.claim(worker, 1).remove(0);
    assert_eq!(claimed.id, id);
    bench.finish(worker, &claimed, fails(error));
    id
}

fn all_failed(bench: &Bench) -> DeadLetters {
    DeadLetters {
        statuses: vec![JobStatus::Failed],
        kind: None,
        queue: None,
        error: None,
        before_ms: bench.clock.now_ms() + 1,
    }
}

/// Retries all that match, and returns how many jobs each batch retried.
fn retry_all(bench: &Bench, which: &DeadLetters) -> Vec<i64> {
    let (mut batches, mut next) = (Vec::new(), Some(DeadLetterCursor::default()));
    while let Some(after) = next {
        let batch = bench.store.jobs().retry_next(which, after).unwrap();
        batches.push(batch.jobs);
        next = batch.next;
    }
    batches
}

fn get(bench: &Bench, id: i64) -> Job {
    bench.store.jobs().get(id).unwrap()
}

fn conflict<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    let error = answer.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    error.to_string()
}

#[test]
fn a_job_that_failed_runs_again() {
    let bench = Bench::new();
    let worker = bench.worker();
    let id = dead(&bench, worker, "noop", "no luck");
    let before = get(&bench, id);
    bench.clock.advance_ms(10);
    bench.store.jobs().retry(id).unwrap();
    bench.assert_sound();
    let ready = get(&bench, id);
    assert_eq!(
        (ready.status, ready.failures, ready.last_error, ready.finished_at),
        (JobStatus::Scheduled, 0, None, None)
    );
    bench.store.for_scheduler().promote_due().unwrap();
    let claimed = bench.claim(worker, 1).remove(0);
    assert_eq!(
        (claimed.id, claimed.retry_state.attempt, claimed.token),
        (id, before.attempt + 1, claimed.token)
    );
    bench.finish(worker, &claimed, success());
    assert!(conflict(bench.store.jobs().retry(id)).contains("it is SUCCESSFUL"));
    let waiting = bench.enqueue(noop());
    assert!(conflict(bench.store.jobs().retry(waiting)).contains("it is PENDING, and has not ended"));
    bench.store.jobs().cancel(waiting).unwrap();
    bench.store.jobs().retry(waiting).unwrap();
    assert!(matches!(bench.store.jobs().retry(99), Err(Error::NotFound { .. })));
    let run_id = bench.submit(graph(vec![vec![]]));
    bench.store.runs().cancel(run_id).unwrap();
    let of_run = bench.store.jobs().of_run(run_id).unwrap()[0].id;
    assert!(conflict(bench.store.jobs().retry(of_run)).contains("belongs to run 1; retry the run"));
    bench.assert_sound();
}

#[test]
fn a_retried_job_keeps_the_rules_of_its_keys() {
    let bench = Bench::new();
    let worker = bench.worker();
    let unique = || NewJob { unique_key: Some("once".to_owned()), ..noop() };
    let first = bench.enqueue(unique());
    let claimed = bench.claim(worker, 1);
    bench.finish(worker, &claimed[0], fails("a"));
    let second = bench.enqueue(unique());
    assert!(conflict(bench.store.jobs().retry(first)).contains("unique key"));
    assert_eq!(retry_all(&bench, &all_failed(&bench)), [0], "it is left out");
    let claimed = bench.claim(worker, 1);
    bench.finish(worker, &claimed[0], fails("b"));
    assert_eq!(bench.store.jobs().count_dead_letters(&all_failed(&bench)).unwrap(), 2);
    assert_eq!(retry_all(&bench, &all_failed(&bench)), [1], "one of two with the same key");
    assert_eq!(
        (get(&bench, first).status, get(&bench, second).status),
        (JobStatus::Scheduled, JobStatus::Failed)
    );
    let concurrency = Some(Concurrency { key: "k".to_owned(), limit: 1, on_full: OnFull::Wait });
    let keyed = || NewJob { concurrency: concurrency.clone(), ..noop() };
    let (first, second) = (bench.enqueue(keyed()), bench.enqueue(keyed()));
    bench.store.jobs().cancel(first).unwrap();
    bench.store.for_scheduler().admit_waiting("").unwrap();
    bench.store.jobs().retry(first).unwrap();
    bench.store.for_scheduler().promote_due().unwrap();
    bench.store.for_scheduler().admit_waiting("").unwrap();
    assert_eq!(
        (get(&bench, first).status, get(&bench, second).status),
        (JobStatus::Waiting, JobStatus::Pending)
    );
    bench.assert_sound();
}

#[test]
fn all_dead_letters_of_a_kind_or_an_error_run_again() {
    let bench = Bench::new();
    let worker = bench.worker();
    let mail = dead(&bench, worker, "noop", "SMTP Timeout after 5 s");
    let refused = dead(&bench, worker, "noop", "refused");
    let other = dead(&bench, worker, "shell", "timeout");
    let run_id = bench.submit(graph(vec![vec![]]));
    let claimed = bench.claim(worker, 1);
    bench.finish(worker, &claimed[0], fails("timeout"));
    let which = DeadLetters {
        kind: Some("noop".to_owned()),
        error: Some("timeout".to_owned()),
        ..all_failed(&bench)
    };
    assert_eq!(bench.store.jobs().count_dead_letters(&which).unwrap(), 1);
    assert_eq!(retry_all(&bench, &which), [1]);
    let states = |ids: &[i64]| ids.iter().map(|id| get(&bench, *id).status).collect::<Vec<_>>();
    use JobStatus::{Failed, Scheduled};
    assert_eq!(states(&[mail, refused, other]), [Scheduled, Failed, Failed]);
    assert_eq!(retry_all(&bench, &which), [0], "the next call finds none");
    assert_eq!(retry_all(&bench, &all_failed(&bench)), [2]);
    assert_eq!(bench.store.jobs().of_run(run_id).unwrap()[0].status, Failed, "jobs of runs stay");
    let queue = DeadLetters { queue: Some("other".to_owned()), ..all_failed(&bench) };
    assert_eq!(bench.store.jobs().count_dead_letters(&queue).unwrap(), 0);
    let running = DeadLetters { statuses: vec![JobStatus::Running], ..all_failed(&bench) };
    assert!(matches!(bench.store.jobs().count_dead_letters(&running), Err(Error::Invalid { .. })));
    let empty = DeadLetters { error: Some(String::new()), ..all_failed(&bench) };
    assert!(matches!(
        bench.store.jobs().retry_next(&empty, DeadLetterCursor::default()),
        Err(Error::Invalid { .. })
    ));
    bench.assert_sound();
}

#[test]
fn many_dead_letters_run_again_in_batches() {
    let bench = Bench::new();
    let jobs = DEAD_LETTERS_BATCH * 2 + 5;
    let ids = bench.store.jobs().enqueue(vec![noop(); jobs as usize]).unwrap();
    // They ended at three instants, so that pages end between jobs of one instant.
    bench.raw().execute(
        "UPDATE jobs SET status = 'FAILED', failures = 3, last_error = 'x', finished_at = 1000 + id % 3",
    );
    bench.raw().execute(&format!("UPDATE jobs SET unique_key = 'k' || (id % 2) WHERE id <= {}", ids[3]));
    let which = all_failed(&bench);
    assert_eq!(bench.store.jobs().count_dead_letters(&which).unwrap(), jobs);
    // A crash after the first batch leaves whole batches: the next process begins anew.
    let first = bench.store.jobs().retry_next(&which, DeadLetterCursor::default()).unwrap();
    assert!(first.next.is_some());
    bench.assert_sound();
    let batches = retry_all(&bench, &which);
    assert_eq!(
        first.jobs + batches.iter().sum::<i64>(),
        jobs - 2,
        "two of four have the unique key of another one"
    );
    assert_eq!(batches.len(), 2);
    bench.assert_sound();
    // What fails again while batches go on is not retried twice, unlike the two that were left out.
    bench
        .raw()
        .execute("UPDATE jobs SET status = 'FAILED', finished_at = 2000000 WHERE status = 'SCHEDULED'");
    assert_eq!(retry_all(&bench, &which), [2]);
}

#[test]
fn many_dead_letters_are_deleted_in_batches() {
    let bench = Bench::new();
    let jobs = DEAD_LETTERS_BATCH + 5;
    bench.store.jobs().enqueue(vec![noop(); jobs as usize]).unwrap();
    bench
        .raw()
        .execute("UPDATE jobs SET status = 'FAILED', last_error = 'bounced', finished_at = 1000 + id % 3");
    bench.raw().execute("UPDATE jobs SET last_error = 'full' WHERE id <= 2");
    let run_id = bench.submit(graph(vec![vec![]]));
    bench.raw().execute(&format!(
        "UPDATE jobs SET status = 'FAILED', last_error = 'bounced', finished_at = 1 WHERE run_id = {run_id}"
    ));
    let waiting = bench.enqueue(noop());
    let which = DeadLetters { error: Some("bounced".to_owned()), ..all_failed(&bench) };
    let (mut batches, mut next) = (Vec::new(), Some(DeadLetterCursor::default()));
    while let Some(after) = next {
        let batch = bench.store.jobs().delete_next(&which, after).unwrap();
        batches.push(batch.jobs);
        next = batch.next;
    }
    assert_eq!(batches, [DEAD_LETTERS_BATCH, 3]);
    let left = bench.raw().rows("SELECT id FROM jobs ORDER BY id", |row| row.get::<_, i64>(0));
    assert_eq!(left, [1, 2, waiting - 1, waiting], "another error, a job of a run, and one that waits");
    let succeeded = DeadLetters { statuses: vec![JobStatus::Successful], ..all_failed(&bench) };
    assert!(bench.store.jobs().delete_next(&succeeded, DeadLetterCursor::default()).is_err());
}

#[test]
fn a_job_that_waits_gets_another_time_priority_and_queue() {
    let bench = Bench::new();
    let worker = bench.worker();
    let id = bench.enqueue(noop());
    let change = |start, priority, queue: Option<&str>| {
        let queue = queue.map(str::to_owned);
        bench.store.jobs().change(id, JobChange { start, priority, queue })
    };
    let later = change(Some(StartTime::After(5_000)), None, None).unwrap();
    assert_eq!((later.status, later.execute_after), (JobStatus::Scheduled, bench.clock.now_ms() + 5_000));
    assert!(bench.claim(worker, 1).is_empty());
    let moved = change(None, Some(7), Some("slow")).unwrap();
    assert_eq!((moved.status, moved.priority, moved.queue.as_str()), (JobStatus::Scheduled, 7, "slow"));
    assert_eq!(moved.execute_after, later.execute_after);
    change(Some(StartTime::At(0)), None, None).unwrap();
    bench.store.for_scheduler().promote_due().unwrap();
    assert_eq!(get(&bench, id).status, JobStatus::Pending);
    // Also a job that waits for its next attempt.
    let claimed = bench.claim(worker, 1);
    assert!(conflict(change(None, Some(1), None)).contains("it is RUNNING, and does not wait"));
    bench.finish(worker, &claimed[0], failure());
    assert_eq!(get(&bench, id).status, JobStatus::Scheduled);
    change(Some(StartTime::After(0)), None, None).unwrap();
    bench.store.for_scheduler().promote_due().unwrap();
    let claimed = bench.claim(worker, 1);
    assert_eq!((claimed[0].id, claimed[0].retry_state.failures), (id, 1));
    bench.finish(worker, &claimed[0], success());
    assert!(conflict(change(None, Some(1), None)).contains("it is SUCCESSFUL"));
    for (start, priority, queue) in [
        (None, None, None),
        (None, Some(5_000_000), None),
        (None, None, Some("")),
        (Some(StartTime::After(-1)), None, None),
    ] {
        assert!(
            matches!(change(start, priority, queue), Err(Error::Invalid { .. })),
            "{start:?} {priority:?}"
        );
    }
    bench.assert_sound();
}

#[test]
fn a_change_keeps_the_rules_of_queues_and_keys() {
    let bench = Bench::new();
    let worker = bench.worker();
    let order = QueueLimits { order: Setting::Set(Order::Arrival), ..QueueLimits::default() };
    bench.store.queues().limit("fifo", order).unwrap();
    let id = bench.enqueue(noop());
    let to_fifo = JobChange { queue: Some("fifo".to_owned()), priority: Some(9), ..JobChange::default() };
    assert_eq!(bench.store.jobs().change(id, to_fifo).unwrap().priority, 0);
    // The job whose turn it is leaves: the next one has its turn.
    let in_fifo = || NewJob { queue: "fifo".to_owned(), ..noop() };
    let next = bench.enqueue(in_fifo());
    let claimed = bench.claim(worker, 5);
    assert_eq!(claimed.len(), 1);
    bench.finish(worker, &claimed[0], failure());
    assert!(bench.claim(worker, 5).is_empty(), "it keeps its turn until its retry");
    let out = JobChange { queue: Some("default".to_owned()), ..JobChange::default() };
    bench.store.jobs().change(id, out).unwrap();
    assert_eq!(bench.claim(worker, 5)[0].id, next);
    // The slot of a job that is put off is free.
    let concurrency = Some(Concurrency { key: "k".to_owned(), limit: 1, on_full: OnFull::Wait });
    let ids = bench.store.jobs().enqueue(vec![NewJob { concurrency, ..noop() }; 2]).unwrap();
    assert_eq!(get(&bench, ids[1]).status, JobStatus::Waiting);
    let later = JobChange { start: Some(StartTime::After(9_000)), ..JobChange::default() };
    bench.store.jobs().change(ids[0], later).unwrap();
    assert_eq!(get(&bench, ids[1]).status, JobStatus::Pending);
    bench.assert_sound();
    // A job that is blocked is not changed.
    let run_id = bench.submit(graph(vec![vec![], vec![0]]));
    let jobs = bench.store.jobs().of_run(run_id).unwrap();
    let urgent = || JobChange { priority: Some(5), ..JobChange::default() };
    assert_eq!(bench.store.jobs().change(jobs[0].id, urgent()).unwrap().priority, 5);
    assert!(conflict(bench.store.jobs().change(jobs[1].id, urgent())).contains("it is BLOCKED"));
    bench.assert_sound();
}

#[test]
fn a_job_that_waits_or_has_ended_is_deleted() {
    let bench = Bench::new();
    let worker = bench.worker();
    let ended = dead(&bench, worker, "noop", "x");
    let waiting = bench.enqueue(noop());
    let concurrency = Some(Concurrency { key: "k".to_owned(), limit: 1, on_full: OnFull::Wait });
    let keyed = bench.store.jobs().enqueue(vec![NewJob { concurrency, ..noop() }; 2]).unwrap();
    for id in [ended, waiting, keyed[0]] {
        bench.store.jobs().delete(id).unwrap();
        assert!(matches!(bench.store.jobs().delete(id), Err(Error::NotFound { .. })));
    }
    bench.store.for_scheduler().admit_waiting("").unwrap();
    let claimed = bench.claim(worker, 5);
    assert_eq!(claimed.iter().map(|job| job.id).collect::<Vec<_>>(), [keyed[1]], "the slot is free");
    assert!(conflict(bench.store.jobs().delete(keyed[1])).contains("it is RUNNING; cancel it first"));
    let run_id = bench.submit(graph(vec![vec![]]));
    let of_run = bench.store.jobs().of_run(run_id).unwrap()[0].id;
    assert!(conflict(bench.store.jobs().delete(of_run)).contains("it belongs to run 1"));
    assert_eq!(bench.raw().rows("SELECT count(*) FROM job_attempts", |row| row.get::<_, i64>(0)), [0]);
    bench.assert_sound();
}

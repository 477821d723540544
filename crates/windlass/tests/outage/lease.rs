//! The lease of a worker that can't reach its database.

use std::time::{Duration, Instant};

use windlass::{JobStatus, NewJob, StopCause, Unavailable, WorkerOptions};

use crate::bench::{Bench, Executions, LEASE_MS, options, wait_for};
use crate::faulty::{How, Which};

fn lease() -> Duration {
    Duration::from_millis(LEASE_MS as u64)
}

fn unreachable() -> How {
    How::Refuse(Unavailable::Unreachable("the test says so".to_owned()))
}

/// Executions of a job never overlap: the first has ended before its worker can be considered dead.
fn assert_stops_before_another_worker_starts(how: How) {
    let bench = Bench::new();
    let executions = Executions::default();
    let worker = bench.worker(executions.handlers(), options());
    let first_id = worker.id();
    let id = bench.enqueue("waits");
    executions.wait_for_begin();
    let (other, _scheduler) = bench.other(executions.handlers());
    bench.faulty.fail(Which::All, how);
    let broken_at = Instant::now();
    let (ended_at, cause) = executions.wait_for_end();
    assert_eq!(cause, Some(StopCause::Fenced));
    let took = ended_at - broken_at;
    assert!(took < lease(), "stopped after {took:?} of a lease of {:?}", lease());
    assert!(took > lease() / 2, "stopped after {took:?}: several renewals may fail before");
    let job = bench.wait_for_job(id, JobStatus::Successful);
    let second = executions.all()[1].clone();
    assert!(second.began_at > ended_at, "the second began {:?} before the end", ended_at - second.began_at);
    assert_eq!((job.attempt, job.interruptions, job.worker_id), (2, 1, Some(other.id())));
    bench.faulty.mend();
    wait_for("the new registration", || (worker.id() != first_id).then_some(()));
    let after = bench.enqueue("noop");
    bench.wait_for_job(after, JobStatus::Successful);
    drop((worker, other));
    bench.assert_sound();
}

#[test]
fn a_worker_with_a_hanging_database_stops_its_jobs_in_time() {
    assert_stops_before_another_worker_starts(How::Hang);
}

#[test]
fn a_worker_with_an_unreachable_database_stops_its_jobs_in_time() {
    assert_stops_before_another_worker_starts(unreachable());
}

/// There was no other process to fence the worker.
fn assert_continues_under_its_own_id(how: How) {
    let bench = Bench::new();
    let executions = Executions::default();
    let worker = bench.worker(executions.handlers(), options());
    let worker_id = worker.id();
    let id = bench.enqueue("waits");
    executions.wait_for_begin();
    bench.faulty.fail(Which::All, how);
    assert_eq!(executions.wait_for_end().1, Some(StopCause::Fenced));
    let unseen = bench.enqueue("noop");
    assert_eq!(
        bench.store.jobs().get(id).unwrap().status,
        JobStatus::Running,
        "the result could not be sent"
    );
    bench.faulty.mend();
    let job = bench.wait_for_job(id, JobStatus::Successful);
    assert_eq!((job.attempt, job.interruptions, job.failures), (2, 1, 0));
    assert_eq!(bench.outcomes(id), [(1, "interrupted".to_owned())]);
    bench.wait_for_job(unseen, JobStatus::Successful);
    assert_eq!(worker.id(), worker_id, "it was not fenced");
    drop(worker);
    bench.assert_sound();
}

#[test]
fn a_worker_that_was_not_fenced_continues_after_its_database_hung() {
    assert_continues_under_its_own_id(How::Hang);
}

#[test]
fn a_worker_that_was_not_fenced_continues_after_its_database_was_unreachable() {
    assert_continues_under_its_own_id(unreachable());
}

#[test]
fn a_worker_continues_when_the_server_accepts_writes_again() {
    assert_continues_under_its_own_id(How::Refuse(Unavailable::Standby));
}

#[test]
fn the_processes_of_a_job_are_killed_in_time_even_if_they_ignore_signals() {
    let bench = Bench::new();
    let executions = Executions::default();
    let worker = bench.worker(executions.handlers(), WorkerOptions { grace_ms: 60_000, ..options() });
    let file = bench.folder.path().join("lines");
    // Its processes include one that has left the process group.
    let script = "trap '' TERM; setsid sh -c 'while :; do echo escaped >> $FILE; sleep 0.02; done' & \
                  while :; do echo $WINDLASS_ATTEMPT >> $FILE; sleep 0.02; done";
    let payload = serde_json::json!({ "run": script, "env": { "FILE": file } }).to_string();
    let id = bench.store.jobs().enqueue(vec![NewJob::new("shell", payload)]).unwrap()[0];
    let lines = || std::fs::read_to_string(&file).unwrap_or_default();
    wait_for("its first lines", || (lines().contains('1') && lines().contains("escaped")).then_some(()));
    // A request to stop with a grace time must not delay the kill.
    bench.store.jobs().cancel(id).unwrap();
    wait_for("the request to stop", || bench.has_log(id, "SIGTERM").then_some(()));
    bench.faulty.fail(Which::All, How::Hang);
    let broken_at = Instant::now();
    let mut seen = (lines().len(), Instant::now());
    while seen.1.elapsed() < Duration::from_millis(400) {
        assert!(broken_at.elapsed() < lease() + Duration::from_millis(400), "it still writes");
        std::thread::sleep(Duration::from_millis(5));
        let length = lines().len();
        if length != seen.0 {
            seen = (length, Instant::now());
        }
    }
    assert!(seen.1 - broken_at < lease(), "it wrote until {:?}", seen.1 - broken_at);
    bench.faulty.mend();
    bench.wait_for_job(id, JobStatus::Cancelled);
    drop(worker);
    bench.assert_sound();
}

#[test]
fn a_result_from_before_the_end_of_the_lease_is_sent_later() {
    let bench = Bench::new();
    let executions = Executions::default();
    let worker = bench.worker(executions.handlers(), options());
    let id = bench.enqueue("waits");
    executions.wait_for_begin();
    bench.faulty.fail(Which::All, unreachable());
    executions.let_end();
    assert_eq!(executions.wait_for_end().1, None);
    std::thread::sleep(lease());
    bench.faulty.mend();
    let job = bench.wait_for_job(id, JobStatus::Successful);
    assert_eq!((job.attempt, job.interruptions, executions.all().len()), (1, 0, 1));
    drop(worker);
    bench.assert_sound();
}

#[test]
fn a_late_result_is_refused_if_another_worker_has_the_job() {
    let bench = Bench::new();
    let executions = Executions::default();
    let worker = bench.worker(executions.handlers(), options());
    let id = bench.enqueue("waits");
    executions.wait_for_begin();
    bench.faulty.fail(Which::All, How::Hang);
    executions.let_end();
    executions.wait_for_end();
    let (other, _scheduler) = bench.other(executions.handlers());
    bench.wait_for_job(id, JobStatus::Successful);
    bench.faulty.mend();
    let after = bench.enqueue("noop");
    bench.wait_for_job(after, JobStatus::Successful);
    let job = bench.store.jobs().get(id).unwrap();
    assert_eq!((job.attempt, job.worker_id), (2, Some(other.id())), "the other worker's result is kept");
    drop((worker, other));
    bench.assert_sound();
}

#[test]
fn prefetched_jobs_are_not_started_after_the_lease() {
    let bench = Bench::new();
    let executions = Executions::default();
    let options = WorkerOptions { threads: 1, ..options() };
    let worker = bench.worker(executions.handlers(), options);
    // Short jobs make the worker prefetch some.
    bench.store.jobs().enqueue(vec![NewJob::new("noop", "null"); 3_000]).unwrap();
    wait_for("the short jobs", || (bench.store.jobs().count_active().unwrap() == 0).then_some(()));
    let first = NewJob { priority: 10, ..NewJob::new("waits", "null") };
    let ids =
        bench.store.jobs().enqueue([vec![first], vec![NewJob::new("waits", "null"); 20]].concat()).unwrap();
    executions.wait_for_begin();
    // Before they are given back for waiting too long.
    bench.faulty.fail(Which::All, How::Hang);
    executions.wait_for_end();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(executions.all().len(), 1, "other workers may have the rest");
    bench.faulty.mend();
    for id in &ids {
        bench.wait_for_job(*id, JobStatus::Successful);
    }
    let attempts: Vec<i64> = ids.iter().map(|id| bench.store.jobs().get(*id).unwrap().attempt).collect();
    assert_eq!(
        (attempts[0], attempts[1..].iter().max()),
        (2, Some(&1)),
        "jobs that never started do not count"
    );
    drop(worker);
    bench.assert_sound();
}

//! The lease of a worker that can't reach its database.

use std::time::{Duration, Instant};

use windlass::NewJob;
use windlass::{JobStatus, StopCause, Unavailable, WorkerOptions};

use crate::bench::{Bench, Executions, LEASE_MS, options, wait_for};
use crate::faulty::{How, Which};

fn lease() -> Duration {
    Duration::from_millis(LEASE_MS as u64)
}

fn unreachable() -> How {
    How::Refuse(Unavailable::Unreachable("the test says so".to_owned()))
}

/// Two executions of a job never overlap: the first is over before its worker may be thought dead.
fn stops_before_others_begin(how: How) {
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
fn a_worker_whose_database_hangs_stops_its_jobs_before_others_begin_them() {
    stops_before_others_begin(How::Hang);
}

#[test]
fn a_worker_whose_database_is_unreachable_stops_its_jobs_before_others_begin_them() {
    stops_before_others_begin(unreachable());
}

/// Nobody else was there to fence it.
fn goes_on_under_its_own_id(how: How) {
    let bench = Bench::new();
    let executions = Executions::default();
    let worker = bench.worker(executions.handlers(), options());
    let worker_id = worker.id();
    let id = bench.enqueue("waits");
    executions.wait_for_begin();
    bench.faulty.fail(Which::All, how);
    assert_eq!(executions.wait_for_end().1, Some(StopCause::Fenced));
    let unseen = bench.enqueue("noop");
    assert_eq!(bench.store.jobs().get(id).unwrap().status, JobStatus::Running, "nobody could be told");
    bench.faulty.mend();
    let job = bench.wait_for_job(id, JobStatus::Successful);
    assert_eq!((job.attempt, job.interruptions, job.failures), (2, 1, 0));
    assert_eq!(bench.outcomes(id), [(1, "interrupted".to_owned())]);
    bench.wait_for_job(unseen, JobStatus::Successful);
    assert_eq!(worker.id(), worker_id, "nobody has fenced it");
    drop(worker);
    bench.assert_sound();
}

#[test]
fn a_worker_that_nobody_fenced_while_its_database_hung_goes_on() {
    goes_on_under_its_own_id(How::Hang);
}

#[test]
fn a_worker_that_nobody_fenced_while_its_database_was_unreachable_goes_on() {
    goes_on_under_its_own_id(unreachable());
}

#[test]
fn a_worker_goes_on_when_a_server_takes_writes_again() {
    goes_on_under_its_own_id(How::Refuse(Unavailable::Standby));
}

#[test]
fn the_process_of_a_job_is_killed_in_time_whatever_it_ignores() {
    let bench = Bench::new();
    let executions = Executions::default();
    let worker = bench.worker(executions.handlers(), WorkerOptions { grace_ms: 60_000, ..options() });
    let file = bench.folder.path().join("lines");
    // Also a process of it that left its group.
    let script = "trap '' TERM; setsid sh -c 'while :; do echo escaped >> $FILE; sleep 0.02; done' & \
                  while :; do echo $WINDLASS_ATTEMPT >> $FILE; sleep 0.02; done";
    let payload = serde_json::json!({ "run": script, "env": { "FILE": file } }).to_string();
    let id = bench.store.jobs().enqueue(vec![NewJob::new("shell", payload)]).unwrap()[0];
    let lines = || std::fs::read_to_string(&file).unwrap_or_default();
    wait_for("its first lines", || (lines().contains('1') && lines().contains("escaped")).then_some(()));
    // A stop that leaves it time does not help it.
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
fn what_ended_before_the_lease_did_is_offered_later() {
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
fn what_ended_too_late_to_be_told_is_refused_when_somebody_else_has_it() {
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
    assert_eq!((job.attempt, job.worker_id), (2, Some(other.id())), "the other's result stays");
    drop((worker, other));
    bench.assert_sound();
}

#[test]
fn what_waits_in_memory_is_not_started_after_the_lease() {
    let bench = Bench::new();
    let executions = Executions::default();
    let options = WorkerOptions { threads: 1, ..options() };
    let worker = bench.worker(executions.handlers(), options);
    // Short jobs teach it to hold some in memory.
    bench.store.jobs().enqueue(vec![NewJob::new("noop", "null"); 3_000]).unwrap();
    wait_for("the short jobs", || (bench.store.jobs().count_active().unwrap() == 0).then_some(()));
    let first = NewJob { priority: 10, ..NewJob::new("waits", "null") };
    let ids =
        bench.store.jobs().enqueue([vec![first], vec![NewJob::new("waits", "null"); 20]].concat()).unwrap();
    executions.wait_for_begin();
    // Before they are given back because they wait for too long.
    bench.faulty.fail(Which::All, How::Hang);
    executions.wait_for_end();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(executions.all().len(), 1, "others may have the rest by now");
    bench.faulty.mend();
    for id in &ids {
        bench.wait_for_job(*id, JobStatus::Successful);
    }
    let attempts: Vec<i64> = ids.iter().map(|id| bench.store.jobs().get(*id).unwrap().attempt).collect();
    assert_eq!(
        (attempts[0], attempts[1..].iter().max()),
        (2, Some(&1)),
        "what never began counts for nothing"
    );
    drop(worker);
    bench.assert_sound();
}

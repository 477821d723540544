//! A worker that must stop while its database can't be used.

use std::time::{Duration, Instant};

use windlass::{Error, JobStatus, Unavailable, WorkerOptions};

use crate::bench::{Bench, Executions, options, wait_for};
use crate::faulty::{How, Which};

/// Asking a worker to stop returns within this time.
const AT_ONCE: Duration = Duration::from_secs(1);
/// How long a stopping worker waits for its database, plus some time for a loaded machine.
const SOON: Duration = Duration::from_secs(12);

fn unreachable() -> How {
    How::Refuse(Unavailable::Unreachable("the test says so".to_owned()))
}

#[test]
fn a_draining_worker_keeps_its_results_until_the_database_is_back() {
    for how in [How::Hang, unreachable()] {
        let bench = Bench::new();
        let executions = Executions::default();
        let worker = bench.worker(executions.handlers(), options());
        let id = bench.enqueue("waits");
        executions.wait_for_begin();
        bench.faulty.fail(Which::All, how);
        let asked_at = Instant::now();
        worker.drain();
        assert!(asked_at.elapsed() < AT_ONCE);
        executions.let_end();
        executions.wait_for_end();
        std::thread::sleep(Duration::from_millis(200));
        assert!(!worker.has_ended(), "a result waits");
        bench.faulty.mend();
        worker.join().unwrap();
        let job = bench.store.jobs().get(id).unwrap();
        assert_eq!((job.status, job.attempt), (JobStatus::Successful, 1));
        assert!(bench.store.workers().live().unwrap().is_empty());
        bench.assert_sound();
    }
}

#[test]
fn a_stopping_worker_does_not_wait_for_the_database() {
    for how in [How::Hang, unreachable()] {
        let bench = Bench::new();
        let executions = Executions::default();
        let worker = bench.worker(executions.handlers(), options());
        let id = bench.enqueue("waits");
        executions.wait_for_begin();
        bench.faulty.fail(Which::All, how);
        worker.drain();
        let asked_at = Instant::now();
        worker.leave();
        assert!(asked_at.elapsed() < AT_ONCE);
        let left = worker.join();
        assert!(matches!(left, Err(Error::Unavailable { .. })), "{left:?}");
        assert!(asked_at.elapsed() < SOON, "{:?}", asked_at.elapsed());
        assert!(executions.all()[0].ended.is_some(), "the running job was stopped");
        bench.faulty.mend();
        let (other, _scheduler) = bench.other(executions.handlers());
        let job = bench.wait_for_job(id, JobStatus::Successful);
        assert_eq!((job.attempt, job.worker_id), (2, Some(other.id())));
        drop(other);
        bench.assert_sound();
    }
}

#[test]
fn an_executor_that_waits_for_the_database_does_not_delay_the_stop() {
    let bench = Bench::new();
    let executions = Executions::default();
    // No other worker takes the job back during the test, so no test has to wait for that.
    let worker = bench.worker(executions.handlers(), WorkerOptions { lease_ms: 600_000, ..options() });
    bench.enqueue("waits");
    executions.wait_for_begin();
    bench.faulty.fail(Which::All, How::Hang);
    executions.let_end();
    executions.wait_for_end();
    wait_for("the unanswered write", || (worker.unanswered_ms() > 0).then_some(()));
    let asked_at = Instant::now();
    worker.leave();
    assert!(matches!(worker.join(), Err(Error::Unavailable { .. })));
    assert!(asked_at.elapsed() < SOON, "{:?}", asked_at.elapsed());
    bench.faulty.mend();
}

#[test]
fn a_worker_that_stops_with_a_hanging_database_leaves_no_processes() {
    let bench = Bench::new();
    let worker = bench.worker(Executions::default().handlers(), options());
    let file = bench.folder.path().join("pid");
    let payload = serde_json::json!({ "run": "echo $$ > $FILE; sleep 600", "env": { "FILE": file } });
    let job = windlass::NewJob::new("shell", payload.to_string());
    bench.store.jobs().enqueue(vec![job]).unwrap();
    let pid =
        wait_for("its process", || std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n')));
    bench.faulty.fail(Which::All, How::Hang);
    worker.leave();
    worker.join().unwrap_err();
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists());
    bench.faulty.mend();
}

#[test]
fn waiting_for_the_database_is_limited() {
    let bench = Bench::new();
    let executions = Executions::default();
    let options = WorkerOptions { patience_ms: Some(300), ..options() };
    let worker = bench.worker(executions.handlers(), options);
    bench.enqueue("waits");
    executions.wait_for_begin();
    bench.faulty.fail(Which::All, unreachable());
    let broken_at = Instant::now();
    executions.let_end();
    let gave_up = worker.join();
    assert!(matches!(gave_up, Err(Error::Unavailable { .. })), "{gave_up:?}");
    assert!(broken_at.elapsed() < SOON, "{:?}", broken_at.elapsed());
}

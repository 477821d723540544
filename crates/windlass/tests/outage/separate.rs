//! A hanging write must not block other work.

use std::time::{Duration, Instant};

use windlass::{JobStatus, NewJob, StopCause, WorkerOptions};

use crate::bench::{Bench, Executions, options, wait_for};
use crate::faulty::{How, Which};

const LOGS: Which = Which::Write("write logs");
const RENEWALS: Which = Which::Write("renew a lease");
const FINISHES: Which = Which::Write("finish and claim jobs");

fn shell(bench: &Bench, script: &str) -> i64 {
    let go = bench.folder.path().join("go");
    let payload = serde_json::json!({ "run": script, "env": { "GO": go } }).to_string();
    let job = NewJob { max_attempts: 1, ..NewJob::new("shell", payload) };
    bench.store.jobs().enqueue(vec![job]).unwrap()[0]
}

fn go(bench: &Bench) {
    std::fs::write(bench.folder.path().join("go"), "").unwrap();
}

fn heartbeats(bench: &Bench, worker_id: i64) -> i64 {
    let workers = bench.store.workers().live().unwrap();
    workers.into_iter().find(|worker| worker.id == worker_id).map_or(0, |worker| worker.heartbeats)
}

fn lines(bench: &Bench, job_id: i64) -> usize {
    bench.store.logs().last(job_id, 1, 1_000).unwrap().len()
}

#[test]
fn hanging_output_does_not_block_the_lease() {
    let bench = Bench::new();
    let worker = bench.worker(Executions::default().handlers(), options());
    let id = shell(&bench, "echo begun; until [ -e $GO ]; do sleep 0.02; echo more; done");
    wait_for("its first line", || (lines(&bench, id) > 0).then_some(()));
    bench.faulty.fail(LOGS, How::Hang);
    let before = heartbeats(&bench, worker.id());
    // More lines than fit into one lease.
    wait_for("renewals", || (heartbeats(&bench, worker.id()) >= before + 8).then_some(()));
    go(&bench);
    let job = bench.wait_for_job(id, JobStatus::Successful);
    assert_eq!(job.attempt, 1);
    bench.faulty.mend();
    drop(worker);
    bench.assert_sound();
}

#[test]
fn a_hanging_renewal_does_not_block_output_and_claims_nothing() {
    let bench = Bench::new();
    let executions = Executions::default();
    let worker = bench.worker(executions.handlers(), options());
    let id = shell(&bench, "until [ -e $GO ]; do sleep 0.02; echo more; done");
    wait_for("its first lines", || (lines(&bench, id) > 0).then_some(()));
    bench.faulty.fail(RENEWALS, How::Hang);
    let before = lines(&bench, id);
    wait_for("more lines", || (lines(&bench, id) > before + 10).then_some(()));
    // The lease ends, the worker notices, and then no job may start.
    let job = bench.wait_for_job(id, JobStatus::Pending);
    assert_eq!((job.attempt, job.interruptions), (1, 1));
    let other = bench.enqueue("noop");
    std::thread::sleep(Duration::from_millis(300));
    for id in [id, other] {
        assert_eq!(bench.store.jobs().get(id).unwrap().status, JobStatus::Pending, "it could not be started");
    }
    go(&bench);
    bench.faulty.mend();
    bench.wait_for_job(other, JobStatus::Successful);
    assert_eq!(bench.wait_for_job(id, JobStatus::Successful).attempt, 2);
    drop(worker);
    bench.assert_sound();
}

#[test]
fn hanging_results_do_not_block_requests_to_stop() {
    let bench = Bench::new();
    let executions = Executions::default();
    let worker = bench.worker(executions.handlers(), options());
    let id = bench.enqueue("waits");
    executions.wait_for_begin();
    bench.faulty.fail(FINISHES, How::Hang);
    bench.enqueue("noop");
    bench.store.jobs().cancel(id).unwrap();
    assert_eq!(executions.wait_for_end().1, Some(StopCause::Cancelled));
    bench.faulty.mend();
    bench.wait_for_job(id, JobStatus::Cancelled);
    drop(worker);
    bench.assert_sound();
}

#[test]
fn output_that_arrives_during_a_write_is_not_lost() {
    let bench = Bench::new();
    bench.faulty.fail(LOGS, How::Delay(Duration::from_millis(300)));
    let worker = bench.worker(Executions::default().handlers(), options());
    let script = "for line in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $line; sleep 0.05; done; \
                  until [ -e $GO ]; do sleep 0.02; done";
    let id = shell(&bench, script);
    wait_for("all its lines while it is running", || (lines(&bench, id) == 12).then_some(()));
    assert_eq!(bench.store.jobs().get(id).unwrap().status, JobStatus::Running);
    go(&bench);
    bench.wait_for_job(id, JobStatus::Successful);
    drop(worker);
}

#[test]
fn a_worker_with_a_slow_database_leaves_jobs_to_others() {
    let bench = Bench::new();
    let executions = Executions::default();
    bench.faulty.fail(Which::All, How::Delay(Duration::from_millis(50)));
    let worker = bench.worker(executions.handlers(), WorkerOptions { threads: 1, ..options() });
    bench.store.jobs().enqueue(vec![NewJob::new("noop", "null"); 3_000]).unwrap();
    wait_for("the short jobs", || (bench.store.jobs().count_active().unwrap() == 0).then_some(()));
    let long = NewJob { priority: 10, ..NewJob::new("waits", "null") };
    let ids =
        bench.store.jobs().enqueue([vec![long], vec![NewJob::new("noop", "null"); 200]].concat()).unwrap();
    executions.wait_for_begin();
    let began = Instant::now();
    let (other, _scheduler) = bench.other(Executions::default().handlers());
    for id in &ids[1..] {
        bench.wait_for_job(*id, JobStatus::Successful);
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(executions.all()[0].ended.is_none());
    executions.let_end();
    bench.wait_for_job(ids[0], JobStatus::Successful);
    drop((worker, other));
    bench.assert_sound();
}

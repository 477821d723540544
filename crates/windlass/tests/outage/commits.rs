//! Commits whose answer was lost, and a server that took over and lacks some commits.

use windlass::{Clock, JobStatus, NewJob, StopCause, WorkerOptions};
use windlass_engine::store::{NewWorker, Scope, WorkerCapabilities};

use crate::bench::{Bench, Executions, options, wait_for};
use crate::faulty::{How, Which};

const FINISHES: Which = Which::Write("finish and claim jobs");

/// Makes the next commit of the dispatcher report an unknown outcome, so that the dispatcher checks its attempts in
/// flight.
fn lose_one_answer(bench: &Bench) {
    bench.faulty.fail(FINISHES, How::LoseAnswer(1));
    let job_id = bench.enqueue("noop");
    bench.wait_for_job(job_id, JobStatus::Successful);
    assert!(bench.faulty.has_lost_all());
    bench.faulty.mend();
}

#[test]
fn jobs_of_a_claim_whose_answer_was_lost_are_executed_once() {
    let bench = Bench::new();
    let ids = bench.store.jobs().enqueue(vec![NewJob::new("waits", "null"); 3]).unwrap();
    // Nothing of them was executed, so nothing was interrupted.
    bench.sql("UPDATE jobs SET on_interrupt = 'fail'");
    let executions = Executions::default();
    executions.let_end();
    bench.faulty.fail(FINISHES, How::LoseAnswer(1));
    let worker = bench.worker(executions.handlers(), options());
    for id in &ids {
        let job = bench.wait_for_job(*id, JobStatus::Successful);
        assert_eq!((job.attempt, job.interruptions), (1, 0));
        assert_eq!(bench.outcomes(*id), []);
    }
    assert!(bench.faulty.has_lost_all());
    assert_eq!(executions.all().len(), ids.len());
    drop(worker);
    bench.assert_sound();
}

#[test]
fn a_result_whose_answer_was_lost_is_recorded_once() {
    let bench = Bench::new();
    let executions = Executions::default();
    let worker = bench.worker(executions.handlers(), options());
    let id = bench.enqueue("waits");
    executions.wait_for_begin();
    bench.faulty.fail(FINISHES, How::LoseAnswer(2));
    executions.let_end();
    let job = bench.wait_for_job(id, JobStatus::Successful);
    wait_for("the lost answers", || bench.faulty.has_lost_all().then_some(()));
    let after = bench.enqueue("noop");
    bench.wait_for_job(after, JobStatus::Successful);
    assert_eq!((job.attempt, executions.all().len()), (1, 1));
    assert_eq!(bench.store.jobs().get(id).unwrap(), job, "nothing changed it again");
    drop(worker);
    bench.assert_sound();
}

#[test]
fn a_result_that_the_database_lost_interrupts_the_job() {
    let bench = Bench::new();
    let executions = Executions::default();
    executions.let_end();
    let worker = bench.worker(executions.handlers(), options());
    let ids = [bench.enqueue("waits"), bench.enqueue("waits")];
    for id in ids {
        bench.wait_for_job(id, JobStatus::Successful);
    }
    // As after a failover to a server that these commits have not reached.
    bench.sql("UPDATE jobs SET status = 'RUNNING', finished_at = NULL");
    bench.sql(&format!("UPDATE jobs SET on_interrupt = 'fail' WHERE id = {}", ids[1]));
    lose_one_answer(&bench);
    let again = bench.wait_for_job(ids[0], JobStatus::Successful);
    assert_eq!((again.attempt, again.interruptions), (2, 1));
    let failed = bench.wait_for_job(ids[1], JobStatus::Failed);
    assert!(failed.last_error.unwrap().starts_with("interrupted, outcome unknown"), "it may have run");
    drop(worker);
    bench.assert_sound();
}

#[test]
fn a_job_whose_claim_the_database_lost_never_runs_twice_at_a_time() {
    let bench = Bench::new();
    let executions = Executions::default();
    let worker = bench.worker(executions.handlers(), options());
    let id = bench.enqueue("waits");
    executions.wait_for_begin();
    bench.sql(&format!("UPDATE jobs SET status = 'PENDING', attempt = 0, worker_id = NULL WHERE id = {id}"));
    let after = bench.enqueue("noop");
    bench.wait_for_job(after, JobStatus::Successful);
    assert_eq!(bench.store.jobs().get(id).unwrap().worker_id, Some(worker.id()), "it was claimed again");
    executions.let_end();
    let job = bench.wait_for_job(id, JobStatus::Successful);
    assert_eq!((job.attempt, executions.all().len()), (1, 1));
    drop(worker);
    bench.assert_sound();
}

#[test]
fn a_job_that_the_database_gave_to_another_worker_is_stopped() {
    let bench = Bench::new();
    let executions = Executions::default();
    let worker = bench.worker(executions.handlers(), options());
    let id = bench.enqueue("waits");
    executions.wait_for_begin();
    let other = NewWorker {
        host: "another".to_owned(),
        pid: 1,
        process: "another".to_owned(),
        scope: Scope::Everything,
        worker_capabilities: WorkerCapabilities::of_kinds(vec!["waits".to_owned()]),
        threads: 1,
        lease_ms: 600_000,
    };
    let other = bench.store.for_workers().register(other).unwrap();
    bench.sql(&format!("UPDATE jobs SET worker_id = {other} WHERE id = {id}"));
    lose_one_answer(&bench);
    assert_eq!(executions.wait_for_end().1, Some(StopCause::Fenced));
    let after = bench.enqueue("noop");
    bench.wait_for_job(after, JobStatus::Successful);
    let job = bench.store.jobs().get(id).unwrap();
    assert_eq!(
        (job.status, job.worker_id),
        (JobStatus::Running, Some(other)),
        "the other worker's attempt is not changed"
    );
    drop(worker);
    bench.assert_sound();
}

#[test]
fn the_in_flight_check_runs_regularly() {
    let clock = Clock::manual(1_000_000);
    let bench = Bench::with(&clock);
    let executions = Executions::default();
    executions.let_end();
    let hour_ms = 3_600_000;
    let worker = bench.worker(executions.handlers(), WorkerOptions { lease_ms: hour_ms, ..options() });
    let id = bench.enqueue("waits");
    bench.wait_for_job(id, JobStatus::Successful);
    bench.sql("UPDATE jobs SET status = 'RUNNING', finished_at = NULL");
    clock.advance_ms(31_000);
    let job = wait_for("the second execution", || {
        let job = bench.store.jobs().get(id).unwrap();
        (job.attempt == 2 && job.status == JobStatus::Successful).then_some(job)
    });
    assert_eq!(job.interruptions, 1);
    drop(worker);
    bench.assert_sound();
}

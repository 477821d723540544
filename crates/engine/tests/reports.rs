//! Reports: a worker in another language writes one guarded UPDATE, and Windlass applies the consequences.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, graph, noop};
use windlass_engine::store::{ClaimedJob, NewJob};
use windlass_engine::{JobStatus, RunStatus};
use windlass_workflow::{Expression, Retry};

/// Writes what such a worker writes at the end of an attempt.
fn report(bench: &Bench, worker_id: i64, job: &ClaimedJob, what: &str) {
    bench.raw().execute(&format!(
        "UPDATE jobs SET {what} WHERE id = {} AND status = 'RUNNING' AND attempt = {} AND worker_id = {worker_id}",
        job.id, job.retry_state.attempt
    ));
}

fn apply_reports(bench: &Bench) -> i64 {
    bench.assert_sound();
    let applied = bench.store.for_scheduler().apply_reports().unwrap();
    bench.assert_sound();
    applied
}

#[test]
fn a_success_gets_its_end_and_keeps_its_output() {
    let bench = Bench::new();
    let worker = bench.worker();
    for (output, kept) in
        [("'{\"n\": 1}'", Some("{\"n\": 1}")), ("'no JSON'", Some("\"no JSON\"")), ("NULL", None)]
    {
        let id = bench.enqueue(noop());
        let claimed = bench.claim(worker, 1);
        report(&bench, worker, &claimed[0], &format!("status = 'SUCCESSFUL', output = {output}"));
        assert_eq!(bench.store.jobs().get(id).unwrap().finished_at, None);
        assert_eq!(apply_reports(&bench), 1);
        let job = bench.store.jobs().get(id).unwrap();
        assert_eq!((job.status, job.output.as_deref()), (JobStatus::Successful, kept));
        assert_eq!(job.finished_at, Some(bench.clock.now_ms()));
        assert_eq!(job.worker_id, Some(worker));
    }
    assert_eq!(apply_reports(&bench), 0, "once");
}

#[test]
fn a_reported_failure_is_retried_as_the_job_says() {
    let bench = Bench::new();
    let worker = bench.worker();
    let id = bench.enqueue(NewJob { max_attempts: 2, unique_key: Some("key".to_owned()), ..noop() });
    let claimed = bench.claim(worker, 1);
    report(&bench, worker, &claimed[0], "status = 'FAILED', last_error = 'no luck'");
    let taken = bench.store.jobs().enqueue(vec![NewJob { unique_key: Some("key".to_owned()), ..noop() }]);
    assert!(taken.is_err(), "the job keeps its key until it is finished");
    assert_eq!(apply_reports(&bench), 1);
    let job = bench.store.jobs().get(id).unwrap();
    assert_eq!((job.status, job.failures, job.finished_at), (JobStatus::Scheduled, 1, None));
    assert!(job.execute_after > bench.clock.now_ms(), "after the backoff");
    bench.clock.advance_ms(3_600_000);
    bench.store.for_scheduler().promote_due().unwrap();
    let claimed = bench.claim(worker, 1);
    report(&bench, worker, &claimed[0], "status = 'FAILED', last_error = NULL");
    assert_eq!(apply_reports(&bench), 1);
    let job = bench.store.jobs().get(id).unwrap();
    assert_eq!((job.status, job.failures), (JobStatus::Failed, 2));
    let attempts = bench.store.jobs().attempts(id).unwrap();
    let errors: Vec<&str> =
        attempts.iter().map(|attempt| attempt.error.as_deref().unwrap_or_default()).collect();
    assert_eq!(errors, ["no luck", "it failed, and its worker reported no reason"]);
}

#[test]
fn a_reported_failure_may_be_final() {
    let bench = Bench::new();
    let worker = bench.worker();
    let id = bench.enqueue(noop());
    let claimed = bench.claim(worker, 1);
    report(&bench, worker, &claimed[0], "status = 'FAILED', max_attempts = failures + 1");
    assert_eq!(apply_reports(&bench), 1);
    assert_eq!(bench.store.jobs().get(id).unwrap().status, JobStatus::Failed);
}

#[test]
fn children_and_runs_continue_after_a_report() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run_id = bench.submit(graph(vec![vec![], vec![0], vec![1]]));
    for step in 0..3 {
        let claimed = bench.claim(worker, 10);
        assert_eq!(claimed.len(), 1, "step {step}: one job at a time");
        report(&bench, worker, &claimed[0], "status = 'SUCCESSFUL'");
        assert!(bench.claim(worker, 10).is_empty(), "nothing before the report is applied");
        assert_eq!(apply_reports(&bench), 1);
    }
    let run = bench.store.runs().get(run_id).unwrap();
    assert_eq!((run.status, run.unfinished_jobs), (RunStatus::Successful, 0));
}

#[test]
fn a_reported_failure_skips_the_children() {
    let bench = Bench::new();
    let worker = bench.worker();
    let mut workflow = graph(vec![vec![], vec![0], vec![]]);
    workflow.jobs[0].retry = Retry { max_attempts: 1, ..Retry::default() };
    let run_id = bench.submit(workflow);
    let claimed = bench.claim(worker, 10);
    report(&bench, worker, &claimed[0], "status = 'FAILED', last_error = 'broken'");
    report(&bench, worker, &claimed[1], "status = 'CANCELLED'");
    assert_eq!(apply_reports(&bench), 2);
    let states: Vec<JobStatus> =
        bench.store.jobs().of_run(run_id).unwrap().iter().map(|job| job.status).collect();
    assert_eq!(states, [JobStatus::Failed, JobStatus::Skipped, JobStatus::Cancelled]);
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Failed);
}

#[test]
fn a_job_that_is_asked_to_stop_is_not_retried_after_a_report() {
    let bench = Bench::new();
    let worker = bench.worker();
    let id = bench.enqueue(noop());
    let claimed = bench.claim(worker, 1);
    bench.store.jobs().cancel(id).unwrap();
    report(&bench, worker, &claimed[0], "status = 'FAILED', last_error = 'stopped'");
    assert_eq!(apply_reports(&bench), 1);
    assert_eq!(bench.store.jobs().get(id).unwrap().status, JobStatus::Cancelled);
}

#[test]
fn a_report_is_never_rescued_and_counts_after_its_worker_died() {
    let bench = Bench::new();
    let worker = bench.worker();
    let id = bench.enqueue(noop());
    let claimed = bench.claim(worker, 1);
    report(&bench, worker, &claimed[0], "status = 'SUCCESSFUL'");
    assert_eq!(bench.store.for_scheduler().rescue(vec![(worker, 0)]).unwrap().jobs, 0);
    assert_eq!(apply_reports(&bench), 1);
    let job = bench.store.jobs().get(id).unwrap();
    assert_eq!((job.status, job.interruptions), (JobStatus::Successful, 0));
}

#[test]
fn a_row_that_was_finished_by_hand_is_applied() {
    let bench = Bench::new();
    let run_id = bench.submit(graph(vec![vec![], vec![0]]));
    let first = bench.store.jobs().of_run(run_id).unwrap()[0].id;
    bench.raw().execute(&format!("UPDATE jobs SET status = 'SUCCESSFUL' WHERE id = {first}"));
    assert_eq!(apply_reports(&bench), 1);
    assert_eq!(bench.store.jobs().of_run(run_id).unwrap()[1].status, JobStatus::Pending);
}

#[test]
fn many_reports_are_applied_in_batches_and_concurrently() {
    let bench = Bench::new();
    let worker = bench.worker();
    bench.store.jobs().enqueue(vec![noop(); 1_200]).unwrap();
    bench.claim(worker, 1_000);
    bench.claim(worker, 1_000);
    bench.raw().execute("UPDATE jobs SET status = 'SUCCESSFUL'");
    let applied: i64 = std::thread::scope(|scope| {
        let settlers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut applied = 0;
                    loop {
                        match bench.store.for_scheduler().apply_reports().unwrap() {
                            0 => return applied,
                            some => applied += some,
                        }
                    }
                })
            })
            .collect();
        settlers.into_iter().map(|settler| settler.join().unwrap()).sum()
    });
    assert_eq!(applied + apply_reports(&bench), 1_200, "each job once");
}

#[test]
fn the_view_lists_the_jobs_that_windlass_would_claim() {
    let bench = Bench::new();
    let of_queue = |queue: &str, priority| NewJob { queue: queue.to_owned(), priority, ..noop() };
    let ids = bench
        .store
        .jobs()
        .enqueue(vec![of_queue("a", 0), of_queue("a", 10), of_queue("paused", 0), of_queue("full", 0)])
        .unwrap();
    bench.store.queues().pause("paused").unwrap();
    let raw = bench.raw();
    raw.execute("INSERT INTO queues (name, max_running) VALUES ('full', 0)");
    let seen =
        || raw.rows("SELECT id FROM claimable_jobs ORDER BY claim_order, id", |row| row.get::<_, i64>(0));
    assert_eq!(seen(), [ids[1], ids[0]]);
    raw.execute("UPDATE jobs SET requires = '[\"gpu\"]' WHERE queue = 'a' AND priority = 10");
    assert_eq!(seen(), [ids[0]]);
    raw.execute("UPDATE queues SET fifo = 1, paused_at = NULL, max_running = NULL");
    assert_eq!(seen(), [ids[0]], "the view leaves out queues in strict order");
}

#[test]
fn a_reported_failure_in_a_stopped_run_is_not_retried() {
    let bench = Bench::new();
    let worker = bench.worker();
    let retry = Retry { max_attempts: 5, ..Retry::default() };
    let mut workflow = graph(vec![vec![], vec![0]]);
    workflow.jobs[0].retry = retry;
    let run_id = bench.submit(workflow);
    report(&bench, worker, &bench.claim(worker, 1)[0], "status = 'FAILED'");
    let cancelled = bench.store.runs().cancel(run_id).unwrap();
    assert_eq!((cancelled.cancelled, cancelled.stopping), (1, 1));
    assert_eq!(apply_reports(&bench), 1);
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Cancelled);

    let alone = bench.enqueue(NewJob { max_attempts: 5, ..noop() });
    report(&bench, worker, &bench.claim(worker, 1)[0], "status = 'FAILED'");
    assert_eq!(bench.store.jobs().cancel(alone).unwrap().stopping, 1);
    assert!(bench.store.jobs().cancel(alone).is_err(), "once");
    assert_eq!(apply_reports(&bench), 1);
    assert_eq!(bench.store.jobs().get(alone).unwrap().status, JobStatus::Cancelled);
}

/// The tables refuse the consequences of this report, because the count of unfinished parents is wrong.
#[test]
fn a_report_that_cannot_be_applied_does_not_block_others() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run_id = bench.submit(graph(vec![vec![], vec![0]]));
    let sound = bench.enqueue(noop());
    for job in bench.claim(worker, 10) {
        report(&bench, worker, &job, "status = 'SUCCESSFUL'");
    }
    let refused = bench.store.jobs().find_by_name(run_id, "j0").unwrap().unwrap().id;
    bench.database.refuse(refused, "SUCCESSFUL");
    assert_eq!(bench.store.for_scheduler().apply_reports().unwrap(), 1);
    assert!(bench.store.jobs().get(sound).unwrap().finished_at.is_some());
    assert!(bench.store.for_scheduler().apply_reports().is_err(), "the error is returned");
    bench.database.allow();
    assert_eq!(bench.store.for_scheduler().apply_reports().unwrap(), 1);
    assert_eq!(bench.store.jobs().of_run(run_id).unwrap()[1].status, JobStatus::Pending);
}

#[test]
fn the_conditions_of_a_job_are_asked_about_a_reported_end() {
    let condition = |text: &str| Some(Expression::parse(text).unwrap());
    let bench = Bench::new();
    let worker = bench.worker();
    let mut workflow = graph(vec![vec![], vec![0], vec![0], vec![0]]);
    workflow.jobs[1].skip_if = condition("output.rows == 0 and jobs.j0.output == 7");
    workflow.jobs[2].success_if = condition("exit_code is none and output is none");
    workflow.jobs[3].retry =
        Retry { max_attempts: 5, condition: condition("run.workflow == 'another'"), ..Retry::default() };
    let run_id = bench.submit(workflow);
    let first = bench.claim(worker, 1);
    report(&bench, worker, &first[0], "status = 'SUCCESSFUL', output = '7'");
    apply_reports(&bench);
    let reports = [
        ("j1", "status = 'SUCCESSFUL', output = '{\"rows\": 0}'"),
        ("j2", "status = 'FAILED'"),
        ("j3", "status = 'FAILED', last_error = 'no luck'"),
    ];
    for job in bench.claim(worker, 9) {
        let (_name, what) =
            reports.iter().find(|(name, _what)| job.name.as_deref() == Some(*name)).copied().unwrap();
        report(&bench, worker, &job, what);
    }
    assert_eq!(apply_reports(&bench), 3);
    let jobs = bench.store.jobs().of_run(run_id).unwrap();
    let states: Vec<JobStatus> = jobs.iter().map(|job| job.status).collect();
    assert_eq!(states, [JobStatus::Successful, JobStatus::Skipped, JobStatus::Successful, JobStatus::Failed]);
    let error = jobs[3].last_error.as_deref().unwrap();
    assert!(error.starts_with("no luck; not tried again: `retry.if` was false"), "{error}");
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Failed);
}

//! Retrying a run: reset jobs are as if they had never run, and the others stay as they are.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, failure, graph, request, success};
use windlass_engine::store::{ClaimedJob, Job, RetrySelection, Scope};
use windlass_engine::transition::{Outcome, Repeat};
use windlass_engine::{JobStatus, RunStatus};
use windlass_workflow::Workflow;
use windlass_workflow::model::{Concurrency, OnFull};

/// A run with a timeout in which everything went wrong: jobs were interrupted, failed, wrote output, were asked to
/// stop at once, or never started.
fn failed_run(bench: &Bench, workflow: Workflow) -> i64 {
    let run_id = bench.submit(workflow);
    let gone = bench.worker();
    assert!(!bench.claim(gone, 100).is_empty());
    bench.clock.advance_ms(10);
    bench.store.for_scheduler().rescue(vec![(gone, 0)]).unwrap();
    let worker = bench.worker();
    for job in bench.claim(worker, 100) {
        bench.finish(worker, &job, failure());
    }
    bench.clock.advance_ms(1_000_000);
    // Promotes jobs that wait for a retry, and stops the run, which has reached its timeout.
    bench.store.for_scheduler().promote_due().unwrap();
    bench.raw().execute("UPDATE jobs SET cancel_requested_at = 7, cancel_at_once = 1, output = '1'");
    for job in bench.claim(worker, 100) {
        bench.finish(worker, &job, Outcome::Cancelled { error: "stopped".to_owned() });
    }
    assert!(bench.store.runs().get(run_id).unwrap().status.is_terminal());
    run_id
}

/// The columns of each job that a retry must reset.
fn job_columns(bench: &Bench, run_id: i64) -> Vec<String> {
    let sql = format!(
        "SELECT name, status, priority, execute_after - updated_at, failures, interruptions, cancel_requested_at,
                cancel_at_once, last_error, output, blocked_by, worker_id, started_at, finished_at
         FROM jobs WHERE run_id = {run_id} ORDER BY id"
    );
    let columns = |row: &windlass_test_database::Row| {
        Ok((0..14)
            .map(|column: usize| format!("{:?} ", row.get::<_, Option<String>>(column).unwrap()))
            .collect())
    };
    bench.raw().rows(&sql, columns)
}

fn run(bench: &Bench, run_id: i64) -> String {
    let sql = format!(
        "SELECT status, stop_reason, total_jobs, unfinished_jobs, failed_jobs, deadline_at, started_at, finished_at
         FROM runs WHERE id = {run_id}"
    );
    let columns = |row: &windlass_test_database::Row| {
        Ok((0..8)
            .map(|column: usize| format!("{:?} ", row.get::<_, Option<String>>(column).unwrap()))
            .collect())
    };
    bench.raw().rows(&sql, columns).remove(0)
}

fn workflow() -> Workflow {
    let mut workflow = graph(vec![vec![], vec![], vec![0, 1], vec![2]]);
    workflow.jobs[1].concurrency = Some(Concurrency { key: "k".to_owned(), limit: 1, on_full: OnFull::Wait });
    for job in &mut workflow.jobs {
        job.retry.max_attempts = 3;
    }
    Workflow { timeout_ms: Some(500_000), ..workflow }
}

#[test]
fn a_fully_retried_run_is_as_it_was_submitted() {
    for selection in [RetrySelection::Failed, RetrySelection::From("j0".to_owned())] {
        let mut workflow = workflow();
        if selection != RetrySelection::Failed {
            // Otherwise a job that does not depend on j0 would stay as it is, and its child could never start.
            workflow.jobs[1].needs = vec![0];
        }
        let bench = Bench::new();
        let unharmed = bench.submit(workflow.clone());
        let (expected_jobs, expected_run) = (job_columns(&bench, unharmed), run(&bench, unharmed));
        bench.store.runs().cancel(unharmed).unwrap();
        let run_id = failed_run(&bench, workflow);
        assert_ne!(job_columns(&bench, run_id), expected_jobs);
        bench.store.runs().retry(run_id, selection.clone()).unwrap();
        // After a retry the scheduler gives the free slot to the job. At a submission the slot was free at once.
        bench.store.for_scheduler().admit_waiting("").unwrap();
        assert_eq!(job_columns(&bench, run_id), expected_jobs, "{selection:?}");
        assert_eq!(run(&bench, run_id), expected_run, "{selection:?}");
        bench.assert_sound();
    }
}

/// The deadline is computed again from the first claim after the retry.
#[test]
fn a_retried_run_gets_its_whole_timeout_again() {
    let bench = Bench::new();
    let run_id = failed_run(&bench, workflow());
    bench.store.runs().retry(run_id, RetrySelection::Failed).unwrap();
    bench.clock.advance_ms(3_000_000);
    assert_eq!(bench.store.for_scheduler().promote_due().unwrap().expired, 0, "it has not started");
    let worker = bench.worker();
    bench.claim(worker, 1);
    let run = bench.store.runs().get(run_id).unwrap();
    assert_eq!(run.deadline_at, Some(bench.clock.now_ms() + 500_000));
    assert_eq!(
        bench.store.for_workers().cancel_requests(worker).unwrap(),
        [],
        "it was not asked to stop since the retry"
    );
}

/// Jobs that succeeded, or failed with `allow_failure`, do not run again.
#[test]
fn jobs_that_did_not_fail_stay_as_they_are() {
    let bench = Bench::new();
    let worker = bench.worker();
    let mut workflow = graph(vec![vec![], vec![], vec![], vec![0, 1, 2]]);
    workflow.jobs[1].allow_failure = true;
    let run_id = bench.submit(workflow);
    let claimed = bench.claim(worker, 10);
    let end = |job: &ClaimedJob, outcome| drop(bench.finish(worker, job, outcome));
    let fails = |error: &str| Outcome::Failed { error: error.to_owned(), repeat: Repeat::Pointless };
    end(&claimed[0], Outcome::Successful { output: Some("7".to_owned()) });
    end(&claimed[1], fails("allowed"));
    end(&claimed[2], fails("not allowed"));
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Failed);
    let before: Vec<Job> = bench.store.jobs().of_run(run_id).unwrap();
    assert_eq!(bench.store.runs().retry(run_id, RetrySelection::Failed).unwrap(), 2);
    let after = bench.store.jobs().of_run(run_id).unwrap();
    assert_eq!(after[..2], before[..2]);
    assert_eq!([after[2].status, after[3].status], [JobStatus::Pending, JobStatus::Blocked]);
    assert_eq!(bench.store.runs().get(run_id).unwrap().failed_jobs, 0);
    for _job in 0..2 {
        let job = bench.claim(worker, 10).remove(0);
        end(&job, success());
    }
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Successful);
}

/// A job that was cancelled and not reset still makes the run fail.
#[test]
fn jobs_that_were_not_selected_count_as_they_ended() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run_id = bench.submit(graph(vec![vec![], vec![]]));
    let jobs = bench.store.jobs().of_run(run_id).unwrap();
    bench.store.jobs().cancel(jobs[0].id).unwrap();
    let second = bench.claim(worker, 10).remove(0);
    bench.finish(worker, &second, success());
    bench.store.runs().retry(run_id, RetrySelection::From("j1".to_owned())).unwrap();
    assert_eq!(bench.store.runs().get(run_id).unwrap().failed_jobs, 1);
    let again = bench.store.for_workers().claim(request(worker, Scope::Runs(vec![run_id]), 10)).unwrap();
    let windlass_engine::store::Claims::Jobs(again) = again else { panic!("fenced") };
    bench.finish(worker, &again[0], success());
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Failed);
    bench.assert_sound();
}

#[test]
fn the_time_before_a_retry_counts_and_the_time_between_does_not() {
    let bench = Bench::new();
    let run_id = bench.submit(graph(vec![vec![]]));
    let execute = |took_ms: i64, outcome: Outcome| {
        let worker = bench.worker();
        let jobs = bench.claim(worker, 1);
        bench.clock.advance_ms(took_ms);
        bench.finish(worker, &jobs[0], outcome);
        let run = bench.store.runs().get(run_id).unwrap();
        assert!(run.status.is_terminal());
        (run.ran_before_ms, run.finished_at.unwrap() - run.started_at.unwrap())
    };
    assert_eq!(execute(170, failure()), (0, 170));
    bench.clock.advance_ms(3_600_000);
    bench.store.runs().retry(run_id, RetrySelection::Failed).unwrap();
    bench.clock.advance_ms(1_000);
    assert_eq!(execute(49, failure()), (170, 49));
    bench.store.runs().retry(run_id, RetrySelection::Failed).unwrap();
    assert_eq!(execute(1, success()), (219, 1));
}

#[test]
fn a_retry_keeps_the_attempts_that_it_replaces() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run_id = bench.submit(graph(vec![vec![], vec![0]]));
    let run = || {
        for _job in 0..2 {
            bench.clock.advance_ms(10);
            let job = bench.claim(worker, 1).remove(0);
            bench.clock.advance_ms(10);
            let outcome = if job.name.as_deref() == Some("j0") { success() } else { failure() };
            bench.finish(worker, &job, outcome);
        }
        bench.clock.advance_ms(1_000);
    };
    run();
    bench.store.runs().retry(run_id, RetrySelection::From("j0".to_owned())).unwrap();
    run();
    bench.store.runs().retry(run_id, RetrySelection::Failed).unwrap();
    let of = |name: &str| {
        let job = bench.store.jobs().find_by_name(run_id, name).unwrap().unwrap();
        let attempts = bench.store.jobs().attempts(job.id).unwrap();
        assert_eq!(bench.store.jobs().attempts_of_each(&[job.id]).unwrap()[&job.id], attempts);
        attempts
            .into_iter()
            .map(|kept| {
                assert_eq!((kept.worker_id, kept.finished_at - kept.started_at.unwrap()), (Some(worker), 10));
                (kept.attempt, kept.outcome, kept.retried_at)
            })
            .collect::<Vec<_>>()
    };
    let (first, second) = (Some(1_001_040), Some(1_002_080));
    assert_eq!(of("j0"), [(1, "successful".to_owned(), first)]);
    assert_eq!(of("j1"), [(1, "failed".to_owned(), first), (2, "failed".to_owned(), second)]);
    bench.assert_sound();
}

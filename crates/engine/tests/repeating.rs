//! Jobs with `repeat`: rounds, the failures within them, their end, and a retry.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::Bench;
use windlass_engine::store::{ClaimedJob, Job, Reason, RetrySelection};
use windlass_engine::transition::{Outcome, Repeat};
use windlass_engine::{JobStatus, RunStatus};
use windlass_workflow::{Expression, Repetition, Retry, Workflow};

const EVERY_MS: i64 = 30_000;
const UNTIL: &str = "output == 'done'";

struct Repeating {
    bench: Bench,
    worker: i64,
    run_id: i64,
}

impl Repeating {
    /// A job that repeats three times at most, and has a child.
    fn new(change: impl Fn(&mut Workflow)) -> Repeating {
        let mut workflow = Workflow::graph("repeating", [vec![], vec![0]]);
        let until = Expression::parse(UNTIL).unwrap();
        workflow.jobs[0].repeat = Some(Box::new(Repetition { until, every_ms: EVERY_MS, max: 3 }));
        workflow.jobs[0].retry = Retry { max_attempts: 2, delay_ms: 0, ..Retry::default() };
        change(&mut workflow);
        let bench = Bench::new();
        let (worker, run_id) = (bench.worker(), bench.submit(workflow));
        while bench.store.for_scheduler().decide_waiting().unwrap() > 0 {}
        Repeating { bench, worker, run_id }
    }

    fn pass(&self, passed_ms: i64) {
        self.bench.clock.advance_ms(passed_ms);
        self.bench.store.for_scheduler().promote_due().unwrap();
        self.bench.assert_sound();
    }

    fn claim(&self) -> ClaimedJob {
        self.bench.claim(self.worker, 1).remove(0)
    }

    /// Ends an attempt as a worker does whose handler gave this output.
    fn end(&self, job: &ClaimedJob, output: &str) {
        let conditions = job.conditions.as_ref().unwrap();
        let result = windlass_engine::attempt_end::AttemptResult {
            output: Ok(Some(output.to_owned())),
            ..Default::default()
        };
        let success = Outcome::Successful { output: Some(output.to_owned()) };
        let outcome = conditions.judge(&job.retry_state, success, Some(&result), serde_json::json!({}));
        self.bench.finish(self.worker, job, outcome);
        self.bench.assert_sound();
    }

    fn fail(&self, job: &ClaimedJob) {
        let outcome = Outcome::Failed { error: "no luck".to_owned(), repeat: Repeat::Allowed };
        self.bench.finish(self.worker, job, outcome);
    }

    fn job(&self) -> Job {
        self.bench.store.jobs().find_by_name(self.run_id, "j0").unwrap().unwrap()
    }

    fn rounds(&self) -> i64 {
        self.bench.store.jobs().rounds(self.job().id).unwrap().unwrap().ended
    }
}

#[test]
fn rounds_follow_each_other_until_the_condition_holds() {
    let repeating = Repeating::new(|_workflow| ());
    repeating.end(&repeating.claim(), "1");
    let job = repeating.job();
    assert_eq!((job.status, job.attempt, job.failures), (JobStatus::Scheduled, 1, 0));
    assert_eq!(job.last_error.as_deref(), Some("not so after 1 of 3 rounds: output == 'done'"));
    let round = Reason::WaitsForRound {
        execute_after: repeating.bench.clock.now_ms() + EVERY_MS,
        round: 2,
        max: 3,
        until: UNTIL.to_owned(),
    };
    assert_eq!(repeating.bench.store.jobs().why(job.id).unwrap().reasons[0], round);
    repeating.pass(EVERY_MS - 1);
    assert_eq!(repeating.bench.claim(repeating.worker, 1), []);
    repeating.pass(1);
    repeating.end(&repeating.claim(), "2");
    assert_eq!(repeating.rounds(), 2);
    repeating.pass(EVERY_MS);
    repeating.end(&repeating.claim(), "\"done\"");
    let job = repeating.job();
    assert_eq!((job.status, job.attempt, job.last_error), (JobStatus::Successful, 3, None));
    assert_eq!(job.output.as_deref(), Some("\"done\""), "that of the last round");
    assert_eq!(repeating.claim().name.as_deref(), Some("j1"));
}

#[test]
fn failures_belong_to_a_round_and_an_interrupted_round_is_not_counted() {
    let repeating = Repeating::new(|_workflow| ());
    for _round in 0..2 {
        repeating.fail(&repeating.claim());
        assert_eq!((repeating.job().status, repeating.job().failures), (JobStatus::Scheduled, 1));
        repeating.pass(0);
        let outcome = Outcome::Interrupted { error: "gone".to_owned() };
        repeating.bench.finish(repeating.worker, &repeating.claim(), outcome);
        assert_eq!(repeating.job().interruptions, 1);
        repeating.end(&repeating.claim(), "0");
        assert_eq!((repeating.job().failures, repeating.job().interruptions), (0, 0));
        repeating.pass(EVERY_MS);
    }
    assert_eq!((repeating.rounds(), repeating.job().attempt), (2, 6));
    repeating.fail(&repeating.claim());
    let reasons = repeating.bench.store.jobs().why(repeating.job().id).unwrap().reasons;
    assert!(matches!(reasons[0], Reason::WaitsForTime { failures: 1, .. }), "{reasons:?}");
    repeating.pass(0);
    repeating.fail(&repeating.claim());
    assert_eq!(repeating.job().status, JobStatus::Failed, "as many failures as a round may have");
}

#[test]
fn after_the_last_round_the_job_fails_and_a_retry_counts_from_zero() {
    let repeating = Repeating::new(|_workflow| ());
    let all_rounds = || {
        for _round in 0..3 {
            assert_eq!(repeating.job().status, JobStatus::Pending);
            repeating.end(&repeating.claim(), "0");
            repeating.pass(EVERY_MS);
        }
        let job = repeating.job();
        assert_eq!((job.status, job.failures), (JobStatus::Failed, 1));
        assert_eq!(job.last_error.as_deref(), Some("not so after 3 rounds: output == 'done'"));
        assert_eq!(repeating.bench.store.runs().get(repeating.run_id).unwrap().status, RunStatus::Failed);
    };
    all_rounds();
    assert_eq!(repeating.rounds(), 2, "the last one ended the job");
    repeating.bench.store.runs().retry(repeating.run_id, RetrySelection::Failed).unwrap();
    assert_eq!(repeating.rounds(), 0);
    all_rounds();
    assert_eq!(repeating.job().attempt, 6);
}

#[test]
fn a_deadline_and_a_cancellation_end_a_job_between_and_during_rounds() {
    let with_deadline = || Repeating::new(|workflow| workflow.jobs[0].deadline_ms = Some(2 * EVERY_MS));
    let between = with_deadline();
    between.end(&between.claim(), "0");
    between.pass(EVERY_MS);
    between.end(&between.claim(), "0");
    between.pass(EVERY_MS);
    let error = "it was not over at its deadline: not so after 2 of 3 rounds: output == 'done'";
    assert_eq!((between.job().status, between.job().last_error.as_deref()), (JobStatus::Failed, Some(error)));
    let during = with_deadline();
    let job = during.claim();
    during.pass(2 * EVERY_MS);
    during.end(&job, "0");
    assert_eq!(during.job().status, JobStatus::Failed);
    let cancelled = Repeating::new(|_workflow| ());
    let job = cancelled.claim();
    cancelled.bench.store.runs().cancel(cancelled.run_id).unwrap();
    cancelled.end(&job, "0");
    assert_eq!(cancelled.job().status, JobStatus::Cancelled);
}

#[test]
fn a_worker_in_another_language_reports_rounds() {
    let repeating = Repeating::new(|_workflow| ());
    let job = repeating.claim();
    let report = |output: &str| {
        let sql = repeating.bench.raw();
        sql.execute(&format!(
            "UPDATE jobs SET status = 'SUCCESSFUL', output = '{output}' WHERE id = {} AND status = 'RUNNING'",
            job.id
        ));
        repeating.bench.store.for_scheduler().apply_reports().unwrap();
    };
    report("7");
    assert_eq!((repeating.job().status, repeating.rounds()), (JobStatus::Scheduled, 1));
    repeating.pass(EVERY_MS);
    repeating.claim();
    report("\"done\"");
    assert_eq!(repeating.job().status, JobStatus::Successful);
}

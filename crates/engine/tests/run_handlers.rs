//! Handlers of a run's end, and conditions: when their jobs run, and what ends the run.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, failure, graph, success};
use windlass_engine::store::{ClaimedJob, RetrySelection};
use windlass_engine::transition::Outcome;
use windlass_engine::values::RunEnd;
use windlass_engine::{JobStatus, RunStatus};
use windlass_workflow::model::RunHandler;
use windlass_workflow::{Expression, Job, Workflow};

/// Two jobs, a handler of each outcome, and two handlers that run always, one after the other.
fn workflow() -> Workflow {
    let mut workflow = graph(vec![vec![], vec![0], vec![], vec![], vec![], vec![], vec![5]]);
    let handlers = [
        RunHandler::OnSuccess,
        RunHandler::OnFailure,
        RunHandler::OnCancel,
        RunHandler::Finally,
        RunHandler::Finally,
    ];
    for (job, handler) in workflow.jobs[2..].iter_mut().zip(handlers) {
        job.handler = Some(handler);
    }
    for (job, name) in
        workflow.jobs.iter_mut().zip(["one", "two", "success", "failure", "cancel", "clean", "sweep"])
    {
        job.name = name.to_owned();
    }
    workflow
}

struct RunUnderTest {
    bench: Bench,
    worker: i64,
    run_id: i64,
}

impl RunUnderTest {
    fn of(workflow: Workflow) -> RunUnderTest {
        let bench = Bench::new();
        let (worker, run_id) = (bench.worker(), bench.submit(workflow));
        RunUnderTest { bench, worker, run_id }
    }

    /// Claims everything. Returns the names.
    fn claim(&self) -> Vec<ClaimedJob> {
        self.bench.claim(self.worker, 10)
    }

    /// Claims, and finishes each job, until nothing is left. Returns the names in the order of the claims.
    fn run(&self, outcome: impl Fn(&str) -> Outcome) -> Vec<String> {
        let mut names = Vec::new();
        loop {
            while self.bench.store.for_scheduler().decide_waiting().unwrap() > 0 {}
            let jobs = self.claim();
            if jobs.is_empty() {
                self.bench.assert_sound();
                return names;
            }
            for job in jobs {
                let name = job.name.clone().unwrap();
                self.bench.finish(self.worker, &job, outcome(&name));
                names.push(name);
            }
        }
    }

    fn status(&self) -> RunStatus {
        self.bench.store.runs().get(self.run_id).unwrap().status
    }

    fn job(&self, name: &str) -> JobStatus {
        self.bench.store.jobs().find_by_name(self.run_id, name).unwrap().unwrap().status
    }

    fn end(&self) -> Option<RunEnd> {
        self.bench.store.runs().end(self.run_id).unwrap()
    }
}

fn fails(names: &'static [&'static str]) -> impl Fn(&str) -> Outcome {
    move |name| if names.contains(&name) { failure() } else { success() }
}

#[test]
fn the_handlers_of_the_outcome_run_after_the_jobs_and_the_others_are_skipped() {
    for (failing, names, status) in [
        (&[][..], &["one", "two", "success", "clean", "sweep"][..], RunStatus::Successful),
        (&["two"][..], &["one", "two", "failure", "clean", "sweep"][..], RunStatus::Failed),
        // A failing handler fails a run that was successful.
        (&["success"][..], &["one", "two", "success", "clean", "sweep"][..], RunStatus::Failed),
        (&["clean"][..], &["one", "two", "success", "clean"][..], RunStatus::Failed),
    ] {
        let run = RunUnderTest::of(workflow());
        assert_eq!(run.end(), None, "before its jobs have ended");
        assert_eq!(run.run(fails(failing)), names);
        assert_eq!(run.status(), status, "{failing:?}");
        assert_eq!(run.job("cancel"), JobStatus::Skipped);
        let outcome = if failing == ["two"] { RunStatus::Failed } else { RunStatus::Successful };
        let failed = if failing == ["two"] { vec!["two".to_owned()] } else { Vec::new() };
        assert_eq!(run.end(), Some(RunEnd { outcome, failed }));
    }
}

#[test]
fn a_cancelled_run_runs_its_handlers_and_a_second_cancellation_ends_them() {
    let run = RunUnderTest::of(workflow());
    let one = run.claim().remove(0);
    assert_eq!(run.bench.store.runs().cancel(run.run_id).unwrap().stopping, 1);
    assert!(run.claim().is_empty(), "a job still runs");
    assert!(run.bench.store.runs().cancel(run.run_id).unwrap_err().is_conflict(), "it is being stopped");
    run.bench.finish(run.worker, &one, Outcome::Cancelled { error: "stopped".to_owned() });
    let handler = run.claim().remove(0);
    assert_eq!((handler.name.as_deref(), run.status()), (Some("cancel"), RunStatus::Running));
    let cancelled = run.bench.store.runs().cancel(run.run_id).unwrap();
    assert_eq!((cancelled.cancelled, cancelled.stopping), (2, 1), "clean and sweep; cancel is asked to stop");
    run.bench.finish(run.worker, &handler, Outcome::Cancelled { error: "stopped".to_owned() });
    assert_eq!((run.status(), run.job("clean")), (RunStatus::Cancelled, JobStatus::Cancelled));
    run.bench.assert_sound();
}

#[test]
fn a_run_that_is_cancelled_before_it_begins_runs_its_handlers() {
    let run = RunUnderTest::of(workflow());
    run.bench.store.runs().cancel(run.run_id).unwrap();
    assert_eq!(run.run(fails(&[])), ["cancel", "clean", "sweep"]);
    assert_eq!(run.status(), RunStatus::Cancelled);
}

#[test]
fn the_timeout_of_a_run_ends_its_jobs_and_not_its_handlers() {
    let run = RunUnderTest::of(Workflow { timeout_ms: Some(1_000), ..workflow() });
    let one = run.claim().remove(0);
    run.bench.clock.advance_ms(1_000);
    assert_eq!(run.bench.store.for_scheduler().promote_due().unwrap().expired, 1);
    run.bench.finish(run.worker, &one, Outcome::Cancelled { error: "stopped".to_owned() });
    let handler = run.claim().remove(0);
    run.bench.clock.advance_ms(100_000);
    assert_eq!(run.bench.store.for_scheduler().promote_due().unwrap().expired, 0);
    run.bench.finish(run.worker, &handler, success());
    assert_eq!(
        (handler.name.as_deref(), run.run(fails(&[]))),
        (Some("failure"), vec!["clean".into(), "sweep".into()])
    );
    assert_eq!(run.status(), RunStatus::Failed);
}

#[test]
fn a_retry_runs_the_handlers_again() {
    let run = RunUnderTest::of(workflow());
    run.run(fails(&["two"]));
    run.bench.store.runs().retry(run.run_id, RetrySelection::Failed).unwrap();
    assert_eq!((run.status(), run.end()), (RunStatus::Pending, None));
    run.bench.assert_sound();
    assert_eq!(run.run(fails(&["success"])), ["two", "success", "clean", "sweep"]);
    assert_eq!((run.status(), run.job("failure")), (RunStatus::Failed, JobStatus::Skipped));
    // Only a handler failed.
    run.bench.store.runs().retry(run.run_id, RetrySelection::Failed).unwrap();
    run.bench.assert_sound();
    assert_eq!(run.run(fails(&[])), ["success", "clean", "sweep"]);
    assert_eq!(run.status(), RunStatus::Successful);
}

#[test]
fn a_handler_is_cancelled_alone_only_in_its_phase() {
    let run = RunUnderTest::of(workflow());
    let id = |name: &str| run.bench.store.jobs().find_by_name(run.run_id, name).unwrap().unwrap().id;
    let error = run.bench.store.jobs().cancel(id("clean")).unwrap_err();
    assert!(error.to_string().contains("cancel the run"), "{error}");
    assert_eq!(run.run(fails(&["two"])).len(), 5);
    run.bench.assert_sound();
}

/// A job with a condition, after a job that fails and one that is successful.
fn with_condition(condition: &str) -> Workflow {
    let mut workflow = graph(vec![vec![], vec![], vec![0, 1], vec![2]]);
    for (job, name) in workflow.jobs.iter_mut().zip(["good", "bad", "asked", "after"]) {
        job.name = name.to_owned();
    }
    let asked: &mut Job = &mut workflow.jobs[2];
    asked.condition = Some(Expression::parse(condition).unwrap());
    asked.when = windlass_workflow::model::When::AllFinished;
    workflow
}

#[test]
fn a_condition_is_asked_when_the_parents_have_ended() {
    for (condition, asked, after) in [
        ("jobs.bad.status == 'FAILED'", JobStatus::Successful, JobStatus::Successful),
        ("jobs.bad.status == 'SUCCESSFUL'", JobStatus::Skipped, JobStatus::Skipped),
        ("jobs.good.failures == 0 and jobs.bad.failures == 1", JobStatus::Successful, JobStatus::Successful),
        // It has no output, so this is neither true nor false.
        ("jobs.good.output", JobStatus::Failed, JobStatus::Skipped),
    ] {
        let run = RunUnderTest::of(with_condition(condition));
        run.run(fails(&["bad"]));
        assert_eq!((run.job("asked"), run.job("after")), (asked, after), "{condition}");
        assert_eq!(run.status(), RunStatus::Failed, "`bad` failed");
    }
}

#[test]
fn the_decision_about_a_first_job_starts_the_run() {
    let mut workflow = with_condition("1 == 1");
    workflow.jobs[0].condition = Some(Expression::parse("run.key == 'none'").unwrap());
    workflow.timeout_ms = Some(1_000);
    let run = RunUnderTest::of(workflow);
    assert_eq!(run.job("good"), JobStatus::Waiting);
    assert_eq!(run.bench.store.for_scheduler().decide_waiting().unwrap(), 1);
    assert_eq!((run.job("good"), run.status()), (JobStatus::Skipped, RunStatus::Running));
    assert_eq!(run.bench.store.runs().get(run.run_id).unwrap().deadline_at, Some(1_001_000));
    assert_eq!(run.run(fails(&[])), ["bad", "asked", "after"]);
}

#[test]
fn a_job_with_an_unreadable_control_fails_and_keeps_nothing_up() {
    let run = RunUnderTest::of(with_condition("1 == 1"));
    run.bench.raw().execute("UPDATE jobs SET control = '{\"if\": 7}' WHERE name = 'asked'");
    run.run(fails(&[]));
    assert_eq!((run.job("asked"), run.status()), (JobStatus::Failed, RunStatus::Failed));
}

//! Deadlines of jobs: over all attempts and their pauses, and whatever the job does when its deadline comes.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, failure, success};
use windlass_engine::store::{ClaimedJob, ClockStep, Job, Reason, RetrySelection, Urgency};
use windlass_engine::transition::{Outcome, Repeat};
use windlass_engine::{JobStatus, RunStatus};
use windlass_workflow::{Retry, Workflow};

const DEADLINE_MS: i64 = 60_000;

struct Late {
    bench: Bench,
    worker: i64,
    run_id: i64,
}

impl Late {
    /// A job with a deadline that needs another, and has a child.
    fn new() -> Late {
        let mut workflow = Workflow::graph("late", [vec![], vec![0], vec![1]]);
        workflow.jobs[1].deadline_ms = Some(DEADLINE_MS);
        workflow.jobs[1].retry = Retry { max_attempts: 9, delay_ms: 50_000, jitter: 0.0, ..Retry::default() };
        let bench = Bench::new();
        let (worker, run_id) = (bench.worker(), bench.submit(workflow));
        let late = Late { bench, worker, run_id };
        // The deadline has not begun while the job waits for its parent.
        late.pass(10 * DEADLINE_MS);
        late.finish(&late.claim(), success());
        late.decide();
        late
    }

    fn decide(&self) {
        while self.bench.store.for_scheduler().decide_waiting().unwrap() > 0 {}
    }

    fn claim(&self) -> ClaimedJob {
        self.bench.claim(self.worker, 1).remove(0)
    }

    fn finish(&self, job: &ClaimedJob, outcome: Outcome) {
        self.bench.finish(self.worker, job, outcome);
    }

    /// Lets time pass, and does what a scheduler does then.
    fn pass(&self, passed_ms: i64) {
        self.bench.clock.advance_ms(passed_ms);
        self.bench.store.for_scheduler().promote_due().unwrap();
        self.bench.assert_sound();
    }

    fn job(&self, name: &str) -> Job {
        self.bench.store.jobs().find_by_name(self.run_id, name).unwrap().unwrap()
    }

    fn assert_failed(&self, why: &str) {
        let (late, child) = (self.job("j1"), self.job("j2"));
        assert_eq!((late.status, child.status), (JobStatus::Failed, JobStatus::Skipped));
        assert_eq!(late.last_error.as_deref(), Some(why));
        assert_eq!(self.bench.store.runs().get(self.run_id).unwrap().status, RunStatus::Failed);
        self.bench.assert_sound();
    }
}

fn stopped() -> Outcome {
    Outcome::TimedOut { error: "stopped".to_owned(), repeat: Repeat::Pointless }
}

#[test]
fn a_job_that_was_not_started_at_its_deadline_fails() {
    let late = Late::new();
    assert_eq!(late.job("j1").deadline_at, Some(late.bench.clock.now_ms() + DEADLINE_MS));
    assert_eq!(late.bench.store.for_scheduler().next_due().unwrap(), late.job("j1").deadline_at);
    let reasons = late.bench.store.jobs().why(late.job("j1").id).unwrap().reasons;
    assert!(reasons.contains(&Reason::HasDeadline(late.job("j1").deadline_at.unwrap())), "{reasons:?}");
    late.pass(DEADLINE_MS - 1);
    assert_eq!(late.job("j1").status, JobStatus::Pending);
    late.pass(1);
    late.assert_failed("it was not over at its deadline, and was not started");
    assert_eq!(late.bench.claim(late.worker, 9), []);
}

#[test]
fn a_pause_between_attempts_does_not_go_beyond_the_deadline() {
    let late = Late::new();
    late.finish(&late.claim(), failure());
    late.pass(50_000);
    late.finish(&late.claim(), failure());
    assert_eq!(late.job("j1").status, JobStatus::Scheduled);
    late.pass(10_000);
    late.assert_failed("it was not over at its deadline: no luck");
}

#[test]
fn a_running_job_is_asked_to_stop_at_its_deadline_and_fails_without_a_retry() {
    let asked = |late: &Late| late.bench.store.for_workers().cancel_requests(late.worker).unwrap();
    for outcome in [
        stopped(),
        failure(),
        Outcome::Cancelled { error: "stopped".to_owned() },
        Outcome::Interrupted { error: "stopped".to_owned() },
    ] {
        let late = Late::new();
        let job = late.claim();
        late.pass(DEADLINE_MS - 1);
        assert_eq!(asked(&late), []);
        late.pass(1);
        assert_eq!(asked(&late), [(job.id, Urgency::PastDeadline)]);
        assert_eq!(late.job("j1").status, JobStatus::Running, "until it has stopped");
        late.pass(1);
        late.finish(&job, outcome);
        let error = late.job("j1").last_error.unwrap();
        late.assert_failed(&error);
    }
    let late = Late::new();
    let job = late.claim();
    late.pass(DEADLINE_MS);
    late.finish(&job, success());
    assert_eq!(late.job("j1").status, JobStatus::Successful, "it ended well before it could be stopped");
}

#[test]
fn a_job_of_a_dead_worker_fails_if_its_deadline_was_over() {
    let late = Late::new();
    let _job = late.claim();
    late.pass(DEADLINE_MS);
    let heartbeats = late.bench.store.workers().live().unwrap()[0].heartbeats;
    late.bench.store.for_scheduler().rescue(vec![(late.worker, heartbeats)]).unwrap();
    late.assert_failed(&format!("interrupted: worker {} is gone", late.worker));
}

#[test]
fn a_retry_begins_the_deadline_anew() {
    let late = Late::new();
    late.pass(DEADLINE_MS);
    late.pass(5 * DEADLINE_MS);
    late.bench.store.runs().retry(late.run_id, RetrySelection::Failed).unwrap();
    assert_eq!(late.job("j1").deadline_at, None);
    late.decide();
    assert_eq!(late.job("j1").deadline_at, Some(late.bench.clock.now_ms() + DEADLINE_MS));
    late.finish(&late.claim(), success());
    late.finish(&late.claim(), success());
    late.pass(DEADLINE_MS);
    assert_eq!(late.job("j1").status, JobStatus::Successful);
}

#[test]
fn a_deadline_moves_with_the_clock() {
    let late = Late::new();
    let deadline_at = late.job("j1").deadline_at.unwrap();
    let hour_ms = 3_600_000;
    late.bench.clock.advance_ms(1_000);
    let now_ms = late.bench.clock.now_ms() + hour_ms;
    let step = ClockStep { number: 1, by_ms: hour_ms, now_ms, unseen_ms: 10 };
    late.bench.store.for_scheduler().move_with_clock(step).unwrap();
    assert_eq!(late.job("j1").deadline_at, Some(deadline_at + hour_ms));
}

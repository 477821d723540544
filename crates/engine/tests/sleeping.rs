//! Jobs that sleep: when they begin, when they end, and what happens to them meanwhile.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, success};
use windlass_engine::store::{ClockStep, Job, Reason, RetrySelection};
use windlass_engine::{JobStatus, RunStatus};
use windlass_workflow::{Source, Workflow};

fn parse(jobs: &str) -> Workflow {
    let text = format!("name = \"naps\"\n[params]\nat = {{ default = \"\" }}\n{jobs}");
    windlass_workflow::parse(&Source::new("naps.toml", text.into_bytes()).unwrap()).unwrap()
}

const BETWEEN: &str = "
    [jobs.a]
    run = \"true\"
    [jobs.nap]
    needs = [\"a\"]
    if = \"jobs.a.status == 'SUCCESSFUL'\"
    sleep = \"2h\"
    [jobs.b]
    needs = [\"nap\"]
    run = \"true\"";

struct Nap {
    bench: Bench,
    worker: i64,
    run_id: i64,
}

impl Nap {
    fn of(jobs: &str) -> Nap {
        let bench = Bench::new();
        let (worker, run_id) = (bench.worker(), bench.submit(parse(jobs)));
        Nap { bench, worker, run_id }
    }

    /// Does what a scheduler and a worker do now. Returns the jobs that were executed.
    fn turn(&self) -> Vec<String> {
        let mut executed = Vec::new();
        for _turn in 0..4 {
            self.bench.store.for_scheduler().promote_due().unwrap();
            while self.bench.store.for_scheduler().decide_waiting().unwrap() > 0 {}
            for job in self.bench.claim(self.worker, 10) {
                executed.push(job.name.clone().unwrap());
                self.bench.finish(self.worker, &job, success());
            }
        }
        self.bench.assert_sound();
        executed
    }

    fn job(&self, name: &str) -> Job {
        self.bench.store.jobs().find_by_name(self.run_id, name).unwrap().unwrap()
    }

    fn status(&self) -> RunStatus {
        self.bench.store.runs().get(self.run_id).unwrap().status
    }
}

#[test]
fn a_job_sleeps_for_its_time_and_no_worker_is_needed_for_it() {
    let nap = Nap::of(BETWEEN);
    assert_eq!(nap.turn(), ["a"]);
    let job = nap.job("nap");
    assert_eq!((job.status, job.execute_after), (JobStatus::Scheduled, nap.bench.clock.now_ms() + 7_200_000));
    let why = nap.bench.store.jobs().why(job.id).unwrap();
    assert_eq!(why.reasons, [Reason::Sleeps { until: job.execute_after }]);
    nap.bench.clock.advance_ms(7_199_999);
    assert_eq!(nap.turn(), [""; 0]);
    nap.bench.clock.advance_ms(1);
    assert_eq!(nap.turn(), ["b"]);
    let job = nap.job("nap");
    assert_eq!((job.status, job.attempt, job.output), (JobStatus::Successful, 0, None));
    assert_eq!(job.finished_at.unwrap() - job.started_at.unwrap(), 7_200_000);
    assert_eq!(nap.status(), RunStatus::Successful);
}

#[test]
fn a_run_that_begins_with_a_sleep_has_begun() {
    let nap = Nap::of("[jobs.nap]\nsleep = \"1h\"");
    nap.turn();
    let run = nap.bench.store.runs().get(nap.run_id).unwrap();
    assert_eq!((run.status, run.started_at), (RunStatus::Running, Some(nap.bench.clock.now_ms())));
}

#[test]
fn an_instant_in_the_past_is_reached_and_one_of_an_output_too() {
    let nap = Nap::of("[jobs.nap]\nsleep = { until = \"1970-01-01T00:00:00Z\" }");
    nap.turn();
    assert_eq!(nap.status(), RunStatus::Successful);
    let nap = Nap::of(
        "[jobs.a]\nrun = \"true\"\n
         [jobs.nap]\nneeds = [\"a\"]\nsleep = { until = \"{{ jobs.a.output }}\" }",
    );
    nap.turn();
    let error = nap.job("nap").last_error.unwrap();
    assert!(error.contains("jobs.a.output"), "{error}");
    assert_eq!(nap.status(), RunStatus::Failed);
}

#[test]
fn a_step_of_the_clock_does_not_change_a_duration_and_an_instant_stays() {
    let jobs = "[jobs.for]\nsleep = \"1h\"\n[jobs.until]\nsleep = { until = \"1970-01-01T03:00:00Z\" }";
    let nap = Nap::of(jobs);
    nap.turn();
    let begun = nap.bench.clock.now_ms();
    nap.bench.clock.step_wall_ms(86_400_000);
    let step = ClockStep { number: 1, by_ms: 86_400_000, now_ms: nap.bench.clock.now_ms(), unseen_ms: 0 };
    nap.bench.store.for_scheduler().move_with_clock(step).unwrap();
    assert_eq!(nap.job("for").execute_after, begun + 86_400_000 + 3_600_000);
    assert_eq!(nap.job("until").execute_after, 10_800_000);
}

#[test]
fn a_sleeping_job_can_be_cancelled_and_sleeps_again_after_a_retry() {
    let nap = Nap::of(BETWEEN);
    nap.turn();
    nap.bench.store.jobs().cancel(nap.job("nap").id).unwrap();
    assert_eq!((nap.status(), nap.job("b").status), (RunStatus::Failed, JobStatus::Skipped));
    nap.bench.clock.advance_ms(9_000_000);
    nap.bench.store.runs().retry(nap.run_id, RetrySelection::Failed).unwrap();
    assert_eq!(nap.turn(), [""; 0]);
    assert_eq!(nap.job("nap").execute_after, nap.bench.clock.now_ms() + 7_200_000);
    nap.bench.clock.advance_ms(7_200_000);
    assert_eq!(nap.turn(), ["b"]);
    assert_eq!(nap.status(), RunStatus::Successful);
}

#[test]
fn a_job_with_a_condition_is_decided_once_and_its_retry_goes_to_the_workers() {
    let nap = Nap::of(
        "[jobs.a]\nif = \"run.workflow == 'naps'\"\nrun = \"true\"\nretry = { max_attempts = 2, delay = \"1m\" }",
    );
    nap.bench.store.for_scheduler().decide_waiting().unwrap();
    let job = nap.bench.claim(nap.worker, 1).remove(0);
    nap.bench.finish(nap.worker, &job, support::failure());
    nap.bench.clock.advance_ms(120_000);
    nap.bench.store.for_scheduler().promote_due().unwrap();
    assert_eq!(nap.job("a").status, JobStatus::Pending);
}

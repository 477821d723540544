//! Handing over: the transaction that finishes a job's last parent may claim the job at once, in the order of
//! claiming.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, failure, graph, noop, request, success};
use windlass_engine::store::{
    ClaimRequest, ClaimedJob, Claims, NewJob, QueueLimits, RetrySelection, Scope, Setting,
};
use windlass_engine::{JobStatus, RunStatus};
use windlass_workflow::model::{Concurrency, OnFull};
use windlass_workflow::{OnInterrupt, Workflow};

/// What a worker asks for, given the ids of the worker and of the run.
type Ask = fn(i64, i64) -> ClaimRequest;

/// Finishes the first job of a run, and claims by the request in the same transaction.
fn hand_over(
    bench: &Bench,
    workflow: Workflow,
    ask: impl Fn(i64, i64) -> ClaimRequest,
) -> (i64, Vec<String>) {
    let worker = bench.worker();
    let run_id = bench.submit(workflow);
    let Claims::Jobs(first) =
        bench.store.for_workers().claim(request(worker, Scope::Runs(vec![run_id]), 1)).unwrap()
    else {
        panic!("fenced");
    };
    let ends: Vec<_> = first.into_iter().map(|job| (worker, job, success())).collect();
    let Claims::Jobs(jobs) = bench.finish_all_and_claim(&ends, Some(ask(worker, run_id))).1 else {
        panic!("fenced");
    };
    bench.assert_sound();
    (run_id, jobs.iter().map(ClaimedJob::label).collect())
}

fn everything(worker: i64, limit: usize) -> ClaimRequest {
    request(worker, Scope::Everything, limit)
}

fn statuses(bench: &Bench, run_id: i64) -> Vec<JobStatus> {
    bench.store.jobs().of_run(run_id).unwrap().into_iter().map(|job| job.status).collect()
}

#[test]
fn ready_and_waiting_jobs_are_claimed_by_priority() {
    let bench = Bench::new();
    let mut workflow = graph(vec![vec![], vec![0], vec![0], vec![0]]);
    workflow.jobs[2].priority = 2;
    workflow.jobs[3].priority = -1;
    let alone = bench.enqueue(NewJob { priority: 1, ..noop() });
    let (run_id, taken) = hand_over(&bench, workflow, |worker, _run_id| everything(worker, 3));
    let name = |job: &str| format!("{run_id}/{job}");
    assert_eq!(taken, [name("j2"), format!("j{alone}"), name("j1")]);
    use JobStatus::{Pending, Running, Successful};
    assert_eq!(
        statuses(&bench, run_id),
        [Successful, Running, Running, Pending],
        "the other jobs are left pending"
    );
    let worker = bench.worker();
    assert_eq!(bench.claim(worker, 10)[0].label(), name("j3"));
}

#[test]
fn jobs_that_the_worker_may_not_claim_are_left_pending() {
    use JobStatus::{Pending, Running, Successful, Waiting};
    let any: Ask = |worker, _run| everything(worker, 1);
    let one_child = || graph(vec![vec![], vec![0]]);
    let cases: Vec<(&str, Workflow, Ask, JobStatus)> = vec![
        ("the worker may claim it", one_child(), any, Running),
        ("claimed by run", one_child(), |worker, run| request(worker, Scope::Runs(vec![run]), 1), Running),
        (
            "the worker claims for another run",
            one_child(),
            |worker, _run| request(worker, Scope::Runs(vec![99]), 1),
            Pending,
        ),
        (
            "of another queue",
            one_child(),
            |worker, _run| request(worker, Scope::Queues(vec!["other".to_owned()]), 1),
            Pending,
        ),
        ("the worker has no capacity", one_child(), |worker, _run| everything(worker, 0), Pending),
        (
            "it requires a missing capability",
            with(one_child(), |job| job.requires = vec!["gpu".to_owned()]),
            any,
            Pending,
        ),
        ("its queue is paused", with(one_child(), |job| job.queue = "paused".to_owned()), any, Pending),
        (
            "its queue has a free place",
            with(one_child(), |job| job.queue = "narrow".to_owned()),
            any,
            Running,
        ),
        (
            "it would wait in memory and must not",
            with(one_child(), |job| job.on_interrupt = OnInterrupt::Fail),
            |worker, _run| ClaimRequest { idle_threads: 0, ..everything(worker, 1) },
            Pending,
        ),
        ("a slot is free", with(one_child(), |job| job.concurrency = Some(one_at_a_time("k"))), any, Running),
        (
            "no slot is free",
            with(one_child(), |job| job.concurrency = Some(one_at_a_time("taken"))),
            any,
            Waiting,
        ),
    ];
    for (what, workflow, ask, status) in cases {
        let bench = Bench::new();
        bench.store.queues().pause("paused").unwrap();
        let one = QueueLimits { max_running: Setting::Set(1), ..QueueLimits::default() };
        bench.store.queues().limit("narrow", one).unwrap();
        bench.enqueue(NewJob {
            concurrency: Some(one_at_a_time("taken")),
            kind: "other".to_owned(),
            ..noop()
        });
        let (run_id, taken) = hand_over(&bench, workflow, ask);
        assert_eq!(statuses(&bench, run_id), [Successful, status], "{what}");
        assert_eq!(taken.len(), usize::from(status == Running), "{what}");
    }
}

fn one_at_a_time(key: &str) -> Concurrency {
    Concurrency { key: key.to_owned(), limit: 1, on_full: OnFull::Wait }
}

/// Changes the child of the first job.
fn with(mut workflow: Workflow, change: impl FnOnce(&mut windlass_workflow::Job)) -> Workflow {
    change(&mut workflow.jobs[1]);
    workflow
}

/// A claim finds other jobs of the run that come first, even behind jobs that can't start.
#[test]
fn a_ready_job_does_not_overtake_a_job_behind_others_that_cannot_start() {
    let bench = Bench::new();
    let mut workflow = graph(vec![vec![], vec![0], vec![], vec![]]);
    workflow.jobs[0].priority = 9;
    workflow.jobs[2].priority = 3;
    workflow.jobs[2].requires = vec!["gpu".to_owned()];
    workflow.jobs[3].priority = 2;
    let of_run: Ask = |worker, run| request(worker, Scope::Runs(vec![run]), 1);
    let (run_id, taken) = hand_over(&bench, workflow, of_run);
    assert_eq!(taken, [format!("{run_id}/j3")]);
    assert_eq!(statuses(&bench, run_id)[1], JobStatus::Pending);
}

/// The child fails in the transaction that claims it, while other ready jobs are still being handed over.
#[test]
fn an_invalid_child_fails_alone() {
    for (limit, allow_failure) in [(1, true), (2, true), (9, true), (1, false), (9, false)] {
        let bench = Bench::new();
        let mut workflow = graph(vec![vec![], vec![0], vec![0, 1], vec![1], vec![0]]);
        workflow.jobs[1].allow_failure = allow_failure;
        workflow.jobs[1].priority = 1;
        let spoil = "UPDATE jobs SET attempt = 9223372036854775807 WHERE name = 'j1'";
        let (run_id, _taken) = hand_over(&bench, workflow, |worker, _run_id| {
            bench.raw().execute(spoil);
            everything(worker, limit)
        });
        use JobStatus::{Failed, Skipped, Successful};
        let worker = bench.worker();
        for _round in 0..5 {
            bench.raw().execute("UPDATE jobs SET status = 'SUCCESSFUL' WHERE status = 'RUNNING'");
            bench.store.for_scheduler().apply_reports().unwrap();
            bench.claim(worker, 9);
        }
        let after_it = if allow_failure { Successful } else { Skipped };
        let expected = [Successful, Failed, after_it, after_it, Successful];
        assert_eq!(statuses(&bench, run_id), expected, "{limit} {allow_failure}");
        bench.assert_sound();
    }
}

/// More parents than one SQLite statement takes. The last job needs all of them, the one before needs half.
#[test]
fn many_parents_that_finish_together_are_each_counted_once() {
    const PARENTS: usize = 1_300;
    let bench = Bench::new();
    let worker = bench.worker();
    let mut needs = vec![Vec::new(); PARENTS];
    needs.extend([(0..PARENTS).step_by(2).collect(), (0..PARENTS).collect()]);
    let run_id = bench.submit(graph(needs));
    let parents = bench.claim(worker, PARENTS);
    let end = |jobs: &[ClaimedJob], bad: &str| {
        let outcome = |job: &ClaimedJob| if job.name.as_deref() == Some(bad) { failure() } else { success() };
        let ends: Vec<_> = jobs.iter().map(|job| (worker, job.clone(), outcome(job))).collect();
        let Claims::Jobs(taken) = bench.finish_all_and_claim(&ends, Some(everything(worker, 9))).1 else {
            panic!("fenced");
        };
        bench.assert_sound();
        taken
    };
    let names =
        |jobs: &[ClaimedJob]| jobs.iter().map(|job| job.name.clone().unwrap()).collect::<Vec<String>>();
    let of_half = end(&parents, "j1");
    assert_eq!(names(&of_half), ["j1300"]);
    assert_eq!(end(&of_half, "none"), []);
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Failed);
    assert_eq!(bench.store.runs().retry(run_id, RetrySelection::Failed).unwrap(), 2);
    let again = bench.claim(worker, 9);
    assert_eq!(names(&again), ["j1"]);
    let of_all = end(&again, "none");
    assert_eq!(names(&of_all), ["j1301"]);
    let run = bench.store.runs().get(run_id).unwrap();
    assert_eq!(
        (run.status, run.started_at.is_some()),
        (RunStatus::Running, true),
        "since its parent was claimed"
    );
    assert_eq!(end(&of_all, "none"), []);
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Successful);
}

//! Concurrency keys of runs: which run begins, which waits, which is skipped, and which is cancelled.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::time::Duration;

use serde_json::json;
use support::{Bench, failure, graph, success};
use windlass_engine::store::{NewRun, NextDefinition, Reason, RetrySelection, RunSlot};
use windlass_engine::{JobStatus, RunStatus, StopReason, WaitsFor};
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::model::{Concurrency, OnFull, RunHandler};
use windlass_workflow::{ForEach, ItemSource, Source, Workflow};

/// Two jobs in a row, for runs that share a key.
fn limited(limit: i64, on_full: OnFull) -> Workflow {
    let concurrency = Some(Concurrency { key: "k".to_owned(), limit, on_full });
    Workflow { concurrency, ..graph(vec![vec![], vec![0]]) }
}

struct Limits {
    bench: Bench,
    worker: i64,
}

impl Limits {
    fn new() -> Limits {
        let bench = Bench::new();
        let worker = bench.worker();
        Limits { bench, worker }
    }

    fn submit(&self, workflow: &Workflow, runs: usize) -> Vec<i64> {
        (0..runs).map(|_run| self.bench.submit(workflow.clone())).collect()
    }

    fn admit(&self) {
        let scheduler = self.bench.store.for_scheduler();
        for _step in 0..3 {
            assert_eq!(scheduler.admit_runs("").unwrap(), "");
            while scheduler.decide_waiting().unwrap() + scheduler.end_calls().unwrap() > 0 {}
        }
        scheduler.admit_waiting("").unwrap();
        self.bench.assert_sound();
    }

    /// Executes one job of each run that has one, and returns the runs.
    fn turn(&self) -> Vec<i64> {
        let jobs = self.bench.claim(self.worker, 100);
        let runs = jobs.iter().map(|job| job.run_id.unwrap()).collect();
        for job in jobs {
            self.bench.finish(self.worker, &job, success());
        }
        self.admit();
        runs
    }

    /// Executes everything. Returns the runs in the order in which their jobs were executed.
    fn run(&self) -> Vec<i64> {
        let mut order = Vec::new();
        loop {
            self.admit();
            let runs = self.turn();
            if runs.is_empty() {
                return order;
            }
            order.extend(runs);
        }
    }

    fn status(&self, run_id: i64) -> (RunStatus, Option<StopReason>) {
        let run = self.bench.store.runs().get(run_id).unwrap();
        (run.status, run.stop_reason)
    }

    fn waits(&self, run_id: i64) -> bool {
        self.bench.store.runs().get(run_id).unwrap().waits_for == Some(WaitsFor::Slot)
    }

    fn jobs(&self, run_id: i64) -> Vec<JobStatus> {
        self.bench.store.jobs().of_run(run_id).unwrap().iter().map(|job| job.status).collect()
    }
}

const DONE: (RunStatus, Option<StopReason>) = (RunStatus::Successful, None);
const WAITING: (RunStatus, Option<StopReason>) = (RunStatus::Pending, None);

#[test]
fn runs_wait_for_a_slot_and_begin_in_the_order_of_their_ids() {
    let limits = Limits::new();
    let runs = limits.submit(&limited(2, OnFull::Wait), 4);
    assert_eq!(limits.bench.claim(limits.worker, 100).len(), 0, "no run begins before it has a slot");
    limits.admit();
    assert_eq!(runs.iter().map(|run| limits.waits(*run)).collect::<Vec<_>>(), [false, false, true, true]);
    assert_eq!(limits.jobs(runs[2]), [JobStatus::Blocked, JobStatus::Blocked]);
    assert_eq!(limits.turn(), runs[..2]);
    assert_eq!(limits.turn(), runs[..2]);
    assert_eq!(limits.run(), [runs[2], runs[3], runs[2], runs[3]]);
    for run in runs {
        assert_eq!(limits.status(run), DONE);
    }
}

#[test]
fn the_end_of_a_run_wakes_the_scheduler_and_so_does_a_new_run() {
    let limits = Limits::new();
    let listener = limits.bench.store.listen(WakeUps::DUE);
    let woken = || listener.wait(Duration::from_secs(30)).intersects(WakeUps::DUE);
    limits.submit(&Workflow { ..limited(1, OnFull::Wait) }, 2);
    assert!(woken());
    limits.admit();
    while listener.wait(Duration::ZERO).intersects(WakeUps::DUE) {}
    for _job in 0..2 {
        let job = limits.bench.claim(limits.worker, 1).remove(0);
        limits.bench.finish(limits.worker, &job, success());
    }
    assert!(woken(), "the run has ended");
    assert!(limits.bench.store.for_scheduler().upcoming(0).unwrap().has_waiting_runs);
    limits.run();
    assert!(!limits.bench.store.for_scheduler().upcoming(0).unwrap().has_waiting_runs);
}

#[test]
fn a_run_is_skipped_without_its_handlers_and_can_be_retried() {
    let limits = Limits::new();
    let mut workflow = limited(1, OnFull::Skip);
    workflow.jobs.extend(graph(vec![vec![], vec![]]).jobs);
    for (job, (name, handler)) in
        workflow.jobs[2..].iter_mut().zip([("cancel", RunHandler::OnCancel), ("clean", RunHandler::Finally)])
    {
        (job.name, job.handler) = (name.to_owned(), Some(handler));
    }
    let runs = limits.submit(&workflow, 2);
    limits.admit();
    assert_eq!(limits.status(runs[0]), WAITING);
    assert_eq!(limits.status(runs[1]), (RunStatus::Cancelled, Some(StopReason::Skipped)));
    assert_eq!(limits.jobs(runs[1]), [JobStatus::Cancelled; 4]);
    let job = limits.bench.store.jobs().find_by_name(runs[1], "j0").unwrap().unwrap();
    assert!(job.last_error.unwrap().contains("no free slot"));
    // The retry waits, because a person has asked for it.
    limits.bench.store.runs().retry(runs[1], RetrySelection::Failed).unwrap();
    limits.admit();
    assert!(limits.waits(runs[1]));
    assert_eq!(limits.jobs(runs[1]), [JobStatus::Blocked; 4]);
    limits.run();
    assert_eq!([limits.status(runs[0]), limits.status(runs[1])], [DONE, DONE]);
}

#[test]
fn the_newest_runs_stay_if_the_oldest_are_cancelled() {
    let limits = Limits::new();
    let workflow = limited(1, OnFull::CancelOldest);
    let first = limits.submit(&workflow, 1)[0];
    limits.admit();
    let job = limits.bench.claim(limits.worker, 1).remove(0);
    let later = limits.submit(&workflow, 2);
    limits.admit();
    let cancelled = (RunStatus::Cancelled, Some(StopReason::Cancelled));
    assert_eq!(
        limits.status(first),
        (RunStatus::Running, Some(StopReason::Cancelled)),
        "its job is stopping"
    );
    assert_eq!((limits.status(later[0]), limits.status(later[1])), (cancelled, WAITING));
    assert!(limits.waits(later[1]), "the slot is free when the job has stopped");
    limits.bench.finish(limits.worker, &job, failure());
    assert_eq!(limits.run(), [later[1], later[1]]);
    assert_eq!((limits.status(first), limits.status(later[1])), (cancelled, DONE));
}

#[test]
fn a_waiting_run_is_cancelled_at_once_and_its_jobs_only_with_it() {
    let limits = Limits::new();
    let mut workflow = limited(1, OnFull::Wait);
    workflow.jobs.extend(graph(vec![vec![]]).jobs);
    (workflow.jobs[2].name, workflow.jobs[2].handler) = ("clean".to_owned(), Some(RunHandler::Finally));
    let runs = limits.submit(&workflow, 2);
    limits.admit();
    let job = limits.bench.store.jobs().find_by_name(runs[1], "j0").unwrap().unwrap();
    let refused = limits.bench.store.jobs().cancel(job.id).unwrap_err().to_string();
    assert!(refused.contains("cancel the run"), "{refused}");
    let handler = limits.bench.store.jobs().find_by_name(runs[0], "clean").unwrap().unwrap();
    let refused = limits.bench.store.jobs().cancel(handler.id).unwrap_err().to_string();
    assert!(refused.contains("it is a handler"), "{refused}");
    let cancelled = limits.bench.store.runs().cancel(runs[1]).unwrap();
    assert_eq!((cancelled.cancelled, cancelled.stopping), (3, 0));
    assert_eq!(limits.status(runs[1]), (RunStatus::Cancelled, Some(StopReason::Cancelled)));
    assert_eq!(limits.jobs(runs[1]), [JobStatus::Cancelled; 3], "handlers do not run beside the active run");
    limits.run();
    assert_eq!(limits.status(runs[0]), DONE);
}

#[test]
fn the_timeout_of_a_run_begins_with_its_first_job() {
    let limits = Limits::new();
    let runs = limits.submit(&Workflow { timeout_ms: Some(5_000), ..limited(1, OnFull::Wait) }, 2);
    limits.admit();
    limits.bench.clock.advance_ms(100_000);
    limits.bench.store.for_scheduler().promote_due().unwrap();
    limits.run();
    assert_eq!([limits.status(runs[0]), limits.status(runs[1])], [DONE, DONE]);
}

#[test]
fn runs_of_different_keys_do_not_wait_for_each_other() {
    let limits = Limits::new();
    let mut workflow = limited(1, OnFull::Wait);
    workflow.concurrency.as_mut().unwrap().key = "tenant-{{ params.tenant }}".to_owned();
    workflow.params =
        parse("params = { tenant = {} }\n[jobs.a]\nrun = 'a'\nenv = { T = '{{ params.tenant }}' }\n").params;
    let submit = |tenant: &str| {
        let params = [("tenant".to_owned(), json!(tenant))].into_iter().collect();
        let run = NewRun { workflow: workflow.clone(), params, dir: None, run_key: None, occasion: None };
        limits.bench.store.runs().submit(run).unwrap().run_id
    };
    let runs = ["a", "b", "a"].map(submit);
    limits.admit();
    assert_eq!(runs.map(|run| limits.waits(run)), [false, false, true]);
    let keys = runs.map(|run| limits.bench.store.runs().get(run).unwrap().concurrency.unwrap());
    assert_eq!(keys[2], ("tenant-a".to_owned(), 1));
    let params = Default::default();
    let run = NewRun { workflow: workflow.clone(), params, dir: None, run_key: None, occasion: None };
    let error = limits.bench.store.runs().submit(run).unwrap_err().to_string();
    assert!(error.contains("`concurrency.key` of the workflow"), "{error}");
}

#[test]
fn a_job_of_a_waiting_run_says_which_run_has_the_slot() {
    let limits = Limits::new();
    let runs = limits.submit(&limited(1, OnFull::Wait), 2);
    limits.admit();
    let job = limits.bench.store.jobs().find_by_name(runs[1], "j1").unwrap().unwrap();
    let slot = RunSlot { key: "k".to_owned(), limit: 1, holders: vec![runs[0]] };
    let why = limits.bench.store.jobs().why(job.id).unwrap();
    assert_eq!(why.reasons, [Reason::RunWaitsForSlot(slot.clone())]);
    let run = limits.bench.store.runs().get(runs[1]).unwrap();
    assert_eq!(limits.bench.store.runs().awaited_slot(&run).unwrap(), Some(slot));
    let first = limits.bench.store.runs().get(runs[0]).unwrap();
    assert_eq!(limits.bench.store.runs().awaited_slot(&first).unwrap(), None);
}

/// A retry of the items of a group, and one of handlers alone, wait like any other.
#[test]
fn a_retried_run_waits_with_its_group_and_its_handlers() {
    let limits = Limits::new();
    let mut workflow = limited(1, OnFull::Wait);
    let items = ItemSource::List((0..3).map(Into::into).collect());
    workflow.jobs[0].for_each = Some(Box::new(ForEach { max_parallel: Some(1), ..ForEach::of(items) }));
    workflow.jobs[0].deadline_ms = Some(60_000);
    workflow.jobs[0].retry.max_attempts = 1;
    workflow.jobs.extend(graph(vec![vec![]]).jobs);
    (workflow.jobs[2].name, workflow.jobs[2].handler) = ("clean".to_owned(), Some(RunHandler::Finally));
    workflow.jobs[2].retry.max_attempts = 1;
    let run = limits.submit(&workflow, 1)[0];
    limits.admit();
    for name in ["j0[0]", "j0[1]", "j0[2]", "clean"] {
        let job = limits.bench.claim(limits.worker, 1).remove(0);
        assert_eq!(job.name.as_deref(), Some(name));
        limits.bench.finish(limits.worker, &job, if name == "j0[1]" { failure() } else { success() });
    }
    assert_eq!(limits.status(run), (RunStatus::Failed, None));
    let other = limits.submit(&limited(1, OnFull::Wait), 1)[0];
    limits.admit();
    limits.bench.store.runs().retry(run, RetrySelection::Failed).unwrap();
    // The deadline of the group begins with the run.
    limits.bench.clock.advance_ms(100_000);
    limits.bench.store.for_scheduler().promote_due().unwrap();
    limits.admit();
    assert!(limits.waits(run) && limits.bench.claim(limits.worker, 100).len() == 1, "{other} has the slot");
    limits.bench.store.runs().cancel(other).unwrap();
    let job = limits.bench.store.jobs().find_by_name(other, "j0").unwrap().unwrap();
    limits.bench.raw().execute(&format!("UPDATE jobs SET status = 'CANCELLED' WHERE id = {}", job.id));
    limits.bench.store.for_scheduler().apply_reports().unwrap();
    limits.admit();
    let mut names = Vec::new();
    loop {
        let jobs = limits.bench.claim(limits.worker, 1);
        let Some(job) = jobs.first() else { break };
        names.push(job.name.clone().unwrap());
        let is_clean = job.name.as_deref() == Some("clean");
        limits.bench.finish(limits.worker, job, if is_clean { failure() } else { success() });
    }
    assert_eq!(names, ["j0[1]", "j1", "clean"]);
    assert_eq!(limits.status(run), (RunStatus::Failed, None), "its handler failed");
    limits.bench.store.runs().retry(run, RetrySelection::Failed).unwrap();
    assert!(limits.waits(run));
    assert_eq!(limits.bench.claim(limits.worker, 1).len(), 0);
    assert_eq!(limits.run(), [run]);
    assert_eq!(limits.status(run), DONE);
}

#[test]
fn a_retry_with_another_definition_has_its_limit() {
    let limits = Limits::new();
    let mut workflow = limited(1, OnFull::Wait);
    workflow.jobs.iter_mut().for_each(|job| job.retry.max_attempts = 1);
    let run = limits.submit(&workflow, 1)[0];
    limits.admit();
    let job = limits.bench.claim(limits.worker, 1).remove(0);
    limits.bench.finish(limits.worker, &job, failure());
    let mut next = Workflow { concurrency: None, ..workflow };
    next.jobs[1].priority = 5;
    let next = NextDefinition { workflow: next, file: None };
    limits.bench.store.runs().retry_with(run, RetrySelection::Failed, next).unwrap();
    assert_eq!(limits.bench.store.runs().get(run).unwrap().concurrency, None);
    assert_eq!(limits.bench.claim(limits.worker, 1).len(), 1, "it waits for no slot");
}

#[test]
fn each_of_many_keys_has_its_turn_and_so_has_each_of_many_runs() {
    let limits = Limits::new();
    let one = |key: String, limit: i64| {
        let concurrency = Some(Concurrency { key, limit, on_full: OnFull::Wait });
        limits.bench.submit(Workflow { concurrency, ..graph(vec![vec![]]) })
    };
    for number in 0..210 {
        one(format!("k{number:03}"), 1);
    }
    let cursor = limits.bench.store.for_scheduler().admit_runs("").unwrap();
    assert_eq!((cursor.as_str(), limits.bench.claim(limits.worker, 1_000).len()), ("k199", 200));
    assert_eq!(limits.bench.store.for_scheduler().admit_runs(&cursor).unwrap(), "");
    assert_eq!(limits.bench.claim(limits.worker, 1_000).len(), 10);
    for _run in 0..250 {
        one("wide".to_owned(), 240);
    }
    let mut began = Vec::new();
    for _step in 0..4 {
        limits.bench.store.for_scheduler().admit_runs("").unwrap();
        began.push(limits.bench.claim(limits.worker, 1_000).len());
    }
    assert_eq!(began, [100, 100, 40, 0]);
    limits.bench.assert_sound();
}

fn parse(text: &str) -> Workflow {
    let source = Source::new("top.toml", text.as_bytes().to_vec()).unwrap();
    windlass_workflow::parse(&source).unwrap_or_else(|report| panic!("{report}"))
}

#[test]
fn a_called_run_waits_like_any_other_and_shares_the_slot_of_a_run_above_it() {
    let limits = Limits::new();
    let caller = parse(
        "[jobs.copy]\nfor_each = ['a', 'b']\nworkflow = 'inner'\n\
         [workflows.inner]\nconcurrency = { limit = 1 }\n[workflows.inner.jobs.work]\nrun = 'true'\n",
    );
    let run = limits.submit(&caller, 1)[0];
    limits.admit();
    let children: Vec<i64> =
        limits.bench.store.runs().below(run, 0, 10).unwrap().iter().map(|child| child.run_id).collect();
    assert_eq!(children.iter().map(|child| limits.waits(*child)).collect::<Vec<_>>(), [false, true]);
    let key = limits.bench.store.runs().get(children[0]).unwrap().concurrency.unwrap();
    assert_eq!(key, ("top/inner".to_owned(), 1));
    assert_eq!(limits.run(), children);
    assert_eq!(limits.status(run), DONE);

    let same = parse(
        "concurrency = { key = 'one' }\n[jobs.call]\nworkflow = 'inner'\n\
         [workflows.inner]\nconcurrency = { key = 'one' }\n[workflows.inner.jobs.work]\nrun = 'true'\n",
    );
    let run = limits.submit(&same, 1)[0];
    limits.run();
    assert_eq!(limits.status(run), DONE);
}

#[test]
fn a_called_run_that_is_skipped_skips_its_job() {
    let limits = Limits::new();
    let caller = parse(
        "[jobs.a]\nworkflow = 'inner'\n[jobs.b]\nworkflow = 'inner'\n\
         [workflows.inner]\nconcurrency = { on_full = 'skip' }\n[workflows.inner.jobs.work]\nrun = 'true'\n",
    );
    let run = limits.submit(&caller, 1)[0];
    limits.run();
    assert_eq!(limits.status(run), DONE);
    assert_eq!(limits.jobs(run), [JobStatus::Successful, JobStatus::Skipped]);
}

#[test]
fn a_worker_that_ends_when_idle_waits_for_the_first_jobs_of_waiting_runs() {
    use windlass_engine::store::{Scope, WorkerCapabilities};
    let limits = Limits::new();
    limits.submit(&limited(1, OnFull::Wait), 1);
    let has_work = |kind: &str| {
        let capabilities = WorkerCapabilities::of_kinds(vec![kind.to_owned()]);
        limits.bench.store.for_workers().has_work(&Scope::Everything, &capabilities).unwrap()
    };
    assert_eq!((has_work("shell"), has_work("other")), (true, false));
}

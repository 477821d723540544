//! Jobs with `for_each`: random graphs with groups, whose items end in random orders and are cancelled and retried. The ends are
//! compared with the rules, and no group ever runs more items than it may, or fewer.
//!
//! The fixed seeds are the same each time. Another test takes new seeds and prints them; `WINDLASS_SEED=7` repeats one, and
//! `WINDLASS_GRAPHS=50000` tries that many.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod support;

use fastrand::Rng;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::tapped::{Tap, Tapped};
use support::{Bench, failure, graph, success};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_engine::join_rule::{EndColumns, JobEnd, Join, JoinRule, ParentEnds};
use windlass_engine::store::{ClaimedJob, Job, RetrySelection, Scope};
use windlass_engine::transition::{Outcome, Repeat};
use windlass_engine::{Clock, JobStatus, Random, RunStatus, Store, TABLES, WaitsFor};
use windlass_test_database::DatabaseKind;
use windlass_workflow::model::{Concurrency, OnFull, RunHandler};
use windlass_workflow::{Expression, ForEach, ItemSource, Workflow};

const JOBS_MAX: usize = 6;
const ITEMS_MAX: usize = 7;
/// Calls of the store until a run of so few jobs must have ended.
const CALLS_MAX: usize = 1_000;

/// A job, and how it or its items end when they are executed.
#[derive(Debug, Clone)]
struct PlannedJob {
    needs: Vec<usize>,
    allow_failure: bool,
    items: Option<PlannedItems>,
    ends: Vec<End>,
}

#[derive(Debug, Clone)]
struct PlannedItems {
    max_parallel: Option<i64>,
    fail_fast: bool,
    has_key: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Success,
    Failure,
    Cancellation,
}

impl End {
    fn status(self) -> JobStatus {
        match self {
            End::Success => JobStatus::Successful,
            End::Failure => JobStatus::Failed,
            End::Cancellation => JobStatus::Cancelled,
        }
    }

    fn outcome(self, name: &str) -> Outcome {
        match self {
            End::Success => Outcome::Successful { output: Some(json!(name).to_string()) },
            End::Failure => Outcome::Failed { error: "no luck".to_owned(), repeat: Repeat::Pointless },
            End::Cancellation => Outcome::Cancelled { error: "stopped".to_owned() },
        }
    }
}

fn end(random: &mut Rng) -> End {
    let ends = [End::Success, End::Success, End::Success, End::Success, End::Failure, End::Cancellation];
    ends[random.usize(..ends.len())]
}

fn plan(random: &mut Rng) -> Vec<PlannedJob> {
    (0..random.usize(2..=JOBS_MAX))
        .map(|index| {
            let needs: Vec<usize> = (0..index).filter(|_parent| random.u8(..3) == 0).collect();
            let items = random.bool().then(|| PlannedItems {
                max_parallel: random.bool().then(|| random.i64(1..4)),
                fail_fast: random.u8(..3) == 0,
                has_key: random.u8(..3) == 0,
            });
            let count = if items.is_some() { random.usize(0..=ITEMS_MAX) } else { 1 };
            let ends = (0..count).map(|_item| end(random)).collect();
            PlannedJob { needs, allow_failure: random.u8(..4) == 0, items, ends }
        })
        .collect()
}

fn list(items: usize) -> ItemSource {
    ItemSource::List((0..items).map(Json::from).collect())
}

fn submit(bench: &Bench, plan: &[PlannedJob], seed: u64) -> i64 {
    let mut workflow = graph(plan.iter().map(|job| job.needs.clone()).collect());
    for (job, planned) in workflow.jobs.iter_mut().zip(plan) {
        job.allow_failure = planned.allow_failure;
        let Some(items) = &planned.items else { continue };
        let PlannedItems { max_parallel, fail_fast, has_key } = *items;
        job.for_each =
            Some(Box::new(ForEach { max_parallel, fail_fast, ..ForEach::of(list(planned.ends.len())) }));
        job.concurrency =
            has_key.then(|| Concurrency { key: format!("{seed}"), limit: 2, on_full: OnFull::Wait });
    }
    bench.submit(workflow)
}

/// The place of a job in the plan, and that of the item.
fn planned(name: &str) -> (usize, usize) {
    let (job, item) = name[1..].split_once('[').unwrap_or((&name[1..], "0]"));
    (job.parse().unwrap(), item.trim_end_matches(']').parse().unwrap())
}

/// Executes a run to its end: claims, ends and decisions in any order, and several ends in one transaction.
fn execute(bench: &Bench, worker: i64, run_id: i64, plan: &[PlannedJob], random: &mut Rng) {
    let mut claimed: Vec<ClaimedJob> = Vec::new();
    for _call in 0..CALLS_MAX {
        match random.u8(..4) {
            0 => claimed.extend(bench.claim(worker, random.usize(1..4))),
            1 => drop(bench.store.for_scheduler().decide_waiting().unwrap()),
            2 => drop(bench.store.for_scheduler().admit_waiting("").unwrap()),
            _ => {
                random.shuffle(&mut claimed);
                let rest = claimed.split_off(claimed.len().min(random.usize(1..4)));
                let ends: Vec<_> =
                    claimed.into_iter().map(|job| (worker, job.clone(), outcome(plan, &job))).collect();
                bench.finish_all(&ends);
                claimed = rest;
            }
        }
        check_turns(bench, run_id, plan);
        if bench.store.runs().get(run_id).unwrap().status.is_terminal() {
            assert!(claimed.is_empty(), "a job runs after the end of its run");
            return;
        }
    }
    panic!("the run has not ended");
}

fn outcome(plan: &[PlannedJob], job: &ClaimedJob) -> Outcome {
    let name = job.name.as_deref().unwrap();
    let (index, item) = planned(name);
    if plan[index].items.is_some() {
        let carried = job.item.as_ref().unwrap();
        assert_eq!((carried.index, &carried.value), (item as i64, &json!(item)), "{name}");
    }
    plan[index].ends[item].outcome(name)
}

/// A group runs as many items as it may, and they begin in order.
fn check_turns(bench: &Bench, run_id: i64, plan: &[PlannedJob]) {
    let jobs = bench.store.jobs().of_run(run_id).unwrap();
    for group in jobs.iter().filter(|job| job.waits_for == Some(WaitsFor::Items)) {
        let items: Vec<&Job> = jobs.iter().filter(|job| job.group_id == Some(group.id)).collect();
        let unfinished = items.iter().filter(|item| item.finished_at.is_none()).count() as i64;
        assert_eq!(group.blocked_by, unfinished, "a group counts its items");
        let blocked = items.iter().filter(|item| item.status == JobStatus::Blocked).count() as i64;
        let (index, _) = planned(group.name.as_deref().unwrap());
        let most = plan[index].items.as_ref().unwrap().max_parallel.unwrap_or(i64::MAX);
        assert!(
            unfinished - blocked <= most,
            "{} items have their turn, and {most} may",
            unfinished - blocked
        );
        assert!(blocked == 0 || unfinished - blocked == most, "{blocked} items wait, and a place is free");
    }
}

fn columns(job: &Job) -> EndColumns {
    EndColumns { status: job.status, allow_failure: job.allow_failure, upstream_failed: job.upstream_failed }
}

fn is_failure(job: &Job) -> bool {
    columns(job).end() == Some(JobEnd::Broken) && job.status != JobStatus::Skipped
}

/// The jobs of a run, each with its items.
fn with_items(bench: &Bench, run_id: i64) -> Vec<(Job, Vec<Job>)> {
    let jobs = bench.store.jobs().of_run(run_id).unwrap();
    let items = |group: &Job| jobs.iter().filter(|job| job.group_id == Some(group.id)).cloned().collect();
    jobs.iter().filter(|job| job.group_id.is_none()).map(|job| (job.clone(), items(job))).collect()
}

/// Checks the ends of all jobs. Jobs outside `again` ended as before.
fn check_ends(plan: &[PlannedJob], jobs: &[(Job, Vec<Job>)], again: &[bool]) {
    for (index, (job, items)) in jobs.iter().enumerate().filter(|(index, _)| again[*index]) {
        let planned = &plan[index];
        let mut parents = ParentEnds::default();
        for parent in &planned.needs {
            match columns(&jobs[*parent].0).end().unwrap() {
                JobEnd::Passed => parents.passed += 1,
                JobEnd::Broken => parents.broken += 1,
                JobEnd::NotNeeded => parents.not_needed += 1,
            }
        }
        if JoinRule::AllSuccessful.join(parents) != Join::GoOn {
            assert_eq!((job.status, items.len()), (JobStatus::Skipped, 0));
            continue;
        }
        let Some(settings) = &planned.items else {
            assert_eq!(job.status, planned.ends[0].status());
            continue;
        };
        assert_eq!(items.len(), planned.ends.len());
        let is_broken = |end: &End| match end {
            End::Success => false,
            End::Failure => !planned.allow_failure,
            End::Cancellation => true,
        };
        let fails = planned.ends.iter().any(is_broken);
        let expected = if fails { JobStatus::Failed } else { JobStatus::Successful };
        assert_eq!(job.status, expected, "{:?}", job.last_error);
        for (item, end) in items.iter().zip(&planned.ends) {
            let is_stopped = settings.fail_fast && fails;
            let stopped = [JobStatus::Skipped, JobStatus::Cancelled].contains(&item.status);
            assert!(item.status == end.status() || (is_stopped && stopped), "{:?}", item.name);
        }
    }
}

fn check_run(bench: &Bench, run_id: i64, jobs: &[(Job, Vec<Job>)]) {
    let run = bench.store.runs().get(run_id).unwrap();
    // Each failed item counts, and its group does not.
    let count = |(job, items): &(Job, Vec<Job>)| match items.len() {
        0 => i64::from(is_failure(job)),
        _ => items.iter().filter(|item| is_failure(item)).count() as i64,
    };
    let failed = jobs.iter().map(count).sum::<i64>();
    assert_eq!(run.failed_jobs, failed);
    assert_eq!(run.status, if failed > 0 { RunStatus::Failed } else { RunStatus::Successful });
    assert_eq!(run.total_jobs, jobs.iter().map(|(_job, items)| 1 + items.len() as i64).sum::<i64>());
    for (job, items) in jobs.iter().filter(|(job, _)| job.status == JobStatus::Successful) {
        let (index, _) = planned(job.name.as_deref().unwrap());
        let outputs: Vec<Json> = items
            .iter()
            .map(|item| item.output.as_deref().map_or(Json::Null, |json| serde_json::from_str(json).unwrap()))
            .collect();
        let values = bench.store.jobs().values(run_id, &[format!("j{index}")]).unwrap();
        if job.kind == "group" {
            assert_eq!(values[0].output, Some(json!(outputs).to_string()));
        }
    }
}

/// These jobs and all jobs that depend on them.
fn with_descendants(plan: &[PlannedJob], chosen: &[bool]) -> Vec<bool> {
    let mut again = chosen.to_vec();
    for (index, job) in plan.iter().enumerate() {
        again[index] |= job.needs.iter().any(|parent| again[*parent]);
    }
    again
}

fn check_graph(bench: &Bench, worker: i64, seed: u64) {
    println!("WINDLASS_SEED={seed}");
    let mut random = Rng::with_seed(seed);
    let mut plan = plan(&mut random);
    let run_id = submit(bench, &plan, seed);
    execute(bench, worker, run_id, &plan, &mut random);
    let before = with_items(bench, run_id);
    check_ends(&plan, &before, &vec![true; plan.len()]);
    check_run(bench, run_id, &before);
    // A retry, in which everything is successful that is retried.
    for job in &mut plan {
        // A failure that is allowed is not retried.
        let is_retried = |end: &&mut End| !(job.allow_failure && **end == End::Failure);
        job.ends.iter_mut().filter(is_retried).for_each(|end| *end = End::Success);
    }
    let is_failed = |(job, items): &(Job, Vec<Job>)| is_failure(job) || items.iter().any(is_failure);
    let (selection, chosen) = if random.bool() {
        (RetrySelection::Failed, before.iter().map(is_failed).collect::<Vec<_>>())
    } else {
        let root = random.usize(..plan.len());
        (RetrySelection::From(format!("j{root}")), (0..plan.len()).map(|index| index == root).collect())
    };
    let again = with_descendants(&plan, &chosen);
    match bench.store.runs().retry(run_id, selection.clone()) {
        // Nothing to retry, or nothing of it can run.
        Err(error) => assert!(error.is_conflict(), "{error}"),
        Ok(_reset) => {
            execute(bench, worker, run_id, &plan, &mut random);
            let after = with_items(bench, run_id);
            check_run(bench, run_id, &after);
            check_ends(&plan, &after, &again);
            for (index, (job, items)) in after.iter().enumerate() {
                let (job_before, items_before) = &before[index];
                if !again[index] {
                    assert_eq!((job_before, items_before), (job, items));
                } else if selection == RetrySelection::Failed && chosen[index] {
                    // Unless a job before it failed too, its successful items stay as they are.
                    let kept = |item: &&Job| item.status == JobStatus::Successful;
                    let is_anew = plan[index].needs.iter().any(|parent| again[*parent]);
                    for (item_before, item) in items_before.iter().zip(items).filter(|(item, _)| kept(item)) {
                        assert_eq!(item_before == item, !is_anew, "{:?}", item.name);
                    }
                }
            }
        }
    }
}

fn check_graphs(seeds: impl Iterator<Item = u64>) {
    let bench = Bench::new();
    let worker = bench.worker();
    for seed in seeds {
        check_graph(&bench, worker, seed);
    }
    bench.assert_sound();
}

#[test]
fn random_groups_end_as_the_rules_say() {
    let graphs = match windlass_test_database::chosen_kind() {
        DatabaseKind::Sqlite => 300,
        DatabaseKind::Postgres => 40,
    };
    check_graphs(0..graphs);
}

#[test]
fn random_groups_with_new_seeds_end_as_the_rules_say() {
    let number = |variable| std::env::var(variable).ok().map(|text| text.parse::<u64>().unwrap());
    let first = number("WINDLASS_SEED").unwrap_or_else(|| u64::from(fastrand::u32(..)));
    check_graphs(first..first + number("WINDLASS_GRAPHS").unwrap_or(50));
}

/// A run of one group, and a job after it.
struct Group {
    bench: Bench,
    worker: i64,
    run_id: i64,
}

impl Group {
    fn of(for_each: ForEach) -> Group {
        let mut workflow = graph(vec![vec![], vec![0]]);
        workflow.jobs[0].name = "load".to_owned();
        workflow.jobs[0].for_each = Some(Box::new(for_each));
        workflow.jobs[0].retry.max_attempts = 1;
        Group::in_run(workflow)
    }

    fn in_run(workflow: Workflow) -> Group {
        let bench = Bench::new();
        let (worker, run_id) = (bench.worker(), bench.submit(workflow));
        let group = Group { bench, worker, run_id };
        group.decide();
        group
    }

    fn decide(&self) {
        while self.bench.store.for_scheduler().decide_waiting().unwrap() > 0 {}
    }

    fn claim(&self, limit: usize) -> Vec<ClaimedJob> {
        self.bench.claim(self.worker, limit)
    }

    fn finish(&self, job: &ClaimedJob, outcome: Outcome) {
        self.bench.finish(self.worker, job, outcome);
        self.bench.assert_sound();
    }

    fn job(&self, name: &str) -> Job {
        self.bench.store.jobs().find_by_name(self.run_id, name).unwrap().unwrap()
    }

    fn statuses(&self) -> Vec<JobStatus> {
        self.bench.store.jobs().of_run(self.run_id).unwrap().iter().map(|job| job.status).collect()
    }

    fn end_all(&self) {
        loop {
            self.decide();
            let jobs = self.claim(10);
            if jobs.is_empty() {
                return self.bench.assert_sound();
            }
            jobs.iter().for_each(|job| self.finish(job, success()));
        }
    }

    fn run_status(&self) -> RunStatus {
        self.bench.store.runs().get(self.run_id).unwrap().status
    }
}

use JobStatus::{Blocked, Cancelled, Failed, Pending, Running, Scheduled, Skipped, Successful, Waiting};

#[test]
fn a_list_without_items_is_a_success() {
    let group = Group::of(ForEach::of(list(0)));
    assert_eq!(group.statuses(), [Successful, Pending]);
    assert_eq!(
        group.bench.store.jobs().values(group.run_id, &["load".to_owned()]).unwrap()[0].output,
        Some("[]".to_owned())
    );
    assert_eq!(group.job("load").last_error, None);
}

#[test]
fn what_is_no_list_fails_the_group_and_counts_once() {
    let group = Group::of(ForEach::of(ItemSource::In(
        Expression::parse("run.workflow if run.id > 0 else []").unwrap(),
    )));
    assert_eq!(group.statuses(), [Failed, Skipped]);
    let run = group.bench.store.runs().get(group.run_id).unwrap();
    assert_eq!((run.status, run.failed_jobs), (RunStatus::Failed, 1));
    assert!(group.job("load").last_error.unwrap().contains("`for_each` gives a text, not a list"));
    // The job itself is decided anew.
    assert_eq!(group.bench.store.runs().retry(group.run_id, RetrySelection::Failed).unwrap(), 2);
    assert_eq!(group.statuses(), [Waiting, Blocked]);
}

#[test]
fn an_item_that_is_retried_keeps_its_place() {
    let mut workflow = graph(vec![vec![]]);
    workflow.jobs[0].name = "load".to_owned();
    workflow.jobs[0].for_each = Some(Box::new(ForEach { max_parallel: Some(1), ..ForEach::of(list(3)) }));
    workflow.jobs[0].retry.max_attempts = 2;
    let group = Group::in_run(workflow);
    let first = group.claim(5);
    assert_eq!(first.len(), 1);
    group.finish(&first[0], failure());
    assert_eq!(group.statuses(), [Waiting, Scheduled, Blocked, Blocked]);
    group.bench.clock.advance_ms(10_000);
    group.bench.store.for_scheduler().promote_due().unwrap();
    group.end_all();
    assert_eq!(group.run_status(), RunStatus::Successful);
}

#[test]
fn the_end_of_an_item_claims_the_next_in_the_same_transaction() {
    let group = Group::of(ForEach { max_parallel: Some(2), ..ForEach::of(list(5)) });
    let jobs = group.claim(5);
    assert_eq!(jobs.len(), 2);
    let finish = support::finish(group.worker, &jobs[0], success());
    let request = support::request(group.worker, Scope::Everything, 1);
    let (_finished, claims) =
        group.bench.store.for_workers().finish_and_claim(vec![finish], Some(request)).unwrap();
    let windlass_engine::store::Claims::Jobs(claimed) = claims else { panic!("fenced") };
    assert_eq!(claimed[0].name.as_deref(), Some("load[2]"));
    assert_eq!(group.statuses(), [Waiting, Blocked, Successful, Running, Running, Blocked, Blocked]);
}

#[test]
fn fail_fast_ends_the_items_that_wait_and_stops_those_that_run() {
    let group = Group::of(ForEach { max_parallel: Some(3), fail_fast: true, ..ForEach::of(list(5)) });
    let jobs = group.claim(2);
    group.finish(&jobs[0], failure());
    assert_eq!(group.statuses(), [Waiting, Blocked, Failed, Running, Cancelled, Skipped, Skipped]);
    assert!(group.job("load[1]").cancel_requested_at.is_some());
    assert_eq!(group.job("load[3]").last_error.unwrap(), "`load[0]` failed, and `fail_fast` is set");
    group.finish(&jobs[1], success());
    assert_eq!(group.statuses()[..2], [Failed, Skipped]);
    assert_eq!(
        group.job("load").last_error.unwrap(),
        "4 of 5 items failed, were cancelled or skipped, the first is load[0]"
    );
    // Its successful item stays, and the others run again.
    assert_eq!(group.bench.store.runs().retry(group.run_id, RetrySelection::Failed).unwrap(), 6);
    assert_eq!(group.statuses(), [Waiting, Blocked, Pending, Successful, Pending, Pending, Blocked]);
    group.end_all();
    assert_eq!(group.run_status(), RunStatus::Successful);
}

#[test]
fn one_item_is_retried_alone() {
    let group = Group::of(ForEach::of(list(3)));
    group.end_all();
    let attempt = |name: &str| group.job(name).attempt;
    group.bench.store.runs().retry(group.run_id, RetrySelection::From("load[1]".to_owned())).unwrap();
    assert_eq!(group.statuses(), [Waiting, Blocked, Successful, Pending, Successful]);
    group.end_all();
    assert_eq!([attempt("load[0]"), attempt("load[1]"), attempt("j1")], [1, 2, 2]);
    // The group itself is decided anew.
    let before = group.job("load[1]").id;
    group.bench.store.runs().retry(group.run_id, RetrySelection::From("load".to_owned())).unwrap();
    assert_eq!(group.statuses(), [Waiting, Blocked]);
    group.end_all();
    assert_ne!(group.job("load[1]").id, before);
    assert_eq!(group.bench.store.runs().get(group.run_id).unwrap().total_jobs, 5);
}

#[test]
fn a_group_is_cancelled_with_its_items_and_ends_with_the_last() {
    let group = Group::of(ForEach { max_parallel: Some(2), ..ForEach::of(list(4)) });
    let running = group.claim(1);
    let cancelled = group.bench.store.jobs().cancel(group.job("load").id).unwrap();
    assert_eq!((cancelled.cancelled, cancelled.stopping), (3, 1));
    assert_eq!(group.statuses(), [Waiting, Blocked, Running, Cancelled, Cancelled, Cancelled]);
    assert!(group.bench.store.jobs().cancel(group.job("load").id).unwrap_err().is_conflict());
    group.finish(&running[0], Outcome::Cancelled { error: "stopped".to_owned() });
    assert_eq!(group.statuses()[..2], [Cancelled, Skipped]);
    assert_eq!(group.run_status(), RunStatus::Failed);
}

#[test]
fn a_cancelled_item_lets_the_next_one_run() {
    let group = Group::of(ForEach { max_parallel: Some(1), ..ForEach::of(list(3)) });
    group.bench.store.jobs().cancel(group.job("load[0]").id).unwrap();
    assert_eq!(group.statuses(), [Waiting, Blocked, Cancelled, Pending, Blocked]);
    group.bench.store.jobs().cancel(group.job("load[2]").id).unwrap();
    group.bench.store.jobs().cancel(group.job("load[1]").id).unwrap();
    assert_eq!(group.statuses(), [Failed, Skipped, Cancelled, Cancelled, Cancelled]);
    group.bench.assert_sound();
}

#[test]
fn a_cancelled_run_ends_with_its_last_item() {
    let group = Group::of(ForEach { max_parallel: Some(2), ..ForEach::of(list(3)) });
    let running = group.claim(1);
    let cancelled = group.bench.store.runs().cancel(group.run_id).unwrap();
    assert_eq!((cancelled.cancelled, cancelled.stopping), (3, 1));
    group.bench.assert_sound();
    assert_eq!(group.statuses(), [Waiting, Cancelled, Running, Cancelled, Cancelled]);
    group.finish(&running[0], success());
    assert_eq!((group.statuses()[0], group.run_status()), (Cancelled, RunStatus::Cancelled));
    group.bench.store.runs().retry(group.run_id, RetrySelection::Failed).unwrap();
    assert_eq!(group.statuses(), [Waiting, Blocked, Successful, Pending, Pending]);
    group.end_all();
    assert_eq!(group.run_status(), RunStatus::Successful);
}

#[test]
fn an_item_that_another_program_reports_keeps_its_place_until_it_is_applied() {
    let mut workflow = graph(vec![vec![]]);
    workflow.jobs[0].name = "load".to_owned();
    workflow.jobs[0].for_each = Some(Box::new(ForEach { max_parallel: Some(2), ..ForEach::of(list(4)) }));
    workflow.jobs[0].retry.max_attempts = 2;
    let group = Group::in_run(workflow);
    let jobs = group.claim(2);
    group.bench.raw().execute(&format!("UPDATE jobs SET status = 'FAILED' WHERE id = {}", jobs[0].id));
    group.bench.finish(group.worker, &jobs[1], success());
    assert_eq!(group.statuses(), [Waiting, Failed, Successful, Pending, Blocked]);
    assert_eq!(group.bench.store.for_scheduler().apply_reports().unwrap(), 1);
    assert_eq!(group.statuses(), [Waiting, Scheduled, Successful, Pending, Blocked]);
    group.bench.clock.advance_ms(10_000);
    group.bench.store.for_scheduler().promote_due().unwrap();
    group.end_all();
    assert_eq!(group.run_status(), RunStatus::Successful);
}

#[test]
fn a_group_whose_items_another_program_ended_is_reconciled() {
    let group = Group::of(ForEach { max_parallel: Some(1), ..ForEach::of(list(3)) });
    let end = |items: &str| {
        group.bench.raw().execute(&format!(
            "UPDATE jobs SET status = 'SUCCESSFUL', finished_at = 1 WHERE group_id IS NOT NULL AND {items}"
        ));
        group.bench.clock.advance_ms(20_000);
        group.bench.store.for_scheduler().reconcile_step(0).unwrap();
        group.bench.assert_sound();
    };
    end("item LIKE '[0,%'");
    assert_eq!(group.statuses(), [Waiting, Blocked, Successful, Pending, Blocked]);
    end("item NOT LIKE '[0,%'");
    assert_eq!(group.statuses(), [Successful, Pending, Successful, Successful, Successful]);
    group.end_all();
    assert_eq!(group.run_status(), RunStatus::Successful);
}

#[test]
fn items_of_a_dead_worker_are_rescued_and_a_run_can_time_out() {
    let mut workflow = graph(vec![vec![], vec![0]]);
    workflow.timeout_ms = Some(5_000);
    workflow.jobs[0].name = "load".to_owned();
    workflow.jobs[0].for_each = Some(Box::new(ForEach { max_parallel: Some(2), ..ForEach::of(list(3)) }));
    let group = Group::in_run(workflow);
    assert_eq!(group.claim(2).len(), 2);
    let rescued = group.bench.store.for_scheduler().rescue(vec![(group.worker, 0)]).unwrap();
    assert_eq!((rescued.jobs, group.statuses()), (2, vec![Waiting, Blocked, Pending, Pending, Blocked]));
    group.bench.clock.advance_ms(6_000);
    assert_eq!(group.bench.store.for_scheduler().promote_due().unwrap().expired, 1);
    assert_eq!(group.statuses(), [Cancelled; 5]);
    assert_eq!(group.run_status(), RunStatus::Failed);
    group.bench.assert_sound();
}

#[test]
fn an_item_that_is_skipped_for_a_full_key_is_no_failure() {
    let mut workflow = graph(vec![vec![], vec![0]]);
    workflow.jobs[0].name = "load".to_owned();
    workflow.jobs[0].for_each = Some(Box::new(ForEach::of(list(3))));
    workflow.jobs[0].concurrency = Some(Concurrency { key: "k".to_owned(), limit: 1, on_full: OnFull::Skip });
    let group = Group::in_run(workflow);
    group.bench.store.for_scheduler().admit_waiting("").unwrap();
    assert_eq!(group.statuses(), [Waiting, Blocked, Pending, Skipped, Skipped]);
    group.end_all();
    assert_eq!(group.statuses(), [Successful, Successful, Successful, Skipped, Skipped]);
    let output = &group.bench.store.jobs().values(group.run_id, &["load".to_owned()]).unwrap()[0].output;
    assert_eq!(output.as_deref(), Some("[null,null,null]"));
}

#[test]
fn items_of_a_handler_are_made_anew_by_a_retry() {
    let mut workflow = graph(vec![vec![], vec![]]);
    workflow.jobs[0].retry.max_attempts = 1;
    workflow.jobs[1].handler = Some(RunHandler::Finally);
    workflow.jobs[1].for_each =
        Some(Box::new(ForEach::of(ItemSource::In(Expression::parse("run.failed").unwrap()))));
    let group = Group::in_run(workflow);
    let jobs = group.claim(1);
    group.finish(&jobs[0], failure());
    group.end_all();
    assert_eq!(group.statuses(), [Failed, Successful, Successful]);
    group.bench.store.runs().retry(group.run_id, RetrySelection::Failed).unwrap();
    group.end_all();
    assert_eq!(group.statuses(), [Successful, Successful], "nothing failed, so there is no item");
    assert_eq!(group.run_status(), RunStatus::Successful);
}

#[test]
fn a_run_has_at_most_as_many_jobs_as_a_file() {
    let mut workflow = graph(vec![vec![]; 3]);
    for job in &mut workflow.jobs {
        job.for_each = Some(Box::new(ForEach { limit: 100_000, ..ForEach::of(list(80_000)) }));
    }
    let bench = Bench::new();
    let run_id = bench.submit(workflow);
    // One group for each transaction, because each has many items.
    assert_eq!([(); 3].map(|()| bench.store.for_scheduler().decide_waiting().unwrap()), [1, 1, 1]);
    let job = bench.store.jobs().find_by_name(run_id, "j2").unwrap().unwrap();
    assert_eq!(
        (job.status, job.last_error.unwrap().as_str()),
        (
            Failed,
            "`for_each` gives 80000 items, and its run would have more than 200000 jobs; let each item do more"
        )
    );
    bench.assert_sound();
}

/// A cost, and not a time: the number of statements does not grow with each item, and one transaction has them all.
#[test]
fn ten_thousand_items_are_inserted_by_few_statements_of_one_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let inner =
        SqliteDatabase::open(&folder.path().join("w.db"), &TABLES, &SqliteOptions::default()).unwrap();
    let (statements, clock) = (Arc::new(AtomicUsize::new(0)), Clock::manual(1_000_000));
    let counted = Arc::clone(&statements);
    let tap: Tap = Arc::new(move |_connection, _statement, _parameters| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    let store = Store::new(Arc::new(Tapped::new(inner, tap)), clock, Random::from_seed(1));
    let mut workflow = graph(vec![vec![]]);
    workflow.jobs[0].for_each =
        Some(Box::new(ForEach { max_parallel: Some(4), ..ForEach::of(list(10_000)) }));
    let run_id = support::submit(&store, workflow);
    statements.store(0, Ordering::SeqCst);
    assert_eq!(store.for_scheduler().decide_waiting().unwrap(), 1, "one transaction decides and inserts");
    let statements = statements.load(Ordering::SeqCst);
    assert!((5..=20).contains(&statements), "{statements} statements");
    let counts = store.runs().job_counts(run_id).unwrap();
    assert_eq!((counts.total(), counts.of(Pending), counts.of(Blocked)), (10_001, 4, 9_996));
}

#[test]
fn outputs_that_are_too_large_together_can_not_be_read() {
    let group = Group::of(ForEach::of(list(18)));
    let jobs = group.claim(18);
    let large = json!("x".repeat(1_000_000)).to_string();
    let ends: Vec<_> = jobs
        .into_iter()
        .map(|job| (group.worker, job, Outcome::Successful { output: Some(large.clone()) }))
        .collect();
    group.bench.finish_all(&ends);
    let values = group.bench.store.jobs().values(group.run_id, &["load".to_owned()]).unwrap();
    let refused = values[0].refused.as_deref().unwrap();
    assert!(refused.contains("`load` have 17 MiB together, at most 16 MiB"), "{refused}");
}

//! What the children of a job do when it ends: random graphs whose jobs end in random orders, compared with the rules read
//! from the first job to the last.
//!
//! The fixed seeds are the same each time. Another test takes new seeds and prints them; `WINDLASS_SEED=7` repeats one, and
//! `WINDLASS_GRAPHS=50000` tries that many.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod support;

use fastrand::Rng;
use support::{Bench, graph};
use windlass_engine::join_rule::{EndColumns, JobEnd, Join, JoinRule, ParentEnds};
use windlass_engine::store::{ClaimedJob, RetrySelection};
use windlass_engine::transition::{Outcome, Repeat};
use windlass_engine::{JobStatus, RunStatus};
use windlass_test_database::DatabaseKind;
use windlass_workflow::model::When;

const JOBS_MAX: usize = 9;
/// Calls of the store until a run of so few jobs must have ended.
const CALLS_MAX: usize = 400;

/// A job, and how it ends when it is executed.
#[derive(Debug, Clone)]
struct PlannedJob {
    needs: Vec<usize>,
    rule: Option<JoinRule>,
    allow_failure: bool,
    ends: End,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Success,
    Failure,
    Cancellation,
    /// It finds that there is nothing to do.
    Skip,
}

impl End {
    fn status(self) -> JobStatus {
        match self {
            End::Success => JobStatus::Successful,
            End::Failure => JobStatus::Failed,
            End::Cancellation => JobStatus::Cancelled,
            End::Skip => JobStatus::Skipped,
        }
    }
}

fn plan(random: &mut Rng) -> Vec<PlannedJob> {
    (0..random.usize(2..=JOBS_MAX))
        .map(|index| {
            let needs: Vec<usize> = (0..index).filter(|_parent| random.u8(..3) == 0).collect();
            let rule = (!needs.is_empty() && random.bool()).then(|| JoinRule::ALL[random.usize(..5)]);
            let ends = [End::Success, End::Success, End::Failure, End::Cancellation, End::Skip];
            PlannedJob { needs, rule, allow_failure: random.u8(..4) == 0, ends: ends[random.usize(..5)] }
        })
        .collect()
}

/// The end of each job as the rules say, read from the first job to the last. Jobs outside `again` stay as they are.
fn expected(plan: &[PlannedJob], before: &[EndColumns], again: &[bool]) -> Vec<EndColumns> {
    let mut ends: Vec<EndColumns> = Vec::new();
    for (index, job) in plan.iter().enumerate() {
        let columns = |status, upstream_failed| EndColumns {
            status,
            allow_failure: job.allow_failure,
            upstream_failed,
        };
        let mut parents = ParentEnds::default();
        for parent in &job.needs {
            match ends[*parent].end().unwrap() {
                JobEnd::Passed => parents.passed += 1,
                JobEnd::Broken => parents.broken += 1,
                JobEnd::NotNeeded => parents.not_needed += 1,
            }
        }
        ends.push(if again[index] {
            match job.rule.unwrap_or(JoinRule::AllSuccessful).join(parents) {
                Join::GoOn => columns(job.ends.status(), false),
                Join::SkipAsBroken => columns(JobStatus::Skipped, true),
                Join::SkipAsNotNeeded => columns(JobStatus::Skipped, false),
            }
        } else {
            before[index]
        });
    }
    ends
}

fn submit(bench: &Bench, plan: &[PlannedJob]) -> i64 {
    let mut workflow = graph(plan.iter().map(|job| job.needs.clone()).collect());
    for (job, planned) in workflow.jobs.iter_mut().zip(plan) {
        job.allow_failure = planned.allow_failure;
        job.when = match planned.rule {
            None | Some(JoinRule::AllSuccessful) => When::AllSuccessful,
            Some(JoinRule::NoneFailed) => When::NoneFailed,
            Some(JoinRule::AnySuccessful) => When::AnySuccessful,
            Some(JoinRule::AnyFailed) => When::AnyFailed,
            Some(JoinRule::AllFinished) => When::AllFinished,
        };
    }
    bench.submit(workflow)
}

/// Executes a run to its end: claims, ends and decisions in any order, and several ends in one transaction.
fn execute(bench: &Bench, worker: i64, run_id: i64, plan: &[PlannedJob], random: &mut Rng) {
    let mut claimed: Vec<ClaimedJob> = Vec::new();
    for _call in 0..CALLS_MAX {
        match random.u8(..3) {
            0 => claimed.extend(bench.claim(worker, random.usize(1..4))),
            1 => drop(bench.store.for_scheduler().decide_waiting().unwrap()),
            _ => {
                random.shuffle(&mut claimed);
                let rest = claimed.split_off(claimed.len().min(random.usize(1..4)));
                let ends: Vec<_> =
                    claimed.into_iter().map(|job| (worker, job.clone(), outcome(plan, &job))).collect();
                bench.finish_all(&ends);
                claimed = rest;
            }
        }
        if bench.store.runs().get(run_id).unwrap().status.is_terminal() {
            return;
        }
    }
    panic!("the run has not ended");
}

fn outcome(plan: &[PlannedJob], job: &ClaimedJob) -> Outcome {
    let index: usize = job.name.as_deref().unwrap()[1..].parse().unwrap();
    match plan[index].ends {
        End::Success => Outcome::Successful { output: None },
        End::Failure => Outcome::Failed { error: "no luck".to_owned(), repeat: Repeat::Pointless },
        End::Cancellation => Outcome::Cancelled { error: "stopped".to_owned() },
        End::Skip => Outcome::Skipped { reason: "nothing to do".to_owned() },
    }
}

fn ends(bench: &Bench, run_id: i64) -> Vec<EndColumns> {
    let jobs = bench.store.jobs().of_run(run_id).unwrap();
    jobs.iter()
        .map(|job| EndColumns {
            status: job.status,
            allow_failure: job.allow_failure,
            upstream_failed: job.upstream_failed,
        })
        .collect()
}

fn run_status(ends: &[EndColumns]) -> RunStatus {
    let is_failed = |end: &EndColumns| end.end() == Some(JobEnd::Broken) && end.status != JobStatus::Skipped;
    if ends.iter().any(is_failed) { RunStatus::Failed } else { RunStatus::Successful }
}

/// These jobs and all jobs that depend on them.
fn with_descendants(plan: &[PlannedJob], mut chosen: Vec<bool>) -> Vec<bool> {
    for (index, job) in plan.iter().enumerate() {
        chosen[index] |= job.needs.iter().any(|parent| chosen[*parent]);
    }
    chosen
}

fn check_graph(bench: &Bench, worker: i64, seed: u64) {
    let mut random = Rng::with_seed(seed);
    let mut plan = plan(&mut random);
    let run_id = submit(bench, &plan);
    execute(bench, worker, run_id, &plan, &mut random);
    let all = vec![true; plan.len()];
    let before = ends(bench, run_id);
    assert_eq!(before, expected(&plan, &[], &all), "WINDLASS_SEED={seed} {plan:#?}");
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, run_status(&before), "WINDLASS_SEED={seed}");
    // A retry, in which other jobs fail.
    for job in &mut plan {
        job.ends = [End::Success, End::Failure, End::Skip][random.usize(..3)];
    }
    let (selection, chosen) = if random.bool() {
        let is_failed =
            |end: &EndColumns| end.end() == Some(JobEnd::Broken) && end.status != JobStatus::Skipped;
        (RetrySelection::Failed, before.iter().map(is_failed).collect())
    } else {
        let root = random.usize(..plan.len());
        (RetrySelection::From(format!("j{root}")), (0..plan.len()).map(|index| index == root).collect())
    };
    let again = with_descendants(&plan, chosen);
    match bench.store.runs().retry(run_id, selection.clone()) {
        // Nothing to retry, or nothing of it can run.
        Err(error) => assert!(error.is_conflict(), "{error}"),
        Ok(reset) => {
            assert_eq!(
                reset,
                again.iter().filter(|is_reset| **is_reset).count() as i64,
                "WINDLASS_SEED={seed}"
            );
            execute(bench, worker, run_id, &plan, &mut random);
            let after = ends(bench, run_id);
            let expected = expected(&plan, &before, &again);
            assert_eq!(after, expected, "WINDLASS_SEED={seed} {selection:?} {before:?} {plan:#?}");
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
fn random_graphs_end_as_the_rules_say() {
    let graphs = match windlass_test_database::chosen_kind() {
        DatabaseKind::Sqlite => 400,
        DatabaseKind::Postgres => 60,
    };
    check_graphs(0..graphs);
}

#[test]
fn random_graphs_with_new_seeds_end_as_the_rules_say() {
    let number = |variable| std::env::var(variable).ok().map(|text| text.parse::<u64>().unwrap());
    let first = number("WINDLASS_SEED").unwrap_or_else(|| u64::from(fastrand::u32(..)));
    println!("WINDLASS_SEED={first}");
    check_graphs(first..first + number("WINDLASS_GRAPHS").unwrap_or(50));
}

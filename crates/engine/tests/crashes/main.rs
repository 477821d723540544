//! Crashes between any two commits of an operation, and a database that refuses any of its calls. Afterwards the
//! operation is requested again, and the result must be the same as without the failure.
#![allow(clippy::unwrap_used, missing_docs)]

mod operations;
mod states;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use operations::{Leaves, Operation, TestDatabases};
use states::{HOUR_MS, end_all, fire_all};
use support::contents::assert_same;
use support::faulty::{Death, Faulty, Refusal};
use support::open;
use windlass_engine::store::{Claims, Scope};
use windlass_engine::{Error, JobStatus, Random, Result, Store, Unavailable, WorkerStatus};

/// More transactions than any operation here makes.
const COMMITS_MAX: usize = 1_000;
/// More calls than any operation here makes.
const CALLS_MAX: usize = 5_000;

/// The store of a new process that opens the database and dies when the test says so. Each has a different seed,
/// because the keys of jobs are made from it.
fn store_that_dies(databases: &TestDatabases, death: &Arc<Death>, seed: u64) -> Store {
    let database = Faulty::new(open(&databases.bench.database, &databases.bench.clock), death.before());
    Store::new(database, databases.bench.clock.clone(), Random::from_seed(seed))
}

/// The contents of the tables after the operation without any failure, and how many transactions it made.
fn without_failure(operation: &Operation) -> (Vec<String>, usize) {
    let databases = TestDatabases::new(operation);
    let death = Death::after(COMMITS_MAX);
    (operation.run)(&store_that_dies(&databases, &death, 2), &databases).unwrap();
    (databases.contents(), COMMITS_MAX - death.commits_left())
}

/// Dies before each transaction of the operation. The next process requests the operation again.
fn die_between_any_two_commits(operation: &Operation) {
    let (expected, commits) = without_failure(operation);
    assert!(commits >= operation.commits_min, "it took {commits} commits");
    for done in 0..commits {
        let databases = TestDatabases::new(operation);
        let death = Death::after(done);
        let dead = (operation.run)(&store_that_dies(&databases, &death, 2), &databases);
        assert!(dead.is_err() && death.has_come(), "{done} commits of {commits}: {dead:?}");
        match operation.leaves {
            Leaves::WorkThatEnds | Leaves::MuchWork => databases.bench.assert_sound(),
            Leaves::InvalidRow => {}
        }
        let next = store_that_dies(&databases, &Death::after(COMMITS_MAX), 3);
        (operation.run)(&next, &databases).unwrap();
        assert_same(
            &databases.contents(),
            &expected,
            &format!("after a death behind {done} of {commits} commits"),
        );
        if operation.leaves == Leaves::WorkThatEnds {
            run_all_jobs(&databases);
        }
    }
}

/// Lets other processes finish whatever work is left.
fn run_all_jobs(databases: &TestDatabases) {
    let TestDatabases { bench, .. } = databases;
    let alive = bench.store.workers().live().unwrap();
    let alive = alive.into_iter().map(|worker| (worker.id, worker.heartbeats)).collect();
    bench.store.for_scheduler().rescue(alive).unwrap();
    let worker_id = bench.worker();
    for _hour in 0..24 {
        // A run whose first job waits for a decision has no active job.
        while bench.store.for_scheduler().decide_waiting().unwrap() > 0 {}
        if bench.store.jobs().count_active().unwrap() == 0
            && bench.store.runs().unfinished().unwrap().is_empty()
            && bench.store.for_scheduler().next_firing(&[]).unwrap().is_none()
        {
            break;
        }
        bench.clock.advance_ms(HOUR_MS);
        while bench.store.for_scheduler().apply_reports().unwrap() > 0 {}
        bench.store.for_scheduler().admit_waiting("").unwrap();
        bench.store.for_scheduler().admit_runs("").unwrap();
        operations::decide_all(&bench.store).unwrap();
        while bench.store.for_scheduler().promote_due().unwrap().promoted > 0 {}
        fire_all(&bench.store).unwrap();
        end_all(bench, worker_id);
    }
    assert!(bench.store.runs().unfinished().unwrap().is_empty(), "every run ends");
    assert_eq!(bench.store.jobs().count_active().unwrap(), 0, "every job ends");
    bench.assert_sound();
}

/// Refuses each call of the operation once, one in each try, and returns the methods that were refused. A refused
/// call must be reported as an error, and nothing of its transaction may be kept.
fn refuse_each_call(operation: &Operation) -> BTreeSet<&'static str> {
    let (expected, commits) = without_failure(operation);
    let databases = TestDatabases::new(operation);
    let database = open(&databases.bench.database, &databases.bench.clock);
    let before = databases.contents();
    let mut methods = BTreeSet::new();
    for nth in 0..CALLS_MAX {
        let refusal = Refusal::of_call(nth);
        let faulty = Faulty::new(Arc::clone(&database), refusal.before());
        let result = (operation.run)(
            &Store::new(faulty, databases.bench.clock.clone(), Random::from_seed(2 + nth as u64)),
            &databases,
        );
        let Some(call) = refusal.refused() else {
            assert_eq!(result, Ok(()));
            assert_same(&databases.contents(), &expected, "after each call was refused once");
            return methods;
        };
        methods.insert(call.method());
        let is_said = matches!(result, Err(Error::Unavailable { reason: Unavailable::Closed, .. }));
        assert!(is_said, "call {nth} ({call:?}) was refused, and the result was {result:?}");
        if commits <= 1 {
            assert_same(&databases.contents(), &before, &format!("call {nth} ({call:?}) was refused"));
        }
    }
    panic!("more than {CALLS_MAX} calls");
}

/// Two tests for each operation.
macro_rules! operations {
    ($($name:ident)*) => {
        mod death_between_any_two_commits_of {
            $(#[test]
            fn $name() {
                super::die_between_any_two_commits(&super::operations::$name());
            })*
        }

        mod refusal_of_any_call_of {
            $(#[test]
            fn $name() {
                super::refuse_each_call(&super::operations::$name());
            })*
        }
    };
}

operations! {
    submit enqueue enqueue_one apply_with_schedules start_a_service fire backfill pause_and_resume trigger
    cancel_a_run cancel_a_job retry_failed_jobs retry_from_a_job retry_with_another_definition delete_dead_letters prune copy_into_a_failing_database copy_from_a_failing_database
    restore rescue rescue_with_an_invalid_row finish_and_claim finish_and_claim_many decide end_waits
    expand finish_the_last_item fail_an_item_fast cancel_a_group cancel_a_run_with_items retry_items retry_before_a_group
    admit_runs send_events start_calls end_calls stop_calls retry_failed_calls apply_reports
    apply_reports_with_an_invalid_row reconcile admit promote_due_jobs limit_a_queue stop_a_worker
}

/// Fails if a method is added to the traits that can fail and is not refused here.
#[test]
fn every_method_that_can_fail_is_refused() {
    let seam = include_str!("../../../db/src/lib.rs");
    // A method that only calls one of these is refused there.
    let is_passed_on = |rest: &&str| {
        ["self.run(Statement::", "self.insert_returning_ids("].iter().any(|call| rest.contains(call))
    };
    let methods = seam.split("    fn ").skip(1).filter(|rest| !is_passed_on(rest)).filter_map(|rest| {
        let signature = &rest[..rest.find(['{', ';'])?];
        let can_fail = signature.trim_end().ends_with("-> Result<()>")
            || signature.trim_end().ends_with("-> Result<u64>");
        let name = signature.split('(').next()?;
        assert!(can_fail || !signature.rsplit(')').next()?.contains("Result"), "{signature}");
        can_fail.then_some(name)
    });
    let can_fail: BTreeSet<&str> = methods.collect();
    let operations =
        [operations::finish_and_claim(), operations::copy_into_a_failing_database(), operations::reconcile()];
    let refused: BTreeSet<&str> = operations.iter().flat_map(refuse_each_call).collect();
    assert_eq!(refused, can_fail);
}

/// A worker from its start to its end. Wherever it dies, another worker takes over its jobs, and each job finishes
/// once.
#[test]
fn a_worker_dies_between_any_two_of_its_commits() {
    for commits in 0..COMMITS_MAX {
        let databases = TestDatabases::empty();
        let TestDatabases { bench, .. } = &databases;
        states::pending_jobs(bench);
        let death = Death::after(commits);
        let done = run_worker(&store_that_dies(&databases, &death, 2));
        bench.assert_sound();
        assert_eq!(done.is_err(), death.has_come());
        run_all_jobs(&databases);
        let ended = bench.store.upkeep().stats().unwrap();
        assert_eq!(ended.jobs.of(JobStatus::Successful), ended.jobs.total(), "{commits}");
        if done.is_ok() {
            return;
        }
    }
    panic!("the worker never stops");
}

/// Registers a worker, executes all jobs, and stops the worker.
fn run_worker(store: &Store) -> Result<()> {
    let worker_id = store.for_workers().register(support::new_worker())?;
    let up_to = |limit| support::request(worker_id, Scope::Everything, limit);
    let mut claims = store.for_workers().claim(up_to(2))?;
    while let Claims::Jobs(jobs) = &claims {
        if jobs.is_empty() {
            break;
        }
        let finishes = jobs.iter().map(|job| support::finish(worker_id, job, support::success())).collect();
        claims = store.for_workers().finish_and_claim(finishes, Some(up_to(2)))?.1;
    }
    store.for_workers().set_status(worker_id, WorkerStatus::Stopped).map(drop)
}

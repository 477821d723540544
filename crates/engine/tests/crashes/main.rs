//! A crash between any two commits of a verb, and a database that refuses any of its calls: what was left is asked for
//! again, and comes to what it would have come to without.
#![allow(clippy::unwrap_used, missing_docs)]

mod states;
#[path = "../support/mod.rs"]
mod support;
mod verbs;

use std::collections::BTreeSet;
use std::sync::Arc;

use states::{HOUR_MS, end_all, fire_all};
use support::contents::assert_same;
use support::faulty::{Death, Faulty, Refusal};
use support::open;
use verbs::{Leaves, Stage, Verb};
use windlass_engine::store::{Claims, Scope};
use windlass_engine::{Error, JobStatus, Random, Result, Store, Unavailable, WorkerStatus};

/// More transactions than any verb here takes.
const COMMITS_MAX: usize = 1_000;
/// More calls than any verb here makes.
const CALLS_MAX: usize = 5_000;

/// The store of a process that opens the database anew, and dies when the test says so. No two have the same chance:
/// the keys of jobs are made of it.
fn mortal(stage: &Stage, death: &Arc<Death>, seed: u64) -> Store {
    let database = Faulty::new(open(&stage.bench.database, &stage.bench.clock), death.before());
    Store::new(database, stage.bench.clock.clone(), Random::from_seed(seed))
}

/// What the tables say when the verb was done without any trouble, and how many transactions that took.
fn undisturbed(verb: &Verb) -> (Vec<String>, usize) {
    let stage = Stage::new(verb);
    let death = Death::after(COMMITS_MAX);
    (verb.ask)(&mortal(&stage, &death, 2), &stage).unwrap();
    (stage.contents(), COMMITS_MAX - death.commits_left())
}

/// Dies before each transaction of the verb; the next process asks for it again.
fn die_between_any_two_commits(verb: &Verb) {
    let (expected, commits) = undisturbed(verb);
    assert!(commits >= verb.commits_min, "it took {commits} commits");
    for done in 0..commits {
        let stage = Stage::new(verb);
        let death = Death::after(done);
        let dead = (verb.ask)(&mortal(&stage, &death, 2), &stage);
        assert!(dead.is_err() && death.has_come(), "{done} commits of {commits}: {dead:?}");
        match verb.leaves {
            Leaves::WorkThatEnds | Leaves::MuchWork => stage.bench.assert_sound(),
            Leaves::ASpoiltRow => {}
        }
        let next = mortal(&stage, &Death::after(COMMITS_MAX), 3);
        (verb.ask)(&next, &stage).unwrap();
        assert_same(
            &stage.contents(),
            &expected,
            &format!("after a death behind {done} commits of {commits}"),
        );
        if verb.leaves == Leaves::WorkThatEnds {
            run_out(&stage);
        }
    }
}

/// What other processes do with what is left comes to an end.
fn run_out(stage: &Stage) {
    let Stage { bench, .. } = stage;
    let alive = bench.store.workers().live().unwrap();
    let alive = alive.into_iter().map(|worker| (worker.id, worker.heartbeats)).collect();
    bench.store.for_scheduler().rescue(alive).unwrap();
    let worker_id = bench.worker();
    for _hour in 0..24 {
        if bench.store.jobs().count_active().unwrap() == 0
            && bench.store.for_scheduler().next_firing(&[]).unwrap().is_none()
        {
            break;
        }
        bench.clock.advance_ms(HOUR_MS);
        while bench.store.for_scheduler().apply_reports().unwrap() > 0 {}
        bench.store.for_scheduler().admit_waiting("").unwrap();
        while bench.store.for_scheduler().promote_due().unwrap().promoted > 0 {}
        fire_all(&bench.store).unwrap();
        end_all(bench, worker_id);
    }
    assert!(bench.store.runs().unfinished().unwrap().is_empty(), "every run ends");
    assert_eq!(bench.store.jobs().count_active().unwrap(), 0, "every job ends");
    bench.assert_sound();
}

/// Refuses each call of the verb once, one in each try, and returns the methods that were refused. What was refused
/// is said, and nothing of its transaction is kept.
fn refuse_each_call(verb: &Verb) -> BTreeSet<&'static str> {
    let (expected, commits) = undisturbed(verb);
    let stage = Stage::new(verb);
    let database = open(&stage.bench.database, &stage.bench.clock);
    let before = stage.contents();
    let mut methods = BTreeSet::new();
    for nth in 0..CALLS_MAX {
        let refusal = Refusal::of_call(nth);
        let faulty = Faulty::new(Arc::clone(&database), refusal.before());
        let asked = (verb.ask)(
            &Store::new(faulty, stage.bench.clock.clone(), Random::from_seed(2 + nth as u64)),
            &stage,
        );
        let Some(call) = refusal.refused() else {
            assert_eq!(asked, Ok(()));
            assert_same(&stage.contents(), &expected, "after each call was refused once");
            return methods;
        };
        methods.insert(call.method());
        let is_said = matches!(asked, Err(Error::Unavailable { reason: Unavailable::Closed, .. }));
        assert!(is_said, "call {nth} ({call:?}) was refused, and it came to {asked:?}");
        if commits <= 1 {
            assert_same(&stage.contents(), &before, &format!("call {nth} ({call:?}) was refused"));
        }
    }
    panic!("more than {CALLS_MAX} calls");
}

/// For each verb the same two tests.
macro_rules! verbs {
    ($($name:ident)*) => {
        mod death_between_any_two_commits_of {
            $(#[test]
            fn $name() {
                super::die_between_any_two_commits(&super::verbs::$name());
            })*
        }

        mod refusal_of_any_call_of {
            $(#[test]
            fn $name() {
                super::refuse_each_call(&super::verbs::$name());
            })*
        }
    };
}

verbs! {
    submit enqueue apply_with_schedules start_a_service fire backfill pause_and_resume start_out_of_turn
    cancel_a_run cancel_a_job retry_what_failed retry_from_a_job prune copy_into_what_fails copy_from_what_fails
    restore rescue rescue_around_a_spoilt_row finish_and_claim finish_beside_a_claim settle_reports
    settle_reports_around_a_spoilt_row reconcile admit promote_what_is_due limit_a_queue leave
}

/// A method that is added to the traits is refused as well, or can't fail.
#[test]
fn every_method_that_can_fail_is_refused() {
    let seam = include_str!("../../../db/src/lib.rs");
    // What only passes a statement on to `run` is refused there.
    let is_passed_on = |rest: &&str| rest.contains("self.run(Statement::");
    let methods = seam.split("    fn ").skip(1).filter(|rest| !is_passed_on(rest)).filter_map(|rest| {
        let signature = &rest[..rest.find(['{', ';'])?];
        let can_fail = signature.trim_end().ends_with("-> Result<()>")
            || signature.trim_end().ends_with("-> Result<u64>");
        let name = signature.split('(').next()?;
        assert!(can_fail || !signature.rsplit(')').next()?.contains("Result"), "{signature}");
        can_fail.then_some(name)
    });
    let can_fail: BTreeSet<&str> = methods.collect();
    let verbs = [verbs::finish_and_claim(), verbs::copy_into_what_fails(), verbs::reconcile()];
    let refused: BTreeSet<&str> = verbs.iter().flat_map(refuse_each_call).collect();
    assert_eq!(refused, can_fail);
}

/// A worker's whole life: wherever it dies, another one takes its work over, and all of it ends once.
#[test]
fn a_worker_dies_between_any_two_commits_of_its_life() {
    for commits in 0..COMMITS_MAX {
        let stage = Stage::empty();
        let Stage { bench, .. } = &stage;
        states::work_waits(bench);
        let death = Death::after(commits);
        let lived = live(&mortal(&stage, &death, 2));
        bench.assert_sound();
        assert_eq!(lived.is_err(), death.has_come());
        run_out(&stage);
        let ended = bench.store.upkeep().stats().unwrap();
        assert_eq!(ended.jobs.of(JobStatus::Successful), ended.jobs.total(), "{commits}");
        if lived.is_ok() {
            return;
        }
    }
    panic!("it does not end");
}

/// Registers, executes everything, and leaves.
fn live(store: &Store) -> Result<()> {
    let worker_id = store.for_workers().register(support::new_worker())?;
    let ask = |limit| support::request(worker_id, Scope::Everything, limit);
    let mut claims = store.for_workers().claim(ask(2))?;
    while let Claims::Jobs(jobs) = &claims {
        if jobs.is_empty() {
            break;
        }
        let finishes = jobs.iter().map(|job| support::finish(worker_id, job, support::success())).collect();
        claims = store.for_workers().finish_and_claim(finishes, Some(ask(2)))?.1;
    }
    store.for_workers().set_status(worker_id, WorkerStatus::Stopped).map(drop)
}

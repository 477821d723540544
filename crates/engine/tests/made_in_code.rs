//! Workflows built by a program: each is refused with the place of its error, or its run ends.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, failure, graph, noop, success};
use windlass_engine::Error;
use windlass_engine::store::{NewJob, NewRegistration, NewRun};
use windlass_workflow::Workflow;
use windlass_workflow::kinds::shell::Shell;
use windlass_workflow::model::{Concurrency, OnFull};

fn new_run(workflow: Workflow) -> NewRun {
    NewRun { workflow, params: Default::default(), dir: None, run_key: None, occasion: None }
}

fn with(mut workflow: Workflow, change: impl FnOnce(&mut Workflow)) -> Workflow {
    change(&mut workflow);
    workflow
}

#[test]
fn an_invalid_workflow_is_refused_before_anything_is_written() {
    let chain = || graph(vec![vec![], vec![0], vec![1]]);
    let faults = [
        (with(chain(), |w| w.jobs[0].needs = vec![2]), "in a cycle: j0 -> j2 -> j1 -> j0"),
        (with(chain(), |w| w.jobs[1].needs = vec![7]), "jobs[1] (`j1`).needs[0]: it is 7"),
        (with(chain(), |w| w.jobs[1].uses = vec![7]), "jobs[1] (`j1`).uses[0]: it is 7"),
        (
            with(chain(), |w| w.jobs[2].name = "j0".to_owned()),
            "jobs[2] (`j0`).name: jobs[0] has the same name",
        ),
        (with(chain(), |w| w.jobs[2].retry.delay_ms = -1), "jobs[2] (`j2`).retry.delay_ms: it is -1"),
        (with(chain(), |w| w.jobs[2].retry.factor = f64::NAN), "jobs[2] (`j2`).retry.factor: it is NaN"),
        (graph(vec![]), "jobs: the workflow has no jobs"),
    ];
    let bench = Bench::new();
    for (workflow, expected) in faults {
        let registration = NewRegistration { workflow: workflow.clone(), file: None, dir: None };
        for refused in [
            bench.store.runs().submit(new_run(workflow)).map(drop).unwrap_err(),
            bench.store.registrations().apply(registration).map(drop).unwrap_err(),
        ] {
            assert!(matches!(refused, Error::Invalid { .. }), "{refused:?}");
            assert!(refused.to_string().contains(expected), "{expected}: {refused}");
        }
    }
    assert_eq!(bench.store.upkeep().stats().unwrap().jobs.total(), 0);
    assert!(bench.store.registrations().list().unwrap().is_empty());
}

#[test]
fn a_standalone_job_has_the_same_limits() {
    let bench = Bench::new();
    let faults = [
        (NewJob { timeout_ms: Some(-1), ..noop() }, "timeout_ms is -1"),
        (NewJob { timeout_ms: Some(i64::MAX), ..noop() }, "timeout_ms is 9223372036854775807"),
        (NewJob { max_attempts: 0, ..noop() }, "max_attempts is 0"),
        (NewJob { priority: i64::MIN, ..noop() }, "priority is -9223372036854775808"),
        (NewJob { code_version: -1, ..noop() }, "code_version is -1"),
        (NewJob { queue: String::new(), ..noop() }, "the queue is empty"),
        (NewJob { requires: vec!["x".to_owned(); 33], ..noop() }, "33 capabilities; the limit is 32"),
    ];
    for (job, expected) in faults {
        let refused = bench.store.jobs().enqueue(vec![job]).unwrap_err();
        assert!(matches!(refused, Error::Invalid { .. }), "{refused:?}");
        assert!(refused.to_string().contains(expected), "{expected}: {refused}");
    }
}

/// Any number, and often a valid one.
fn number(chance: &mut fastrand::Rng, right: i64) -> i64 {
    match chance.u8(0..8) {
        0 => i64::MIN,
        1 => i64::MAX,
        2 => -1,
        3 => 0,
        _ => right,
    }
}

/// A workflow as a program might build it, with or without errors.
fn any_workflow(chance: &mut fastrand::Rng) -> Workflow {
    let size = chance.usize(0..8);
    let mut workflow = graph((0..size).map(|job| (0..job).filter(|_| chance.bool()).collect()).collect());
    for _ in 0..chance.usize(0..3) {
        let Some(job) = chance.choice(0..size) else { break };
        let other = chance.usize(0..size + 2);
        let fraction = [f64::NAN, f64::INFINITY, -1.0, 0.5, 1.0][chance.usize(0..5)];
        let job = &mut workflow.jobs[job];
        match chance.u8(0..12) {
            0 => job.needs = vec![other],
            1 => job.needs.push(other),
            2 => job.uses = vec![other],
            3 => job.name = ["", "j0", "a b", "ok"][chance.usize(0..4)].to_owned(),
            4 => job.timeout_ms = Some(number(chance, 5_000)),
            5 => job.retry.max_attempts = number(chance, 2),
            6 => (job.retry.delay_ms, job.retry.max_delay_ms) = (number(chance, 10), number(chance, 1_000)),
            7 => (job.retry.factor, job.retry.jitter) = (fraction, fraction),
            8 => job.priority = number(chance, 3),
            9 => job.max_interruptions = number(chance, 1),
            10 => {
                let limit = number(chance, 1);
                let key = ["k", "", "{{ nothing"][chance.usize(0..3)].to_owned();
                job.concurrency = Some(Concurrency { key, limit, on_full: OnFull::Wait });
            }
            _ => {
                job.action =
                    Shell::command([["true", "", "{{ jobs.j0.output }}"][chance.usize(0..3)]]).into();
            }
        }
    }
    if chance.u8(0..6) == 0 {
        workflow.timeout_ms = Some(number(chance, 1_000_000_000));
    }
    workflow
}

/// Executes everything. Some jobs fail.
fn run_all_jobs(bench: &Bench, worker: i64, chance: &mut fastrand::Rng) {
    for _turn in 0..200 {
        bench.clock.advance_ms(1_000_000);
        bench.store.for_scheduler().promote_due().unwrap();
        bench.store.for_scheduler().admit_waiting("").unwrap();
        for job in bench.claim(worker, 100) {
            let outcome = if chance.u8(0..3) == 0 { failure() } else { success() };
            bench.finish(worker, &job, outcome);
        }
        if bench.store.runs().unfinished().unwrap().is_empty() {
            return;
        }
    }
    panic!("runs that do not end: {:?}", bench.store.runs().unfinished().unwrap());
}

#[test]
fn any_workflow_is_refused_or_its_run_ends() {
    let given = std::env::var("WINDLASS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("WINDLASS_SEED={seed}");
    let mut chance = fastrand::Rng::with_seed(seed);
    let bench = Bench::new();
    let worker = bench.worker();
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..120 {
        let workflow = any_workflow(&mut chance);
        match bench.store.runs().submit(new_run(workflow.clone())) {
            Ok(_run) => {
                accepted += 1;
                run_all_jobs(&bench, worker, &mut chance);
            }
            Err(Error::Invalid { .. }) => refused += 1,
            Err(other) => panic!("{other}: {workflow:?}"),
        }
    }
    println!("{accepted} ended, {refused} were refused");
    assert!(accepted > 10 && refused > 10, "{accepted} {refused}");
    bench.assert_sound();
}

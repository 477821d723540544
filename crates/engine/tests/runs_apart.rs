//! Two runs of one workflow share only their definition, and a cancelled run starts no more jobs.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::HashMap;

use support::{Bench, graph, success};
use windlass_engine::store::{ClaimedJob, NewRun};
use windlass_engine::transition::Outcome;
use windlass_engine::{JobStatus, RunStatus};
use windlass_workflow::model::{Concurrency, OnFull};

fn output(text: &str) -> Outcome {
    Outcome::Successful { output: Some(text.to_owned()) }
}

/// Claims all claimable jobs. Returns them by (run, name).
fn claim_all(bench: &Bench, worker: i64) -> HashMap<(i64, String), ClaimedJob> {
    let claimed = bench.claim(worker, 100).into_iter();
    claimed.map(|job| ((job.run_id.unwrap(), job.name.clone().unwrap()), job)).collect()
}

/// The jobs of both runs have the same names, and each reads the outputs of its own run. The runs finish their jobs
/// in turns, the second run first at one job and last at another.
#[test]
fn interleaved_runs_of_one_workflow_read_their_own_outputs() {
    let bench = Bench::new();
    let worker = bench.worker();
    let diamond = || graph(vec![vec![], vec![0], vec![0], vec![1, 2]]);
    let runs = [bench.submit(diamond()), bench.submit(diamond())];
    let read = |run: i64, names: &[&str]| -> HashMap<String, Option<String>> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        bench
            .store
            .jobs()
            .values(run, &names)
            .unwrap()
            .into_iter()
            .map(|job| (job.name, job.output))
            .collect()
    };
    for (order, names) in [([1, 0], &["j0"][..]), ([0, 1], &["j1", "j2"]), ([1, 0], &["j3"])] {
        let mut claimed = claim_all(&bench, worker);
        assert_eq!(claimed.len(), 2 * names.len(), "{names:?}");
        for name in names {
            for at in order {
                let run = runs[at];
                let job = claimed.remove(&(run, (*name).to_owned())).unwrap();
                let before: Vec<JobStatus> = statuses(&bench, runs[1 - at]);
                bench.finish(worker, &job, output(&format!("\"{name} of {run}\"")));
                assert_eq!(statuses(&bench, runs[1 - at]), before, "the other run is not changed");
                let expected = Some(format!("\"{name} of {run}\""));
                assert_eq!(read(run, &[*name]), HashMap::from([((*name).to_owned(), expected)]));
            }
        }
    }
    for run in runs {
        let all = read(run, &["j0", "j1", "j2", "j3"]);
        assert_eq!(all.len(), 4, "one of each name: {all:?}");
        for (name, text) in all {
            assert_eq!(text, Some(format!("\"{name} of {run}\"")));
        }
        assert_eq!(bench.store.runs().get(run).unwrap().status, RunStatus::Successful);
        let named = bench.store.jobs().find_by_name(run, "j2").unwrap().unwrap();
        assert_eq!(named.run_id, Some(run));
    }
    bench.assert_sound();
}

fn statuses(bench: &Bench, run: i64) -> Vec<JobStatus> {
    bench.store.jobs().of_run(run).unwrap().iter().map(|job| job.status).collect()
}

/// Jobs that wait for a slot are cancelled like jobs that wait for parents. The slot that becomes free goes to
/// another job.
#[test]
fn no_waiting_job_of_a_cancelled_run_is_ever_claimed() {
    let bench = Bench::new();
    let worker = bench.worker();
    let keyed = |jobs: usize| {
        let mut workflow = graph(vec![vec![]; jobs]);
        for job in &mut workflow.jobs {
            let on_full = OnFull::Wait;
            job.concurrency = Some(Concurrency { key: "slot".to_owned(), limit: 1, on_full });
        }
        workflow
    };
    let cancelled = bench.submit(keyed(5));
    let other = bench.submit(keyed(1));
    let holder = bench.claim(worker, 10);
    assert_eq!(holder.len(), 1);
    let waiting = statuses(&bench, cancelled).iter().filter(|status| **status == JobStatus::Waiting).count();
    assert_eq!(waiting, 4);

    let cancellation = bench.store.runs().cancel(cancelled).unwrap();
    assert_eq!((cancellation.cancelled, cancellation.stopping), (4, 1));
    bench.finish(worker, &holder[0], Outcome::Cancelled { error: "it was asked to".to_owned() });
    let mut claimed = Vec::new();
    for _turn in 0..10 {
        bench.clock.advance_ms(120_000);
        bench.store.for_scheduler().promote_due().unwrap();
        bench.store.for_scheduler().admit_waiting("").unwrap();
        bench.store.for_scheduler().reconcile_step(0).unwrap();
        for job in bench.claim(worker, 10) {
            claimed.push(job.run_id.unwrap());
            bench.finish(worker, &job, success());
        }
    }
    assert_eq!(claimed, [other], "only the job of the other run");
    assert!(statuses(&bench, cancelled).iter().all(|status| *status == JobStatus::Cancelled));
    assert_eq!(bench.store.runs().get(cancelled).unwrap().status, RunStatus::Cancelled);
    bench.assert_sound();
}

/// The same key is the same run, whoever submits it. Another key is another run of the same jobs.
#[test]
fn runs_with_keys_of_their_own_have_jobs_of_their_own() {
    let bench = Bench::new();
    let submit = |key: &str| {
        let workflow = graph(vec![vec![], vec![0]]);
        let run_key = Some(key.to_owned());
        let run = NewRun { workflow, params: Default::default(), dir: None, run_key, occasion: None };
        bench.store.runs().submit(run).unwrap().run_id
    };
    let (one, two) = (submit("one"), submit("two"));
    assert_eq!(submit("one"), one);
    let ids =
        |run: i64| -> Vec<i64> { bench.store.jobs().of_run(run).unwrap().iter().map(|job| job.id).collect() };
    assert_eq!((ids(one).len(), ids(two).len()), (2, 2));
    assert!(ids(one).iter().all(|id| !ids(two).contains(id)));
}

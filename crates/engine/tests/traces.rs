//! Traces: a run has the trace of its caller or one of its own, the same for all time, and its rows are read a page at a time.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, failure, graph, success};
use windlass_engine::store::{
    Change, NewRun, Prune, RetrySelection, Subject, TRACED_MAX, TracedJob, TracedRun,
};
use windlass_engine::trace::{RunTrace, TraceParent};
use windlass_engine::{Random, Store};
use windlass_workflow::{Source, Workflow, parse};

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
const CALLS: &str = "name = 'top'\n[workflows.low.jobs.a]\nrun = 'true'\n[jobs.call]\nworkflow = 'low'\n";

fn calls() -> Workflow {
    parse(&Source::new("top.toml", CALLS.into()).unwrap()).map_err(|report| report.to_string()).unwrap()
}

/// The store as a caller with this place in a trace uses it.
fn called(bench: &Bench, traceparent: Option<&str>) -> Store {
    let traceparent = traceparent.map(|text| TraceParent::parse(text).unwrap());
    let subject = Subject::from("workflow w".to_owned());
    bench.store.recorded(Change { caller: "ada".to_owned(), address: None, subject, traceparent })
}

fn trace_of(store: &Store, run_id: i64) -> RunTrace {
    store.runs().context(run_id).unwrap().trace
}

fn finished_at(bench: &Bench, run_id: i64) -> i64 {
    bench.store.runs().get(run_id).unwrap().finished_at.unwrap()
}

/// All jobs of a run, read by pages, and how many pages there were.
fn all_jobs(bench: &Bench, run_id: i64) -> (Vec<TracedJob>, usize) {
    let (mut jobs, mut pages): (Vec<TracedJob>, usize) = (Vec::new(), 0);
    loop {
        let after = jobs.last().map_or(String::new(), |job| job.name.clone());
        let page = bench.store.runs().traced_jobs(run_id, &after).unwrap();
        if page.is_empty() {
            return (jobs, pages);
        }
        assert!(page.len() as i64 <= TRACED_MAX);
        jobs.extend(page);
        pages += 1;
    }
}

#[test]
fn a_run_and_the_runs_below_it_are_in_the_trace_of_the_caller() {
    let bench = Bench::new();
    let worker = bench.worker();
    let new =
        NewRun { workflow: calls(), params: Default::default(), dir: None, run_key: None, occasion: None };
    let top = called(&bench, Some(CALLER)).runs().submit(new.clone()).unwrap().run_id;
    let own = called(&bench, None).runs().submit(new).unwrap().run_id;
    while bench.store.for_scheduler().decide_waiting().unwrap() > 0 {}
    for job in bench.claim(worker, 10) {
        bench.clock.advance_ms(1);
        bench.finish(worker, &job, success());
    }
    while bench.store.for_scheduler().end_calls().unwrap() > 0 {}
    let trace = trace_of(&bench.store, top);
    let caller = TraceParent::parse(CALLER).unwrap();
    assert_eq!((trace.trace_id, trace.caller), (caller.trace_id, Some(caller.span_id)));
    assert!(!trace.is_sampled(), "as the caller says");
    for run in [top, own] {
        let (traced, trace) = bench.store.runs().traced(run, finished_at(&bench, run)).unwrap().unwrap();
        assert_eq!(traced.caller, None);
        assert_eq!(trace, trace_of(&bench.store, run));
        let [low]: [TracedRun; 1] = bench.store.runs().traced_below(run, 0).unwrap().try_into().unwrap();
        assert_eq!(trace_of(&bench.store, low.id), trace);
        assert_eq!(bench.store.runs().traced_below(run, low.id).unwrap(), []);
        assert_eq!(low.caller, Some(all_jobs(&bench, run).0[0].key), "the job that called it");
    }
    assert_ne!(trace_of(&bench.store, own).trace_id, trace.trace_id);
}

#[test]
fn a_trace_is_the_same_after_a_restart_and_in_a_restored_copy() {
    let bench = Bench::new();
    let run = bench.submit(graph(vec![vec![]]));
    let other = bench.submit(graph(vec![vec![]]));
    let trace = trace_of(&bench.store, run);
    assert_ne!(trace, trace_of(&bench.store, other), "the clock stands still");
    let database = support::open(&bench.database, &bench.clock);
    let next = Store::new(database, bench.clock.clone(), Random::from_seed(99));
    assert_eq!(trace_of(&next, run), trace);
    let name = next.instance().unwrap();
    next.for_restore().finish_restore().unwrap();
    assert_ne!(next.instance().unwrap(), name);
    assert_eq!(trace_of(&next, run), trace);
}

#[test]
fn jobs_and_attempts_are_read_by_pages() {
    let bench = Bench::new();
    let worker = bench.worker();
    let jobs = 2 * TRACED_MAX + 1;
    let run = bench.submit(graph((0..jobs).map(|_| vec![]).collect()));
    loop {
        let claimed = bench.claim(worker, 1_000);
        if claimed.is_empty() {
            break;
        }
        let ends: Vec<_> = claimed.into_iter().map(|job| (worker, job, success())).collect();
        bench.finish_all(&ends);
    }
    let (read, pages) = all_jobs(&bench, run);
    assert_eq!((read.len() as i64, pages), (jobs, 3));
    assert!(read.is_sorted_by(|a, b| a.name < b.name), "each once");
    assert!(
        read.iter().all(|job| job.attempt == 1 && job.started_at.is_some() && job.first_started_at.is_none())
    );
    bench.raw().execute(&format!(
        "INSERT INTO job_attempts (job_id, attempt, outcome, started_at, finished_at)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 600)
         SELECT id, n, 'failed', n, n + 1 FROM numbers, jobs WHERE id IN ({}, {})",
        read[0].id, read[1].id
    ));
    let ids: Vec<i64> = read.iter().map(|job| job.id).collect();
    let (mut attempts, mut after) = (Vec::new(), (0, 0));
    loop {
        let page = bench.store.runs().traced_attempts(&ids, after).unwrap();
        assert!(page.len() as i64 <= TRACED_MAX);
        let Some((job_id, last)) = page.last() else { break };
        after = (*job_id, last.attempt);
        attempts.extend(page.into_iter().map(|(job_id, attempt)| (job_id, attempt.attempt)));
    }
    assert_eq!(attempts.len(), 1_200);
    assert!(attempts.is_sorted_by(|a, b| a < b), "each once");
    assert_eq!(all_jobs(&bench, run).0[0].first_started_at, Some(1));
}

#[test]
fn a_run_that_goes_on_or_is_deleted_has_no_trace_to_send() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run = bench.submit(graph(vec![vec![]]));
    let job = bench.claim(worker, 1).remove(0);
    bench.finish(worker, &job, failure());
    let (ended, key) = (finished_at(&bench, run), all_jobs(&bench, run).0[0].key);
    assert!(bench.store.runs().traced(run, ended).unwrap().is_some());
    bench.store.runs().retry(run, RetrySelection::Failed).unwrap();
    assert_eq!(bench.store.runs().traced(run, ended).unwrap(), None);
    bench.clock.advance_ms(1);
    let job = bench.claim(worker, 1).remove(0);
    bench.finish(worker, &job, success());
    assert_eq!(all_jobs(&bench, run).0[0].key, key, "the ids of its spans stay");
    let ended = finished_at(&bench, run);
    assert!(bench.store.runs().traced(run, ended).unwrap().is_some());
    let prune = Prune { before_ms: Some(bench.clock.now_ms() + 1), ..Prune::default() };
    while bench.store.for_scheduler().prune_step(prune).unwrap() != Default::default() {}
    assert_eq!(bench.store.runs().traced(run, ended).unwrap(), None);
}

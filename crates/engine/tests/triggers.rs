//! Triggers: events and ends of runs start runs, each of them once.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use serde_json::json;
use support::{Bench, failure, success};
use windlass_engine::store::{
    NewRegistration, NewSignal, RegisteredTrigger, RunFilter, RunSummary, TRIGGER_DEPTH_MAX,
};
use windlass_engine::{RunSource, RunStatus};
use windlass_workflow::Workflow;
use windlass_workflow::params::Param;
use windlass_workflow::trigger::Trigger;

fn apply(bench: &Bench, name: &str, triggers: serde_json::Value, params: serde_json::Value) {
    let mut workflow = Workflow::graph(name, [vec![]]);
    workflow.triggers = serde_json::from_value::<Vec<Trigger>>(triggers).unwrap();
    workflow.params = serde_json::from_value::<Vec<Param>>(params).unwrap();
    bench.store.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
}

fn signal(bench: &Bench, name: &str, key: &str, payload: &str) -> i64 {
    let key = Some(key.to_owned()).filter(|key| !key.is_empty());
    let signal = NewSignal { name: name.to_owned(), key, payload: payload.to_owned(), event_id: None };
    bench.store.events().signal(signal).unwrap().id
}

/// What a scheduler does. Returns how many transactions did something.
fn dispatch(bench: &Bench) -> usize {
    let scheduler = bench.store.for_scheduler();
    let mut count = 0;
    while scheduler.dispatch_events().unwrap() || scheduler.dispatch_run_ends().unwrap() {
        count += 1;
        assert!(count < 1_000);
    }
    bench.assert_sound();
    count
}

/// The runs of a workflow, the oldest first.
fn runs(bench: &Bench, workflow: &str) -> Vec<RunSummary> {
    let filter = RunFilter { workflow: Some(workflow.to_owned()), ..RunFilter::newest(100) };
    let mut runs = bench.store.runs().list(&filter).unwrap().rows;
    runs.reverse();
    runs
}

fn trigger(bench: &Bench, workflow: &str) -> RegisteredTrigger {
    let triggers = bench.store.registrations().triggers().unwrap();
    triggers.into_iter().find(|trigger| trigger.workflow == workflow).unwrap()
}

/// Executes all jobs that can be claimed. Those of the workflow `bad` fail.
fn execute(bench: &Bench, worker: i64) {
    for job in bench.claim(worker, 100) {
        let run = bench.store.runs().get(job.run_id.unwrap()).unwrap();
        bench.clock.advance_ms(1);
        bench.finish(worker, &job, if run.workflow == "bad" { failure() } else { success() });
    }
}

fn push() -> serde_json::Value {
    json!([{ "name": "push", "event": "push", "if": "event.payload.n > 1", "params": { "n": "{{ event.payload.n }}" } }])
}

fn number() -> serde_json::Value {
    json!([{ "name": "n", "type": "integer", "required": true }])
}

#[test]
fn an_event_starts_one_run_of_each_workflow_that_takes_it() {
    let bench = Bench::new();
    let before = signal(&bench, "push", "", "{\"n\": 5}");
    apply(&bench, "deploy", push(), number());
    apply(&bench, "keyed", json!([{ "name": "default", "event": "push", "key": "main" }]), json!([]));
    apply(&bench, "other", json!([{ "name": "default", "event": "pull" }]), json!([]));
    dispatch(&bench);
    assert_eq!(runs(&bench, "deploy"), [], "event {before} came before the trigger");
    let event = signal(&bench, "push", "main", "{\"n\": 7}");
    signal(&bench, "push", "", "{\"n\": 1}");
    dispatch(&bench);
    let started = runs(&bench, "deploy");
    assert_eq!(started.len(), 1, "the condition of the second did not hold");
    let run = bench.store.runs().get(started[0].id).unwrap();
    assert_eq!(run.run_key, Some(format!("trigger:deploy/push:event:{event}")));
    assert_eq!((run.source, run.schedule_id), (Some(RunSource::Event), None));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&run.params).unwrap(), json!({ "n": 7 }));
    assert_eq!((runs(&bench, "keyed").len(), runs(&bench, "other").len()), (1, 0));
    assert_eq!(dispatch(&bench), 0);
}

#[test]
fn an_event_that_is_dispatched_again_starts_no_second_run() {
    let bench = Bench::new();
    apply(&bench, "deploy", push(), number());
    signal(&bench, "push", "", "{\"n\": 7}");
    dispatch(&bench);
    // As if the transaction had started the run, and the event had not been noted.
    bench.raw().execute("UPDATE events SET dispatched_at = NULL");
    dispatch(&bench);
    assert_eq!(runs(&bench, "deploy").len(), 1);
}

#[test]
fn a_trigger_that_fails_starts_nothing_and_says_why_until_it_works_again() {
    let bench = Bench::new();
    apply(&bench, "deploy", push(), number());
    let event = signal(&bench, "push", "", "{\"n\": 7.5}");
    dispatch(&bench);
    let failure = trigger(&bench, "deploy").failure.unwrap();
    assert_eq!((failure.source, failure.at), (format!("event:{event}"), bench.clock.now_ms()));
    assert!(failure.error.contains("parameter `n`"), "{}", failure.error);
    signal(&bench, "push", "", "{}");
    dispatch(&bench);
    let failure = trigger(&bench, "deploy").failure.unwrap();
    assert!(
        failure.error.starts_with("`if` could not be decided: `event.payload.n > 1`"),
        "{}",
        failure.error
    );
    assert_eq!(runs(&bench, "deploy"), []);
    signal(&bench, "push", "", "{\"n\": 8}");
    dispatch(&bench);
    assert_eq!((runs(&bench, "deploy").len(), trigger(&bench, "deploy").failure), (1, None));
}

#[test]
fn triggers_follow_the_definition_and_a_paused_or_removed_workflow_has_none() {
    let bench = Bench::new();
    apply(&bench, "deploy", push(), number());
    let known = trigger(&bench, "deploy");
    apply(&bench, "deploy", push(), number());
    assert_eq!(trigger(&bench, "deploy"), known);
    bench.store.registrations().pause("deploy").unwrap();
    signal(&bench, "push", "", "{\"n\": 7}");
    dispatch(&bench);
    bench.store.registrations().resume("deploy").unwrap();
    dispatch(&bench);
    assert_eq!(runs(&bench, "deploy"), [], "it was paused");
    apply(&bench, "deploy", json!([{ "name": "push", "event": "other" }]), json!([]));
    assert_eq!(trigger(&bench, "deploy").definition.text(), "event other");
    bench.store.registrations().remove("deploy").unwrap();
    assert_eq!(bench.store.registrations().triggers().unwrap(), []);
    bench.assert_sound();
}

#[test]
fn the_end_of_a_run_starts_a_run_once_for_each_end() {
    let bench = Bench::new();
    let worker = bench.worker();
    let of = json!({ "run": "{{ event.run.id }}", "of": "{{ event.run.workflow }} {{ event.run.status }}" });
    let params = json!([
        { "name": "run", "type": "integer", "required": true },
        { "name": "of", "type": "string", "required": true },
    ]);
    let failed = bench.submit(Workflow::graph("bad", [vec![]]));
    execute(&bench, worker);
    assert_eq!(dispatch(&bench), 0, "nothing is written while no trigger takes ends of runs");
    apply(
        &bench,
        "alert",
        json!([{ "name": "default", "after": ["*"], "status": ["FAILED"], "params": of }]),
        params,
    );
    bench.submit(Workflow::graph("good", [vec![]]));
    execute(&bench, worker);
    dispatch(&bench);
    assert_eq!(runs(&bench, "alert"), []);
    bench.store.runs().retry(failed, windlass_engine::store::RetrySelection::Failed).unwrap();
    execute(&bench, worker);
    dispatch(&bench);
    let alerts = runs(&bench, "alert");
    assert_eq!(alerts.len(), 1);
    let run = bench.store.runs().get(alerts[0].id).unwrap();
    let params: serde_json::Value = serde_json::from_str(&run.params).unwrap();
    assert_eq!(params, json!({ "run": failed, "of": "bad FAILED" }));
    // The alert itself ends: `*` does not mean its own workflow.
    execute(&bench, worker);
    dispatch(&bench);
    assert_eq!(runs(&bench, "alert").len(), 1);
    assert_eq!(bench.store.runs().get(alerts[0].id).unwrap().status, RunStatus::Successful);
    bench.store.runs().retry(failed, windlass_engine::store::RetrySelection::Failed).unwrap();
    execute(&bench, worker);
    dispatch(&bench);
    assert_eq!(runs(&bench, "alert").len(), 2, "it has ended once more");
}

#[test]
fn a_cancelled_run_and_one_without_jobs_to_execute_end_for_triggers_too() {
    let bench = Bench::new();
    apply(
        &bench,
        "after",
        json!([{ "name": "default", "after": ["c*"], "status": ["CANCELLED"] }]),
        json!([]),
    );
    let run_id = bench.submit(Workflow::graph("cut", [vec![]]));
    bench.store.runs().cancel(run_id).unwrap();
    dispatch(&bench);
    assert_eq!(runs(&bench, "after").len(), 1);
}

#[test]
fn a_chain_of_triggers_ends() {
    let bench = Bench::new();
    let worker = bench.worker();
    apply(&bench, "a", json!([{ "name": "default", "after": ["b", "begin"] }]), json!([]));
    apply(&bench, "b", json!([{ "name": "default", "after": ["a"] }]), json!([]));
    bench.submit(Workflow::graph("begin", [vec![]]));
    for _run in 0..2 * TRIGGER_DEPTH_MAX {
        execute(&bench, worker);
        dispatch(&bench);
    }
    let count = (runs(&bench, "a").len() + runs(&bench, "b").len()) as i64;
    assert_eq!(count, TRIGGER_DEPTH_MAX);
    let error = trigger(&bench, "a").failure.unwrap().error;
    assert!(error.contains("16 runs have started each other"), "{error}");
}

#[test]
fn many_events_and_a_trigger_that_comes_meanwhile_lose_nothing() {
    let bench = Bench::new();
    apply(&bench, "deploy", push(), number());
    for _event in 0..250 {
        signal(&bench, "push", "", "{\"n\": 7}");
    }
    assert!(dispatch(&bench) >= 3);
    let filter = RunFilter { workflow: Some("deploy".to_owned()), ..RunFilter::newest(1_000) };
    assert_eq!(bench.store.runs().list(&filter).unwrap().rows.len(), 250);
}

/// A workflow whose event starts it again. The event says how long the chain is.
#[test]
fn a_chain_of_events_that_jobs_send_ends() {
    let bench = Bench::new();
    let text = "name = 'again'\n[[triggers]]\nevent = 'go'\n[jobs.tell]\nsignal = { event = 'go' }\n";
    let source = windlass_workflow::Source::new("again.toml", text.as_bytes().to_vec()).unwrap();
    let workflow = windlass_workflow::parse(&source).unwrap();
    bench.store.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
    signal(&bench, "go", "", "null");
    for _run in 0..2 * TRIGGER_DEPTH_MAX {
        dispatch(&bench);
        while bench.store.for_scheduler().decide_waiting().unwrap() > 0 {}
    }
    let runs = runs(&bench, "again");
    assert_eq!(runs.len() as i64, TRIGGER_DEPTH_MAX);
    assert!(runs.iter().all(|run| run.status == RunStatus::Successful));
    assert!(trigger(&bench, "again").failure.unwrap().error.contains("16 runs have started each other"));
}

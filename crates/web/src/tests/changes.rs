//! Changes through REST: what they do, who may, and that each is recorded in its transaction.

use serde_json::{Value, json};
use windlass_engine::store::{AuditFilter, NewRegistration, Role};
use windlass_engine::{JobStatus, RunStatus};

use super::site::{Reply, Site, workflow};
use crate::options::{Definitions, WebOptions};

const GREET: &str = "[params]\nname = { default = 'ada' }\n[jobs.a]\nrun = 'echo $name'\nenv = { name = '{{ params.name }}' }\n\
                     [[schedules]]\nname = 'daily'\ncron = '@daily'\n";

fn registered() -> Site {
    let site = Site::new();
    register(&site);
    site
}

fn register(site: &Site) {
    let registration = NewRegistration { workflow: workflow("greet", GREET), file: None, dir: None };
    site.store.registrations().apply(registration).unwrap();
}

fn post(site: &Site, token: &str, path: &str, body: &Value) -> Reply {
    site.post(&format!("/api/v1/{path}")).token(token).json(body).send()
}

fn audit(site: &Site) -> Vec<(String, String, String, Option<String>)> {
    let page = site.store.access().audit(&AuditFilter::default()).unwrap();
    let entry =
        |entry: windlass_engine::store::AuditEntry| (entry.caller, entry.action, entry.subject, entry.result);
    page.rows.into_iter().map(entry).collect()
}

#[test]
fn a_run_is_started_by_the_name_of_its_workflow() {
    let site = registered();
    let token = site.token("ci", Role::Run);
    let started = post(&site, &token, "runs", &json!({"workflow": "greet", "params": {"name": "bob"}}));
    let run_id = started.is(201).json()["run_id"].as_i64().unwrap();
    let run = site.store.runs().get(run_id).unwrap();
    assert_eq!((run.params.as_str(), run.started_by.as_deref()), (r#"{"name":"bob"}"#, Some("ci")));
    let view = site.get(&format!("/api/v1/runs/{run_id}")).token(&token).send();
    assert_eq!(view.is(200).json()["started_by"], json!("ci"));
    let page = site.get(&format!("/runs/{run_id}")).token(&token).send();
    assert!(page.is(200).body.contains("by ci"), "{page:?}");
    let alone = site.store.runs().get(site.run()).unwrap();
    assert_eq!(alone.started_by, None, "a program without callers");
    let result = Some(format!("run {run_id}"));
    assert_eq!(audit(&site)[0], ("ci".into(), "submit a run".into(), "workflow greet".into(), result));
    post(&site, &token, "runs", &json!({"workflow": "gone"})).is(404);
    post(&site, &token, "runs", &json!({"workflow": "greet", "params": {"nam": "x"}})).is(400);
    let commands = json!({"workflow": "greet", "definition": {"jobs": {"a": {"run": "id"}}}});
    post(&site, &token, "runs", &commands).is(400);
    post(&site, &token, "runs", &json!({"workflow": "greet", "dir": "/"})).is(400);
    assert_eq!(audit(&site).len(), 1, "what was refused leaves no row");
}

#[test]
fn a_run_continues_the_trace_of_its_caller() {
    let site = registered();
    let token = site.token("ci", Role::Run);
    let id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let valid = format!("00-{id}-00f067aa0ba902b7-01");
    let trace_of = |headers: &[&str]| {
        let ask = site.post("/api/v1/runs").token(&token).json(&json!({"workflow": "greet"}));
        let ask = headers.iter().fold(ask, |ask, header| ask.header("traceparent", header));
        let run_id = ask.send().is(201).json()["run_id"].as_i64().unwrap();
        site.store.runs().context(run_id).unwrap().trace
    };
    let continued = trace_of(&[&valid]);
    assert_eq!(continued.trace_id.to_string(), id);
    assert_eq!(continued.caller.map(|span| span.to_string()).as_deref(), Some("00f067aa0ba902b7"));
    let unsampled = trace_of(&[&valid.replace("-01", "-00")]);
    assert!(continued.is_sampled() && !unsampled.is_sampled());
    // The standard says that an invalid header means nothing, and that a request has one.
    for invalid in [&[][..], &["oops"], &[&valid.to_uppercase()], &[&valid, &valid]] {
        let own = trace_of(invalid);
        assert!(own.caller.is_none() && own.trace_id.to_string() != id, "{invalid:?}");
    }
}

#[test]
fn the_same_key_is_the_same_run() {
    let site = registered();
    let token = site.token("ci", Role::Run);
    let ask = |name: &str| {
        let body = json!({"workflow": "greet", "params": {"name": name}});
        site.post("/api/v1/runs").token(&token).header("idempotency-key", "k1").json(&body).send()
    };
    let (first, again) = (ask("bob"), ask("bob"));
    assert_eq!(first.is(201).json()["run_id"], again.is(200).json()["run_id"]);
    assert_eq!(again.json()["created"], json!(false));
    ask("eve").is(409);
    assert_eq!(site.store.runs().list(&windlass_engine::store::RunFilter::newest(9)).unwrap().rows.len(), 1);
    let empty = site.post("/api/v1/runs").token(&token).header("idempotency-key", "");
    empty.json(&json!({"workflow": "greet"})).send().is(400);
}

#[test]
fn a_run_is_cancelled_retried_and_repeated() {
    let site = Site::new();
    let token = site.token("ci", Role::Run);
    let run_id = site.run();
    let cancelled = post(&site, &token, &format!("runs/{run_id}/cancel"), &json!({}));
    assert_eq!(cancelled.is(200).json()["changed"], json!(true));
    assert_eq!(site.store.runs().get(run_id).unwrap().status, RunStatus::Cancelled);
    let again = post(&site, &token, &format!("runs/{run_id}/cancel"), &json!({}));
    assert_eq!(again.is(200).json()["changed"], json!(false));
    let retried = post(&site, &token, &format!("runs/{run_id}/retry"), &json!({}));
    assert_eq!(retried.is(200).json()["retried_jobs"], json!(2));
    post(&site, &token, &format!("runs/{run_id}/retry"), &json!({})).is(409);
    let repeated = post(&site, &token, &format!("runs/{run_id}/rerun"), &json!({}));
    assert_ne!(repeated.is(201).json()["run_id"], json!(run_id));
    post(&site, &token, "runs/999/cancel", &json!({})).is(404);
    let actions: Vec<String> = audit(&site).into_iter().map(|(_, action, ..)| action).collect();
    assert_eq!(actions, ["submit a run", "retry a run", "cancel a run"]);
}

#[test]
fn each_run_of_a_batch_is_changed_by_itself() {
    let site = Site::new();
    let token = site.token("ci", Role::Run);
    let (first, second) = (site.run(), site.run());
    site.store.runs().cancel(second).unwrap();
    let body = json!({"action": "cancel", "run_ids": [first, second, 999]});
    let done = post(&site, &token, "runs/batch", &body).is(200).json();
    assert_eq!(done["changed"], json!(1));
    assert_eq!(done["unchanged"].as_array().unwrap().len(), 2);
    assert_eq!(audit(&site).len(), 1);
    post(&site, &token, "runs/batch", &json!({"action": "cancel", "run_ids": []})).is(400);
    post(&site, &token, "runs/batch", &json!({"action": "delete", "run_ids": [1]})).is(400);
}

#[test]
fn commands_are_refused_unless_the_configuration_allows_them() {
    let site = Site::new();
    let shell = json!({"kind": "shell", "payload": {"run": "id"}});
    for role in [Role::Run, Role::Edit, Role::Admin] {
        let token = site.token(role.as_str(), role);
        let refused = post(&site, &token, "jobs", &shell);
        refused.is(403);
        post(&site, &token, "jobs", &json!({"kind": "http", "payload": {}})).is(403);
    }
    let editor = site.token("editor", Role::Edit);
    let refused = post(&site, &editor, "jobs", &shell);
    assert!(refused.json()["next_step"].as_str().unwrap().contains("allow_definitions"), "{refused:?}");
    let runner = site.token("runner", Role::Run);
    post(&site, &runner, "jobs", &json!({"kind": "mailer", "payload": {"to": 1}})).is(201);
    assert_eq!(audit(&site).len(), 1);
    let open = Site::with(WebOptions { definitions: Definitions::Allowed, ..WebOptions::default() });
    let (runner, editor) = (open.token("runner", Role::Run), open.token("editor", Role::Edit));
    post(&open, &runner, "jobs", &shell).is(403);
    post(&open, &editor, "jobs", &shell).is(201);
    let before = Reply::json(&post(&open, &editor, "jobs", &json!({"kind": "m", "unique_key": "k"})));
    assert!(before["job_id"].is_number());
    post(&open, &editor, "jobs", &json!({"kind": "m", "unique_key": "k"})).is(409);
}

#[test]
fn a_person_decides_with_the_name_of_the_caller() {
    let site = Site::new();
    let run = windlass_engine::store::NewRun {
        workflow: workflow("wait", "[jobs.go]\napproval = { prompt = 'go?' }\n"),
        params: Default::default(),
        dir: None,
        run_key: None,
        occasion: None,
    };
    let run_id = site.store.runs().submit(run).unwrap().run_id;
    let job = site.store.jobs().find_by_name(run_id, "go").unwrap().unwrap();
    let token = site.token("ada", Role::Run);
    let approve = |body: &Value| post(&site, &token, &format!("jobs/{}/approve", job.id), body);
    // The scheduler has not asked yet.
    approve(&json!({})).is(409);
    approve(&json!({"fields": {"x": 1}})).is(400);
    post(&site, &token, &format!("jobs/{}/reject", job.id), &json!({"reason": " "})).is(400);
    let cancelled = post(&site, &token, &format!("jobs/{}/cancel", job.id), &json!({}));
    assert_eq!(cancelled.is(200).json()["cancelled_jobs"], json!(1));
    assert_eq!(site.store.jobs().get(job.id).unwrap().status, JobStatus::Cancelled);
}

#[test]
fn an_event_with_the_same_key_is_received_once() {
    let site = Site::new();
    let token = site.token("ci", Role::Run);
    let post_event = |body: &Value| {
        site.post("/api/v1/events").token(&token).header("idempotency-key", "e1").json(body).send()
    };
    let send = || post_event(&json!({"event": "paid", "key": "o-1", "payload": {"sum": 3}}));
    let (first, again) = (send(), send());
    for other in [
        json!({"event": "sent", "key": "o-1", "payload": {"sum": 3}}),
        json!({"event": "paid", "key": "o-2", "payload": {"sum": 3}}),
        json!({"event": "paid", "payload": {"sum": 3}}),
        json!({"event": "paid", "key": "o-1", "payload": {"sum": 4}}),
    ] {
        post_event(&other).is(409);
    }
    assert_eq!(first.is(201).json()["event_number"], again.is(200).json()["event_number"]);
    post(&site, &token, "events", &json!({"event": ""})).is(400);
}

#[test]
fn schedules_are_paused_resumed_and_triggered() {
    let site = registered();
    let token = site.token("ed", Role::Edit);
    let schedule = site.store.schedules().list().unwrap().remove(0);
    let path = |verb: &str| format!("schedules/{}/{verb}", schedule.id);
    assert_eq!(post(&site, &token, &path("pause"), &json!({})).is(200).json()["changed"], json!(true));
    assert_eq!(post(&site, &token, &path("pause"), &json!({})).is(200).json()["changed"], json!(false));
    assert_eq!(post(&site, &token, &path("resume"), &json!({})).is(200).json()["active"], json!(true));
    let fired = post(&site, &token, &path("trigger"), &json!({}));
    let run = site.store.runs().get(fired.is(201).json()["run_id"].as_i64().unwrap()).unwrap();
    assert_eq!((run.started_by.as_deref(), run.schedule_id), (Some("ed"), Some(schedule.id)));
    assert_eq!(audit(&site)[0].2, "schedule greet/daily");
    let next = site.get(&format!("/api/v1/schedules/{}/next?limit=3", schedule.id)).token(&token).send();
    assert_eq!(next.is(200).json().as_array().unwrap().len(), 3);
    for path in ["schedules", "workflows", "workflows/greet", "workflows/greet/versions"] {
        site.get(&format!("/api/v1/{path}")).token(&token).send().is(200);
    }
    site.get("/api/v1/workflows/gone").token(&token).send().is(404);
}

//! What REST answers.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_engine::store::Role;
use windlass_views::RunView;

use super::site::Site;
use crate::route;

#[test]
fn the_document_has_every_route_of_rest_and_no_other() {
    let site = Site::new();
    let document = site.get("/api/v1/openapi.json").token(&site.token("view", Role::View)).send().json();
    assert_eq!(document["openapi"], "3.1.0");
    let described: BTreeSet<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone()))
        })
        .collect();
    let routes: BTreeSet<(String, String)> = route::all()
        .iter()
        .filter(|route| route.path.starts_with("/api/"))
        .map(|route| (route.method.as_str().to_owned(), route.path.to_owned()))
        .collect();
    assert_eq!(described, routes);
    let text = document.to_string();
    assert!(!text.contains("#/$defs/"), "{text}");
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
    }
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["StartedRun"]["required"], json!(["workflow"]), "params may be left out");
    assert_eq!(schemas["NewLimits"]["additionalProperties"], json!(false));
    assert!(schemas["NewLimits"].get("required").is_none(), "{schemas}");
    assert!(schemas["Run"]["required"].as_array().unwrap().len() > 10);
    let ids: Vec<&Value> = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|methods| methods.as_object().unwrap().values())
        .map(|operation| &operation["operationId"])
        .collect();
    assert_eq!(ids.iter().map(|id| id.to_string()).collect::<BTreeSet<_>>().len(), ids.len());
}

#[test]
fn a_run_is_the_same_as_on_the_command_line() {
    let site = Site::new();
    let token = site.token("view", Role::View);
    let run_id = site.run();
    let run = site.store.runs().get(run_id).unwrap();
    let view = serde_json::to_value(RunView::read(&site.store, &run).unwrap()).unwrap();
    let listed = site.get("/api/v1/runs").token(&token).send();
    assert_eq!(listed.is(200).json(), json!([view]));
    let shown = site.get(&format!("/api/v1/runs/{run_id}")).token(&token).send().is(200).json();
    assert_eq!(shown["workflow"], view["workflow"]);
    assert_eq!(shown["jobs"].as_array().unwrap().len(), 2);
    let graph = site.get(&format!("/api/v1/runs/{run_id}/graph")).token(&token).send().is(200).json();
    assert_eq!(graph["edges"].as_array().unwrap().len(), 1);
    let job_id = shown["jobs"][1]["job_id"].as_i64().unwrap();
    let why = site.get(&format!("/api/v1/jobs/{job_id}/why")).token(&token).send().is(200).json();
    assert_eq!(why["reasons"][0]["text"], "a reason");
    for path in ["jobs", "artifacts"] {
        site.get(&format!("/api/v1/runs/{run_id}/{path}")).token(&token).send().is(200);
    }
    for path in ["attempts", "logs"] {
        let empty = site.get(&format!("/api/v1/jobs/{job_id}/{path}")).token(&token).send();
        assert_eq!(empty.is(200).json(), json!([]));
    }
}

#[test]
fn a_list_names_its_next_page() {
    let site = Site::new();
    let token = site.token("view", Role::View);
    let ids: Vec<i64> = (0..5).map(|_| site.run()).collect();
    let mut path = "/api/v1/runs?limit=2&workflow=two".to_owned();
    let mut found = Vec::new();
    loop {
        let reply = site.get(&path).token(&token).send();
        found.extend(
            reply.is(200).json().as_array().unwrap().iter().map(|run| run["run_id"].as_i64().unwrap()),
        );
        let link = reply.header("link");
        let Some(next) = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\"")) else {
            assert_eq!(link, "");
            break;
        };
        assert!(next.contains("workflow=two"), "{next}");
        path = next.to_owned();
    }
    assert_eq!(found, ids.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn what_has_not_changed_is_not_sent_again() {
    let site = Site::new();
    let token = site.token("view", Role::View);
    site.run();
    let first = site.get("/api/v1/runs").token(&token).send();
    let tag = first.header("etag").to_owned();
    let again = site.get("/api/v1/runs").token(&token).header("if-none-match", &tag).send();
    assert_eq!(again.is(304).body, "");
    site.run();
    site.get("/api/v1/runs").token(&token).header("if-none-match", &tag).send().is(200);
    site.get("/api/v1/runs").header("if-none-match", &tag).send().is(401);
}

#[test]
fn what_a_route_does_not_know_is_refused_with_the_next_step() {
    let site = Site::new();
    let token = site.token("edit", Role::Edit);
    let cases = [
        ("/api/v1/runs?stat=failed", "status, workflow"),
        ("/api/v1/runs?status=broken", "PENDING, RUNNING"),
        ("/api/v1/runs?limit=0", "from 1 to 1000"),
        ("/api/v1/runs?since=today", "2026-11-20T09:00:00Z"),
        ("/api/v1/runs?param=day", "NAME%3DVALUE"),
        ("/api/v1/queues?limit=1", "no query parameters"),
    ];
    for (path, next_step) in cases {
        let reply = site.get(path).token(&token).send();
        let problem = reply.is(400).json();
        assert_eq!(reply.header("content-type"), "application/problem+json");
        assert_eq!(problem["type"], "urn:windlass:invalid");
        assert!(problem["next_step"].as_str().unwrap().contains(next_step), "{path}: {problem}");
    }
    let patch = |body: Value| site.ask("PATCH", "/api/v1/queues/mail").token(&token).json(&body).send();
    patch(json!({"max_runing": 1})).is(400);
    patch(json!({"rate_jobs": 1})).is(400);
    patch(json!([])).is(400);
    let text = site.ask("PATCH", "/api/v1/queues/mail").token(&token).header("content-type", "text/plain");
    text.body("{}".into()).send().is(415);
    site.get("/api/v1/nothing").token(&token).send().is(404);
    site.post("/api/v1/queues").token(&token).send().is(405);
}

#[test]
fn limits_of_a_queue_are_kept_removed_and_set() {
    let site = Site::new();
    let token = site.token("edit", Role::Edit);
    let patch = |body: Value| {
        site.ask("PATCH", "/api/v1/queues/mail").token(&token).json(&body).send().is(200).json()
    };
    let first = patch(json!({"max_running": 3, "rate_jobs": 5, "rate_interval_ms": 60000}));
    assert_eq!((&first["max_running"], &first["changed"]), (&json!(3), &json!(true)));
    let second = patch(json!({"max_running": null}));
    assert_eq!(second["max_running"], Value::Null);
    assert_ne!(second["rate_jobs"], Value::Null, "{second}");
    assert_eq!(patch(json!({}))["changed"], json!(false));
}

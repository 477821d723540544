//! What REST answers.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_engine::store::{NewRegistration, Role};
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
    let whole = site.get(&format!("/api/v1/runs/{run_id}/why")).token(&token).send().is(200).json();
    assert_eq!(whole["run_id"], json!(run_id));
    assert_eq!(
        whole["jobs"],
        json!([site
            .get(&format!("/api/v1/jobs/{}/why", shown["jobs"][0]["job_id"]))
            .token(&token)
            .send()
            .json()])
    );
    site.get("/api/v1/runs/999/why").token(&token).send().is(404);
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
        ("/api/v1/health?limit=1", "no query parameters"),
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

#[test]
fn a_change_without_fields_takes_none() {
    let site = Site::new();
    let token = site.token("edit", Role::Edit);
    let without: Vec<_> = route::all().into_iter().filter(route::Route::takes_no_fields).collect();
    assert!(without.len() >= 7, "{}", without.len());
    for route in without {
        let path = route.path.replace("{run_id}", "1").replace("{job_id}", "1").replace("{schedule_id}", "1");
        let path = path.replace("{queue}", "mail");
        let ask = || site.ask(route.method.as_str(), &path).token(&token);
        let problem = ask().json(&json!({"x": 1})).send();
        assert!(problem.is(400).body.contains("unknown field `x`"), "{path}: {problem:?}");
        for allowed in [ask().send(), ask().json(&json!({})).send()] {
            assert!([200, 201, 404, 409].contains(&allowed.status.as_u16()), "{path}: {allowed:?}");
        }
    }
}

#[test]
fn a_page_of_jobs_costs_the_reads_of_one_job() {
    let site = Site::new();
    let token = site.token("view", Role::View);
    let cost = || {
        let before = site.reads();
        let jobs = site.get("/api/v1/jobs?limit=1000").token(&token).send().is(200).json();
        (jobs.as_array().unwrap().len(), site.reads() - before)
    };
    site.run();
    let few = cost();
    for _run in 0..20 {
        site.run();
    }
    let many = cost();
    assert_eq!((few.0, many.0), (2, 42));
    assert_eq!(few.1, many.1, "reads");
    let jobs = site.get("/api/v1/jobs?limit=1").token(&token).send().json();
    assert_eq!(jobs[0]["needs"], json!(["a"]));
}

/// All rows of a list, one at a time.
fn one_by_one(site: &Site, token: &str, path: &str) -> Vec<Value> {
    let separator = if path.contains('?') { '&' } else { '?' };
    let mut next = format!("{path}{separator}limit=1");
    let mut rows = Vec::new();
    loop {
        let reply = site.get(&next).token(token).send();
        let body = reply.is(200).json();
        let page = body.get("jobs").unwrap_or(&body).as_array().unwrap().clone();
        assert_eq!(page.len(), 1, "{next}");
        rows.extend(page);
        match reply.header("link").strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\"")) {
            Some(address) => next = address.to_owned(),
            None => return rows,
        }
    }
}

#[test]
fn every_list_has_pages() {
    let site = Site::new();
    let token = site.token("admin", Role::Admin);
    site.token("other", Role::View);
    let run_id = site.run();
    for (name, text) in [("b", "true"), ("a", "true"), ("a", "false")] {
        let workflow = super::site::workflow(
            name,
            &format!("[jobs.a]\nrun = '{text}'\n[[schedules]]\nname = 's'\nevery = '1h'\n"),
        );
        site.store.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
    }
    for (path, count) in [
        ("/api/v1/workflows", 2),
        ("/api/v1/workflows/a/versions", 2),
        ("/api/v1/schedules", 2),
        ("/api/v1/tokens", 2),
        (&format!("/api/v1/runs/{run_id}"), 2),
        (&format!("/api/v1/runs/{run_id}/graph"), 2),
        (&format!("/api/v1/runs/{run_id}/jobs"), 2),
    ] {
        let whole = site.get(path).token(&token).send().is(200).json();
        let rows = one_by_one(&site, &token, path);
        assert_eq!(&rows, whole.get("jobs").unwrap_or(&whole).as_array().unwrap(), "{path}");
        assert_eq!(rows.len(), count, "{path}");
    }
    let graph = site.get(&format!("/api/v1/runs/{run_id}/graph?after=1")).token(&token).send().json();
    assert_eq!(
        graph["edges"],
        json!([{ "needed_job_id": 1, "job_id": 2 }]),
        "those that the shown jobs need"
    );
}

#[test]
fn runs_are_selected_by_what_started_them() {
    let site = Site::new();
    let token = site.token("view", Role::View);
    site.run();
    let count = |trigger: &str| {
        let reply = site.get(&format!("/api/v1/runs?trigger={trigger}")).token(&token).send();
        reply.is(200).json().as_array().unwrap().len()
    };
    assert_eq!((count("hand"), count("schedule"), count("event")), (1, 0, 0));
    let wrong = site.get("/api/v1/runs?trigger=moon").token(&token).send();
    assert!(wrong.is(400).body.contains("hand, schedule"), "{wrong:?}");
}

#[test]
fn what_fails_because_of_the_database_is_no_defect() {
    let site = Site::new();
    let token = site.token("view", Role::View);
    let caller = site.get("/api/v1/health").token(&token);
    caller.send().is(200);
    let problem = crate::problem::Problem::from(windlass_engine::Error::unavailable(
        "read",
        windlass_engine::Unavailable::CannotOpen("/secret/path".to_owned()),
    ));
    assert_eq!((problem.status.as_u16(), problem.retry_after_s), (503, Some(1)));
    let text = format!("{:?}", problem.texts());
    assert!(text.contains("can't be opened") && !text.contains("secret"), "{text}");
    let unknown = crate::problem::Problem::from(windlass_engine::Error::unavailable(
        "submit a run",
        windlass_engine::Unavailable::CommitUnknown,
    ));
    assert_eq!((unknown.status.as_u16(), unknown.retry_after_s), (503, None));
}

/// The checks of the system only read. A write by a page would be a write by whoever opens it.
#[test]
fn nothing_that_is_looked_at_writes() {
    use crate::route::{Allowed, Method, Work};
    for route in route::all() {
        if route.method == Method::Get && matches!(route.allowed, Allowed::Role(_)) {
            let writes = matches!(route.work, Work::Write(_) | Work::CheckedWrite { .. });
            assert!(!writes, "{}", route.path);
        }
    }
}

//! Promise: a definition is taken only if the configuration allows it, and nothing of the machine is read for it.

use serde_json::{Value, json};
use windlass_engine::store::{AuditFilter, JobFilter, NewRegistration, Role, RunFilter};

use super::site::{Reply, Site, workflow};
use crate::options::{Definitions, WebOptions};

fn open() -> (Site, String) {
    let site = Site::with(WebOptions { definitions: Definitions::Allowed, ..WebOptions::default() });
    let token = site.token("ed", Role::Edit);
    (site, token)
}

fn put(site: &Site, token: &str, name: &str, body: &Value) -> Reply {
    site.ask("PUT", &format!("/api/v1/workflows/{name}")).token(token).json(body).send()
}

fn text(site: &Site, token: &str, content_type: &str, body: &str) -> Reply {
    let ask = site.ask("PUT", "/api/v1/workflows/greet").token(token).header("content-type", content_type);
    ask.body(body.to_owned().into()).send()
}

fn registered(site: &Site) -> usize {
    site.store.registrations().list().unwrap().len()
}

#[test]
fn a_definition_needs_the_role_and_the_setting() {
    let closed = Site::new();
    let body = json!({"jobs": {"a": {"run": "id"}}});
    for role in [Role::View, Role::Run, Role::Edit, Role::Admin] {
        let refused = put(&closed, &closed.token(role.as_str(), role), "greet", &body);
        refused.is(403);
        if role >= Role::Edit {
            assert!(refused.json()["next_step"].as_str().unwrap().contains("allow_definitions = true"));
        }
    }
    assert_eq!(registered(&closed), 0);
    let (site, _editor) = open();
    put(&site, &site.token("runner", Role::Run), "greet", &body).is(403);
    assert_eq!(registered(&site), 0);
}

#[test]
fn a_definition_becomes_the_next_version() {
    let (site, token) = open();
    let first = put(&site, &token, "greet", &json!({"jobs": {"a": {"run": "echo 1"}}}));
    let expected =
        json!({"workflow": "greet", "file": null, "version": 1, "change": "created", "changes": null});
    assert_eq!(first.is(201).json(), expected);
    let same = put(&site, &token, "greet", &json!({"name": "greet", "jobs": {"a": {"run": "echo 1"}}}));
    assert_eq!(same.is(200).json()["change"], "unchanged");
    let toml = text(&site, &token, "application/toml; charset=utf-8", "[jobs.a]\nrun = 'echo 2'\n");
    assert_eq!(toml.is(200).json()["version"], json!(2));
    let yaml = text(&site, &token, "application/yaml", "jobs: { a: { run: echo 3 } }");
    assert_eq!(yaml.is(200).json()["version"], json!(3));
    text(&site, &token, "text/plain", "[jobs.a]\nrun = 'id'\n").is(415);
    let started = site.post("/api/v1/runs").token(&token).json(&json!({"workflow": "greet"})).send();
    started.is(201);
    let lines = site.store.access().audit(&AuditFilter::default()).unwrap().rows;
    let last = &lines[lines.len() - 1];
    assert_eq!((last.action.as_str(), last.subject.as_str()), ("register a workflow", "workflow greet"));
    assert_eq!(last.result.as_deref(), Some("version 1"));
    assert_eq!(lines[1].before.as_deref(), Some(r#"{"version":2,"paused":false}"#));
}

#[test]
fn the_errors_of_a_definition_come_with_their_places() {
    let (site, token) = open();
    let wrong = "[jobs.a]\nrun = 'id'\nnees = ['b']\n[jobs.c]\nrun = 1\n";
    let refused = text(&site, &token, "application/toml", wrong);
    assert_eq!(refused.is(400).header("content-type"), "application/problem+json");
    let errors = refused.json()["errors"].as_array().unwrap().clone();
    assert_eq!(errors.len(), 2, "{refused:?}");
    assert_eq!(errors[0]["place"], json!({"file": "greet.toml", "line": 3, "column": 1}));
    assert!(errors[0]["next_step"].as_str().unwrap().contains("needs"), "{refused:?}");
    put(&site, &token, "other", &json!({"name": "greet", "jobs": {"a": {"run": "id"}}})).is(400);
    for name in ["a%2Fb", "%2e%2e%2fetc", "a%00b"] {
        let status = put(&site, &token, name, &json!({"jobs": {"a": {"run": "id"}}})).status.as_u16();
        assert!(matches!(status, 400 | 404), "{name}: {status}");
    }
    put(&site, &token, "greet", &json!([1])).is(400);
    assert_eq!(registered(&site), 0);
    assert_eq!(site.store.access().audit(&AuditFilter::default()).unwrap().rows.len(), 0);
}

/// The files exist, so whoever reads them gets something else than these errors.
#[test]
fn no_file_of_the_server_is_read_for_a_definition() {
    let (site, token) = open();
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = |name: &str| {
        let folder = folder.path().file_name().unwrap().to_str().unwrap();
        format!("./{folder}/{name}")
    };
    std::fs::write(folder.path().join("part.toml"), "[env]\nFOUND = 'secret of the server'\n").unwrap();
    std::fs::write(folder.path().join("called.toml"), "[jobs.x]\nrun = 'secret of the server'\n").unwrap();
    let include = |path: &str| json!({"include": [path], "jobs": {"a": {"run": "id"}}});
    let call = |path: &str| json!({"jobs": {"a": {"workflow": path}}});
    let nested = json!({
        "jobs": {"a": {"workflow": "own"}},
        "workflows": {"own": {"jobs": {"b": {"workflow": path("called.toml")}}}},
    });
    let bodies = [
        include(&path("part.toml")),
        include("/etc/passwd"),
        include("../../../etc/passwd"),
        include("missing.toml"),
        call(&path("called.toml")),
        call("../called.toml"),
        nested,
    ];
    for body in bodies {
        let refused = put(&site, &token, "greet", &body);
        refused.is(400);
        assert!(
            !refused.body.contains("secret of the server") && !refused.body.contains("root:"),
            "{refused:?}"
        );
    }
    let refused = put(&site, &token, "greet", &include(&path("part.toml")));
    assert!(refused.body.contains("no file can be included here"), "{refused:?}");
    let refused = put(&site, &token, "greet", &call(&path("called.toml")));
    assert!(refused.body.contains("files of the server are not read"), "{refused:?}");
    assert_eq!(registered(&site), 0);
}

/// A definition beside the name of a workflow must start nothing, also where definitions are allowed.
#[test]
fn a_definition_beside_a_name_starts_nothing() {
    let registration =
        || NewRegistration { workflow: workflow("greet", "[jobs.a]\nrun = 'true'\n"), file: None, dir: None };
    let definition = json!({"jobs": {"a": {"run": "touch /tmp/owned"}}});
    let allowed = open();
    let closed = Site::new();
    let token = closed.token("ed", Role::Admin);
    for (site, token) in [allowed, (closed, token)] {
        site.store.registrations().apply(registration()).unwrap();
        let run_id = site.run();
        site.store.runs().cancel(run_id).unwrap();
        let before = (
            site.store.runs().list(&RunFilter::newest(99)).unwrap().rows.len(),
            site.store.jobs().list(&JobFilter::newest(99)).unwrap().rows.len(),
        );
        let (rerun, retry) = (format!("runs/{run_id}/rerun"), format!("runs/{run_id}/retry"));
        for (path, fields) in
            [("runs", json!({"workflow": "greet"})), (rerun.as_str(), json!({})), (retry.as_str(), json!({}))]
        {
            for name in ["definition", "jobs", "file", "dir", "env", "run", "with", "include", "workflows"] {
                let mut body = fields.clone();
                body[name] = definition.clone();
                let refused = site.post(&format!("/api/v1/{path}")).token(&token).json(&body).send();
                assert!(refused.is(400).body.contains("unknown field"), "{path} {name}: {refused:?}");
            }
        }
        // The name of a file is no name of a workflow.
        for name in ["./greet.toml", "/etc/passwd", "greet.toml"] {
            site.post("/api/v1/runs").token(&token).json(&json!({"workflow": name})).send().is(404);
        }
        let after = (
            site.store.runs().list(&RunFilter::newest(99)).unwrap().rows.len(),
            site.store.jobs().list(&JobFilter::newest(99)).unwrap().rows.len(),
        );
        assert_eq!(after, before);
    }
}

//! What attackers try.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::Frame;
use serde_json::json;
use windlass_engine::store::{AuditFilter, Role};

use super::site::Site;
use crate::options::WebOptions;
use crate::route::{self, Allowed, Client};

/// A body without an end, which counts how much of it was taken.
struct Endless {
    /// Fails the test at the first byte.
    must_stay: bool,
    taken: usize,
}

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        assert!(!self.must_stay, "the body is read");
        self.taken += 8_192;
        assert!(self.taken < 3_000_000, "the body is read without a limit");
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'a'; 8_192])))))
    }
}

fn endless(must_stay: bool) -> Body {
    Body::new(Endless { must_stay, taken: 0 })
}

#[test]
fn another_name_of_this_host_is_refused_on_every_route() {
    let site = Site::new();
    let token = site.token("admin", Role::Admin);
    for route in route::all() {
        for host in [Some("evil.example"), Some("127.0.0.1.evil.example:9463"), None] {
            let path = route.path.replace(['{', '}'], "");
            let reply = site.ask(route.method.as_str(), &path).host(host).token(&token).send();
            assert_eq!(reply.status, 421, "{} {host:?}", route.path);
        }
    }
    let options = WebOptions { hosts: vec!["jobs.example".to_owned()], ..WebOptions::default() };
    Site::with(options).get("/healthz").host(Some("jobs.example")).send().is(200);
}

#[test]
fn a_form_of_another_site_changes_nothing() {
    let site = Site::new();
    let cookie = site.session(Role::Admin);
    let token = site.form_token(&cookie);
    for route in route::all().iter().filter(|route| route.method.changes()) {
        let path = route.path.replace(['{', '}'], "");
        let ask = || site.ask(route.method.as_str(), &path).header("cookie", &cookie);
        let own = "http://127.0.0.1:9463";
        let with_field = format!("form_token={token}");
        let refused = [
            ("no origin", ask().header("x-form-token", &token)),
            ("another origin", ask().header("origin", "http://evil.example").header("x-form-token", &token)),
            ("another port", ask().header("origin", "http://127.0.0.1:80").form(&with_field)),
            ("no name", ask().header("origin", "null").form(&with_field)),
        ];
        // A hook knows no sessions: without a signature nothing helps, and a form is not even read.
        let is_hook = route.client == Client::Program && matches!(route.allowed, Allowed::WithSecret { .. });
        let status = if is_hook { 415 } else { 403 };
        for (what, ask) in refused {
            assert_eq!(ask.send().status, status, "{path} with {what}");
        }
        if matches!(route.allowed, Allowed::Role(_)) {
            for form_token in ["", "0", cookie.as_str()] {
                let reply = ask().header("origin", own).header("x-form-token", form_token).send();
                assert_eq!(reply.status, 403, "{path} with the token {form_token:?}");
            }
        }
    }
    let by_form = |path: &str| {
        let ask = site.post(path).header("cookie", &cookie).header("origin", "http://127.0.0.1:9463");
        ask.form(&format!("form_token={token}")).send()
    };
    by_form("/queues/mail/pause").is(303);
    by_form("/api/v1/queues/mail/pause").is(415);
    let pause = || site.post("/api/v1/queues/mail/pause");
    // A program sends no origin.
    pause().token(&site.token("ci", Role::Edit)).send().is(200);
    pause()
        .header("cookie", &cookie)
        .header("origin", "null")
        .header("sec-fetch-site", "same-origin")
        .header("x-form-token", &token)
        .send()
        .is(200);
}

#[test]
fn a_huge_body_is_refused_before_it_is_read() {
    let site = Site::new();
    let huge = "10000000000";
    for route in route::all().iter().filter(|route| route.method.changes()) {
        let path = route.path.replace(['{', '}'], "");
        let ask = || site.ask(route.method.as_str(), &path).header("origin", "http://127.0.0.1:9463");
        let stranger = ask().header("content-length", huge).body(endless(true)).send();
        assert!(matches!(stranger.status.as_u16(), 401 | 413), "{path}: {stranger:?}");
        if matches!(route.allowed, Allowed::Role(_)) {
            // Nor is a body whose length is not said, or is said to be short.
            assert_eq!(ask().body(endless(true)).send().status, 401, "{path}");
            let short = ask().header("content-length", "9").body(endless(true)).send();
            assert_eq!(short.status, 401, "{path}");
        }
        let own = ask().by_new_token(&site).header("content-length", huge).body(endless(true)).send();
        assert_eq!(own.status, 413, "{path}");
        let unsaid = ask().by_new_token(&site).body(endless(false)).send();
        assert_eq!(unsaid.status, 413, "{path}: the length is not said");
    }
    site.post("/login").header("origin", "http://127.0.0.1:9463").body(endless(false)).send().is(413);
}

impl super::site::Ask<'_> {
    fn by_new_token(self, site: &Site) -> Self {
        let name = format!("t{}", site.store.access().tokens().unwrap().len());
        let token = site.token(&name, Role::Admin);
        self.token(&token)
    }
}

#[test]
fn no_path_leads_around_the_door() {
    let site = Site::new();
    let token = site.token("view", Role::View);
    let paths = [
        "/api/v1/runs/healthz",
        "/api/v1/runs/x%2Fhealth",
        "/api/v1/workflows/x%2Fhealthz",
        "/api/v1/workflows/healthz",
        "/healthz/..%2fapi%2fv1%2fruns",
        "/api/v1/workflows/login",
        "/assets/..%2f..%2fapi%2fv1%2fruns",
        "/assets/../api/v1/runs",
        "/api/v1/runs/../../healthz",
        "/api/v1/jobs/%2e%2e",
        "//api/v1/runs",
        "/api/v1/runs/",
        "/API/V1/RUNS",
        "/api/v1/runs;/healthz",
        "/assets/%2e%2e%2fCargo.toml",
        "/assets/..",
        "/api/v1/queues/..%2f..",
    ];
    for path in paths {
        let stranger = site.get(path).send();
        assert!(matches!(stranger.status.as_u16(), 401 | 404 | 405), "{path}: {stranger:?}");
        let viewer = site.get(path).token(&token).send();
        assert!(matches!(viewer.status.as_u16(), 404 | 405), "{path}: {viewer:?}");
        assert!(!viewer.body.contains("[package]"), "{path}: {viewer:?}");
    }
    for id in ["-1", "+1", "1e3", "0x1", "99999999999999999999", "1%20", "%31%00", "", "١"] {
        let reply = site.get(&format!("/api/v1/runs/{}", crate::pages::url::encode(id))).token(&token).send();
        assert!(matches!(reply.status.as_u16(), 400 | 404), "{id}: {reply:?}");
    }
}

#[test]
fn every_answer_has_the_headers_for_browsers() {
    let site = Site::new();
    let token = site.token("view", Role::View);
    for path in ["/healthz", "/login", "/nothing", "/api/v1/runs", "/open", "/logout"] {
        for reply in
            [site.get(path).send(), site.get(path).token(&token).send(), site.get(path).host(None).send()]
        {
            let policy = reply.header("content-security-policy");
            assert!(
                policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
                "{path}: {reply:?}"
            );
            assert!(policy.contains("frame-ancestors 'none'"), "{path}");
            assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
            assert_eq!(reply.header("referrer-policy"), "no-referrer", "{path}");
            assert_eq!(reply.header("access-control-allow-origin"), "", "{path}");
        }
    }
}

#[test]
fn texts_of_a_request_are_no_markup() {
    let site = Site::new();
    let reply = site.get("/login?next=%2F%22%3E%3Cscript%3E").send();
    reply.is(200);
    assert!(!reply.body.contains("<script") && !reply.body.contains("\"><"), "{reply:?}");
    let token = site.token("edit", Role::Edit);
    let reply = site.post("/api/v1/queues/%3Cscript%3E/pause").token(&token).send();
    assert_eq!(reply.header("content-type"), "application/json", "{reply:?}");
}

#[test]
fn a_caller_that_may_only_look_changes_nothing() {
    let site = Site::new();
    let token = site.token("view", Role::View);
    site.post("/api/v1/queues/mail/pause").token(&token).send().is(403);
    site.ask("PATCH", "/api/v1/queues/mail").token(&token).json(&json!({"max_running": 0})).send().is(403);
    assert!(site.store.queues().list().unwrap().is_empty());
    let actions: Vec<String> = audit(&site);
    assert!(actions.is_empty(), "{actions:?}");
}

fn audit(site: &Site) -> Vec<String> {
    let page = site.store.access().audit(&windlass_engine::store::AuditFilter::default()).unwrap();
    page.rows
        .into_iter()
        .map(|entry| format!("{} {} {}", entry.caller, entry.action, entry.subject))
        .collect()
}

#[test]
fn each_change_is_recorded_once_with_its_caller() {
    let site = Site::new();
    let token = site.token("edit", Role::Edit);
    site.post("/api/v1/queues/mail/pause").token(&token).send().is(200);
    assert_eq!(audit(&site), ["edit pause a queue queue mail"]);
    // What is refused by the store leaves no row.
    let reply =
        site.ask("PATCH", "/api/v1/queues/mail").token(&token).json(&json!({"max_running": -1})).send();
    reply.is(400);
    assert_eq!(audit(&site).len(), 1);
    site.post("/api/v1/queues/mail/resume").by_browser(&site.session(Role::Admin)).send().is(200);
    let recorded = audit(&site);
    assert_eq!(recorded[0], "ada resume a queue queue mail");
}

#[test]
fn a_change_is_recorded_with_how_it_was_before() {
    let site = Site::new();
    let token = site.token("edit", Role::Edit);
    let limit = |max: i64| {
        let body = json!({ "max_running": max });
        site.ask("PATCH", "/api/v1/queues/mail").token(&token).json(&body).send().is(200);
    };
    let last = || site.store.access().audit(&AuditFilter::default()).unwrap().rows.remove(0);
    limit(2);
    assert_eq!(last().before, None, "the queue was not there");
    limit(3);
    let before = || -> serde_json::Value { serde_json::from_str(&last().before.unwrap()).unwrap() };
    assert_eq!(before(), json!({ "paused": false, "max_running": 2, "fifo": false }));
    let run_id = site.run();
    let cancel = || site.post(&format!("/api/v1/runs/{run_id}/cancel")).token(&token).send();
    cancel().is(200);
    assert_eq!(before(), json!({ "status": "PENDING", "definition": 1 }));
    assert_eq!(last().result.as_deref(), Some("2 jobs cancelled, 0 stopping"));
    site.post(&format!("/api/v1/runs/{run_id}/retry")).token(&token).send().is(200);
    assert_eq!(before(), json!({ "status": "CANCELLED", "stop_reason": "cancelled", "definition": 1 }));
    assert_eq!(last().result.as_deref(), Some("2 jobs"));
    let enqueued = site.post("/api/v1/jobs").token(&token).json(&json!({"kind": "mailer"})).send();
    let job_id = enqueued.is(201).json()["job_id"].as_i64().unwrap();
    assert_eq!((last().before, last().result), (None, Some(format!("job {job_id}"))));
    site.post(&format!("/api/v1/jobs/{job_id}/cancel")).token(&token).send().is(200);
    let before = before();
    assert_eq!((&before["status"], &before["queue"]), (&json!("PENDING"), &json!("default")));
    let admin = site.token("admin", Role::Admin);
    let shown = site.get("/api/v1/audit?limit=1").token(&admin).send().json();
    assert_eq!(shown[0]["before"], before);
}

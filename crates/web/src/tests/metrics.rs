//! What monitors get.

use windlass_engine::store::{NewJob, Role};

use super::site::Site;

/// The value of a line that begins so.
fn value(text: &str, line: &str) -> String {
    let found = text.lines().find_map(|known| known.strip_prefix(line));
    found.unwrap_or_else(|| panic!("no {line:?} in\n{text}")).trim().to_owned()
}

fn enqueue(site: &Site) {
    site.store.jobs().enqueue(vec![NewJob::new("noop".to_owned(), "null".to_owned())]).unwrap();
}

#[test]
fn the_database_is_read_at_most_every_five_seconds() {
    let site = Site::new();
    let token = site.token("prometheus", Role::Metrics);
    let pending = || {
        let reply = site.get("/metrics").token(&token).send();
        reply.is(200);
        let pending = value(&reply.body, "pending_jobs_count{queue=\"default\"}");
        assert_eq!(value(&reply.body, "windlass_jobs{state=\"pending\",queue=\"default\"}"), pending);
        pending
    };
    enqueue(&site);
    assert_eq!(pending(), "1");
    enqueue(&site);
    site.clock.advance_ms(4_999);
    assert_eq!(pending(), "1", "what was read is shown");
    site.clock.advance_ms(1);
    assert_eq!(pending(), "2");
}

#[test]
fn a_queue_that_has_become_empty_is_shown_with_0() {
    let site = Site::new();
    let token = site.token("prometheus", Role::Metrics);
    let text = || site.get("/metrics").token(&token).send().body;
    let job = NewJob { queue: "mail".to_owned(), ..NewJob::new("noop".to_owned(), "null".to_owned()) };
    assert_eq!(value(&text(), "pending_jobs_count{queue=\"default\"}"), "0");
    let ids = site.store.jobs().enqueue(vec![job]).unwrap();
    site.clock.advance_ms(5_000);
    assert_eq!(value(&text(), "pending_jobs_count{queue=\"mail\"}"), "1");
    site.store.jobs().cancel(ids[0]).unwrap();
    site.clock.advance_ms(5_000);
    assert_eq!(value(&text(), "pending_jobs_count{queue=\"mail\"}"), "0");
}

#[test]
fn a_token_for_metrics_reads_nothing_else() {
    let site = Site::new();
    let token = site.token("prometheus", Role::Metrics);
    let reply = site.get("/metrics").token(&token).send();
    reply.is(200);
    assert_eq!(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(reply.header("cache-control"), "no-store");
    site.get("/api/v1/runs").token(&token).send().is(403);
    site.get("/metrics").send().is(401);
    site.get("/metrics").token(&site.token("dashboard", Role::View)).send().is(200);
}

#[test]
fn answers_are_measured_by_route_and_status() {
    let site = Site::new();
    let token = site.token("view", Role::View);
    for id in [1, 2, 3] {
        site.get(&format!("/api/v1/runs/{id}")).token(&token).send().is(404);
    }
    let reply = site.get("/metrics").token(&token).send();
    let line = "windlass_http_request_seconds_count{route=\"/api/v1/runs/{run_id}\",status=\"404\"}";
    assert_eq!(value(&reply.body, line), "3");
}

#[test]
fn answers_without_a_route_are_measured_too() {
    let site = Site::new();
    let token = site.token("view", Role::View);
    site.get("/nothing/here").send().is(404);
    let wrong_method = site.post("/api/v1/runs/1").token(&token).send();
    assert_eq!(wrong_method.is(405).header("allow"), "GET,HEAD");
    site.get("/runs").host(Some("evil.example")).send().is(421);
    let text = site.get("/metrics").token(&token).send().body;
    for status in [404, 405, 421] {
        let line = format!("windlass_http_request_seconds_count{{route=\"none\",status=\"{status}\"}}");
        assert_eq!(value(&text, &line), "1", "{status}");
    }
}

#[test]
fn no_label_names_a_workflow_a_run_or_a_job() {
    let site = Site::new();
    site.run();
    let token = site.token("metrics", Role::Metrics);
    let text = site.get("/metrics").token(&token).send().body;
    let labels = ["state", "queue", "outcome", "status", "route", "version", "le"];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((_, rest)) = line.split_once('{') else { continue };
        for pair in rest.split_once('}').unwrap().0.split("\",") {
            let name = pair.split('=').next().unwrap();
            assert!(labels.contains(&name), "{line}");
        }
    }
}

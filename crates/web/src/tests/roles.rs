//! Every route by every role, from the list of routes itself.

use windlass_engine::store::Role;

use super::site::{Reply, START_MS, Site};
use crate::options::{Definitions, WebOptions};
use crate::route::{self, Allowed, Client, Route};

/// Who may use which route. A new route needs a line here.
const WHO: &[(&str, &str, &str)] = &[
    ("GET", "/", "view"),
    ("GET", "/api/v1/audit", "admin"),
    ("GET", "/api/v1/failures", "view"),
    ("GET", "/api/v1/health", "view"),
    ("GET", "/api/v1/jobs", "view"),
    ("GET", "/api/v1/jobs/{job_id}", "view"),
    ("GET", "/api/v1/jobs/{job_id}/attempts", "view"),
    ("GET", "/api/v1/jobs/{job_id}/logs", "view"),
    ("GET", "/api/v1/jobs/{job_id}/logs/stream", "view"),
    ("GET", "/api/v1/jobs/{job_id}/why", "view"),
    ("GET", "/api/v1/openapi.json", "view"),
    ("GET", "/api/v1/queues", "view"),
    ("GET", "/api/v1/runs", "view"),
    ("GET", "/api/v1/runs/{run_id}", "view"),
    ("GET", "/api/v1/runs/{run_id}/artifacts", "view"),
    ("GET", "/api/v1/runs/{run_id}/graph", "view"),
    ("GET", "/api/v1/runs/{run_id}/jobs", "view"),
    ("GET", "/api/v1/runs/{run_id}/timeline", "view"),
    ("GET", "/api/v1/runs/{run_id}/why", "view"),
    ("GET", "/api/v1/schedules", "view"),
    ("GET", "/api/v1/schedules/{schedule_id}", "view"),
    ("GET", "/api/v1/schedules/{schedule_id}/next", "view"),
    ("GET", "/api/v1/stream", "view"),
    ("GET", "/api/v1/tokens", "admin"),
    ("GET", "/api/v1/workers", "view"),
    ("GET", "/api/v1/workflows", "view"),
    ("GET", "/api/v1/workflows/{workflow}", "view"),
    ("GET", "/api/v1/workflows/{workflow}/versions", "view"),
    ("GET", "/approvals", "view"),
    ("GET", "/assets/{name}", "everybody"),
    ("GET", "/find", "view"),
    ("GET", "/healthz", "everybody"),
    ("GET", "/jobs/{job_id}", "view"),
    ("GET", "/jobs/{job_id}/log.txt", "view"),
    ("GET", "/live", "view"),
    ("GET", "/login", "everybody"),
    ("GET", "/metrics", "metrics"),
    ("GET", "/open", "with a secret"),
    ("GET", "/queues", "view"),
    ("GET", "/readyz", "everybody"),
    ("GET", "/runs", "view"),
    ("GET", "/runs/batch", "run"),
    ("GET", "/runs/{run_id}", "view"),
    ("GET", "/runs/{run_id}/again", "run"),
    ("GET", "/runs/{run_id}/definition", "view"),
    ("GET", "/runs/{run_id}/retry-from", "run"),
    ("GET", "/system", "view"),
    ("GET", "/system/audit", "admin"),
    ("GET", "/system/tokens", "admin"),
    ("GET", "/workflows", "view"),
    ("GET", "/workflows/{workflow}", "view"),
    ("GET", "/workflows/{workflow}/start", "run"),
    ("GET", "/workflows/{workflow}/versions/{version}", "view"),
    ("GET", "/zone", "view"),
    ("PATCH", "/api/v1/queues/{queue}", "edit"),
    ("POST", "/api/v1/events", "run"),
    ("POST", "/api/v1/jobs", "run"),
    ("POST", "/api/v1/jobs/{job_id}/approve", "run"),
    ("POST", "/api/v1/jobs/{job_id}/cancel", "run"),
    ("POST", "/api/v1/jobs/{job_id}/reject", "run"),
    ("POST", "/api/v1/jobs/{job_id}/retry", "run"),
    ("POST", "/api/v1/queues/{queue}/pause", "edit"),
    ("POST", "/api/v1/queues/{queue}/resume", "edit"),
    ("POST", "/api/v1/runs", "run"),
    ("POST", "/api/v1/runs/batch", "run"),
    ("POST", "/api/v1/runs/{run_id}/cancel", "run"),
    ("POST", "/api/v1/runs/{run_id}/rerun", "run"),
    ("POST", "/api/v1/runs/{run_id}/retry", "run"),
    ("POST", "/api/v1/schedules/{schedule_id}/pause", "edit"),
    ("POST", "/api/v1/schedules/{schedule_id}/resume", "edit"),
    ("POST", "/api/v1/schedules/{schedule_id}/trigger", "run"),
    ("POST", "/hooks/{hook}", "with a secret"),
    ("POST", "/jobs/retry", "run"),
    ("POST", "/jobs/{job_id}/approve", "run"),
    ("POST", "/jobs/{job_id}/cancel", "run"),
    ("POST", "/jobs/{job_id}/retry", "run"),
    ("POST", "/login", "with a secret"),
    ("POST", "/logout", "view"),
    ("POST", "/queues/{queue}/limit", "edit"),
    ("POST", "/queues/{queue}/pause", "edit"),
    ("POST", "/queues/{queue}/resume", "edit"),
    ("POST", "/runs/batch", "run"),
    ("POST", "/runs/seen", "view"),
    ("POST", "/runs/{run_id}/again", "run"),
    ("POST", "/runs/{run_id}/cancel", "run"),
    ("POST", "/runs/{run_id}/retry", "run"),
    ("POST", "/runs/{run_id}/retry-from", "run"),
    ("POST", "/schedules/{schedule_id}/pause", "edit"),
    ("POST", "/schedules/{schedule_id}/resume", "edit"),
    ("POST", "/schedules/{schedule_id}/trigger", "run"),
    ("POST", "/system/tokens", "admin"),
    ("POST", "/system/tokens/revoke", "admin"),
    ("POST", "/workflows/{workflow}/start", "run"),
    ("POST", "/zone", "view"),
    ("PUT", "/api/v1/workflows/{workflow}", "edit"),
];

#[test]
fn every_route_is_in_the_table() {
    let mut routes: Vec<(&str, &str, &str)> = route::all()
        .iter()
        .map(|route| {
            let who = match route.allowed {
                Allowed::Role(role) => role.as_str(),
                Allowed::Everybody { .. } => "everybody",
                Allowed::WithSecret { .. } => "with a secret",
            };
            (route.method.as_str(), route.path, who)
        })
        .collect();
    routes.sort_unstable();
    assert_eq!(routes, WHO);
}

/// A path that fits the route.
fn path_of(route: &Route) -> String {
    let part = |part: &str| if part.starts_with('{') { "1".to_owned() } else { part.to_owned() };
    route.path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Whether the door let the request in, whatever the handler said.
fn is_let_in(reply: &Reply) -> bool {
    !matches!(reply.status.as_u16(), 401 | 403 | 421 | 429) && !is_sent_to_login(reply)
}

fn is_sent_to_login(reply: &Reply) -> bool {
    reply.status == 303 && reply.header("location").starts_with("/login?next=")
}

fn needed(route: &Route) -> Option<Role> {
    match route.allowed {
        Allowed::Role(role) => Some(role),
        Allowed::Everybody { .. } | Allowed::WithSecret { .. } => None,
    }
}

#[test]
fn every_route_by_every_role() {
    // Otherwise definitions are refused to everybody.
    let site = Site::with(WebOptions { definitions: Definitions::Allowed, ..WebOptions::default() });
    let tokens = Role::ALL.map(|role| (role, site.token(role.as_str(), role)));
    for route in route::all() {
        let (method, path) = (route.method.as_str(), path_of(&route));
        for (role, token) in &tokens {
            let by_token = site.ask(method, &path).token(token).send();
            let by_session = site.ask(method, &path).by_browser(&site.session(*role)).send();
            let Some(needed) = needed(&route) else { continue };
            for (how, reply) in [("token", by_token), ("session", by_session)] {
                let may = *role >= needed;
                assert_eq!(
                    is_let_in(&reply),
                    may,
                    "{method} {path} with a {how} of {}: {reply:?}",
                    role.as_str()
                );
                assert!(may || reply.status == 403, "{method} {path} with a {how}: {reply:?}");
            }
        }
        // Wrong secrets are counted, so that the next sessions could not begin.
        site.clock.advance_ms(60_000);
    }
}

#[test]
fn every_route_without_a_valid_caller() {
    let site = Site::new();
    let expired = site.token_until("expired", Role::Admin, Some(START_MS));
    let revoked = site.token("revoked", Role::Admin);
    site.store.access().revoke_token("revoked").unwrap();
    for route in route::all() {
        let (method, path) = (route.method.as_str(), path_of(&route));
        let name = site.door.options.listen.socket().port();
        let asks = [
            ("nothing", site.ask(method, &path)),
            ("an expired token", site.ask(method, &path).token(&expired)),
            ("a revoked token", site.ask(method, &path).token(&revoked)),
            ("a made up token", site.ask(method, &path).token("windlass_0")),
            ("a made up session", site.ask(method, &path).by_browser(&format!("windlass_{name}=x"))),
            (
                "a token as a session",
                site.ask(method, &path).by_browser(&format!("windlass_{name}={revoked}")),
            ),
        ];
        for (what, ask) in asks {
            let reply = ask.send();
            if needed(&route).is_some() {
                assert!(!is_let_in(&reply), "{method} {path} with {what}: {reply:?}");
                let is_read = !route.method.changes();
                let goes_to_login = route.client == Client::Browser && is_read;
                assert!(!goes_to_login || is_sent_to_login(&reply), "{method} {path} with {what}: {reply:?}");
            }
            // Failures are counted, so that the next requests would be refused for them.
            site.clock.advance_ms(60_000);
        }
    }
}

#[test]
fn a_session_is_no_token_and_a_token_is_no_session() {
    let site = Site::new();
    let cookie = site.session(Role::Admin);
    let secret = cookie.split_once('=').unwrap().1;
    site.get("/api/v1/runs").token(secret).send().is(401);
    let token = site.token("ci", Role::Admin);
    site.get("/api/v1/runs").header("cookie", &format!("windlass_9463={token}")).send().is(401);
}

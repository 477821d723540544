//! Attacks by the address and the head of a request, on every route of the list.

use axum::http::{HeaderName, HeaderValue};
use windlass_engine::store::{AuditFilter, Role};

use super::pages::register;
use super::site::{Reply, Site};
use crate::options::{Proxy, WebOptions};
use crate::route::{self, Allowed, Client, Method, Route, Work};

/// What stands in place of each variable part: names of open routes, steps in the path, and bytes that texts don't have.
const PARTS: &[&str] = &[
    "x%2Fhealth",
    "x/health",
    "x%2Fhealthz",
    "healthz",
    "readyz",
    "login",
    "open",
    "assets",
    "metrics",
    "hooks%2Fx",
    "..",
    "%2e%2e",
    "..%2F..%2Fhealthz",
    "../../healthz",
    "%2F%2Fhealthz",
    "%252e%252e%252fhealthz",
    "%25252e",
    "%5c..%5chealthz",
    "%255c",
    "%00",
    "1%00",
    "%2500",
    "%ff%fe",
    "%c0%ae%c0%ae",
    "%E2%88%95healthz",
    "1;healthz",
    "1%3Fx",
    "1%23",
    "%0d%0aset-cookie:%20windlass_9463=evil",
    "-1",
    "1.0",
    "9223372036854775807",
    "99999999999999999999",
    "%F0%9F%A7%A8",
    "%e2%80%ae",
    "*",
    "%25",
    "%",
    "1'%20OR%20'1'='1",
];

fn needs_role(route: &Route) -> bool {
    match route.allowed {
        Allowed::Role(_) => true,
        Allowed::Everybody { .. } | Allowed::WithSecret { .. } => false,
    }
}

fn filled(route: &Route, part: &str) -> String {
    let segment = |segment: &str| if segment.starts_with('{') { part.to_owned() } else { segment.to_owned() };
    route.path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// What no answer to a strange address may be.
#[track_caller]
fn check(reply: &Reply, what: &str) {
    assert!(reply.status.as_u16() < 500, "{what}: {reply:?}");
    assert_ne!(reply.body, "ok\n", "{what} is answered like /healthz");
    let set = reply.header("set-cookie");
    assert!(!set.contains("evil") && reply.headers.get("x-evil").is_none(), "{what}: {reply:?}");
    let location = reply.header("location");
    assert!(
        location.is_empty() || (location.starts_with('/') && !location.starts_with("//")),
        "{what}: {reply:?}"
    );
}

#[test]
fn no_name_in_an_address_leads_to_another_route() {
    let site = Site::new();
    register(&site, "[jobs.a]\nrun = 'true'\n");
    let admin = site.token("admin", Role::Admin);
    let long = "a".repeat(20_000);
    let parts: Vec<&str> = PARTS.iter().copied().chain([long.as_str()]).collect();
    for route in route::all().iter().filter(|route| route.path.contains('{')) {
        let method = route.method.as_str();
        for part in &parts {
            let path = filled(route, part);
            let what = format!("{method} {}", &path[..path.len().min(100)]);
            let stranger = site.ask(method, &path).send();
            check(&stranger, &what);
            let is_refused = matches!(stranger.status.as_u16(), 401 | 403 | 404 | 405 | 429);
            let is_sent_to_login = stranger.header("location").starts_with("/login?next=");
            // A form of a page without a caller and without an origin is refused as one without a caller.
            assert!(is_refused || is_sent_to_login || !needs_role(route), "{what}: {stranger:?}");
            let ask = site.ask(method, &path).token(&admin);
            // Pages refuse a change that is no form before they read the id.
            let known = match (route.method.changes(), route.client) {
                (true, Client::Browser) => ask.form("").send(),
                (true, Client::Program) | (false, Client::Browser | Client::Program) => ask.send(),
            };
            check(&known, &what);
            if part.contains("%00") {
                assert!(known.status.is_client_error(), "{what}: {known:?}");
            }
            let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
            let is_id = route.path.contains("_id}") || route.path.contains("{version}");
            if is_id && !is_number {
                assert!(matches!(known.status.as_u16(), 400 | 404 | 405), "{what}: {known:?}");
            }
        }
    }
}

#[test]
fn a_method_that_a_route_does_not_have_is_refused() {
    let site = Site::new();
    let admin = site.token("admin", Role::Admin);
    let routes = route::all();
    for route in &routes {
        let path = filled(route, "1");
        for method in
            ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "GETS"]
        {
            let is_there = |known: &Route| known.method.as_str() == method && filled(known, "1") == path;
            if routes.iter().any(is_there) {
                continue;
            }
            for ask in [site.ask(method, &path), site.ask(method, &path).token(&admin)] {
                let reply = ask.header("origin", "http://evil.example").send();
                assert_eq!(reply.status, 405, "{method} {path}: {reply:?}");
                let of_other_sites = |name: &HeaderName| name.as_str().starts_with("access-control-");
                assert!(!reply.headers.keys().any(of_other_sites), "{method} {path}: {reply:?}");
            }
        }
    }
}

#[test]
fn a_head_needs_the_same_caller_as_its_answer() {
    let site = Site::new();
    for route in route::all().iter().filter(|route| route.method == Method::Get) {
        let path = filled(route, "1");
        let (head, get) = (site.ask("HEAD", &path).send(), site.get(&path).send());
        assert_eq!(head.status, get.status, "{path}");
        assert_eq!(head.body, "", "{path}");
    }
    assert_eq!(site.viewers.count(), 0);
}

#[test]
fn every_stream_needs_a_caller() {
    let site = Site::new();
    let is_stream = |route: &&Route| matches!(route.work, Work::Stream { .. });
    let routes = route::all();
    let streams: Vec<&Route> = routes.iter().filter(is_stream).collect();
    assert!(streams.len() >= 3);
    for route in streams {
        let path = filled(route, "1");
        for ask in [
            site.get(&path),
            site.get(&path).token("windlass_0"),
            site.get(&path).header("cookie", "windlass_9463=0"),
        ] {
            let reply = ask.header("accept", "text/event-stream").header("last-event-id", "0.0").send();
            assert_eq!(reply.status, 401, "{path}: {reply:?}");
        }
    }
    assert_eq!(site.viewers.count(), 0);
}

#[test]
fn no_route_that_changes_something_is_for_who_may_only_look() {
    let site = Site::new();
    register(&site, "[jobs.a]\nrun = 'true'\n[[schedules]]\nname = 's'\ncron = '@daily'\n");
    site.run();
    let (token, cookie) = (site.token("view", Role::View), site.session(Role::View));
    let before = audit_len(&site);
    // What a viewer changes is its own: its cookies, and its session.
    let own = ["/zone", "/runs/seen", "/logout"];
    for route in route::all().iter().filter(|route| route.method.changes() && needs_role(route)) {
        if own.contains(&route.path) {
            continue;
        }
        let path = route.path.replace("{workflow}", "daily").replace("{queue}", "mail");
        let path = path.replace("{run_id}", "1").replace("{job_id}", "1").replace("{schedule_id}", "1");
        let method = route.method.as_str();
        for ask in [site.ask(method, &path).token(&token), site.ask(method, &path).by_browser(&cookie)] {
            let reply = ask.send();
            assert_eq!(reply.status, 403, "{method} {path}: {reply:?}");
        }
    }
    assert_eq!(audit_len(&site), before);
}

fn audit_len(site: &Site) -> usize {
    site.store.access().audit(&AuditFilter::default()).unwrap().rows.len()
}

#[test]
fn an_answer_that_is_known_needs_the_caller_too() {
    let site = Site::new();
    let run = site.token("run", Role::Run);
    for route in route::all().iter().filter(|route| route.method == Method::Get) {
        let Allowed::Role(role) = route.allowed else { continue };
        let path = filled(route, "1");
        let stranger = site.get(&path).header("if-none-match", "*").send();
        let expected = if route.client == Client::Browser { 303 } else { 401 };
        assert_eq!(stranger.status, expected, "{path}");
        if role == Role::Admin {
            site.get(&path).token(&run).header("if-none-match", "*").send().is(403);
        }
    }
}

#[test]
fn headers_that_speak_of_another_request_change_nothing() {
    let site = Site::new();
    let admin = site.token("admin", Role::Admin);
    for name in
        ["x-original-url", "x-rewrite-url", "x-forwarded-path", "x-forwarded-prefix", "x-forwarded-uri"]
    {
        site.get("/api/v1/runs").header(name, "/healthz").send().is(401);
    }
    for name in ["x-http-method-override", "x-http-method", "x-method-override"] {
        site.get("/api/v1/queues/mail/pause").header(name, "POST").token(&admin).send().is(405);
    }
    for name in ["x-forwarded-host", "x-host", "forwarded"] {
        site.get("/api/v1/runs")
            .host(Some("evil.example"))
            .header(name, "localhost")
            .token(&admin)
            .send()
            .is(421);
        let reply =
            site.get("/runs").header(name, "evil.example").header("x-forwarded-proto", "https").send();
        assert_eq!(reply.header("location"), "/login?next=%2Fruns");
    }
    for name in ["x-forwarded-for", "x-real-ip", "forwarded", "x-client-ip"] {
        site.post("/api/v1/queues/mail/pause").header(name, "192.0.2.9").token(&admin).send().is(200);
        let entry = site.store.access().audit(&AuditFilter::default()).unwrap().rows.remove(0);
        assert_eq!(entry.address.as_deref(), Some("127.0.0.1"), "{name}");
    }
}

#[test]
fn who_is_no_proxy_can_not_begin_anew_as_somebody_else() {
    let site = Site::new();
    for number in 0..10 {
        let ask = site.get("/api/v1/runs").token("windlass_wrong");
        ask.header("x-forwarded-for", &format!("192.0.2.{number}")).send().is(401);
    }
    site.get("/api/v1/runs").token("windlass_wrong").header("x-forwarded-for", "192.0.2.77").send().is(429);
    let trusting = Site::with(WebOptions {
        trusted_proxies: vec!["127.0.0.1".parse().unwrap()],
        ..WebOptions::default()
    });
    for number in 0..10 {
        let ask = trusting.get("/api/v1/runs").token("windlass_wrong");
        // What stands before the last address is made up by the client.
        ask.header("x-forwarded-for", &format!("192.0.2.{number}, 198.51.100.1")).send().is(401);
    }
    let ask = trusting.get("/api/v1/runs").token("windlass_wrong");
    ask.header("x-forwarded-for", "192.0.2.77, 198.51.100.1").send().is(429);
}

#[test]
fn below_a_base_path_nothing_is_beside_it() {
    let site = Site::with(WebOptions { base_path: "/jobs".to_owned(), ..WebOptions::default() });
    let admin = site.token("admin", Role::Admin);
    for route in route::all() {
        let (method, path) = (route.method.as_str(), filled(&route, "1"));
        for beside in [path.clone(), format!("/jobs{}", path.trim_start_matches('/')), format!("/JOBS{path}")]
        {
            // These are the first page.
            if beside == "/jobs" {
                continue;
            }
            let reply = site.ask(method, &beside).token(&admin).send();
            assert!(matches!(reply.status.as_u16(), 404 | 405), "{method} {beside}: {reply:?}");
        }
        if needs_role(&route) {
            let reply = site.ask(method, &format!("/jobs{path}")).send();
            let is_sent_to_login = reply.header("location").starts_with("/jobs/login?next=");
            assert!(reply.status == 401 || is_sent_to_login, "{method} {path}: {reply:?}");
        }
    }
    site.get("/jobs/healthz").send().is(200);
    // The login leads to the path with a slash.
    for first in ["/jobs", "/jobs/"] {
        assert_eq!(site.get(first).token(&admin).send().is(303).header("location"), "/jobs/runs");
        assert_eq!(site.get(first).send().is(303).header("location"), "/jobs/login?next=%2F");
    }
}

#[test]
fn the_login_leads_nowhere_else() {
    let site = Site::new();
    let token = site.token("ada", Role::View);
    let others = [
        "//evil.example",
        "/%5Cevil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "%09//evil.example",
        "/%0d%0ax-evil:%201",
    ];
    for next in others {
        let shown = site.get(&format!("/login?next={next}")).send();
        assert!(
            !shown.is(200).body.contains("evil") && !shown.body.contains("javascript:"),
            "{next}: {shown:?}"
        );
        let fields = format!("token={token}&next={next}");
        let entered = site.post("/login").header("origin", "http://127.0.0.1:9463").form(&fields).send();
        assert_eq!(entered.is(303).header("location"), "/runs", "{next}");
        assert!(entered.headers.get("x-evil").is_none(), "{entered:?}");
    }
}

#[test]
fn a_session_that_somebody_else_has_set_is_not_taken_over() {
    let site = Site::new();
    let token = site.token("ada", Role::View);
    let before = site.session(Role::View);
    for cookie in ["windlass_9463=chosen", before.as_str()] {
        let ask = site.post("/login").header("origin", "http://127.0.0.1:9463").header("cookie", cookie);
        let entered = ask.form(&format!("token={token}")).send();
        assert!(!entered.is(303).header("set-cookie").contains(cookie), "{entered:?}");
    }
    site.get("/api/v1/runs").header("cookie", "windlass_9463=chosen").send().is(401);
}

#[test]
fn with_tls_no_other_name_of_the_domain_can_set_the_cookie() {
    for (base_path, start) in [("", "__Host-windlass_9463="), ("/jobs", "__Secure-windlass_9463=")] {
        let options =
            WebOptions { proxy: Proxy::Tls, base_path: base_path.to_owned(), ..WebOptions::default() };
        let site = Site::with(options);
        let token = site.token("ada", Role::View);
        let ask = site.post(&format!("{base_path}/login")).header("origin", "https://127.0.0.1:9463");
        let reply = ask.form(&format!("token={token}")).send();
        let cookie = reply.is(303).header("set-cookie");
        assert!(cookie.starts_with(start) && cookie.ends_with("; Secure"), "{cookie}");
        assert!(!cookie.contains("Domain"), "{cookie}");
        let cookie = super::site::cookie_of(&reply);
        let runs = format!("{base_path}/api/v1/runs");
        site.get(&runs).header("cookie", &cookie).send().is(200);
        let unprefixed = cookie.split_once('-').unwrap().1;
        site.get(&runs).header("cookie", unprefixed).send().is(401);
    }
}

#[test]
fn a_header_is_text_or_it_is_none() {
    let site = Site::new();
    let token = site.token("view", Role::View);
    let odd = HeaderValue::from_bytes(b"\xff\xfe").unwrap();
    for name in [
        "authorization",
        "cookie",
        "origin",
        "if-none-match",
        "accept",
        "content-type",
        "last-event-id",
        "x-form-token",
    ] {
        for path in ["/api/v1/runs", "/runs", "/login", "/live"] {
            let ask = site.get(path).header_bytes(name, odd.clone());
            let reply = if name == "authorization" { ask.send() } else { ask.token(&token).send() };
            assert!(reply.status.as_u16() < 500, "{name} {path}: {reply:?}");
            assert!(name != "authorization" || reply.status != 200 || path == "/login", "{path}: {reply:?}");
        }
    }
}

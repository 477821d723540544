//! Attacks by values: of the query, of cookies, of bodies. Whatever is sent, no answer is a defect.

use axum::http::HeaderValue;
use serde_json::{Value, json};
use windlass_engine::store::Role;

use super::pages::register;
use super::site::{Reply, Site};
use crate::route::{self, Method, QueryRule, Route, ValueSort};

const TEXTS: &[&str] = &[
    "",
    "%00",
    "a%00b",
    "%ff",
    "%f0%9f%a7%a8",
    "%0d%0ax-evil:%201",
    "%3Cscript%3E",
    "%27%3B--",
    "%25_%5C",
    "%5B%7B%22",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999",
    "NaN",
    "0.0",
    "9223372036854775807.9223372036854775807",
    "a%3D",
    "a%22.b%5B0%5D%3D1",
    "%24.a%3D%27",
    "%3Da",
    "%2C%2C%2C",
];

/// Instants at the ends of what RFC 3339 and chrono know.
const INSTANTS: &[&str] =
    &["0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1969-12-31T23:59:60Z", "2026-01-01T00:00:00%2B23:59"];

/// The names that queries of pages have.
const NAMES: &[&str] = &[
    "state",
    "since",
    "workflow",
    "param",
    "key",
    "tag",
    "trigger",
    "before",
    "after",
    "job",
    "attempt",
    "line",
    "find",
    "view",
    "panel",
    "name",
    "offset",
    "items",
    "from",
    "number",
    "caller",
    "text",
    "q",
    "action",
    "run",
    "all",
    "failed_since",
];

fn path_of(route: &Route) -> String {
    let segment = |part: &str| match part {
        "{workflow}" => "daily".to_owned(),
        part if part.starts_with('{') => "1".to_owned(),
        part => part.to_owned(),
    };
    route.path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

#[track_caller]
fn check(reply: &Reply, what: &str) {
    assert!(reply.status.as_u16() < 500, "{what}: {reply:?}");
    assert!(reply.headers.get("x-evil").is_none(), "{what}: {reply:?}");
    let is_page = reply.header("content-type").starts_with("text/html");
    assert!(!is_page || !reply.body.contains("<script>"), "{what}: {reply:?}");
}

fn site() -> (Site, String) {
    let site = Site::new();
    register(
        &site,
        "[params]\nday = { type = 'date', default = '2026-11-21' }\n[jobs.a]\nrun = 'true'\n[[schedules]]\nname = 's'\ncron = '@daily'\n",
    );
    site.run();
    let token = site.token("admin", Role::Admin);
    (site, token)
}

#[test]
fn no_value_of_a_known_query_is_a_defect() {
    let (site, token) = site();
    for route in route::all().iter().filter(|route| route.method == Method::Get) {
        let QueryRule::Known(known) = route.query else { continue };
        let path = path_of(route);
        for parameter in known {
            let ends = match parameter.value {
                ValueSort::Integer { least, most } => vec![least.to_string(), most.to_string()],
                ValueSort::Instant => INSTANTS.iter().map(|text| (*text).to_owned()).collect(),
                ValueSort::Text | ValueSort::Boolean => vec!["true".to_owned()],
            };
            for value in TEXTS.iter().map(|text| (*text).to_owned()).chain(ends) {
                let address = format!("{path}?{}={value}", parameter.name);
                check(&site.get(&address).token(&token).send(), &address);
            }
        }
    }
}

#[test]
fn no_value_of_a_query_of_a_page_is_a_defect() {
    let (site, token) = site();
    for route in route::all().iter().filter(|route| matches!(route.query, QueryRule::ByHandler)) {
        let path = path_of(route);
        for name in NAMES {
            for value in TEXTS {
                let address = format!("{path}?{name}={value}");
                check(&site.get(&address).token(&token).send(), &address);
            }
        }
    }
}

#[test]
fn a_query_has_so_many_values_and_not_more() {
    let (site, token) = site();
    let many = |name: &str, count: usize| vec![format!("{name}=1"); count].join("&");
    for route in route::all().iter().filter(|route| route.method == Method::Get) {
        let path = path_of(route);
        for query in [
            many("x", 10_000),
            many("run", 5_000),
            many("before", 1_001),
            "&".repeat(16_000),
            "=".repeat(16_000),
        ] {
            let reply = site.get(&format!("{path}?{query}")).token(&token).send();
            check(&reply, &path);
        }
    }
    // The limit comes before the names, which are unknown too.
    let detail = |count| {
        site.get(&format!("/api/v1/runs?{}", many("x", count))).token(&token).send().is(400).body.clone()
    };
    assert!(detail(1_001).contains("There are more than 1000 values."), "{}", detail(1_001));
    assert!(detail(1_000).contains("`x` is unknown"), "{}", detail(1_000));
    for path in ["/runs", "/runs/1", "/runs/batch"] {
        let reply = site.get(&format!("{path}?{}", many("x", 10_000))).token(&token).send();
        assert!(
            reply.status == 400 && reply.body.contains("its query may have 16384 bytes"),
            "{path}: {reply:?}"
        );
    }
    let refused = |count| {
        let fields = many("param.day", count);
        site.post("/workflows/daily/start").token(&token).form(&fields).send().is(400).body.clone()
    };
    assert!(refused(1_001).contains("There are more than 1000 values."), "{}", refused(1_001));
    assert!(!refused(1_000).contains("There are more than"), "{}", refused(1_000));
}

#[test]
fn no_cookie_of_the_reader_is_a_defect() {
    let (site, token) = site();
    let values = [
        "9223372036854775807",
        "-9223372036854775808",
        "99999999999999999999",
        "%00",
        "%ff",
        "Europe/Berlin%00",
        "../../etc",
    ];
    for value in values {
        for name in ["seen", "zone"] {
            for path in ["/runs", "/runs/1", "/zone", "/workflows/daily"] {
                let reply = site.get(path).token(&token).header("cookie", &format!("{name}={value}")).send();
                check(&reply, &format!("{path} with {name}={value}"));
            }
        }
        let fields = format!("at={value}&zone={value}");
        for path in ["/runs/seen", "/zone"] {
            check(&site.post(path).token(&token).form(&fields).send(), &format!("{path} with {fields}"));
        }
    }
}

/// Requests with numbers at the ends, and texts that no database likes.
fn bodies() -> Vec<(&'static str, &'static str, Value)> {
    let mut bodies = Vec::new();
    for number in [
        json!(i64::MAX),
        json!(i64::MIN),
        json!(-1),
        json!(0),
        json!(u64::MAX),
        json!(1e300),
        json!("1"),
        json!(null),
    ] {
        for field in ["delay_ms", "max_attempts", "priority"] {
            bodies.push(("POST", "/api/v1/jobs", json!({"kind": "mailer", field: number})));
        }
        bodies.push(("PATCH", "/api/v1/queues/mail", json!({"max_running": number})));
        bodies.push((
            "PATCH",
            "/api/v1/queues/mail",
            json!({"rate_jobs": number, "rate_interval_ms": number}),
        ));
        bodies.push(("PATCH", "/api/v1/queues/mail", json!({"rate_jobs": 1, "rate_interval_ms": number})));
        bodies.push(("POST", "/api/v1/runs/batch", json!({"action": "cancel", "run_ids": [number]})));
        bodies.push(("POST", "/api/v1/runs", json!({"workflow": "daily", "params": {"day": number}})));
    }
    for text in [
        "\0",
        "a\0b",
        "\u{202e}",
        "\r\nx-evil: 1",
        "'; DROP TABLE runs; --",
        "../../etc/passwd",
        "{{ params.day }}",
        "",
    ] {
        bodies.push(("POST", "/api/v1/runs", json!({"workflow": text})));
        bodies.push(("POST", "/api/v1/runs", json!({"workflow": "daily", "params": {text: text}})));
        bodies.push(("POST", "/api/v1/runs", json!({"workflow": "daily", "params": {"day": text}})));
        bodies.push(("POST", "/api/v1/runs/1/retry", json!({"from": text})));
        bodies.push(("POST", "/api/v1/runs/1/rerun", json!({"params": {text: text}})));
        bodies.push(("POST", "/api/v1/jobs", json!({"kind": text})));
        bodies.push((
            "POST",
            "/api/v1/jobs",
            json!({"kind": "mailer", "queue": text, "unique_key": text, "payload": text}),
        ));
        bodies.push(("POST", "/api/v1/jobs/1/reject", json!({"reason": text})));
        bodies.push(("POST", "/api/v1/jobs/1/approve", json!({"fields": {text: text}})));
        bodies.push(("POST", "/api/v1/events", json!({"event": text, "key": text, "payload": text})));
        bodies.push((
            "POST",
            "/api/v1/events",
            json!({"event": "paid", "key": text, "payload": {text: text}}),
        ));
    }
    bodies
}

#[test]
fn no_body_is_a_defect() {
    let (site, token) = site();
    for (method, path, body) in bodies() {
        let reply = site.ask(method, path).token(&token).json(&body).send();
        check(&reply, &format!("{method} {path} {body}"));
    }
}

#[test]
fn no_key_of_a_request_is_a_defect() {
    let (site, token) = site();
    let long = "k".repeat(5_000);
    for key in [&b"\xff"[..], b"a\tb", b" ", b"\"", long.as_bytes()] {
        for (path, body) in [
            ("/api/v1/runs", json!({"workflow": "daily"})),
            ("/api/v1/jobs", json!({"kind": "mailer"})),
            ("/api/v1/events", json!({"event": "paid"})),
        ] {
            let key = HeaderValue::from_bytes(key).unwrap();
            let ask = site.post(path).token(&token).header_bytes("idempotency-key", key);
            check(&ask.json(&body).send(), path);
        }
    }
}

#[test]
fn a_body_that_is_no_plain_json_is_refused() {
    let (site, token) = site();
    let deep =
        format!("{{\"kind\": \"mailer\", \"payload\": {}1{}}}", "[".repeat(60_000), "]".repeat(60_000));
    let bodies: [&[u8]; 9] = [
        deep.as_bytes(),
        b"{\"kind\": \"mailer\", \"kind\": \"mailer\"}",
        b"{\"kind\": \"\xff\"}",
        b"\xef\xbb\xbf{\"kind\": \"mailer\"}",
        b"{\"kind\": \"mailer\"} {}",
        b"[\"mailer\"]",
        b"\"mailer\"",
        b"{\"kind\": \"\\ud800\"}",
        b"{\"kind\": \"mailer\", \"payload\": NaN}",
    ];
    for body in bodies {
        let ask = site.post("/api/v1/jobs").token(&token).header("content-type", "application/json");
        let reply = ask.body(body.to_vec().into()).send();
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert_eq!(reply.status, 400, "{shown}: {reply:?}");
    }
}

#[test]
fn no_spelling_of_a_command_is_accepted_from_who_may_only_run() {
    let (site, _admin) = site();
    let token = site.token("run", Role::Run);
    let ask = |body: &str| {
        let ask = site.post("/api/v1/jobs").token(&token).header("content-type", "application/json");
        ask.body(body.to_owned().into()).send()
    };
    for body in [
        r#"{"kind": "shell", "payload": {"run": "id"}}"#,
        r#"{"kind": "sh\u0065ll", "payload": {"run": "id"}}"#,
        r#"{"kind": "mailer", "kind": "shell", "payload": {"run": "id"}}"#,
        r#"{"kind": "shell", "kind": "mailer", "payload": {"run": "id"}}"#,
        r#"{"kind": "http", "payload": {"url": "http://127.0.0.1/"}}"#,
        r#"{"kind": "mailer", "workflow": "daily", "run": "id"}"#,
        r#"{"kind": "mailer", "definition": {"run": "id"}}"#,
    ] {
        let reply = ask(body);
        assert!(matches!(reply.status.as_u16(), 400 | 403), "{body}: {reply:?}");
    }
    for kind in windlass_workflow::kinds::names() {
        let reply = ask(&json!({"kind": kind, "payload": {"run": "id"}}).to_string());
        assert_eq!(reply.status, 403, "{kind}: {reply:?}");
    }
    // A kind that only looks like one has no handler.
    for kind in ["Shell", " shell", "shell ", "SHELL", "shell\u{200b}"] {
        let reply = ask(&json!({"kind": kind, "payload": {"run": "id"}}).to_string());
        assert!(reply.status.as_u16() < 500, "{kind:?}: {reply:?}");
    }
    let jobs = site.store.jobs().list(&Default::default()).unwrap();
    assert!(jobs.rows.iter().all(|job| job.run_id.is_some() || job.kind != "shell"));
}

#[test]
fn a_run_is_started_by_a_name_and_nothing_beside_it() {
    let (site, token) = site();
    let others = [
        ("definition", json!({"jobs": {"a": {"run": "id"}}})),
        ("jobs", json!({"a": {"run": "id"}})),
        ("file", json!("/etc/passwd")),
        ("dir", json!("/")),
        ("env", json!({"PATH": "/tmp"})),
        ("version", json!(1)),
        ("run", json!("id")),
        ("run_key", json!("k")),
    ];
    for (name, value) in others {
        let mut body = json!({"workflow": "daily"});
        body[name] = value.clone();
        let reply = site.post("/api/v1/runs").token(&token).json(&body).send();
        assert_eq!(reply.is(400).json()["type"], "urn:windlass:invalid", "{name}");
        let mut again = json!({});
        again[name] = value;
        site.post("/api/v1/runs/1/rerun").token(&token).json(&again).send().is(400);
    }
    site.post("/api/v1/runs").token(&token).json(&json!({"workflow": {"name": "daily"}})).send().is(400);
    site.post("/api/v1/runs?definition=x").token(&token).json(&json!({"workflow": "daily"})).send().is(400);
    assert_eq!(site.store.runs().list(&windlass_engine::store::RunFilter::newest(9)).unwrap().rows.len(), 1);
}

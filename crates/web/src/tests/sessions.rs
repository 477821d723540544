//! How people enter, and how sessions end.

use windlass_engine::Error;
use windlass_engine::store::{AuditFilter, Change, Role, Secret};

use super::site::{Site, cookie_of};
use crate::options::{Proxy, WebOptions};

const OWN: &str = "http://127.0.0.1:9463";

fn login(site: &Site, token: &str) -> super::site::Reply {
    site.post("/login")
        .header("origin", OWN)
        .form(&format!("token={token}&next=%2Fruns%3Fstate%3Dfailed"))
        .send()
}

#[test]
fn a_token_begins_a_session_of_twelve_hours() {
    let site = Site::new();
    let token = site.token("ada", Role::Run);
    let reply = login(&site, &token);
    reply.is(303);
    assert_eq!(reply.header("location"), "/runs?state=failed");
    let cookie = reply.header("set-cookie");
    for word in ["HttpOnly", "SameSite=Lax", "Max-Age=43200", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    assert!(!cookie.contains(&token) && !cookie.contains("Secure"), "{cookie}");
    let cookie = cookie_of(&reply);
    site.get("/api/v1/runs").header("cookie", &cookie).send().is(200);
    site.clock.advance_ms(12 * 3_600_000 - 1);
    site.get("/api/v1/runs").header("cookie", &cookie).send().is(200);
    site.clock.advance_ms(1);
    site.get("/api/v1/runs").header("cookie", &cookie).send().is(401);
}

#[test]
fn a_session_ends_with_its_token() {
    let site = Site::new();
    let cookie = cookie_of(&login(&site, &site.token("ada", Role::Run)));
    site.get("/api/v1/runs").header("cookie", &cookie).send().is(200);
    site.store.access().revoke_token("ada").unwrap();
    site.get("/api/v1/runs").header("cookie", &cookie).send().is(401);
    let until = site.clock.now_ms() + 5_000;
    let cookie = cookie_of(&login(&site, &site.token_until("ada", Role::Run, Some(until))));
    site.clock.advance_ms(5_000);
    site.get("/api/v1/runs").header("cookie", &cookie).send().is(401);
}

#[test]
fn leaving_ends_the_session() {
    let site = Site::new();
    let cookie = site.session(Role::View);
    let reply = site.post("/logout").by_browser(&cookie).form("").send();
    reply.is(303);
    assert!(reply.header("set-cookie").contains("Max-Age=0"), "{reply:?}");
    site.get("/api/v1/runs").header("cookie", &cookie).send().is(401);
}

#[test]
fn a_link_works_once_and_for_a_minute() {
    let site = Site::new();
    let link = |until| {
        let secret = Secret::generate().unwrap();
        site.store.access().add_link(&secret.hash(), "ada", Role::View, until).unwrap();
        format!("/open?code={}", secret.text())
    };
    let until = site.clock.now_ms() + 60_000;
    let (used, late) = (link(until), link(until));
    site.get(&used).send().is(303);
    site.get(&used).send().is(401);
    site.clock.advance_ms(60_000);
    site.get(&late).send().is(401);
    site.get("/open").send().is(401);
}

#[test]
fn a_link_is_no_session() {
    let site = Site::new();
    let secret = Secret::generate().unwrap();
    let until = site.clock.now_ms() + 60_000;
    site.store.access().add_link(&secret.hash(), "ada", Role::Admin, until).unwrap();
    let cookie = format!("windlass_9463={}", secret.text());
    site.get("/api/v1/runs").header("cookie", &cookie).send().is(401);
}

#[test]
fn behind_a_proxy_with_tls_the_cookie_is_secure() {
    let options = WebOptions { proxy: Proxy::Tls, base_path: "/jobs".to_owned(), ..WebOptions::default() };
    let site = Site::with(options);
    let token = site.token("ada", Role::Run);
    let reply = site.post("/jobs/login").header("origin", OWN).form(&format!("token={token}")).send();
    reply.is(303);
    assert_eq!(reply.header("location"), "/jobs/runs");
    let cookie = reply.header("set-cookie");
    assert!(cookie.contains("; Secure") && cookie.contains("Path=/jobs;"), "{cookie}");
    site.get("/login").send().is(404);
}

#[test]
fn a_wrong_token_is_told_in_the_form_and_ten_of_them_close_the_door_to_wrong_ones() {
    let site = Site::new();
    for _ in 0..10 {
        let reply = login(&site, "windlass_wrong");
        reply.is(401);
        assert!(reply.body.contains("the token is unknown") && reply.body.contains("<form"), "{reply:?}");
    }
    let reply = login(&site, "windlass_wrong");
    reply.is(429);
    assert_eq!(reply.header("retry-after"), "60");
    let wrong = || site.get("/api/v1/runs").token("windlass_wrong");
    wrong().send().is(429);
    site.get("/open?code=windlass_wrong").send().is(429);
    // Who has a secret is not kept out by others behind the same address.
    let token = site.token("ada", Role::Run);
    site.get("/api/v1/runs").token(&token).send().is(200);
    login(&site, &token).is(303);
    let cookie = site.session(Role::View);
    site.get("/api/v1/runs").header("cookie", &cookie).send().is(200);
    wrong().send().is(429);
    wrong().from("192.0.2.1".parse().unwrap()).send().is(401);
    site.clock.advance_ms(60_000);
    wrong().send().is(401);
}

#[test]
fn a_token_that_leaves_ends_nobodys_session() {
    let site = Site::new();
    let token = site.token("ci", Role::View);
    let cookie = site.session(Role::View);
    site.post("/logout").token(&token).send().is(303);
    site.get("/api/v1/runs").header("cookie", &cookie).send().is(200);
}

/// Who began which session, from the audit.
fn begun(site: &Site) -> Vec<String> {
    let page = site.store.access().audit(&AuditFilter::default()).unwrap();
    page.rows.iter().map(|entry| format!("{}: {}", entry.caller, entry.action)).collect()
}

#[test]
fn a_stranger_writes_nothing() {
    let site = Site::new();
    let before = site.writes();
    for number in 0..12 {
        let wrong = format!("windlass_wrong{number}");
        assert!([401, 429].contains(&login(&site, &wrong).status.as_u16()));
        let opened = site.get(&format!("/open?code={wrong}")).send();
        assert!([401, 429].contains(&opened.status.as_u16()), "{opened:?}");
    }
    assert_eq!(site.writes(), before, "a wrong secret begins no write");
    assert_eq!(begun(&site), Vec::<String>::new());
}

#[test]
fn a_session_is_recorded_with_its_owner() {
    let site = Site::new();
    login(&site, &site.token("grace", Role::View)).is(303);
    site.session(Role::View);
    assert_eq!(begun(&site), ["ada: begin a session", "grace: begin a session"]);
}

/// Two requests may find the link at the same time: the one that is late leaves no trace.
#[test]
fn a_secret_that_was_used_meanwhile_is_refused_inside_the_write() {
    let site = Site::new();
    let secret = Secret::generate().unwrap();
    let until = site.clock.now_ms() + 60_000;
    site.store.access().add_link(&secret.hash(), "ada", Role::View, until).unwrap();
    let recorded = site.store.recorded(Change {
        caller: "ada".to_owned(),
        address: None,
        subject: "a session".into(),
        traceparent: None,
    });
    recorded.access().use_link(&secret.hash(), "first", until).unwrap();
    let late = recorded.access().use_link(&secret.hash(), "second", until);
    assert!(matches!(late, Err(Error::NotFound { .. })), "{late:?}");
    let unknown = recorded.access().begin_session("no hash", "third", until);
    assert!(matches!(unknown, Err(Error::NotFound { .. })), "{unknown:?}");
    assert_eq!(begun(&site), ["ada: begin a session"]);
}

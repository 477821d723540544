//! How people enter, and how sessions end.

use windlass_engine::store::{Role, Secret};

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
    assert_eq!(reply.header("location"), "/jobs/");
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

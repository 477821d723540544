//! Messages of other services.

use axum::body::Body;
use windlass_engine::signature::{SignedMessage, SigningKey, sign};
use windlass_engine::store::{AuditFilter, NewSignal};

use super::site::{Reply, START_MS, Site};
use crate::hooks::{Hook, HookForm};
use crate::options::WebOptions;

const BODY: &str = r#"{"ref": "refs/heads/main"}"#;
/// HMAC-SHA256 of [`BODY`] with the key of `github`, by the `hmac` of Python.
const GITHUB_SIGNATURE: &str = "sha256=cd6001532e0c970250c2f36be13b3e66babf084ae6a2bdac82e50ffb04b5b303";

fn key(letter: &str) -> SigningKey {
    SigningKey::standard(&format!("whsec_{}", letter.repeat(32))).unwrap()
}

fn site() -> Site {
    let hook = |name: &str, event: &str, form, keys| Hook {
        name: name.to_owned(),
        event: event.to_owned(),
        form,
        keys,
    };
    let hooks = vec![
        hook("shop", "order", HookForm::Standard, vec![key("A"), key("B")]),
        hook("other", "other", HookForm::Standard, vec![key("C")]),
        hook("github", "push", HookForm::Github, vec![SigningKey::text("a secret of github").unwrap()]),
    ];
    Site::with(WebOptions { hooks, ..WebOptions::default() })
}

/// What a sender sends.
struct Sent<'m> {
    hook: &'m str,
    key: SigningKey,
    id: &'m str,
    sent_at_ms: i64,
    content_type: &'m str,
    body: &'m str,
}

fn good() -> Sent<'static> {
    Sent {
        hook: "shop",
        key: key("A"),
        id: "msg_1",
        sent_at_ms: START_MS,
        content_type: "application/json",
        body: BODY,
    }
}

impl Sent<'_> {
    fn send(self, site: &Site) -> Reply {
        let timestamp = (self.sent_at_ms / 1_000).to_string();
        let message = SignedMessage { id: self.id, timestamp: &timestamp, body: self.body.as_bytes() };
        let signature = sign(&[self.key], message);
        site.post(&format!("/hooks/{}", self.hook))
            .header("webhook-id", self.id)
            .header("webhook-timestamp", &timestamp)
            .header("webhook-signature", &signature)
            .header("content-type", self.content_type)
            .body(Body::from(self.body.to_owned()))
            .send()
    }
}

/// How many lines the audit has.
fn recorded(site: &Site) -> Vec<String> {
    let page = site.store.access().audit(&AuditFilter::default()).unwrap();
    page.rows.into_iter().map(|entry| format!("{} {}", entry.caller, entry.subject)).collect()
}

#[test]
fn a_signed_message_becomes_one_event() {
    let site = site();
    for _delivery in 0..3 {
        let reply = good().send(&site);
        reply.is(204);
        assert_eq!(reply.body, "");
    }
    assert_eq!(site.store.events().name_of("msg_1").unwrap().as_deref(), Some("order"));
    assert_eq!(recorded(&site), ["hook shop event order"]);
    // The number of the next event shows that there was one before.
    let next = NewSignal { name: "next".to_owned(), key: None, payload: "1".to_owned(), event_id: None };
    assert_eq!(site.store.events().signal(next).unwrap().id, 2);
}

#[test]
fn a_message_may_be_signed_with_either_secret() {
    let site = site();
    good().send(&site).is(204);
    Sent { key: key("B"), id: "msg_2", ..good() }.send(&site).is(204);
    Sent { key: key("C"), id: "msg_3", ..good() }.send(&site).is(401);
    assert_eq!(site.store.events().name_of("msg_3").unwrap(), None);
}

#[test]
fn what_is_not_signed_now_and_so_is_refused() {
    let site = site();
    let late = 5 * 60_000 + 1_000;
    let refused = [
        ("another secret", Sent { key: key("C"), ..good() }, 401),
        ("the secret of another hook", Sent { hook: "other", ..good() }, 401),
        ("no such hook", Sent { hook: "nothing", ..good() }, 404),
        ("an old time", Sent { sent_at_ms: START_MS - late, ..good() }, 401),
        ("a time to come", Sent { sent_at_ms: START_MS + late, ..good() }, 401),
        ("no time", Sent { sent_at_ms: 0, ..good() }, 401),
        ("no id", Sent { id: "", ..good() }, 401),
        ("a form", Sent { content_type: "application/x-www-form-urlencoded", ..good() }, 415),
        ("a text", Sent { content_type: "text/plain", ..good() }, 415),
        ("no JSON", Sent { body: "ref=main", ..good() }, 400),
    ];
    for (what, sent, status) in refused {
        let reply = sent.send(&site);
        assert_eq!(reply.status, status, "{what}: {reply:?}");
        assert!(!reply.body.contains("AAAA") && !reply.body.contains("order"), "{what}: {reply:?}");
    }
    assert_eq!(recorded(&site), Vec::<String>::new());
}

#[test]
fn a_message_without_a_signature_is_refused() {
    let site = site();
    let ask = || site.post("/hooks/shop").header("content-type", "application/json").body(Body::from(BODY));
    ask().send().is(401);
    ask()
        .header("webhook-id", "msg_1")
        .header("webhook-timestamp", &(START_MS / 1_000).to_string())
        .send()
        .is(401);
    ask().token(&site.token("admin", windlass_engine::store::Role::Admin)).send().is(401);
    ask().header("x-hub-signature-256", GITHUB_SIGNATURE).send().is(401);
}

#[test]
fn ten_failures_close_the_door_to_wrong_messages() {
    for (hook, status) in [("shop", 401), ("nothing", 404)] {
        let site = site();
        for _failure in 0..10 {
            Sent { hook, key: key("C"), ..good() }.send(&site).is(status);
        }
        let wrong = || Sent { hook, key: key("C"), ..good() };
        wrong().send(&site).is(429);
        // Others behind the same address, such as all of GitHub, are not kept out.
        good().send(&site).is(204);
        site.clock.advance_ms(60_000);
        wrong().send(&site).is(status);
    }
}

#[test]
fn github_signs_the_body_which_counts_once() {
    let site = site();
    let ask = |signature: &str, body: &'static str| {
        site.post("/hooks/github")
            .header("content-type", "application/json")
            .header("x-hub-signature-256", signature)
            .body(Body::from(body))
            .send()
    };
    ask(GITHUB_SIGNATURE, BODY).is(204);
    ask(GITHUB_SIGNATURE, BODY).is(204);
    ask(GITHUB_SIGNATURE, r#"{"ref": "refs/heads/evil"}"#).is(401);
    assert_eq!(recorded(&site), ["hook github event push"]);
    Sent { hook: "github", ..good() }.send(&site).is(401);
    assert_eq!(payloads(&site), [BODY]);
}

fn payloads(site: &Site) -> Vec<String> {
    (1..).map_while(|number| site.store.events().get(number).unwrap()).map(|event| event.payload).collect()
}

#[test]
fn the_payload_of_github_says_which_event_it_is() {
    let site = site();
    let ask = |event: &str| {
        site.post("/hooks/github")
            .header("content-type", "application/json")
            .header("x-hub-signature-256", GITHUB_SIGNATURE)
            .header("x-github-event", event)
            .body(Body::from(BODY))
            .send()
    };
    ask("push").is(204);
    // The header is not signed, so another one makes no second event.
    ask("delete").is(204);
    assert_eq!(payloads(&site), [r#"{"github_event":"push","ref": "refs/heads/main"}"#]);
}

#[test]
fn an_unsigned_message_begins_no_write() {
    let site = site();
    let before = site.writes();
    for _failure in 0..12 {
        Sent { key: key("C"), ..good() }.send(&site);
    }
    assert_eq!(site.writes(), before);
}

#[test]
fn the_id_of_an_event_of_another_name_is_a_conflict() {
    let site = site();
    good().send(&site).is(204);
    Sent { hook: "other", key: key("C"), ..good() }.send(&site).is(409);
    assert_eq!(site.store.events().name_of("msg_1").unwrap().as_deref(), Some("order"));
}

#[test]
fn other_hooks_are_taken_once_they_are_set() {
    let site = site();
    good().send(&site).is(204);
    site.door.set_hooks(Vec::new());
    Sent { id: "msg_2", ..good() }.send(&site).is(404);
}

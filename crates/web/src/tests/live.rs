//! Streams: what they tell, who may have one and for how long, and what they cost.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use windlass_engine::Clock;
use windlass_engine::store::{Role, Watched};
use windlass_system::wake_ups::WakeUps;

use super::connections::start;
use super::site::{START_MS, Site};
use crate::live::viewers::{STREAMS_MAX, STREAMS_OF_CALLER_MAX};
use crate::options::WebOptions;

const PATH: &str = "/api/v1/stream";

#[test]
fn a_stream_tells_what_has_changed() {
    let site = Site::new();
    let token = site.token("page", Role::View);
    let run_id = site.run();
    let mut stream = site.get(&format!("{PATH}?run={run_id}")).token(&token).stream();
    assert_eq!(stream.next().unwrap(), "retry: 2000\n\n");
    assert_eq!(stream.next().unwrap(), "event: changed\ndata: {\"changed\":[\"everything\"]}\n\n");
    // The first read has nothing to compare with.
    loop {
        site.run();
        if !stream.until_one_of(&["runs", "everything"]).contains("workflows") {
            break;
        }
    }
    site.store.runs().cancel(run_id).unwrap();
    let message = stream.until(&format!("run {run_id}"));
    assert!(!message.contains("workflows"), "{message}");
    let other = site.run();
    let message = stream.until("runs");
    assert!(!message.contains(&format!("run {other}")), "nobody looks at it: {message}");
    site.post("/api/v1/queues/mail/pause").token(&site.token("edit", Role::Edit)).send().is(200);
    stream.until("queues");
}

#[test]
fn a_stream_needs_a_caller() {
    let site = Site::new();
    site.get(PATH).send().is(401);
    site.get(PATH).token("windlass_0").send().is(401);
    site.get(PATH).header("cookie", "windlass_9463=0").send().is(401);
    assert_eq!(site.viewers.count(), 0);
    site.get(&format!("{PATH}?run=x")).token(&site.token("a", Role::View)).send().is(400);
}

#[test]
fn a_stream_ends_with_its_caller() {
    let site = Site::new();
    let revoked = site.token("revoked", Role::View);
    let mut stream = site.get(PATH).token(&revoked).stream();
    stream.until("everything");
    site.store.access().revoke_token("revoked").unwrap();
    while stream.next().is_some() {}

    let expiring = site.token_until("expiring", Role::View, Some(START_MS + 60_000));
    let mut stream = site.get(PATH).token(&expiring).stream();
    stream.until("everything");
    site.clock.advance_ms(59_999);
    // From here on nothing wakes the hub.
    let mut other = site.get(PATH).token(&expiring).stream();
    other.until("everything");
    site.until_quiet();
    let before = site.reads();
    site.clock.advance_ms(1);
    while stream.next().is_some() {}
    while other.next().is_some() {}
    assert_eq!(site.reads(), before, "the end by time needs no read");

    let token = site.token("with session", Role::View);
    let reply =
        site.post("/login").header("origin", "http://127.0.0.1:9463").form(&format!("token={token}")).send();
    let cookie = super::site::cookie_of(reply.is(303));
    let mut of_token = site.get(PATH).header("cookie", &cookie).stream();
    of_token.until("everything");
    site.store.access().revoke_token("with session").unwrap();
    while of_token.next().is_some() {}

    let cookie = site.session(Role::View);
    let mut of_session = site.get(PATH).header("cookie", &cookie).stream();
    of_session.until("everything");
    site.post("/logout").by_browser(&cookie).send().is(303);
    while of_session.next().is_some() {}
    drop((stream, other, of_token, of_session));
    assert_eq!(site.viewers.count(), 0);
}

#[test]
fn a_stream_ends_after_ten_minutes() {
    let site = Site::new();
    let mut stream = site.get(PATH).token(&site.token("a", Role::View)).stream();
    stream.until("everything");
    site.clock.advance_ms(600_000);
    while stream.next().is_some() {}
}

#[test]
fn a_hundred_viewers_cost_the_reads_of_one() {
    let site = Site::new();
    let tokens: Vec<String> =
        (0..4).map(|number| site.token(&format!("page {number}"), Role::View)).collect();
    let cost_of = |viewers: usize| {
        let mut streams: Vec<_> =
            (0..viewers).map(|number| site.get(PATH).token(&tokens[number % 4]).stream()).collect();
        for stream in &mut streams {
            stream.until("everything");
        }
        site.until_quiet();
        let before = site.reads();
        let run_id = site.run();
        for stream in &mut streams {
            stream.until("runs");
        }
        site.store.runs().cancel(run_id).unwrap();
        for stream in &mut streams {
            stream.until("runs");
        }
        site.reads() - before
    };
    // The reads of the hub depend on the time that this takes, and not on the viewers: each of them would read twice.
    for viewers in [1, 100] {
        let reads = cost_of(viewers);
        assert!((1..=20).contains(&reads), "{reads} reads for {viewers} viewers");
    }
}

#[test]
fn nothing_is_read_while_nothing_happens_or_nobody_looks() {
    let site = Site::new();
    let token = site.token("page", Role::View);
    let mut stream = site.get(PATH).token(&token).stream();
    stream.until("everything");
    site.run();
    stream.until("runs");
    site.until_quiet();
    let (before, waits) = (site.reads(), site.viewers.waits());
    site.clock.advance_ms(9 * 60_000);
    while site.viewers.waits() < waits + 100 {
        std::thread::yield_now();
    }
    assert_eq!(site.reads(), before, "nothing happens");
    drop(stream);
    assert_eq!(site.viewers.count(), 0);
    let before = site.reads();
    for _ in 0..5 {
        site.run();
    }
    assert_eq!(site.reads(), before, "nobody looks");
}

/// The read after a change fails, and nothing else happens.
#[test]
fn a_read_that_failed_is_made_again() {
    let site = Site::at(WebOptions::default(), Clock::system());
    let token = site.token("page", Role::View);
    let mut stream = site.get(PATH).token(&token).stream();
    stream.until("everything");
    // The first read has nothing to compare with.
    site.run();
    stream.until("runs");
    site.set_away(true);
    let before = site.reads();
    site.sql("INSERT INTO queues (name, paused_at) VALUES ('mail', 1)");
    site.store.wake_ups().publish(WakeUps::PROGRESS);
    while site.reads() == before {
        std::thread::yield_now();
    }
    site.set_away(false);
    loop {
        let message = stream.next().unwrap();
        assert_ne!(message, ":\n\n", "nothing was told for fifteen seconds");
        if message.contains("\"queues\"") {
            break;
        }
    }
}

/// Runs come and go, and the checks of the system are not made for each of them.
#[test]
fn runs_do_not_change_the_system() {
    let site = Site::new();
    let fingerprints = || site.store.upkeep().fingerprints(&Watched::default()).unwrap();
    let before = fingerprints();
    let run_id = site.run();
    let after = fingerprints();
    assert!(before.runs != after.runs && before.queues != after.queues);
    assert_eq!(before.system, after.system);
    site.store.runs().cancel(run_id).unwrap();
    assert_eq!(before.system, fingerprints().system);
    site.store.queues().pause("mail").unwrap();
    assert_ne!(before.system, fingerprints().system);
}

#[test]
fn there_are_only_so_many_streams() {
    let site = Site::new();
    let tokens: Vec<String> = (0..=STREAMS_MAX / STREAMS_OF_CALLER_MAX)
        .map(|number| site.token(&format!("page {number}"), Role::View))
        .collect();
    let token_of = |number: usize| &tokens[number % tokens.len()];
    let streams: Vec<_> =
        (0..STREAMS_MAX).map(|number| site.get(PATH).token(token_of(number)).stream()).collect();
    let refused = site.get(PATH).token(&tokens[0]).send();
    refused.is(503);
    assert_eq!(refused.header("retry-after"), "30");
    assert!(refused.body.contains("200 streams are open"), "{refused:?}");
    site.get("/api/v1/runs").token(&tokens[0]).send().is(200);
    drop(streams);
    site.get(PATH).token(&tokens[0]).send().is(200);
}

/// A token and the sessions that began with it are one caller, so no number of sessions takes the streams of the others.
#[test]
fn one_caller_has_only_a_part_of_the_streams() {
    let site = Site::new();
    let token = site.token("page", Role::View);
    let cookie = || {
        let form = format!("token={token}");
        let reply = site.post("/login").header("origin", "http://127.0.0.1:9463").form(&form).send();
        super::site::cookie_of(reply.is(303))
    };
    let (session, second) = (cookie(), cookie());
    let mut streams: Vec<_> =
        (1..STREAMS_OF_CALLER_MAX).map(|_| site.get(PATH).token(&token).stream()).collect();
    streams.push(site.get("/live").header("cookie", &session).stream());
    let by_token = site.get(PATH).token(&token).send();
    for refused in [by_token, site.get("/live").header("cookie", &second).send()] {
        refused.is(429);
        assert_eq!(refused.header("retry-after"), "30");
        assert!(refused.body.contains("32 streams open"), "{refused:?}");
    }
    assert_eq!(site.viewers.count(), STREAMS_OF_CALLER_MAX);
    site.get("/api/v1/runs").token(&token).send().is(200);
    let _other = site.get(PATH).token(&site.token("other", Role::View)).stream();
    streams.pop();
    let _next = site.get("/live").header("cookie", &second).stream();
}

/// Asks for a stream, and reads nothing.
fn ask(address: std::net::SocketAddr, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("GET {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    let _closed = stream.write_all(head.as_bytes());
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Reads until the text was there. `false` if the connection ended before.
fn read_until(stream: &mut TcpStream, text: &str) -> bool {
    let (mut read, mut buffer) = (Vec::new(), [0; 4_096]);
    while !String::from_utf8_lossy(&read).contains(text) {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(count) => read.extend_from_slice(&buffer[..count]),
        }
    }
    true
}

/// So many tokens that their streams are all that may be open.
fn tokens_of(store: &windlass_engine::Store) -> Vec<String> {
    (0..=STREAMS_MAX / STREAMS_OF_CALLER_MAX).map(|number| token_of(store, &format!("t{number}"))).collect()
}

fn token_of(store: &windlass_engine::Store, name: &str) -> String {
    let secret = windlass_engine::store::Secret::generate().unwrap();
    let hash = secret.hash();
    let token =
        windlass_engine::store::NewToken { name: name.to_owned(), hash, role: Role::View, expires_at: None };
    store.access().add_token(token).unwrap();
    secret.text().to_owned()
}

#[test]
fn a_thousand_slow_viewers_keep_nobody_out() {
    let (server, store, _database, _folder) = start();
    let tokens = tokens_of(&store);
    let mut streams: Vec<TcpStream> =
        (0..1_000).map(|number| ask(server.address(), &tokens[number % tokens.len()])).collect();
    // Each has its answer: a stream, a refusal, or the end of the connection.
    let open = streams.iter_mut().filter_map(|stream| read_until(stream, "\r\n\r\n").then_some(())).count();
    assert!(open >= STREAMS_MAX, "{open}");
    assert!(server.viewers().count() <= STREAMS_MAX, "{}", server.viewers().count());
    let mut health = TcpStream::connect(server.address()).unwrap();
    write!(health, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    assert!(read_until(&mut health, "ok\n"));
    drop(server);
}

#[test]
fn the_end_of_the_server_is_the_end_of_all_streams() {
    let (server, store, _database, _folder) = start();
    let tokens = tokens_of(&store);
    let mut streams: Vec<TcpStream> = Vec::new();
    while streams.len() < 100 {
        let mut stream = ask(server.address(), &tokens[streams.len() % tokens.len()]);
        assert!(read_until(&mut stream, "everything"));
        streams.push(stream);
    }
    assert_eq!(server.viewers().count(), 100);
    let viewers = std::sync::Arc::clone(server.viewers());
    server.stop();
    // No stream was cut off: each ended by itself, and its connection after it.
    assert_eq!(viewers.count(), 0);
    for stream in &mut streams {
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("0\r\n\r\n"), "{rest:?}");
    }
}

//! Bytes as an attacker sends them, where clients of HTTP would not: two lengths, two requests in one, and heads without an end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::connections::start;
use crate::server::WebServer;

/// Sends bytes on a connection for each, and returns what came back on it until the server ended it.
fn send<const N: usize>(server: &WebServer, all: [&str; N]) -> [String; N] {
    let streams = all.map(|text| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let _closed = stream.write_all(text.as_bytes());
        stream
    });
    // A connection that is kept ends after the time for the next head.
    streams.map(|mut stream| {
        let mut reply = Vec::new();
        let _reset = stream.read_to_end(&mut reply);
        String::from_utf8_lossy(&reply).into_owned()
    })
}

fn answers(reply: &str) -> Vec<&str> {
    reply.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect()
}

#[test]
fn a_request_inside_of_another_one_is_not_answered() {
    let (server, _store, _database, _folder) = start();
    let inner = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let length = inner.len();
    let heads = [
        // The body of a request that is refused before it is read.
        format!("POST /api/v1/queues/mail/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"),
        // The body of a request that takes none.
        format!("GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"),
        format!("OPTIONS /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"),
        // Two lengths, of which a proxy may believe the other one.
        "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
        "POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n".to_owned(),
        "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n".to_owned(),
        "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: +5\r\n\r\n".to_owned(),
        "POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n".to_owned(),
        "POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n".to_owned(),
        "POST /login HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
    ];
    let texts = heads.map(|head| format!("{head}{inner}"));
    for (text, reply) in texts.iter().zip(send(&server, texts.each_ref().map(String::as_str))) {
        let answers = answers(&reply);
        assert!(answers.len() == 1 && answers[0].starts_with('4'), "{text:?}: {reply:?}");
    }
}

#[test]
fn a_strange_head_gets_no_page() {
    let (server, _store, _database, _folder) = start();
    let long = "a".repeat(70_000);
    let headers: String = (0..200).map(|number| format!("x-{number}: 1\r\n")).collect();
    let heads = [
        format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("GET /login?next={long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nCookie: {long}\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"),
        "GET /healthz HTTP/1.1\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.0\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
        "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "GET http://localhost/healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nx: a\0b\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\u{1}: x\r\n\r\n".to_owned(),
        "CONNECT evil.example:80 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n".to_owned(),
        "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "TRACE /healthz HTTP/1.1\r\nHost: localhost\r\nCookie: secret\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "healthz\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}".repeat(400),
    ];
    for (head, reply) in heads.iter().zip(send(&server, heads.each_ref().map(String::as_str))) {
        let (shown, answers) = (&head[..head.len().min(60)], answers(&reply));
        let is_refused = answers.len() <= 1 && answers.iter().all(|status| status.starts_with('4'));
        assert!(is_refused && !reply.contains("secret"), "{shown:?}: {reply:?}");
        // What is no HTTP at all needs no answer.
        let is_http = head.contains(" HTTP/1.1\r\nHost");
        assert!(!is_http || answers.len() == 1, "{shown:?}: {reply:?}");
    }
    let known = "GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let [reply] = send(&server, [known]);
    assert_eq!(answers(&reply), ["200"]);
}

/// How much of an endless body the server takes before it ends the connection.
fn taken(server: &WebServer, head: &str) -> (usize, String) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let (mut taken, chunk) = (0, [b'a'; 64 * 1024]);
    while taken < 200_000_000 {
        match stream.write(&chunk) {
            Ok(count) => taken += count,
            Err(_ended) => break,
        }
    }
    let mut reply = Vec::new();
    let _reset = stream.read_to_end(&mut reply);
    (taken, String::from_utf8_lossy(&reply).into_owned())
}

#[test]
fn ten_gigabytes_before_the_login_are_not_taken() {
    let (server, _store, _database, _folder) = start();
    let own = "Host: localhost\r\nOrigin: http://localhost\r\nContent-Length: 10000000000\r\n\r\n";
    for path in ["/api/v1/runs", "/runs/batch", "/login", "/hooks/x", "/nothing", "/healthz"] {
        let (taken, reply) = taken(&server, &format!("POST {path} HTTP/1.1\r\n{own}"));
        // The buffers of both sockets hold some of it.
        assert!(taken < 20_000_000, "{path}: {taken} bytes");
        assert!(answers(&reply).iter().all(|status| status.starts_with('4')), "{path}: {reply:?}");
    }
}

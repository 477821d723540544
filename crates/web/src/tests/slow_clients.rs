//! A thousand clients that are slow in each way that a client can be: nobody else is kept out.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::connections::start;
use crate::server::WebServer;

const CLIENTS: usize = 1_000;

fn connect(server: &WebServer) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn get(server: &WebServer, path: &str) -> String {
    let mut stream = connect(server);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

/// A thousand clients begin. Then another one is answered, and the server ends in time.
fn keep_nobody_out(begin: impl Fn(&mut TcpStream)) {
    let (server, _store, _database, _folder) = start();
    let slow: Vec<TcpStream> = (0..CLIENTS)
        .map(|_| {
            let mut stream = connect(&server);
            begin(&mut stream);
            stream
        })
        .collect();
    let began = Instant::now();
    assert!(get(&server, "/healthz").starts_with("HTTP/1.1 200"));
    assert!(get(&server, "/readyz").starts_with("HTTP/1.1 200"));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let began = Instant::now();
    server.stop();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    drop(slow);
}

#[test]
fn who_sends_the_head_slowly_keeps_nobody_out() {
    keep_nobody_out(|stream| {
        let _closed = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc");
    });
}

#[test]
fn who_sends_the_body_of_a_login_slowly_keeps_nobody_out() {
    keep_nobody_out(|stream| {
        let head = "POST /login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Length: 50\r\n\r\ntok";
        let _closed = stream.write_all(head.as_bytes());
    });
}

#[test]
fn who_sends_the_body_of_a_message_slowly_keeps_nobody_out() {
    keep_nobody_out(|stream| {
        let head = "POST /hooks/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{";
        let _closed = stream.write_all(head.as_bytes());
    });
}

#[test]
fn who_sends_nothing_after_an_answer_keeps_nobody_out() {
    keep_nobody_out(|stream| {
        let _closed = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let _closed = stream.read(&mut [0; 1_024]);
    });
}

#[test]
fn who_does_not_read_its_answers_keeps_nobody_out() {
    let ask = "GET /login HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20);
    keep_nobody_out(|stream| {
        stream.set_nonblocking(true).unwrap();
        let _full = stream.write_all(ask.as_bytes());
    });
}

/// Waits for the end of a connection, for longer than a client has time.
fn is_ended(stream: &mut TcpStream) -> bool {
    let mut buffer = [0; 4_096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn a_connection_without_a_request_ends_by_itself() {
    let (server, _store, _database, _folder) = start();
    let asks: [&[u8]; 4] = [
        b"",
        b"GET /healthz HTTP/1.1\r\nHost: loc",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Length: 9\r\n\r\nto",
    ];
    let mut streams = asks.map(|ask| {
        let mut stream = connect(&server);
        stream.write_all(ask).unwrap();
        stream
    });
    for (number, stream) in streams.iter_mut().enumerate() {
        assert!(is_ended(stream), "connection {number}");
    }
}

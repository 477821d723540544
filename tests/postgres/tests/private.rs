//! A private server is stopped, started and paused, and ends with its test.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::net::TcpStream;
use std::time::Duration;

use postgres::{Client, NoTls};
use support::{Holder, eventually};
use windlass_test_server::PrivateServer;

fn count(client: &mut Client) -> i64 {
    client.query_one("SELECT count(*) FROM kept", &[]).unwrap().get(0)
}

fn is_listening(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

#[test]
fn committed_rows_are_there_after_each_kind_of_stop() {
    let server = PrivateServer::new(&[]);
    server.client().batch_execute("CREATE TABLE kept (id int)").unwrap();
    let stops: [fn(&PrivateServer); 2] = [PrivateServer::stop_fast, PrivateServer::stop_immediate];
    for (round, stop) in (0..).zip(stops) {
        let mut client = server.client();
        client.batch_execute("INSERT INTO kept VALUES (1)").unwrap();
        stop(&server);
        assert!(!is_listening(server.port()), "it is stopped");
        assert!(client.batch_execute("SELECT 1").is_err(), "its connections are gone");
        stop(&server);
        server.start();
        assert_eq!(count(&mut server.client()), round + 1);
    }
    assert!(server.log().contains("not properly shut down"), "the second stop was a crash");
}

#[test]
fn a_paused_server_does_not_answer_until_it_goes_on() {
    let server = PrivateServer::new(&[]);
    let mut client = server.client();
    server.pause();
    let (answer, answered) = std::sync::mpsc::channel();
    let asking = std::thread::spawn(move || {
        answer.send(client.batch_execute("SELECT 1")).unwrap();
        client
    });
    assert!(answered.recv_timeout(Duration::from_millis(300)).is_err(), "it answered");
    server.go_on();
    assert!(answered.recv_timeout(Duration::from_secs(60)).unwrap().is_ok());
    let mut client = asking.join().unwrap();
    assert!(client.batch_execute("SELECT 1").is_ok(), "the connection was not lost");
}

#[test]
fn killed_backends_end_and_new_connections_work() {
    let server = PrivateServer::new(&[]);
    let (mut one, mut other) = (server.client(), server.client());
    assert_eq!(server.kill_backends(), 2);
    assert!(one.batch_execute("SELECT 1").is_err() && other.batch_execute("SELECT 1").is_err());
    assert!(server.client().batch_execute("SELECT 1").is_ok());
}

#[test]
fn a_test_can_change_settings() {
    let server = PrivateServer::new(&[("max_connections", "17"), ("application_name", "it's")]);
    let mut client = server.client();
    let mut show = |name: &str| -> String {
        client.query_one(&format!("SELECT current_setting('{name}')"), &[]).unwrap().get(0)
    };
    assert_eq!(show("max_connections"), "17");
    assert_eq!(show("application_name"), "it's");
    assert_eq!(show("fsync"), "off");
    let socket = format!("host={} port={} user=postgres", server.socket_folder().display(), server.port());
    assert!(Client::connect(&socket, NoTls).is_ok(), "by its Unix socket");
}

/// The server is paused when the test ends.
#[test]
fn nothing_is_left_of_a_paused_server_when_its_test_ends() {
    let server = PrivateServer::new(&[]);
    let (port, folder) = (server.port(), server.socket_folder().to_owned());
    server.pause();
    drop(server);
    assert!(!is_listening(port) && !folder.exists());
}

#[test]
fn a_test_that_panics_leaves_nothing() {
    let ended = std::thread::spawn(|| {
        let server = PrivateServer::new(&[]);
        std::panic::resume_unwind(Box::new(server.port()));
    })
    .join();
    let port = *ended.unwrap_err().downcast::<u16>().unwrap();
    assert!(!is_listening(port));
}

#[test]
fn a_test_that_is_killed_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    support::open_to_the_server(temporary.path());
    let mut holder = Holder::start("private", temporary.path());
    let port = holder.port();
    assert!(is_listening(port));
    holder.kill_9();
    eventually("the end of the server", || !is_listening(port));
    eventually("the end of its data", || support::is_without_data(temporary.path()));
}

//! The web server: its address, its settings, tokens, and links.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Bench, GOOD, Running};

/// The address that a running server tells.
fn address_of(bench: &Bench, server: &Running, before: &str) -> SocketAddr {
    server.wait_until_it_tells(bench, before);
    let told = server.told();
    let rest = told.split(before).nth(1).unwrap();
    rest.split('/').next().unwrap().parse().unwrap()
}

fn get(address: SocketAddr, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

#[test]
fn a_token_reads_what_the_command_line_shows() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    let added = bench.windlass(&["token", "add", "dashboard", "--role", "view"]);
    let token = added.code(0).stdout.trim().to_owned();
    let header = format!("Authorization: Bearer {token}\r\n");
    let server = bench.start(&["web", "--listen", "127.0.0.1:0"]);
    let address = address_of(&bench, &server, "http://");
    assert!(get(address, "/healthz", "").starts_with("HTTP/1.1 200"));
    assert!(get(address, "/api/v1/runs", "").starts_with("HTTP/1.1 401"));
    let reply = get(address, "/api/v1/runs", &header);
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{reply}");
    let served: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(served, bench.json(&["runs"]));
    let health = get(address, "/api/v1/health", &header);
    assert!(health.contains("\"findings\""), "{health}");
    bench.windlass(&["token", "revoke", "dashboard"]).code(0);
    assert!(get(address, "/api/v1/runs", &header).starts_with("HTTP/1.1 401"));
    server.signal(Signal::TERM);
    server.wait().code(0);
}

#[test]
fn serve_has_a_page_and_says_where() {
    let bench = Bench::new();
    bench.write("windlass.toml", "[web]\nlisten = '127.0.0.1:0'\n");
    let server = bench.start(&["serve"]);
    let address = address_of(&bench, &server, "page: http://");
    let opened = bench.json(&["open", "--role", "view"]);
    let url = opened["url"].as_str().unwrap().to_owned();
    let path = url.split(":0").nth(1).unwrap();
    let entered = get(address, path, "");
    assert!(entered.starts_with("HTTP/1.1 303") && entered.contains("set-cookie: windlass_"), "{entered}");
    assert!(get(address, path, "").starts_with("HTTP/1.1 401"), "it works once");
    server.signal(Signal::TERM);
    server.wait().code(0).tells(&["stopped"]);
}

#[test]
fn a_taken_address_is_an_error() {
    let bench = Bench::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    bench.windlass(&["web", "--listen", &address]).fails(2, &["can't listen on", "choose another address"]);
    bench.write("windlass.toml", &format!("[web]\nlisten = '{address}'\n"));
    bench.windlass(&["serve"]).fails(2, &["can't listen on", &address]);
}

#[test]
fn other_addresses_need_a_proxy_with_tls() {
    let bench = Bench::new();
    bench.windlass(&["web", "--listen", "0.0.0.0:0"]).fails(2, &["plain text", "behind_proxy"]);
    let cases = [
        ("[web]\nlisten = '0.0.0.0:80'\n", "behind_proxy"),
        ("[web]\nlistn = '127.0.0.1:80'\n", "did you mean `listen`?"),
        ("[web]\nlisten = 'localhost'\n", "an address and a port"),
        ("[web]\nbehind_proxy = 'yes'\n", "behind_proxy"),
        ("[web]\nhosts = ['https://jobs.example']\n", "without https://"),
        ("[web]\nbase_path = 'windlass/'\n", "a path such as /windlass"),
        ("[web]\ntrusted_proxies = ['proxy']\n", "an address such as 127.0.0.1"),
    ];
    for (config, message) in cases {
        bench.write("windlass.toml", config);
        bench.windlass(&["serve"]).fails(2, &[message]);
        bench.windlass(&["web"]).fails(2, &[message]);
    }
    bench.write("windlass.toml", "[web]\nenabled = false\n");
    bench.windlass(&["serve", "--check"]).code(0).says(&["web          none"]);
}

#[test]
fn tokens_are_added_listed_and_revoked() {
    let bench = Bench::new();
    let added = bench.json(&["token", "add", "ci", "--role", "run", "--expires", "90d"]);
    let secret = added["secret"].as_str().unwrap();
    assert!(secret.starts_with("windlass_") && secret.len() == 73, "{secret}");
    bench.windlass(&["token", "add", "ci", "--role", "run"]).fails(2, &["there is a token with this name"]);
    bench.windlass(&["token", "add", "x", "--role", "root"]).fails(2, &["view, run, edit, admin"]);
    let listed = bench.windlass(&["token"]);
    listed.code(0).says(&["ci", "run", "expires in"]);
    assert!(!listed.stdout.contains(secret));
    bench.windlass(&["token", "revoke", "ci"]).code(0);
    bench
        .windlass(&["token", "revoke", "ci"])
        .fails(5, &["a valid token `ci` does not exist", "windlass token"]);
    bench.windlass(&["token"]).code(0).says(&["revoked"]);
    bench.windlass(&["token", "add", "ci", "--role", "view"]).code(0);
    let file = std::fs::read(bench.path("windlass.db")).unwrap_or_default();
    let found = file.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
    assert!(!found, "the secret is in the file");
}

#[test]
fn what_a_user_changes_is_recorded_with_its_result() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["submit", "good.toml"]).code(0);
    bench.windlass(&["cancel", "1"]).code(0);
    bench.windlass(&["queue", "pause", "mail"]).code(0);
    // A change that is refused is none.
    bench.windlass(&["retry", "99"]).code(5);
    let token =
        bench.json(&["token", "add", "ops", "--role", "admin"])["secret"].as_str().unwrap().to_owned();
    let server = bench.start(&["web", "--listen", "127.0.0.1:0"]);
    let address = address_of(&bench, &server, "http://");
    let reply = get(address, "/api/v1/audit", &format!("Authorization: Bearer {token}\r\n"));
    let (_head, body) = reply.split_once("\r\n\r\n").unwrap();
    let entries: Vec<serde_json::Value> = serde_json::from_str(body).unwrap();
    let told: Vec<String> = entries
        .iter()
        .map(|entry| {
            format!("{} | {} | {}", entry["action"], entry["subject"], entry["result"]).replace('"', "")
        })
        .collect();
    assert_eq!(told.len(), 4, "{told:#?}");
    assert_eq!(told[3], "submit a run | workflow good | run 1");
    assert!(told[2].starts_with("cancel a run | run 1 | ") && told[2].contains("cancelled"), "{told:#?}");
    assert_eq!(told[1], "pause a queue | queue mail | null");
    assert_eq!(told[0], "add a token | the token ops | null");
    assert!(entries.iter().all(|entry| entry["address"].is_null() && entry["caller"].is_string()));
    server.signal(Signal::TERM);
    server.wait().code(0);
}

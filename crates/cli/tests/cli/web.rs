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
    // The trial write of `doctor` is left out: pages only read.
    let (_head, checked) = health.split_once("\r\n\r\n").unwrap();
    let about = |checked: &serde_json::Value| -> Vec<String> {
        let findings = checked["findings"].as_array().unwrap();
        findings.iter().map(|finding| finding["about"].as_str().unwrap().to_owned()).collect()
    };
    let mut all = about(&bench.json(&["doctor"]));
    all.retain(|name| name != "writes");
    assert_eq!(about(&serde_json::from_str(checked).unwrap()), all);
    bench.windlass(&["token", "revoke", "dashboard"]).code(0);
    assert!(get(address, "/api/v1/runs", &header).starts_with("HTTP/1.1 401"));
    server.signal(Signal::TERM);
    server.wait().code(0);
}

#[test]
fn the_first_page_shows_what_doctor_finds() {
    let bench = Bench::new();
    bench.windlass(&["enqueue", "mail"]).code(0);
    let token = bench.windlass(&["token", "add", "ops", "--role", "view"]).code(0).stdout.trim().to_owned();
    let server = bench.start(&["web", "--listen", "127.0.0.1:0"]);
    let address = address_of(&bench, &server, "http://");
    let page = get(address, "/runs", &format!("Authorization: Bearer {token}\r\n"));
    let doctor: serde_json::Value =
        serde_json::from_str(&bench.windlass(&["doctor", "-o", "json"]).stdout).unwrap();
    let findings = doctor["findings"].as_array().unwrap();
    for finding in findings.iter().filter(|finding| finding["state"] != "ok") {
        let message = finding["message"].as_str().unwrap();
        assert!(page.contains(message), "{message}: {page}");
    }
    assert!(page.contains("no worker is alive; 1 job is due"), "{page}");
    server.signal(Signal::TERM);
    server.wait().code(0);
}

#[test]
fn serve_has_a_page_and_says_where() {
    let bench = Bench::new();
    bench.write("windlass.toml", "[web]\nlisten = '127.0.0.1:0'\n");
    let server = bench.start(&["serve"]);
    let address = address_of(&bench, &server, "page: http://");
    let opened = bench.json(&["open", "--role", "view", "--listen", &address.to_string()]);
    let url = opened["url"].as_str().unwrap().to_owned();
    let path = url.strip_prefix(&format!("http://{address}")).unwrap();
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

/// `enabled` is for `serve` only: the other keys count for `web` and `open` all the same.
#[test]
fn a_server_that_serve_leaves_out_keeps_its_settings() {
    let bench = Bench::new();
    bench.write("windlass.toml", "[web]\nenabled = false\nlisten = '127.0.0.1:0'\nbase_path = '/jobs'\n");
    let server = bench.start(&["web"]);
    let address = address_of(&bench, &server, "http://");
    assert_ne!(address.port(), 9463);
    assert!(get(address, "/jobs/healthz", "").starts_with("HTTP/1.1 200"));
    server.signal(Signal::TERM);
    server.wait().code(0);
}

#[test]
fn a_link_leads_to_the_server() {
    let bench = Bench::new();
    bench.windlass(&["open", "--role", "metrics"]).fails(2, &["view, run, edit or admin"]);
    bench.write("windlass.toml", "[web]\nlisten = '127.0.0.1:0'\n");
    bench.windlass(&["open"]).fails(2, &["port 0", "--listen ADDRESS"]);
    let server = bench.start(&["web"]);
    let address = address_of(&bench, &server, "http://");
    let opened = bench.json(&["open", "--listen", &address.to_string()]);
    let url = opened["url"].as_str().unwrap().to_owned();
    let path = url.strip_prefix(&format!("http://{address}")).unwrap();
    assert!(get(address, path, "").starts_with("HTTP/1.1 303"), "{url}");
    server.signal(Signal::TERM);
    server.wait().code(0);
}

#[test]
fn web_takes_changed_hooks_on_sighup() {
    let bench = Bench::new();
    let hooks = |text: &str| bench.write("windlass.toml", &format!("[web]\nlisten = '127.0.0.1:0'\n{text}"));
    hooks("");
    let secret = bench.write("shop.secret", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let server = bench.start(&["web"]);
    let address = address_of(&bench, &server, "http://");
    let post = || {
        let mut stream = TcpStream::connect(address).unwrap();
        let head = "content-type: application/json\r\ncontent-length: 2\r\nconnection: close";
        write!(stream, "POST /hooks/shop HTTP/1.1\r\nHost: {address}\r\n{head}\r\n\r\n{{}}").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    };
    assert!(post().starts_with("HTTP/1.1 404"));
    hooks("[hooks.shop]\nevent = 'order'\nsecret = { file = 'shop.secret' }\n");
    server.signal(Signal::HUP);
    server.wait_until_it_tells(&bench, "the hooks changed");
    assert!(post().starts_with("HTTP/1.1 401"));
    hooks("[hooks.shop]\nevent = 'order'\nsecret = { file = 'nothing.secret' }\n");
    server.signal(Signal::HUP);
    server.wait_until_it_tells(&bench, "the former hooks stay");
    assert!(post().starts_with("HTTP/1.1 401"));
    server.signal(Signal::TERM);
    server.wait().code(0);
}

#[test]
fn a_proxy_without_a_name_is_warned_of() {
    let bench = Bench::new();
    bench.write("windlass.toml", "[web]\nlisten = '127.0.0.1:0'\nbehind_proxy = true\n");
    let server = bench.start(&["web"]);
    server.wait_until_it_tells(&bench, "without `trusted_proxies`");
    server.signal(Signal::TERM);
    server.wait().code(0);
}

#[test]
fn an_unknown_key_or_value_of_web_ends_the_start() {
    let bench = Bench::new();
    let keys = [
        "enabled",
        "listen",
        "behind_proxy",
        "hosts",
        "base_path",
        "trusted_proxies",
        "tls_cert",
        "tls_key",
        "allow_definitions",
    ];
    let texts = keys.iter().flat_map(|key| {
        // Another type, and a name that is nearly right.
        [format!("{key} = {{ a = 1 }}"), format!("{key}s_ = true"), format!("{} = true", key.to_uppercase())]
    });
    let others = [
        "allow_definitions = 'no'",
        "enabled = 0",
        "hosts = ['*']",
        "hosts = 'jobs.example'",
        "hosts = ['a', 1]",
    ];
    let more = [
        "trusted_proxies = ['0.0.0.0/0']",
        "listen = '127.0.0.1:99999'",
        "base_path = '/../x'",
        "tls_cert = 'only.pem'",
        "[web.other]\na = 1",
    ];
    for text in texts.chain(others.into_iter().chain(more).map(str::to_owned)) {
        bench.write("windlass.toml", &format!("[web]\n{text}\n"));
        let ended = bench.windlass(&["serve"]);
        ended.fails(2, &["windlass.toml"]);
        assert!(!ended.stderr.contains("page: http"), "{text}: {ended:?}");
        bench.windlass(&["web"]).fails(2, &["windlass.toml"]);
    }
    for text in
        ["[webb]\nlisten = '127.0.0.1:0'\n", "[web]\nlisten = '127.0.0.1:0'\nlisten = '127.0.0.1:1'\n"]
    {
        bench.write("windlass.toml", text);
        bench.windlass(&["serve"]).fails(2, &["windlass.toml"]);
    }
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
    bench.write("lines", "{\"to\": 1}\n{\"to\": 2}\n");
    bench.windlass(&["enqueue", "mail", "--payloads", "lines"]).code(0);
    bench.windlass(&["db", "prune", "--older-than", "10d", "--keep", "0", "--yes"]).code(0);
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
    assert_eq!(told.len(), 6, "{told:#?}");
    assert_eq!(told[5], "submit a run | workflow good | run 1");
    assert!(told[4].starts_with("cancel a run | run 1 | ") && told[4].contains("cancelled"), "{told:#?}");
    assert_eq!(told[3], "pause a queue | queue mail | null");
    assert!(told[2].starts_with("enqueue jobs | 2 jobs of kind mail | job "), "{told:#?}");
    let pruned =
        "prune | runs and jobs that are older than 10d or beyond the newest 0 of each workflow | null";
    assert_eq!(told[1], pruned);
    assert_eq!(told[0], "add a token | the token ops | null");
    assert!(entries.iter().all(|entry| entry["address"].is_null() && entry["caller"].is_string()));
    server.signal(Signal::TERM);
    server.wait().code(0);
}

//! Promise: a signed message of another service starts one run, with parameters from its payload, however often it arrives and
//! whatever is killed in between. What is not signed starts nothing. The signatures are made by Python's own `hmac`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use windlass_tests::binary::examples;
use windlass_tests::{Engine, Sandbox, eventually};

const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
const FORMER_SECRET: &str = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcY";
const GITHUB_SECRET: &str = "the secret of github";
const PUSH: &str = r#"{"ref": "refs/heads/main", "after": "1f3a"}"#;

/// The parameters of the run of [`PUSH`].
const FIRST: &str = r#"{"commit":"1f3a"}"#;

const CONFIGURATION: &str = "
[web]
listen = '127.0.0.1:0'

[hooks.git]
event = 'push'
secret = { file = 'git.secret' }
former_secret = { command = ['cat', 'former.secret'] }

[hooks.github]
event = 'push'
form = 'github'
secret = { env = 'WINDLASS_GITHUB_SECRET' }
";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("windlass.toml", CONFIGURATION);
    write_secret(&sandbox, "git.secret", SECRET);
    write_secret(&sandbox, "former.secret", FORMER_SECRET);
    let example = examples().join("webhook.toml");
    sandbox.run(&["apply", &example.to_string_lossy()]).exited(0);
    sandbox
}

pub(crate) fn write_secret(sandbox: &Sandbox, name: &str, secret: &str) {
    let path = sandbox.write(name, format!("{secret}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("the mode of a file");
}

/// A service, and the address on which it listens.
fn serve(sandbox: &Sandbox) -> (Engine, String) {
    let mut command = sandbox.command(&["serve"]);
    command.env("WINDLASS_GITHUB_SECRET", GITHUB_SECRET);
    let mut service = sandbox.start(command);
    let address = eventually("the service", || {
        let told = service.stderr_so_far();
        assert!(service.is_running(), "it ended: {told}");
        told.split("page: http://").nth(1).and_then(|rest| rest.split('/').next()).map(str::to_owned)
    });
    (service, address)
}

/// What Python computes.
fn python(script: &str, arguments: &[&str]) -> String {
    let output = Command::new("python3").arg("-c").arg(script).args(arguments).output().expect("python3");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

const STANDARD: &str = "
import base64, hashlib, hmac, sys
secret, id, timestamp, body = sys.argv[1:]
key = base64.b64decode(secret.removeprefix('whsec_'))
mac = hmac.new(key, f'{id}.{timestamp}.{body}'.encode(), hashlib.sha256)
print('v1,' + base64.b64encode(mac.digest()).decode())
";

const GITHUB: &str = "
import hashlib, hmac, sys
print('sha256=' + hmac.new(sys.argv[1].encode(), sys.argv[2].encode(), hashlib.sha256).hexdigest())
";

/// Sends a body. Returns the status.
fn post(address: &str, path: &str, headers: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(address).expect("the service listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    )
    .expect("a request is sent");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("an answer");
    let status = reply.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no answer: {reply:?}"))
}

fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    i64::try_from(since.as_secs()).expect("a time of this century")
}

/// The header `webhook-signature` of a message.
pub(crate) fn signature(secret: &str, id: &str, timestamp: &str, body: &str) -> String {
    python(STANDARD, &[secret, id, timestamp, body])
}

/// Sends a message of Standard Webhooks.
fn send(address: &str, secret: &str, id: &str, sent_at_s: i64, body: &str) -> u16 {
    let timestamp = sent_at_s.to_string();
    let signature = signature(secret, id, &timestamp, body);
    let headers = format!(
        "webhook-id: {id}\r\nwebhook-timestamp: {timestamp}\r\nwebhook-signature: v1,AAAA {signature}\r\n"
    );
    post(address, "/hooks/git", &headers, body)
}

/// The parameters of the runs that were successful.
fn deployed(sandbox: &Sandbox) -> Vec<String> {
    sandbox.tables().rows("SELECT params FROM runs WHERE status = 'SUCCESSFUL' ORDER BY id", |row| row.get(0))
}

/// Waits until every event has been dispatched and every run has ended.
fn await_rest(sandbox: &Sandbox) {
    let tables = sandbox.tables();
    eventually("nothing left to do", || {
        let left: i64 = tables.value(
            "SELECT (SELECT count(*) FROM events WHERE dispatched_at IS NULL)
                    + (SELECT count(*) FROM runs WHERE finished_at IS NULL)",
        );
        (left == 0).then_some(())
    });
}

#[test]
fn a_signed_message_starts_one_run_with_parameters_from_its_payload() {
    let sandbox = sandbox();
    let (mut service, address) = serve(&sandbox);
    assert_eq!(send(&address, SECRET, "msg_1", now_s(), PUSH), 204);
    assert_eq!(send(&address, SECRET, "msg_1", now_s(), PUSH), 204);
    service.kill_9();
    let (_next, address) = serve(&sandbox);
    assert_eq!(send(&address, SECRET, "msg_1", now_s() - 200, PUSH), 204);
    await_rest(&sandbox);
    assert_eq!(deployed(&sandbox), [FIRST]);
    let other = PUSH.replace("heads/main", "heads/other");
    assert_eq!(send(&address, SECRET, "msg_2", now_s(), &other), 204);
    assert_eq!(send(&address, FORMER_SECRET, "msg_3", now_s(), &PUSH.replace("1f3a", "2e4b")), 204);
    await_rest(&sandbox);
    assert_eq!(deployed(&sandbox), [FIRST, r#"{"commit":"2e4b"}"#]);
}

#[test]
fn a_message_of_github_starts_one_run() {
    let sandbox = sandbox();
    let (_service, address) = serve(&sandbox);
    let send = |secret: &str| {
        let header = format!("X-Hub-Signature-256: {}\r\n", python(GITHUB, &[secret, PUSH]));
        post(&address, "/hooks/github", &header, PUSH)
    };
    assert_eq!([send("another secret"), send(GITHUB_SECRET), send(GITHUB_SECRET)], [401, 204, 204]);
    await_rest(&sandbox);
    assert_eq!(deployed(&sandbox), [FIRST]);
}

#[test]
fn what_is_not_signed_now_starts_nothing() {
    let sandbox = sandbox();
    let (_service, address) = serve(&sandbox);
    let statuses = [
        send(&address, "whsec_BQYHCAkKCwwNDg8QERITFBUWFxgZGhsc", "msg_1", now_s(), PUSH),
        send(&address, SECRET, "msg_1", now_s() - 400, PUSH),
        send(&address, SECRET, "msg_1", now_s() + 400, PUSH),
        post(&address, "/hooks/git", "", PUSH),
        post(&address, "/hooks/nothing", "", PUSH),
    ];
    assert_eq!(statuses, [401, 401, 401, 401, 404]);
    let huge = "Content-Length: 10000000000\r\n";
    assert_eq!(post_head(&address, huge), 413);
    assert_eq!(sandbox.tables().value::<i64>("SELECT count(*) FROM events"), 0);
}

/// Sends the head of a request only. An answer comes if the server does not wait for the body.
fn post_head(address: &str, length: &str) -> u16 {
    let mut stream = TcpStream::connect(address).expect("the service listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    write!(
        stream,
        "POST /hooks/git HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{length}\r\n"
    )
    .expect("a request is sent");
    let mut start = [0; 12];
    stream.read_exact(&mut start).expect("an answer before the body");
    let start = String::from_utf8_lossy(&start).into_owned();
    start.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

#[test]
fn a_secret_is_changed_without_a_restart_and_shown_nowhere() {
    let sandbox = sandbox();
    let (service, address) = serve(&sandbox);
    let new = "whsec_BQYHCAkKCwwNDg8QERITFBUWFxgZGhsc";
    write_secret(&sandbox, "git.secret", new);
    service.signal(Signal::HUP);
    eventually("the new secret", || service.stderr_so_far().contains("the hooks changed").then_some(()));
    assert_eq!(send(&address, SECRET, "msg_1", now_s(), PUSH), 401);
    assert_eq!(send(&address, new, "msg_1", now_s(), PUSH), 204);
    // One that can't be read leaves the hooks as they are.
    write_secret(&sandbox, "git.secret", "sesame");
    service.signal(Signal::HUP);
    eventually("the refusal", || {
        service.stderr_so_far().contains("the configuration is invalid").then_some(())
    });
    assert_eq!(send(&address, new, "msg_2", now_s(), PUSH), 204);
    await_rest(&sandbox);
    let told = service.stderr_so_far();
    for secret in [SECRET, FORMER_SECRET, new, GITHUB_SECRET, "sesame"] {
        assert!(!told.contains(secret), "{told}");
    }
}

//! Promise: there is no change without its line in the audit, and none with two, whenever the service is killed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use windlass_tests::seed::{round_rng, seed};
use windlass_tests::{Engine, Sandbox, eventually};

/// How many runs a batch has.
const RUNS: i64 = 60;
/// How often the service is killed.
const ROUNDS: u64 = 12;

/// The runs whose state is not the one that their lines in the audit tell. One statement reads both.
const DIFFERENT: &str = "SELECT count(*) FROM runs
    WHERE (SELECT count(*) FROM audit WHERE audit.action = 'retry a run' AND audit.subject = 'run ' || runs.id)
       <> (SELECT count(*) FROM audit WHERE audit.action = 'cancel a run' AND audit.subject = 'run ' || runs.id)
          - CASE WHEN runs.status = 'CANCELLED' THEN 1 ELSE 0 END";

fn serve(sandbox: &Sandbox) -> (Engine, String) {
    let mut service = sandbox.spawn(&["web", "--listen", "127.0.0.1:0"]);
    let address = eventually("the service", || {
        let told = service.stderr_so_far();
        assert!(service.is_running(), "it ended: {told}");
        told.split("http://").nth(1).and_then(|rest| rest.split(['/', '\n', ' ']).next()).map(str::to_owned)
    });
    (service, address)
}

/// Sends a change. Returns the status; `None` if the service ended before it answered.
fn post(address: &str, token: &str, path: &str, body: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Authorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .ok()?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).ok()?;
    reply.split(' ').nth(1)?.parse().ok()
}

fn batch(action: &str) -> String {
    let ids: Vec<String> = (1..=RUNS).map(|id| id.to_string()).collect();
    format!(r#"{{"action": "{action}", "run_ids": [{}]}}"#, ids.join(","))
}

#[test]
fn a_batch_that_is_killed_leaves_no_change_without_its_line_and_none_with_two() {
    let seed = seed("changes");
    let sandbox = Sandbox::new();
    let file = sandbox.write("one.toml", "[jobs.a]\nrun = 'true'\n");
    sandbox.run(&["apply", &file]).exited(0);
    let token = sandbox.run(&["token", "add", "night", "--role", "run"]).exited(0).stdout.trim().to_owned();
    let (mut service, mut address) = serve(&sandbox);
    for _run in 0..RUNS {
        assert_eq!(post(&address, &token, "/api/v1/runs", r#"{"workflow": "one"}"#), Some(201));
    }
    let different = || sandbox.tables().value::<i64>(DIFFERENT);
    let retried = || sandbox.tables().value::<i64>("SELECT count(*) FROM audit WHERE action = 'retry a run'");
    let mut killed_amid = 0;
    for round in 0..ROUNDS {
        assert_eq!(post(&address, &token, "/api/v1/runs/batch", &batch("cancel")), Some(200));
        assert_eq!(different(), 0, "round {round} of seed {seed}: after the cancellation");
        let before = retried();
        let kill_after = before + round_rng(seed, round).i64(1..RUNS);
        let sender = {
            let (address, token) = (address.clone(), token.clone());
            thread::spawn(move || post(&address, &token, "/api/v1/runs/batch", &batch("retry")))
        };
        eventually("some of the retries", || (retried() >= kill_after).then_some(()));
        service.kill_9();
        let answer = sender.join().expect("a sender");
        killed_amid += i64::from(answer.is_none());
        assert_eq!(different(), 0, "round {round} of seed {seed}: after the kill");
        (service, address) = serve(&sandbox);
        assert_eq!(post(&address, &token, "/api/v1/runs/batch", &batch("retry")), Some(200));
        assert_eq!(different(), 0, "round {round} of seed {seed}: carried on");
        assert_eq!(retried(), before + RUNS, "round {round} of seed {seed}: each run is retried once");
    }
    assert!(killed_amid > 0, "no batch was interrupted");
}

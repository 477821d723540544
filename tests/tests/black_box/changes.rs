//! Promise: there is no change without its line in the audit, and none with two, whenever the service is killed. A request with
//! a key is made once, and gets one answer.

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
    Some(post_with(address, &format!("Authorization: Bearer {token}\r\n"), path, body)?.0)
}

/// The same with these headers. Returns the body of the answer too.
fn post_with(address: &str, headers: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         {headers}Content-Length: {length}\r\n\r\n{body}"
    )
    .ok()?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).ok()?;
    let status = reply.split(' ').nth(1)?.parse().ok()?;
    let (_head, body) = reply.split_once("\r\n\r\n")?;
    // An answer ends with a line break. One that was cut off is none.
    body.ends_with('\n').then(|| (status, body.to_owned()))
}

/// Registers a workflow, and adds a token for who starts it.
fn caller(sandbox: &Sandbox) -> String {
    let file = sandbox.write("one.toml", "[jobs.a]\nrun = 'true'\n");
    sandbox.run(&["apply", &file]).exited(0);
    sandbox.run(&["token", "add", "night", "--role", "run"]).exited(0).stdout.trim().to_owned()
}

fn start_runs(address: &str, token: &str) {
    for _run in 0..RUNS {
        assert_eq!(post(address, token, "/api/v1/runs", r#"{"workflow": "one"}"#), Some(201));
    }
}

fn batch(action: &str) -> String {
    let ids: Vec<String> = (1..=RUNS).map(|id| id.to_string()).collect();
    format!(r#"{{"action": "{action}", "run_ids": [{}]}}"#, ids.join(","))
}

#[test]
fn a_batch_that_is_killed_leaves_no_change_without_its_line_and_none_with_two() {
    let seed = seed("changes");
    let sandbox = Sandbox::new();
    let token = caller(&sandbox);
    let (mut service, mut address) = serve(&sandbox);
    start_runs(&address, &token);
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

/// How many jobs are enqueued with keys in a round.
const JOBS: i64 = 60;

#[test]
fn requests_with_keys_that_are_killed_are_made_once_and_get_one_answer() {
    let seed = seed("keys");
    let sandbox = Sandbox::new();
    let token = caller(&sandbox);
    let (mut service, mut address) = serve(&sandbox);
    start_runs(&address, &token);
    let count = |sql: &'static str| sandbox.tables().value::<i64>(sql);
    let enqueued = || count("SELECT count(*) FROM audit WHERE action = 'enqueue jobs'");
    let retried = || count("SELECT count(*) FROM audit WHERE action = 'retry a run'");
    let ask = |address: &str, key: &str, path: &str, body: &str| {
        let headers = format!("Authorization: Bearer {token}\r\nIdempotency-Key: {key}\r\n");
        post_with(address, &headers, path, body)
    };
    for round in 0..4 {
        let kill_after = enqueued() + round_rng(seed, round).i64(1..JOBS);
        let before: Vec<Option<(u16, String)>> = thread::scope(|scope| {
            let (address, ask) = (&address, &ask);
            let send = move |job: i64| {
                ask(address, &format!("{round}-{job}"), "/api/v1/jobs", r#"{"kind": "mail"}"#)
            };
            let sender = scope.spawn(move || (0..JOBS).map(send).collect());
            eventually("some of the jobs", || (enqueued() >= kill_after).then_some(()));
            service.kill_9();
            sender.join().expect("a sender")
        });
        (service, address) = serve(&sandbox);
        for (job, before) in before.into_iter().enumerate() {
            let again = ask(&address, &format!("{round}-{job}"), "/api/v1/jobs", r#"{"kind": "mail"}"#);
            let again = again.expect("an answer");
            assert_eq!(again.0, 201, "{again:?}");
            assert!(before.is_none_or(|before| before == again), "job {job} of round {round} of seed {seed}");
        }
        let jobs = count("SELECT count(*) FROM jobs WHERE run_id IS NULL");
        let expected = (i64::try_from(round).unwrap_or_default() + 1) * JOBS;
        assert_eq!((jobs, enqueued()), (expected, expected), "round {round} of seed {seed}");

        assert_eq!(post(&address, &token, "/api/v1/runs/batch", &batch("cancel")), Some(200));
        let (first, key) = (retried(), format!("batch-{round}"));
        let kill_after = first + round_rng(seed, 100 + round).i64(1..RUNS);
        thread::scope(|scope| {
            let (address, ask, key) = (&address, &ask, &key);
            scope.spawn(move || ask(address, key, "/api/v1/runs/batch", &batch("retry")));
            eventually("some of the retries", || (retried() >= kill_after).then_some(()));
            service.kill_9();
        });
        (service, address) = serve(&sandbox);
        let (status, body) = ask(&address, &key, "/api/v1/runs/batch", &batch("retry")).expect("an answer");
        assert_eq!(status, 200);
        assert!(body.contains(&format!("\"changed\":{RUNS},")), "round {round} of seed {seed}: {body}");
        assert_eq!(retried(), first + RUNS, "round {round} of seed {seed}");
    }
}

//! Promise: a target gets a message about each run that failed, at least once. The service is killed at any time while many
//! of them end and are delivered.

use std::collections::{BTreeMap, BTreeSet};

use windlass_test_database::Access;
use windlass_tests::seed::{round_rng, seed};
use windlass_tests::{Sandbox, eventually};

use crate::hooks::{signature, write_secret};
use crate::http_server::{Request, Server, answer};

/// How many runs end in a round.
const RUNS: i64 = 12;
/// How often the service is killed.
const ROUNDS: u64 = 6;
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

/// The number of the failed run that a message tells of.
fn run_of(request: &Request) -> Option<i64> {
    let message: serde_json::Value = serde_json::from_str(&request.body).expect("a message is JSON");
    if message["type"] == "run_failed" { message["data"]["run_id"].as_i64() } else { None }
}

#[test]
fn every_run_that_failed_is_told_of_though_the_service_is_killed_amid_its_deliveries() {
    let seed = seed("deliveries");
    let sandbox = Sandbox::new();
    let server = Server::start(|_request, stream| answer(stream, "204 No Content", "", ""));
    let url = server.url("/hook");
    sandbox.write(
        "windlass.toml",
        format!("[web]\nenabled = false\n[notify.ops]\nurl = '{url}'\nsecret = {{ file = 'ops.secret' }}\n"),
    );
    write_secret(&sandbox, "ops.secret", SECRET);
    let file = sandbox.write("fails.toml", "[jobs.load]\nrun = 'exit 3'\n");
    let told = || -> BTreeSet<i64> { server.requests().iter().filter_map(run_of).collect() };
    let mut killed_amid = 0;
    for round in 0..ROUNDS {
        for _run in 0..RUNS {
            sandbox.run(&["submit", &file]).exited(0);
        }
        let kill_after =
            server.requests().len() + round_rng(seed, round).usize(1..usize::try_from(RUNS).unwrap_or(2));
        let mut service = sandbox.spawn(&["serve"]);
        eventually("some of the deliveries", || (server.requests().len() >= kill_after).then_some(()));
        service.kill_9();
        let left: i64 = sandbox.tables().value(
            "SELECT (SELECT count(*) FROM notifications WHERE status = 'PENDING')
                    + (SELECT count(*) FROM runs WHERE finished_at IS NULL)",
        );
        killed_amid += i64::from(left > 0);
    }
    assert!(killed_amid > 0, "seed {seed}: everything was delivered before each kill");
    let _last = sandbox.spawn(&["serve"]);
    let expected: BTreeSet<i64> = (1..=RUNS * i64::try_from(ROUNDS).unwrap_or(0)).collect();
    eventually("the end of all runs and of all deliveries", || {
        // The time until another service may take what a killed one was delivering is over.
        sandbox
            .database()
            .sql(Access::Write)
            .execute("UPDATE notifications SET next_at = 0 WHERE status = 'PENDING'");
        let left: i64 = sandbox.tables().value(
            "SELECT (SELECT count(*) FROM notifications WHERE status <> 'DELIVERED')
                    + (SELECT count(*) FROM runs WHERE finished_at IS NULL)",
        );
        (left == 0).then_some(())
    });
    let missing: Vec<i64> = expected.difference(&told()).copied().collect();
    assert_eq!(missing, Vec::<i64>::new(), "seed {seed}: runs that nobody was told of");
    // All deliveries of a message have one id, and each is signed with its own time.
    let mut ids: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    for request in server.requests() {
        let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
        if let Some(run_id) = run_of(&request) {
            ids.entry(run_id).or_default().insert(header("webhook-id"));
        }
    }
    assert!(ids.values().all(|ids| ids.len() == 1), "seed {seed}: {ids:?}");
    let last = server.requests().pop().expect("a delivery");
    let header = |name: &str| last.header(name).unwrap_or_default().to_owned();
    let expected = signature(SECRET, &header("webhook-id"), &header("webhook-timestamp"), &last.body);
    assert_eq!(header("webhook-signature"), expected);
}

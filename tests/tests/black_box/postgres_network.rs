//! Promise: a host that loses the network ends its jobs before another host may start them.

use std::collections::BTreeMap;

use rustix::process::Signal;
use windlass_test_server::PrivateServer;
use windlass_tests::partition::Host;
use windlass_tests::{Sandbox, eventually, windlass};

/// A job that writes a tick ten times a second: for a minute in its first attempt, for a second in later ones.
const TICKER: &str = r#"
name = "ticker"
[jobs.tick]
run = '''
rounds=10
[ "$WINDLASS_ATTEMPT" = 1 ] && rounds=600
while [ "$rounds" -gt 0 ]; do
    echo "$WINDLASS_ATTEMPT $(date +%s%N)" >> "$TICKS"
    echo "still here"
    rounds=$((rounds - 1))
    sleep 0.1
done
'''
"#;

/// The first and the last tick of each attempt, in nanoseconds.
fn ticks(sandbox: &Sandbox) -> BTreeMap<i64, (i128, i128)> {
    let mut spans = BTreeMap::new();
    for line in sandbox.read("ticks").lines() {
        let Some((attempt, at)) = line.split_once(' ') else { continue };
        let (Ok(attempt), Ok(at)) = (attempt.parse::<i64>(), at.parse::<i128>()) else { continue };
        let span = spans.entry(attempt).or_insert((at, at));
        span.1 = at;
    }
    spans
}

#[test]
fn two_executions_of_a_job_never_overlap_when_the_network_is_cut() {
    let (server, host, sandbox) = (PrivateServer::new(&[]), Host::new(1), Sandbox::new());
    let here = server.url();
    let there = here.replace(&format!("127.0.0.1:{}", server.port()), &host.reach(server.port()));
    let binary = windlass().to_string_lossy().into_owned();
    let with_url = |mut command: std::process::Command, url: &str| {
        command.env("WINDLASS_DB", url).env("WINDLASS_LEASE", "3s");
        command.env("TICKS", sandbox.path("ticks"));
        command
    };
    let file = sandbox.write("ticker.toml", TICKER);
    sandbox.start(with_url(sandbox.command(&["submit", &file]), &here)).wait().exited(0);

    let far = sandbox.prepared::<&str>(host.command(&binary, &["worker"]), &[]);
    let mut far = sandbox.start(with_url(far, &there));
    eventually("the first attempt", || ticks(&sandbox).contains_key(&1).then_some(()));
    let mut near = sandbox.start(with_url(sandbox.command(&["worker"]), &here));
    eventually("the second worker", || near.stderr_so_far().contains("worker started").then_some(()));
    host.cut();
    eventually("the end of the run", || {
        let runs = sandbox.start(with_url(sandbox.command(&["runs", "-o", "json"]), &here)).wait().exited(0);
        (runs.json()[0]["status"] == "SUCCESSFUL").then_some(())
    });
    let spans = ticks(&sandbox);
    let ((_, first_ended), (second_began, _)) = (spans[&1], spans[&2]);
    let apart_ms = (second_began - first_ended) / 1_000_000;
    println!("the second execution began {apart_ms} ms after the last sign of the first");
    assert!(apart_ms > 0, "two executions at the same time: {spans:?}");
    assert_eq!(spans.len(), 2, "{spans:?}");

    host.heal();
    eventually("the far worker to come back", || {
        far.stderr_so_far().contains("registered as a new worker").then_some(())
    });
    assert_eq!(ticks(&sandbox)[&1].1, first_ended, "the first execution has ended for good");
    near.signal(Signal::TERM);
    near.wait();
    far.kill_9();
}

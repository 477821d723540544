//! Promise: a job that waits for a time, an event or a person goes on waiting after `kill -9` at any moment, and nothing that
//! it waits for is lost.

use std::time::Duration;

use windlass_tests::seed::{round_rng, seed};
use windlass_tests::wait::eventually;
use windlass_tests::{Engine, Sandbox};

const WAITS: &str = r#"
    name = "waits"
    [jobs.early]
    run = "sleep 0.3"
    [jobs.known]
    needs = ["early"]
    wait_for = { event = "before", key = "{{ run.id }}" }
    [jobs.nap]
    sleep = "1500ms"
    [jobs.paid]
    wait_for = { event = "paid", key = "{{ run.id }}" }
    [jobs.ask]
    needs = ["paid"]
    approval = { prompt = "{{ jobs.paid.output.payload.amount }}?", fields = { why = {} } }
    [jobs.all]
    needs = ["known", "nap", "ask"]
    env = { WHY = "{{ jobs.ask.output.fields.why }}", BY = "{{ jobs.ask.output.by }}" }
    run = 'echo "$WHY $BY"'
    output = "text"
"#;

/// Starts an engine and kills it after a random time.
fn start_and_kill(sandbox: &Sandbox, rng: &mut fastrand::Rng) {
    let mut engine = sandbox.spawn(&["resume", "1"]);
    // This is no wait for a condition: the moment of the kill is random.
    std::thread::sleep(Duration::from_millis(rng.u64(0..500)));
    engine.kill_9();
}

/// Does it as often as it is refused because the job does not wait yet. The engine goes on meanwhile.
fn until_done(sandbox: &Sandbox, engine: &mut Engine, arguments: &[&str]) {
    eventually("the job waits", || {
        assert!(engine.is_running());
        (sandbox.run(arguments).code == Some(0)).then_some(())
    });
}

#[test]
fn waits_killed_at_random_moments() {
    let mut rng = round_rng(seed("waits_killed_at_random_moments"), 0);
    let sandbox = Sandbox::new();
    sandbox.write("waits.toml", WAITS);
    sandbox.run(&["submit", "waits.toml"]).exited(0);
    sandbox.run(&["signal", "before", "--key", "1"]).exited(0);
    start_and_kill(&sandbox, &mut rng);
    let paid = ["signal", "paid", "--key", "1", "--payload", r#"{"amount": 7}"#, "--id", "payment"];
    sandbox.run(&paid).exited(0);
    start_and_kill(&sandbox, &mut rng);
    sandbox.run(&paid).exited(0);
    start_and_kill(&sandbox, &mut rng);
    sandbox.run(&["approve", "1", "ask", "-p", "who=ada"]).exited(2);
    let mut engine = sandbox.spawn(&["resume", "1"]);
    until_done(&sandbox, &mut engine, &["approve", "1", "ask", "-p", "why=yes", "--by", "ada"]);
    engine.kill_9();
    start_and_kill(&sandbox, &mut rng);
    sandbox.run(&["resume", "1"]);
    let tables = sandbox.tables();
    assert_eq!(tables.run_status(1), "SUCCESSFUL");
    let jobs = tables.jobs_of(1);
    assert_eq!(jobs["all"].output.as_deref(), Some("\"yes ada\""));
    let slept = jobs["nap"].finished_at.unwrap_or(0) - jobs["nap"].started_at.unwrap_or(0);
    assert!(slept >= 1_500, "{slept}");
    sandbox.run(&["db", "check"]).exited(0);
}

#[test]
fn a_run_in_the_foreground_says_what_it_waits_for_and_a_rejection_fails_it() {
    let sandbox = Sandbox::new();
    sandbox.write("ask.toml", "[jobs.ask]\napproval = { prompt = \"Deploy?\" }");
    let mut engine = sandbox.spawn(&["run", "ask.toml"]);
    until_done(&sandbox, &mut engine, &["why", "1/ask"]);
    eventually("it says so", || {
        let why = sandbox.run(&["why", "1/ask"]).stdout;
        (why.contains("Deploy?") && why.contains("windlass reject 1 ask")).then_some(())
    });
    eventually("the engine says so too", || engine.stderr_so_far().contains("Deploy?").then_some(()));
    sandbox.run(&["reject", "1", "ask", "--reason", "not today", "--by", "bob"]).exited(0);
    let outcome = engine.wait().exited(1);
    assert!(outcome.stderr.contains("Deploy?"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("rejected by bob: not today"), "{}", outcome.stderr);
    let inspect = sandbox.run(&["inspect", "1"]).exited(0);
    assert!(inspect.stdout.contains("FAILED"), "{}", inspect.stdout);
}

//! Promise: a job that repeats goes on after `kill -9` at any moment, and no round that ended is forgotten.

use std::time::Duration;

use windlass_tests::Sandbox;
use windlass_tests::seed::{round_rng, seed};

/// It is done when it was executed ten times. Each round says which one it is.
const REPEATING: &str = r#"
    name = "repeating"
    [jobs.ask]
    run = 'echo round >> rounds.txt; wc -l < rounds.txt'
    output = "json"
    repeat = { until = "output >= 10", every = "100ms", max = 60 }
    [jobs.after]
    needs = ["ask"]
    env = { ROUNDS = "{{ jobs.ask.output }}" }
    run = 'test "$ROUNDS" -ge 10'
"#;

#[test]
fn rounds_killed_at_random_moments() {
    let mut rng = round_rng(seed("rounds_killed_at_random_moments"), 0);
    let sandbox = Sandbox::new();
    sandbox.write("repeating.toml", REPEATING);
    sandbox.run(&["submit", "repeating.toml"]).exited(0);
    for _kill in 0..4 {
        let mut engine = sandbox.spawn(&["resume", "1"]);
        // This is no wait for a condition: the moment of the kill is random.
        std::thread::sleep(Duration::from_millis(rng.u64(0..400)));
        engine.kill_9();
    }
    sandbox.run(&["resume", "1"]);
    let tables = sandbox.tables();
    assert_eq!(tables.run_status(1), "SUCCESSFUL");
    let ask = &tables.jobs_of(1)["ask"];
    let executed = std::fs::read_to_string(sandbox.path("rounds.txt")).unwrap_or_default().lines().count();
    assert_eq!(ask.output.as_deref(), Some(executed.to_string().as_str()));
    let counted = sandbox.run(&["inspect", "1/ask", "-o", "json"]).exited(0).json();
    let (rounds, attempts) = (counted["rounds"].as_i64().unwrap_or(-1), ask.attempt);
    let interrupted = counted["attempts"].as_array().map_or(0, Vec::len) as i64;
    assert_eq!(
        rounds + 1 + interrupted,
        attempts,
        "each attempt was a round or was interrupted: {counted:#}"
    );
    sandbox.run(&["db", "check"]).exited(0);
}

#[test]
fn why_and_inspect_say_the_round_and_the_last_round_fails() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "never.toml",
        "[jobs.a]\nrun = 'true'\nrepeat = { until = \"output is not none\", every = \"4s\", max = 2 }\n",
    );
    let mut engine = sandbox.spawn(&["run", "never.toml"]);
    windlass_tests::wait::eventually("the first round is over", || {
        assert!(engine.is_running());
        let why = sandbox.run(&["why", "1/a"]).stdout;
        (why.contains("Round 2 of at most 2 begins at") && why.contains("output is not none")).then_some(())
    });
    let inspect = sandbox.run(&["inspect", "1/a"]).exited(0).stdout;
    assert!(inspect.contains("1 of at most 2, until output is not none"), "{inspect}");
    let ended = engine.wait().exited(1);
    assert!(ended.stderr.contains("not so after 2 rounds: output is not none"), "{}", ended.stderr);
}

//! Promise: the end of a job and the variables that it sets are one, after `kill -9` at any moment too.

use std::time::Duration;

use serde_json::json;
use windlass_tests::Sandbox;
use windlass_tests::seed::{round_rng, seed};

/// Each item adds one to what it has read when it began. So the variable counts the items that have ended, unless the end of
/// an item and its variable can come apart.
const COUNTING: &str = r#"
    name = "counting"
    [jobs.add]
    for_each = { in = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], max_parallel = 1 }
    env = { COUNTED = "{{ variables.counted | default(0) }}" }
    run = 'sleep 0.05; echo $((COUNTED + 1)) > "$WINDLASS_OUTPUT"'
    set_variables = { counted = "output", last = "item" }
"#;

#[test]
fn ends_and_variables_stay_together_when_the_engine_is_killed_at_random_moments() {
    let mut rng = round_rng(seed("ends_and_variables_stay_together"), 0);
    let sandbox = Sandbox::new();
    sandbox.write("counting.toml", COUNTING);
    sandbox.run(&["submit", "counting.toml"]).exited(0);
    for _kill in 0..5 {
        let mut engine = sandbox.spawn(&["resume", "1"]);
        // This is no wait for a condition: the moment of the kill is random.
        std::thread::sleep(Duration::from_millis(rng.u64(50..400)));
        engine.kill_9();
        let tables = sandbox.tables();
        let ended: i64 =
            tables.value("SELECT count(*) FROM jobs WHERE status = 'SUCCESSFUL' AND item IS NOT NULL");
        let counted: String =
            tables.value("SELECT coalesce((SELECT value FROM variables WHERE name = 'counted'), '0')");
        assert_eq!(counted, ended.to_string(), "an item has ended without its variable, or the other way");
    }
    sandbox.run(&["resume", "1"]).exited(0);
    assert_eq!(sandbox.run(&["variable", "get", "counted"]).exited(0).stdout, "10\n");
    assert_eq!(sandbox.run(&["variable", "get", "last"]).exited(0).stdout, "10\n");
    sandbox.run(&["db", "check"]).exited(0);
}

#[test]
fn a_run_reads_what_the_one_before_it_has_set() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "load.toml",
        r#"
        [env]
        REGION = "{{ variables.region }}"
        [jobs.load]
        env = { SINCE = "{{ variables.load_until | default('2026-01-01') }}" }
        run = 'echo "$REGION since $SINCE" >&2; printf "{\"until\": \"2026-0%s-01\"}" "$((WINDLASS_RUN_ID + 1))"'
        output = "json"
        set_variables = { load_until = "output.until" }
        "#,
    );
    sandbox.run(&["run", "load.toml"]).exited(1);
    let job = sandbox.tables().jobs_of(1)["load"].clone();
    let error = job.last_error.unwrap_or_default();
    assert!(error.contains("set it with `windlass variable set region VALUE`"), "{error}");
    assert_eq!(job.attempt, 1, "it would fail again");
    sandbox.run(&["variable", "set", "region", "eu"]).exited(0);
    sandbox.run(&["retry", "1"]).exited(0);
    sandbox.run(&["run", "load.toml"]).exited(0);
    sandbox.run(&["rerun", "2"]).exited(0);
    let said = |run: &str| sandbox.run(&["logs", run]).exited(0).stdout;
    assert!(said("1").contains("eu since 2026-01-01"), "{}", said("1"));
    assert!(said("2").contains("eu since 2026-02-01"), "{}", said("2"));
    assert!(said("3").contains("eu since 2026-03-01"), "{}", said("3"));
    let listed = sandbox.run(&["variable", "list", "-o", "json"]).exited(0).json();
    let values: Vec<_> = listed
        .as_array()
        .map(|all| all.iter().map(|one| json!([one["variable"], one["value"], one["run_id"]])).collect())
        .unwrap_or_default();
    assert_eq!(values, [json!(["load_until", "2026-04-01", 3]), json!(["region", "eu", null])]);
}

#[test]
fn a_secret_is_masked_in_a_variable() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "leak.toml",
        "[secrets]\nTOKEN = { command = [\"echo\", \"very-secret-token\"] }\n[jobs.a]\nsecrets = [\"TOKEN\"]\n\
         run = 'echo \"$TOKEN\"'\noutput = \"text\"\nset_variables = { said = \"output\" }\n",
    );
    sandbox.run(&["run", "leak.toml"]).exited(0);
    assert_eq!(sandbox.run(&["variable", "get", "said"]).exited(0).stdout, "***\n");
}

#[test]
fn a_text_a_number_and_an_object_are_set_and_printed() {
    let sandbox = Sandbox::new();
    sandbox.run(&["variable", "set", "pause", "-5"]).exited(0);
    assert_eq!(sandbox.run(&["variable", "get", "pause", "-o", "json"]).exited(0).json()["value"], "-5");
    sandbox.run(&["variable", "set", "rows", "7", "--json"]).exited(0);
    assert_eq!(sandbox.run(&["variable", "get", "rows", "-o", "json"]).exited(0).json()["value"], 7);
    let no_json = sandbox.run(&["variable", "set", "rows", "{", "--json"]).exited(2);
    assert!(no_json.stderr.contains("the value is no JSON"), "{}", no_json.stderr);
    let unknown = sandbox.run(&["variable", "get", "row"]).exited(5);
    assert!(unknown.stderr.contains("did you mean `rows`?"), "{}", unknown.stderr);
    let wrong = sandbox.run(&["variable", "set", "my-rows", "7"]).exited(2);
    assert!(wrong.stderr.contains("must begin with a letter or `_`"), "{}", wrong.stderr);
    sandbox.run(&["variable", "delete", "rows"]).exited(0);
    sandbox.run(&["variable", "delete", "rows"]).exited(5);
}

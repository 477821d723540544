//! `plan`: what it shows, and that it changes nothing.

use serde_json::json;

use crate::support::Bench;

const NIGHTLY: &str = "\
name = \"nightly\"
[params]
mode = { type = \"choice\", choices = [\"full\", \"delta\"], default = \"delta\" }
regions = { type = \"list\", default = [\"eu\", \"us\"] }
[secrets]
NOWHERE_TOKEN = {}
VAULT = { command = [\"touch\", \"started\"] }
[jobs.list]
run = \"true\"
[jobs.load]
needs = [\"list\"]
for_each = \"params.regions\"
run = \"true\"
[jobs.go]
needs = [\"load\"]
if = \"params.mode == 'full'\"
run = \"true\"
[jobs.check]
needs = [\"load\"]
if = \"jobs.load.status == 'SUCCESSFUL'\"
run = \"true\"
[jobs.tell]
needs = [\"go\"]
run = \"true\"
[finally.clean]
run = \"true\"
";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("nightly.toml", NIGHTLY);
    bench
}

#[test]
fn a_plan_needs_no_database_and_makes_none() {
    let bench = bench();
    let outcome = bench.windlass(&["plan", "nightly.toml"]);
    outcome.code(0).says(&[
        "nightly: 5 jobs, 1 handler\n",
        "skipped: `if` is false: params.mode == 'full'",
        "if jobs.load.status == 'SUCCESSFUL'",
        "skipped: it needs `go`",
        "finally",
        "secret NOWHERE_TOKEN is missing: the worker has no variable `NOWHERE_TOKEN`",
        "secret VAULT is given by a program, which was not started",
    ]);
    assert!(!outcome.stdout.contains("critical path"), "{outcome:#?}");
    let mut files: Vec<_> =
        std::fs::read_dir(bench.folder()).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["nightly.toml"]);
    let full = bench.windlass(&["plan", "nightly.toml", "-p", "mode=full", "-p", "regions=a,b,c"]);
    assert!(!full.code(0).stdout.contains("skipped"), "{full:#?}");
    bench.windlass(&["plan", "nightly.toml", "-p", "mode=ful"]).code(2).tells(&["mode"]);
}

#[test]
fn the_times_of_the_last_runs_are_shown_and_nothing_is_changed() {
    let bench = bench();
    for _run in 0..2 {
        bench.windlass(&["run", "nightly.toml"]).code(0);
    }
    let state = || {
        let verbs: [&[&str]; 4] = [&["runs"], &["jobs", "--limit", "100"], &["stats"], &["workflows"]];
        verbs.map(|verb| bench.json(verb))
    };
    let before = state();
    let plan = bench.json(&["plan", "nightly.toml"]);
    assert_eq!(state(), before);
    let runs: Vec<_> = plan["runs"].as_array().unwrap().iter().map(|run| &run["run_id"]).collect();
    assert_eq!(runs, [&json!(2), &json!(1)]);
    let path = &plan["critical_path"]["jobs"];
    assert_eq!(path, &json!(["list", "load", "check"]));
    let forecasts: Vec<_> = plan["jobs"].as_array().unwrap().iter().map(|job| &job["forecast"]).collect();
    assert_eq!(json!(forecasts), json!(["runs", "runs", "skipped", "undecided", "skipped", "runs"]));
    assert_eq!(plan["jobs"][1]["items"], 2);
    assert!(plan["jobs"][0]["duration_ms"].is_i64(), "{plan:#}");
    assert_eq!(plan["secrets"][1], json!({ "secret": "VAULT", "found": null, "reason": null }));
    bench.windlass(&["plan", "nightly.toml"]).code(0).says(&["last 2 runs, median", "critical path, about"]);
}

#[test]
fn a_registered_workflow_has_a_plan() {
    let bench = bench();
    bench.windlass(&["apply", "nightly.toml"]).code(0);
    bench.windlass(&["plan", "nightly"]).code(0).says(&["nightly: 5 jobs"]);
    bench.windlass(&["plan", "nigthly"]).code(5).tells(&["nightly"]);
}

#[test]
fn a_plan_shows_rules_and_failures_that_are_allowed_and_a_check_counts_triggers() {
    let bench = Bench::new();
    let file = "name = \"a\"\n[[triggers]]\nevent = \"push\"\n[jobs.a]\nrun = \"true\"\nallow_failure = true\n\
                [jobs.b]\nneeds = \"a\"\nwhen = \"all_finished\"\nrun = \"true\"\n";
    bench.write("a.toml", file);
    bench.windlass(&["plan", "a.toml"]).code(0).says(&["may fail", "when all_finished"]);
    let jobs = &bench.json(&["plan", "a.toml"])["jobs"];
    assert_eq!((&jobs[0]["when"], &jobs[0]["allow_failure"]), (&json!("all_successful"), &json!(true)));
    assert_eq!((&jobs[1]["when"], &jobs[1]["allow_failure"]), (&json!("all_finished"), &json!(false)));
    bench.windlass(&["validate", "a.toml"]).code(0).says(&["2 jobs and 1 dependency, 1 trigger"]);
}

#[test]
fn a_plan_shows_how_many_runs_may_be_active() {
    let bench = Bench::new();
    let file = "name = \"a\"\nconcurrency = { key = \"a-{{ params.region }}\", limit = 2, on_full = \"skip\" }\n\
                [params]\nregion = { default = \"eu\" }\n[jobs.a]\nrun = \"true\"\n";
    bench.write("a.toml", file);
    let says = "at most 2 active runs with the key a-eu; one more is skipped\n";
    bench.windlass(&["plan", "a.toml"]).code(0).says(&[says]);
    let plan = bench.json(&["plan", "a.toml", "-p", "region=us"]);
    assert_eq!(plan["concurrency"], json!({ "key": "a-us", "limit": 2, "on_full": "skip" }));
    bench.write("b.toml", "name = \"b\"\n[jobs.a]\nrun = \"true\"\n");
    assert_eq!(bench.json(&["plan", "b.toml"])["concurrency"], json!(null));
}

//! `validate` and `graph` of files.

use serde_json::json;

use crate::support::{Bench, GOOD};

const WRONG: &str =
    "name = \"wrong\"\n[jobs.a]\nrun = \"true\"\nneeds = [\"bb\"]\n[jobs.b]\nrunn = \"true\"\n";

#[test]
fn a_valid_file_is_reported_valid() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["validate", "good.toml"]).code(0).says(&["good.toml: valid", "`good`", "2 jobs"]);
    let report = bench.json(&["validate", "good.toml"]);
    assert_eq!((&report[0]["file"], &report[0]["valid"]), (&json!("good.toml"), &json!(true)));
    assert_eq!(report[0]["errors"], json!([]));
}

#[test]
fn an_error_in_an_included_file_names_that_file() {
    let bench = Bench::new();
    bench.write("top.toml", "include = 'common.toml'\n[jobs.a]\nrun = 'echo $GREETING'\n");
    bench.write("common.toml", "[env]\nGREETING = 'hello'\n");
    bench.windlass(&["run", "top.toml"]).code(0);
    bench.windlass(&["logs", "1"]).code(0).says(&["hello"]);
    bench.write("common.toml", "[env]\nGREETING = ['hello']\n");
    bench.windlass(&["run", "top.toml"]).code(2).tells(&["common.toml:2:12"]);
    let report = bench.json(&["validate", "top.toml"]);
    assert_eq!(
        (&report[0]["errors"][0]["place"]["file"], &report[0]["errors"][0]["place"]["line"]),
        (&json!("common.toml"), &json!(2))
    );
    std::fs::remove_file(bench.path("common.toml")).unwrap();
    bench.windlass(&["validate", "top.toml"]).code(2).tells(&["top.toml:1:11", "common.toml does not exist"]);
    bench.windlass(&["validate", "common.toml"]).code(2);
}

/// All files are checked as `apply` would: those for other files to include are left out, and names are unique.
#[test]
fn the_files_of_a_folder_are_validated_with_a_summary() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("flows/deep")).unwrap();
    bench.windlass(&["validate", "flows"]).code(2).tells(&["there are no workflow files in that folder"]);
    bench.write("flows/good.toml", &format!("include = 'common.toml'\n{GOOD}"));
    bench.write("flows/common.toml", "[env]\nGREETING = 'hello'\n");
    bench.write("flows/windlass.toml", "threads = 1\n");
    bench.write("flows/deep/other.json", r#"{"jobs": {"a": {"run": "x"}}}"#);
    let outcome = bench.windlass(&["validate", "flows"]);
    outcome.code(0).says(&["flows/deep/other.json: valid", "flows/good.toml: valid"]);
    outcome.tells(&["all 2 files are valid"]);
    bench.write("flows/wrong.toml", WRONG);
    bench.write("flows/deep/twin.toml", "name = 'good'\n[jobs.a]\nrun = 'x'\n");
    let outcome = bench.windlass(&["validate", "flows"]);
    outcome.code(2).says(&["flows/deep/other.json: valid"]);
    outcome.tells(&[
        "flows/deep/twin.toml and flows/good.toml both define the workflow `good`",
        "flows/wrong.toml:4:10",
    ]);
    outcome.tells(&["3 of 4 files are invalid"]);
    assert_eq!(outcome.stderr.matches("both define").count(), 1, "{outcome:#?}");
    let report = bench.windlass(&["validate", "flows", "-o", "json"]).code(2).stdout.clone();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let valid: Vec<_> =
        report.as_array().unwrap().iter().map(|file| file["valid"].as_bool().unwrap()).collect();
    assert_eq!(valid, [true, false, false, false]);
}

#[test]
fn warnings_are_shown_and_are_errors_only_with_strict() {
    let bench = Bench::new();
    bench.write("good.toml", "[jobs.a]\nrun = 'x'\n");
    bench.write("odd.toml", "secrets = { TOKEN = {} }\n[jobs.a]\nrun = 'x'\n");
    let outcome = bench.windlass(&["validate", "odd.toml", "good.toml"]);
    outcome.code(0).says(&["odd.toml: valid", "good.toml: valid"]).tells(&[
        "no job uses the secret `TOKEN`",
        "odd.toml:1:13",
        "1 warning",
    ]);
    let strict = bench.windlass(&["validate", "--strict", "odd.toml", "good.toml"]);
    strict.code(2).tells(&["no job uses the secret `TOKEN`", "1 of 2 files"]);
    bench.windlass(&["validate", "--strict", "good.toml"]).code(0);
    let report = bench.json(&["validate", "odd.toml"]);
    assert_eq!((&report[0]["valid"], &report[0]["errors"]), (&json!(true), &json!([])));
    assert_eq!(report[0]["warnings"][0]["place"]["column"], 13);
    let report = bench.windlass(&["validate", "--strict", "odd.toml", "-o", "json"]).code(2).stdout.clone();
    assert!(report.contains("\"valid\": false"), "{report}");
}

#[test]
fn every_error_of_every_file_is_shown_at_once() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.write("wrong.toml", WRONG);
    let outcome = bench.windlass(&["validate", "wrong.toml", "good.toml", "missing.toml"]);
    outcome.code(2).says(&["good.toml: valid"]).tells(&[
        "wrong.toml:4:",
        "bb",
        "wrong.toml:6:",
        "runn",
        "missing.toml does not exist",
        "2 of 3 files",
    ]);
    let lines = bench.windlass(&["validate", "wrong.toml", "good.toml", "-o", "jsonl"]);
    assert_eq!(lines.code(2).stdout.lines().count(), 2, "{lines:#?}");
}

#[test]
fn errors_as_json_have_lines() {
    let bench = Bench::new();
    bench.write("wrong.toml", WRONG);
    let report = bench.json(&["validate", "wrong.toml", "missing.toml"]);
    assert_eq!(report[0]["valid"], false);
    assert_eq!(report[0]["errors"][0]["place"]["line"], 4);
    assert!(report[0]["errors"][0]["place"]["column"].is_u64(), "{report}");
    assert!(report[0]["errors"][0]["message"].as_str().unwrap().contains("bb"), "{report}");
    assert_eq!(report[0]["errors"][0]["next_step"], "did you mean `b`?");
    assert_eq!(report[1]["errors"][0]["place"]["line"], json!(null));
}

#[test]
fn an_invalid_file_is_not_run() {
    let bench = Bench::new();
    bench.write("wrong.toml", WRONG);
    for verb in ["run", "submit", "graph"] {
        let outcome = bench.windlass(&[verb, "wrong.toml"]);
        outcome.code(2).tells(&["wrong.toml:4:", "help: ", "windlass validate wrong.toml"]);
        assert_eq!(outcome.stdout, "");
    }
    assert!(!bench.database.exists(), "no database is made for nothing");
}

#[test]
fn a_file_as_a_graph() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["graph", "good.toml"]).code(0).says(&["fetch", "report", "needs fetch"]);
    bench.windlass(&["graph", "good.toml", "--format", "mermaid"]).code(0).says(&["flowchart", "fetch"]);
    bench.windlass(&["graph", "good.toml", "--format", "dot"]).code(0).says(&["digraph", "fetch"]);
    bench.windlass(&["graph", "good.toml", "--format", "svg"]).code(0).says(&["<svg", "fetch", "</svg>"]);
    bench.windlass(&["graph", "good.toml", "-o", "json"]).fails(2, &["--format"]);
}

#[test]
fn a_run_as_a_graph_shows_its_states() {
    let bench = Bench::new();
    bench.write("bad.toml", crate::support::BAD);
    bench.windlass(&["run", "bad.toml"]).code(1);
    bench.windlass(&["graph", "1"]).code(0).says(&["load", "FAILED", "after", "SKIPPED"]);
    bench.windlass(&["graph", "7"]).fails(5, &["run 7 does not exist"]);
}

//! `test`: its lines, its JSON and its exit codes.

use crate::support::Bench;

const NIGHTLY: &str = "\
name = \"nightly\"
[params]
day = { type = \"date\" }
[jobs.load]
run = \"./load.sh\"
output = \"json\"
retry = { max_attempts = 2, delay = \"1m\", jitter = 0 }
[jobs.report]
needs = [\"load\"]
if = \"jobs.load.output.rows > 0\"
http = \"https://example.com/{{ params.day }}\"
";

const CASES: &str = "\
[[case]]
name = \"the second attempt succeeds\"
params = { day = \"2026-11-20\" }
[case.jobs.load]
attempts = [{ exit_code = 1, takes = \"2m\" }, { output = { rows = 7 }, takes = \"5m\" }]
[case.jobs.report]
attempts = [{}]
[case.expect.jobs]
load = { status = \"SUCCESSFUL\", attempts = 2 }
report = \"SUCCESSFUL\"
";

const FAILING: &str = "\
[[case]]
name = \"always refused\"
params = { day = \"2026-11-20\" }
[case.jobs.load]
attempts = [{ exit_code = 7, error = \"no connection\" }]
[case.expect.jobs]
report = \"SUCCESSFUL\"
";

fn bench(cases: &str) -> Bench {
    let bench = Bench::new();
    bench.write("nightly.toml", NIGHTLY);
    bench.write("nightly.test.toml", cases);
    bench
}

#[test]
fn a_case_is_one_line_and_touches_no_database() {
    let bench = bench(CASES);
    for file in ["nightly.toml", "nightly.test.toml"] {
        let outcome = bench.windlass(&["test", file]);
        assert_eq!(outcome.code(0).stdout, "ok    nightly.test.toml: the second attempt succeeds (8m 00s)\n");
        outcome.tells(&["1 case passed"]);
    }
    assert!(!bench.path("windlass.db").exists());
}

#[test]
fn what_differs_is_shown_with_the_error_of_the_job() {
    let bench = bench(&format!("{FAILING}{CASES}"));
    let outcome = bench.windlass(&["test", "nightly.toml"]);
    outcome.code(1).tells(&["1 of 2 cases failed"]);
    let expected = "\
FAIL  nightly.test.toml: always refused (1m 00s)
      run, status: expected SUCCESSFUL, found FAILED
        load: exit code 7: no connection
      job report, status: expected SUCCESSFUL, found SKIPPED
        skipped: `load` is FAILED
ok    nightly.test.toml: the second attempt succeeds (8m 00s)
";
    assert_eq!(outcome.stdout, expected);
}

#[test]
fn crashes_are_tried_after_each_commit() {
    let bench = bench(CASES);
    let outcome = bench.windlass(&["test", "nightly.toml", "--crash-everywhere"]);
    outcome.code(0).says(&[
        "ended after each of ",
        "began again, safe only if the job is: load",
        "began again, safe to repeat: report",
    ]);
    assert!(!outcome.stderr.contains("ERROR"), "{outcome:#?}");
    let cases = bench.json(&["test", "nightly.toml", "--crash-everywhere"]);
    let crashes = &cases[0]["crashes"];
    assert_eq!((&crashes["tried"], &crashes["differences"]), (&crashes["commits"], &serde_json::json!([])));
    assert_eq!(crashes["repeated"][0], serde_json::json!({ "job": "load", "safe": false }));
}

#[test]
fn invalid_files_run_no_case() {
    let bench = bench(&CASES.replace("attempts = [{}]", "atempts = [{}]"));
    let errors = ["nightly.test.toml:7:1", "did you mean `attempts`?"];
    bench.windlass(&["test", "nightly.toml"]).code(2).tells(&errors);
    bench.windlass(&["validate", "nightly.test.toml"]).code(2).tells(&errors);
    bench.write("other.toml", NIGHTLY);
    bench.windlass(&["test", "other.toml"]).code(2).tells(&["there is no test file other.test.toml"]);
    bench.write("alone.test.toml", CASES);
    bench.windlass(&["test", "alone.test.toml"]).code(2).tells(&["there is no workflow file"]);
    bench.write("other.test.toml", CASES);
    let outcome = bench.windlass(&["test", "other.toml", "nightly.toml"]);
    assert_eq!(outcome.code(2).stdout, "");
    outcome.tells(&["1 of 2 files are invalid; no case was run"]);
    bench.windlass(&["validate", "other.test.toml"]).code(0).says(&["valid, a test file"]);
}

#[test]
fn test_files_are_not_registered() {
    let bench = bench(CASES);
    bench.windlass(&["apply", "."]).code(0).says(&["nightly: created version 1\n"]);
    let named = bench.windlass(&["apply", "nightly.toml", "nightly.test.toml"]);
    assert_eq!(named.code(0).stdout, "nightly: unchanged, version 1\n");
}

#[test]
fn a_workflow_that_is_called_by_its_name_is_found_in_the_folder() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("flows/sub")).unwrap();
    bench.write(
        "flows/top.toml",
        "name = \"top\"\n[jobs.a]\nworkflow = \"load\"\nparams = { table = [\"x\"] }\n",
    );
    let case = "[[case]]\nname = \"one\"\n[case.jobs.\"a/copy\"]\nattempts = [{ exit_code = 1 }, {}]\n\
                [case.expect.jobs]\n\"a/copy\" = { status = \"SUCCESSFUL\", attempts = 2 }\n";
    bench.write("flows/top.test.toml", case);
    let missing = "job `a` calls `load`, and no valid workflow file of ";
    bench.windlass(&["test", "flows/top.toml"]).fails(2, &[missing]);

    let load = "name = \"load\"\nparams = { table = { type = \"list\" } }\n[jobs.copy]\nrun = \"exit 9\"\nretry = 2\n";
    bench.write("flows/sub/other.toml", load);
    bench.write("flows/broken.toml", "name = \"broken\"\n[jobs.a]\nrnu = \"x\"\n");
    bench.windlass(&["test", "flows/top.toml"]).code(0);
    bench.windlass(&["validate", "flows/top.test.toml"]).code(0);

    bench.write("flows/again.toml", load);
    bench.windlass(&["test", "flows/top.toml"]).fails(2, &["both define the workflow `load`"]);
}

/// A job with `for_each` only says which item failed.
#[test]
fn the_error_of_a_run_is_that_of_the_item_that_failed() {
    let bench = Bench::new();
    bench.write(
        "copies.toml",
        "name = \"copies\"\n[jobs.copy]\nfor_each = [\"x\", \"y\"]\nrun = \"exit 9\"\n",
    );
    bench.write(
        "copies.test.toml",
        "[[case]]\nname = \"one\"\n[case.jobs.copy]\nattempts = [{ exit_code = 1, error = \"no space\" }]\n",
    );
    let outcome = bench.windlass(&["test", "copies.toml"]);
    let said = "run, status: expected SUCCESSFUL, found FAILED\n        copy[0]: exit code 1: no space\n";
    assert!(outcome.code(1).stdout.contains(said), "{}", outcome.stdout);
}

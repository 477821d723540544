//! Retrying a run after its file was edited.

use crate::support::{Bench, Running};
use serde_json::json;

const ETL: &str = "name = 'etl'
params = { day = { default = 'monday' } }
[jobs.extract]
run = 'echo extract'
[jobs.load]
needs = ['extract']
run = 'exit 3'
[jobs.report]
needs = ['load']
run = 'echo report'
";

fn fixed() -> String {
    format!("{}[jobs.extra]\nrun = 'echo extra'\n", ETL.replace("exit 3", "echo loaded"))
}

/// The names and attempts of the jobs of a run.
fn attempts(bench: &Bench, run: &str) -> Vec<(String, i64)> {
    let run = bench.json(&["inspect", run]);
    let jobs = run["jobs"].as_array().unwrap().iter();
    jobs.map(|job| (job["job"].as_str().unwrap().to_owned(), job["attempt"].as_i64().unwrap())).collect()
}

#[test]
fn a_retry_says_that_the_file_has_changed_and_latest_uses_it() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("flows")).unwrap();
    bench.write("flows/etl.toml", ETL);
    bench.windlass(&["run", "flows/etl.toml"]).code(1);
    let same = bench.windlass(&["retry", "1"]);
    assert!(!same.code(1).stderr.contains("has changed"), "{same:#?}");
    bench.write("flows/etl.toml", &format!("# A comment is no difference.\n{ETL}"));
    assert!(!bench.windlass(&["retry", "1"]).code(1).stderr.contains("has changed"));
    bench.write("flows/etl.toml", &fixed());
    bench.windlass(&["retry", "1"]).code(1).tells(&[
        "flows/etl.toml has changed since run 1 (2 jobs differ); --latest uses it\nrerunning 2 jobs",
    ]);
    bench.windlass(&["retry", "1", "--latest"]).code(0).tells(&[
        "run 1 goes on with flows/etl.toml, its definition 2: changed load, added extra",
        "rerunning 3 jobs of run 1",
    ]);
    let expected = [("extract", 1), ("load", 5), ("report", 1), ("extra", 1)];
    assert_eq!(attempts(&bench, "1"), expected.map(|(name, attempt)| (name.to_owned(), attempt)));
    let definitions = &bench.json(&["inspect", "1"])["definitions"];
    let said = |field: &str| -> Vec<_> {
        definitions.as_array().unwrap().iter().map(|definition| definition[field].clone()).collect()
    };
    assert_eq!(said("number"), [1, 2]);
    assert_eq!(said("verb"), ["run", "retry"]);
    assert_eq!(said("file"), ["flows/etl.toml", "flows/etl.toml"]);
    let path = bench.path("flows/etl.toml").canonicalize().unwrap();
    assert_eq!(said("path"), [path.to_str().unwrap(); 2]);
    assert_ne!(said("file_hash")[0], said("file_hash")[1]);
    bench.windlass(&["inspect", "1"]).code(0).says(&[
        "DEFINITION",
        "1  run",
        "2  retry",
        "flows/etl.toml",
        "JOB",
    ]);
    bench.windlass(&["db", "check"]).code(0);
}

#[test]
fn a_run_that_succeeded_goes_on_with_what_changed() {
    let bench = Bench::new();
    let file = ETL.replace("exit 3", "echo loaded");
    bench.write("etl.toml", &file);
    bench.windlass(&["run", "etl.toml"]).code(0);
    bench.windlass(&["inspect", "1"]).code(0).says(&["from", "etl.toml"]);
    bench.windlass(&["retry", "1", "--latest"]).fails(2, &["none of its jobs failed", "inspect 1"]);
    bench.write("etl.toml", &file.replace("echo report", "echo report 2"));
    let refused = bench.windlass(&["retry", "1"]);
    refused.code(2).tells(&["etl.toml has changed since run 1 (1 job differs)", "run 1 is SUCCESSFUL"]);
    bench
        .windlass(&["retry", "1", "--latest"])
        .code(0)
        .tells(&["changed report", "rerunning 1 job of run 1"]);
    bench.write("etl.toml", &file);
    bench.windlass(&["retry", "1", "--latest", "--from", "load"]).code(0).tells(&["its definition 3"]);
    assert_eq!(attempts(&bench, "1").iter().map(|(_name, attempt)| *attempt).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn another_file_is_used_and_a_definition_that_does_not_fit_is_refused() {
    let bench = Bench::new();
    bench.write("etl.toml", ETL);
    bench.windlass(&["run", "etl.toml", "--only", "extract,load"]).code(1);
    assert_eq!(bench.json(&["inspect", "1"])["definitions"][0]["only"], json!(["extract", "load"]));
    bench.write("other.toml", "[jobs.load]\nrun = 'true'\n");
    bench
        .windlass(&["retry", "1", "--with", "other.toml"])
        .fails(2, &["one of workflow `other`", "one of `etl`"]);
    bench.write("other.toml", "name = 'etl'\n[jobs.load]\nrun = 'true'\n");
    bench
        .windlass(&["retry", "1", "--with", "other.toml"])
        .fails(2, &["job `extract` succeeded, and the new definition does not have it"]);
    bench.windlass(&["retry", "1", "--with", "none.toml"]).fails(2, &["none.toml does not exist"]);
    bench.windlass(&["retry", "1", "--with", "other.toml", "--latest"]).fails(2, &["cannot be used with"]);
    // The same part of the file is used.
    bench.write("etl.toml", &fixed());
    bench.windlass(&["retry", "1"]).code(1).tells(&["(1 job differs)"]);
    bench.windlass(&["retry", "1", "--latest"]).code(0).tells(&["changed load\n"]);
    bench.write("etl.toml", "rum");
    bench
        .windlass(&["retry", "1", "--from", "load"])
        .code(0)
        .tells(&["has changed since run 1 was retried and has errors now"]);
    bench.windlass(&["retry", "1", "--latest"]).code(2);
    std::fs::remove_file(bench.path("etl.toml")).unwrap();
    bench.windlass(&["retry", "1", "--from", "load"]).code(0);
    bench.windlass(&["retry", "1", "--latest"]).fails(2, &["etl.toml does not exist"]);
    bench.write(
        "etl.toml",
        "name = 'etl'\nparams = { hour = {} }\n[jobs.extract]\nrun = 'x'\n[jobs.load]\nrun = 'true'\n",
    );
    bench.windlass(&["retry", "1", "--with", "etl.toml"]).fails(2, &["`hour` is required"]);
}

#[test]
fn the_latest_of_a_registered_workflow_is_its_active_version() {
    let bench = Bench::new();
    bench.write("etl.toml", ETL);
    bench.windlass(&["apply", "etl.toml"]).code(0);
    bench.windlass(&["run", "etl"]).code(1);
    assert_eq!(bench.json(&["inspect", "1"])["definitions"][0]["version"], 1);
    bench.write("etl.toml", &fixed());
    bench.windlass(&["apply", "etl.toml"]).code(0);
    bench
        .windlass(&["retry", "1"])
        .code(1)
        .tells(&["workflow `etl` has changed since run 1 (2 jobs differ)"]);
    bench.windlass(&["retry", "1", "--latest"]).code(0).tells(&["goes on with version 2 of workflow `etl`"]);
    let versions = bench.json(&["inspect", "1"]);
    assert_eq!(
        (&versions["definitions"][0]["version"], &versions["definitions"][1]["version"]),
        (&json!(1), &json!(2))
    );
    bench.windlass(&["workflows", "remove", "etl"]).code(0);
    bench
        .windlass(&["retry", "1", "--latest", "--from", "load"])
        .fails(2, &["run 1 did not come from a file or a registered workflow", "--with FILE"]);
}

#[test]
fn a_rerun_knows_the_file_too() {
    let bench = Bench::new();
    bench.write("etl.toml", ETL);
    bench.windlass(&["run", "etl.toml"]).code(1);
    bench.windlass(&["rerun", "1"]).code(1);
    let definition = &bench.json(&["inspect", "2"])["definitions"][0];
    assert_eq!((&definition["verb"], &definition["file"]), (&json!("rerun"), &json!("etl.toml")));
    bench.write("etl.toml", &fixed());
    bench.windlass(&["retry", "2", "--latest"]).code(0).tells(&["run 2 goes on with etl.toml"]);
}

/// A worker remembers the environment of the run whose job it executed last.
#[test]
fn a_worker_that_knows_the_run_executes_its_next_definition() {
    let bench = Bench::new();
    let file =
        "name = 'etl'\nenv = { MODE = 'first' }\n[jobs.load]\nrun = 'echo mode $MODE; test $MODE = second'\n";
    bench.write("etl.toml", file);
    let mut worker = bench.start(&["worker", "--threads", "1"]);
    bench.windlass(&["submit", "etl.toml"]).code(0);
    let ended = |status: &str| {
        bench.wait_for(status, || (bench.json(&["inspect", "1"])["status"] == status).then_some(()));
    };
    ended("FAILED");
    bench.write("etl.toml", &file.replace("MODE = 'first'", "MODE = 'second'"));
    bench.windlass(&["retry", "1", "--latest", "--detach"]).code(0);
    ended("SUCCESSFUL");
    bench.windlass(&["logs", "1", "load"]).code(0).says(&["mode second"]);
    worker.child.kill().unwrap();
    worker.wait();
}

#[test]
fn a_preview_of_a_retry_names_the_jobs_and_the_reasons() {
    let bench = Bench::new();
    let file = |load: &str, env: &str| {
        format!(
            "name = 'etl'\nenv = {{ LEVEL = '{env}' }}\n[jobs.extract]\nrun = 'true'\nenv = {{ LEVEL = '9' }}\n\
             [jobs.load]\nneeds = ['extract']\nrun = '{load}'\n[jobs.report]\nneeds = ['load']\nrun = 'true'\n"
        )
    };
    bench.write("etl.toml", &file("exit 3", "1"));
    bench.windlass(&["run", "etl.toml"]).code(1);
    let preview = bench.windlass(&["retry", "1", "--dry-run"]);
    preview
        .code(0)
        .says(&["JOB", "WHY", "load", "it is FAILED", "report", "it needs `load`"])
        .tells(&["2 jobs of run 1 would run again"]);
    bench.write("etl.toml", &file("true", "2"));
    bench
        .windlass(&["retry", "1", "--latest", "--dry-run"])
        .code(0)
        .says(&["load", "it does something else now", "report"])
        .tells(&["run 1 would go on with etl.toml: changed load, report", "2 jobs of run 1"]);
    let from = bench.json(&["retry", "1", "--from", "extract", "--dry-run"]);
    assert_eq!((&from["run_id"], &from["jobs"][0]["reason"]), (&json!(1), &json!("named")));
    assert_eq!((&from["jobs"][1]["reason"], &from["jobs"][1]["after"]), (&json!("after"), &json!("extract")));
    let run = bench.json(&["inspect", "1"]);
    assert_eq!((&run["status"], run["definitions"].as_array().unwrap().len()), (&json!("FAILED"), 1));
    bench.windlass(&["retry", "1", "--latest"]).code(0).tells(&["rerunning 2 jobs of run 1"]);
}

#[test]
fn a_run_goes_on_with_a_definition_from_standard_input() {
    let bench = Bench::new();
    let text = "name = 'etl'\n[jobs.load]\nrun = 'exit 3'\n";
    bench.write("etl.toml", text);
    bench.windlass(&["run", "etl.toml"]).code(1);
    bench.write("corrected", &text.replace("exit 3", "true"));
    let retry = |arguments: &[&str]| {
        let mut command = bench.command();
        command.args(arguments).stdin(std::fs::File::open(bench.path("corrected")).unwrap());
        Running::start(command).wait()
    };
    retry(&["retry", "1", "--with", "-", "--detach"])
        .code(0)
        .tells(&["run 1 goes on with standard input, its definition 2: changed load"]);
    bench.windlass(&["resume", "1"]).code(0);
    bench
        .windlass(&["retry", "1", "--latest"])
        .fails(2, &["did not come from a file or a registered workflow", "retry 1 --with FILE"]);
    bench
        .windlass(&["retry", "1", "--with", "etl.toml", "--format", "yaml"])
        .fails(2, &["--format is for standard input"]);
}

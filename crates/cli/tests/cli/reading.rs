//! The verbs that read: `runs`, `inspect`, `logs`, `stats`.

use serde_json::json;

use crate::support::{BAD, Bench, GOOD, Running};

fn bench_with_two_runs() -> Bench {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.write("bad.toml", BAD);
    bench.windlass(&["run", "good.toml"]).code(0);
    bench.windlass(&["run", "bad.toml"]).code(1);
    bench
}

#[test]
fn runs_are_listed_newest_first_and_filtered() {
    let bench = bench_with_two_runs();
    bench.windlass(&["runs"]).code(0).says(&[
        "RUN",
        "  2  bad",
        "FAILED",
        "1/3 failed",
        "  1  good",
        "SUCCESSFUL",
    ]);
    let ids = |arguments: &[&str]| -> Vec<i64> {
        let runs = bench.json(arguments);
        runs.as_array().unwrap().iter().map(|run| run["run_id"].as_i64().unwrap()).collect()
    };
    assert_eq!(ids(&["runs"]), [2, 1]);
    assert_eq!(ids(&["runs", "--status", "successful"]), [1]);
    assert_eq!(ids(&["runs", "--workflow", "bad"]), [2]);
    assert_eq!(ids(&["runs", "--limit", "1"]), [2]);
    bench.write("tagged.toml", &format!("tags = ['etl', 'daily']\n{GOOD}"));
    bench.windlass(&["run", "tagged.toml"]).code(0);
    assert_eq!(ids(&["runs", "--tag", "etl"]), [3]);
    assert_eq!(ids(&["runs", "--tag", "daily", "--status", "failed"]), [0; 0]);
    assert_eq!(bench.json(&["runs", "-n", "1"])[0]["tags"], json!(["daily", "etl"]));
    bench.windlass(&["inspect", "3"]).code(0).says(&["tags", "daily, etl"]);
    bench.windlass(&["apply", "tagged.toml"]).code(0);
    assert_eq!(bench.json(&["workflows"])[0]["tags"], json!(["daily", "etl"]));
    bench.windlass(&["workflows", "show", "good"]).code(0).says(&["tags", "daily, etl"]);
    bench.windlass(&["runs", "--workflow", "none"]).code(0).tells(&["no run matches"]);
    bench.windlass(&["runs", "--status", "done"]).fails(2, &["'done'", "FAILED"]);
    bench.windlass(&["runs", "--limit", "0"]).fails(2, &["0 is not in"]);
}

#[test]
fn inspecting_a_run_shows_outcome_timings_and_failures() {
    let bench = bench_with_two_runs();
    bench.windlass(&["inspect", "2"]).code(0).says(&[
        "run 2  bad  FAILED",
        "took",
        "1 successful, 1 failed, 1 skipped",
        "JOB",
        "START",
        "ATTEMPTS",
        "load",
        "FAILED",
        "exit code 3",
        "✗ load failed: exit code 3",
        "    | boom",
        "windlass retry 2",
    ]);
    bench.windlass(&["inspect", "1"]).code(0).says(&["SUCCESSFUL", "day=2026-11-20", "report of 2026-11-20"]);
}

#[test]
fn inspecting_a_job_by_each_address() {
    let bench = bench_with_two_runs();
    for address in ["2/load", "j3"] {
        bench.windlass(&["inspect", address]).code(0).says(&[
            "job j3  2/load  FAILED",
            "error",
            "exit code 3",
            "OUTCOME",
            "failed",
            "| boom",
        ]);
    }
    bench.windlass(&["inspect", "77"]).fails(5, &["run 77 does not exist", "the newest is run 2"]);
    bench.windlass(&["inspect", "j77"]).fails(5, &["job j77 does not exist", "windlass jobs"]);
    bench.windlass(&["inspect", "2/laod"]).fails(5, &["no job `laod`", "did you mean `load`"]);
    bench.windlass(&["inspect", "7/load"]).fails(5, &["run 7 does not exist"]);
    bench.windlass(&["inspect", "2/"]).fails(2, &["missing after `2/`", "3/build"]);
}

#[test]
fn logs_are_prefixed_when_there_are_several_jobs() {
    let bench = bench_with_two_runs();
    let all = bench.windlass(&["logs", "1"]);
    all.code(0).says(&["fetch  | fetched\n"]).says(&["report | report of 2026-11-20\n"]);
    for arguments in [&["logs", "1", "fetch"][..], &["logs", "1/fetch"], &["logs", "j1"]] {
        let one = bench.windlass(arguments);
        let mut lines: Vec<&str> = one.code(0).stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["fetched", "warned"], "{arguments:?}");
    }
    bench.windlass(&["logs", "1", "-f"]).code(0).says(&["fetch  | fetched\n"]);
    bench.windlass(&["logs", "1", "fetsh"]).fails(5, &["no job `fetsh`", "did you mean `fetch`"]);
    bench.windlass(&["logs", "9"]).fails(5, &["run 9 does not exist"]);
    bench
        .windlass(&["logs", "j1", "x"])
        .fails(2, &["`j1` is a job, and `x` names another job", "3/x or latest/x"]);
    bench.windlass(&["logs", "1", "-f", "-o", "json"]).fails(2, &["-o jsonl"]);
}

#[test]
fn logs_of_one_attempt() {
    let bench = Bench::new();
    bench.write(
        "flaky.toml",
        r#"
        name = "flaky"
        [jobs.flaky]
        run = "echo try $WINDLASS_ATTEMPT; test $WINDLASS_ATTEMPT -ge 2"
        retry = { max_attempts = 2, delay = "1ms" }
        "#,
    );
    bench.windlass(&["run", "flaky.toml"]).code(0);
    assert_eq!(bench.windlass(&["logs", "1"]).stdout, "try 1\n── attempt 2 ──\ntry 2\n");
    assert_eq!(bench.windlass(&["logs", "1", "--attempt", "1"]).stdout, "try 1\n");
    let other = bench.windlass(&["logs", "1", "--attempt", "7"]);
    assert_eq!(other.code(0).stdout, "");
    other.tells(&["no output was written"]);
}

#[test]
fn output_cannot_repaint_the_terminal() {
    let bench = Bench::new();
    bench.write(
        "paint.toml",
        "name = \"paint\"\n[jobs.a]\nrun = '''printf '\\033[2J\\033[31mred\\033[0m\\n'; exit 1'''\n",
    );
    let run = bench.windlass(&["run", "paint.toml"]);
    let logs = bench.windlass(&["logs", "1"]);
    assert_eq!(run.code(1).stdout, "red\n");
    assert_eq!(logs.stdout, "red\n");
    let raw = bench.json(&["logs", "1"]);
    assert!(raw[0]["text"].as_str().unwrap().contains("red"), "{raw}");
}

#[test]
fn stats_count_everything() {
    let bench = bench_with_two_runs();
    bench.windlass(&["stats"]).code(0).says(&[
        "STATUS",
        "JOBS",
        "RUNS",
        "SUCCESSFUL",
        "3",
        "1",
        "no worker is running",
    ]);
    let stats = bench.json(&["stats"]);
    assert_eq!(stats["job_counts"]["skipped"], 1);
    assert_eq!(stats["job_counts"]["blocked"], 0);
    assert_eq!(
        stats["run_counts"],
        json!({"total": 2, "pending": 0, "running": 0, "successful": 1, "failed": 1, "cancelled": 0})
    );
    assert_eq!(stats["workers"], json!([]));
    assert_eq!(stats["at_least"], json!({"jobs": [], "runs": []}));
    assert_eq!(stats, bench.json(&["stats", "--exact"]));
}

#[test]
fn a_list_of_runs_goes_on_below_a_number() {
    let bench = bench_with_two_runs();
    let page = bench.json(&["runs", "-n", "5", "--before", "2"]);
    assert_eq!((page[0]["run_id"].as_i64(), page[1].is_null()), (Some(1), true));
    bench.windlass(&["runs", "--before", "1"]).code(0).tells(&["no run matches"]);
    bench.windlass(&["runs", "--before", "x"]).fails(2, &["a run is a number such as 3"]);
}

#[test]
fn logs_select_lines() {
    let bench = bench_with_two_runs();
    bench.write("many.toml", "[jobs.many]\nrun = 'seq 1 2500; echo Last'\n[jobs.one]\nrun = 'echo 7'\n");
    bench.windlass(&["run", "many.toml"]).code(0);
    let lines = |arguments: &[&str]| -> Vec<String> {
        let outcome = bench.windlass(&[&["logs"], arguments].concat());
        outcome.code(0).stdout.lines().map(|line| line.trim_end().to_owned()).collect()
    };
    assert_eq!(lines(&["3/many", "--tail", "2"]), ["2500", "Last"]);
    assert_eq!(lines(&["3/many", "-n", "1201"])[..2], ["1301", "1302"], "more than a page");
    assert_eq!(lines(&["3/many"]).len(), 2_501);
    assert_eq!(
        lines(&["-n", "1", "-g", "7"]),
        ["many | 2497", "one  | 7"],
        "the last lines that match, of each job"
    );
    assert_eq!(lines(&["3/many", "--grep", "(?i)^last|^1$"]), ["1", "Last"]);
    assert_eq!(lines(&["3/many", "--since", "1h"]).len(), 2_501);
    assert_eq!(lines(&["3/many", "-n", "0"]), [""; 0]);
    assert_eq!(lines(&["3/many", "-n", "1", "-f"]), ["Last"]);
    bench.windlass(&["logs", "--since", "2100-01-01"]).code(0).tells(&["no line matches"]);
    let timed = lines(&["3/one", "-t"]).remove(0);
    let (time, text) = timed.rsplit_once(' ').expect("a time");
    assert!(text == "7" && time.contains(':') && time.starts_with("20"), "{timed}");
    bench.write("red.toml", "[jobs.red]\nrun = 'printf \"\\033[31mred\\033[0m\\n\"'\n");
    bench.windlass(&["run", "red.toml"]).code(0);
    assert_eq!(lines(&["-g", "^red$"]), ["red"], "colours are no part of a line");
    bench.windlass(&["logs", "--grep", "("]).fails(2, &["unclosed group"]);
    bench.windlass(&["logs", "--tail", "x"]).fails(2, &["'x'"]);
}

#[test]
fn a_run_says_who_submitted_it() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let mut command = bench.command();
    command.env("USER", "ada").args(["submit", "good.toml"]);
    Running::start(command).wait().code(0);
    assert_eq!(bench.json(&["inspect", "1"])["started_by"], json!("ada"));
    assert_eq!(bench.json(&["runs"])[0]["started_by"], json!("ada"));
    let told = bench.windlass(&["inspect", "1"]).stdout;
    assert!(told.lines().any(|line| line.split_whitespace().eq(["by", "ada"])), "{told}");
}

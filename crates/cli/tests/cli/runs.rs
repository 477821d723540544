//! `run`, `submit`, `resume`, `retry`: from a file to an outcome.

use std::process::Command;

use serde_json::json;

use crate::support::{BAD, Bench, GOOD, Running};

#[test]
fn next_steps_keep_the_capabilities_and_the_version() {
    let bench = Bench::new();
    bench.write("bad.toml", "[jobs.only]\nrun = 'exit 3'\nrequires = ['gpu']\n");
    let worker_capabilities = ["--capability", "gpu,tape", "--code-version", "3"];
    let retry = "windlass retry 1 --capability gpu,tape --code-version 3";
    bench.windlass(&[&["run", "bad.toml"], worker_capabilities.as_slice()].concat()).code(1).tells(&[retry]);
    bench.windlass(&[&["resume", "1"], worker_capabilities.as_slice()].concat()).code(1).tells(&[retry]);
    bench
        .windlass(&[&["retry", "1", "--detach"], worker_capabilities.as_slice()].concat())
        .code(0)
        .tells(&["windlass worker --capability gpu,tape --code-version 3"]);
}

#[test]
fn a_run_from_its_first_line_to_its_summary() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let outcome = bench.windlass(&["run", "good.toml", "-p", "day=2026-01-31"]);
    outcome.code(0).tells(&[
        "run 1  good  2 jobs  day=2026-01-31 count=3\n",
        "fetch started\n",
        "fetch successful in ",
        "report started\n",
        "report successful in ",
        "run 1 successful in ",
        "2 successful",
        "windlass inspect 1",
    ]);
    assert_eq!(outcome.stdout, "fetched\nreport of 2026-01-31\n", "the talk is on standard error");
    let clock = outcome.stderr.lines().nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(clock.len(), "12:03:04".len(), "{outcome:#?}");
}

#[test]
fn a_terminal_gets_a_live_view() {
    let bench = Bench::new();
    bench.write("bad.toml", BAD);
    let mut command = Command::new("script");
    let windlass = format!("{} run bad.toml", env!("CARGO_BIN_EXE_windlass"));
    command.args(["-qec", &windlass, "/dev/null"]).env("TERM", "xterm-256color");
    let outcome = Running::start(bench.prepared(command)).wait();
    outcome.code(1).says(&["run 1", "✗", "load", "failed after ", " 100", " boom", "run 1", "failed"]);
    assert!(outcome.stdout.contains("/3 jobs"), "the count: {outcome:#?}");
    assert!(outcome.stdout.contains("\u{1b}[J"), "the view is drawn in place: {outcome:#?}");
    assert!(!outcome.stdout.contains("load started"), "the view says what runs: {outcome:#?}");
    let last_erased = outcome.stdout.rfind("\u{1b}[J").unwrap();
    let last_drawn = outcome.stdout.rfind("/3 jobs").unwrap();
    assert!(last_erased > last_drawn, "nothing of the view is left: {outcome:#?}");
}

#[test]
fn a_failure_is_shown_at_once_and_in_the_summary() {
    let bench = Bench::new();
    bench.write("bad.toml", BAD);
    let outcome = bench.windlass(&["run", "bad.toml", "--show", "failed"]);
    assert_eq!(outcome.stderr.matches("| boom").count(), 1, "{outcome:#?}");
    outcome.code(1).tells(&[
        "load failed after ",
        "exit code 3",
        "    | 100",
        "    | boom",
        "✗ load failed: exit code 3",
        "run 1 failed in ",
        "1 successful, 1 failed, 1 skipped",
        "windlass logs 1 load",
        "windlass retry 1",
    ]);
}

#[test]
fn a_skipped_job_names_the_job_that_failed() {
    let bench = Bench::new();
    bench.write("bad.toml", BAD);
    bench.windlass(&["run", "bad.toml"]).code(1).tells(&["after skipped: `load` is FAILED"]);
}

#[test]
fn a_failed_attempt_says_when_it_is_retried() {
    let bench = Bench::new();
    bench.write(
        "flaky.toml",
        r#"
        name = "flaky"
        [jobs.flaky]
        run = "test $WINDLASS_ATTEMPT -ge 2"
        retry = { max_attempts = 3, delay = "2s", jitter = 0 }
        "#,
    );
    bench.windlass(&["run", "flaky.toml"]).code(0).tells(&[
        "flaky failed (1 of 3): exit code 1; retrying in 2.0s",
        "flaky started, attempt 2",
        "flaky successful",
    ]);
    let run = bench.json(&["inspect", "1"]);
    assert_eq!(run["jobs"][0]["attempt"], 2);
    assert_eq!(run["jobs"][0]["failures"], 1);
}

#[test]
fn a_run_that_times_out() {
    let bench = Bench::new();
    bench.write("late.toml", "name = \"late\"\ntimeout = \"200ms\"\n[jobs.a]\nrun = \"sleep 60\"\n");
    bench.windlass(&["run", "late.toml"]).code(4).tells(&["run 1 timed out in ", "windlass retry 1"]);
    bench.windlass(&["inspect", "1"]).code(0).says(&["FAILED (timed out)"]);
}

#[test]
fn parameters_from_the_command_line_win_over_a_file() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.write("params.json", r#"{"day": "2026-01-01", "count": 5}"#);
    bench.write("params.toml", "day = 2026-01-01\ncount = 5\n");
    for file in ["params.json", "params.toml"] {
        let arguments = ["run", "good.toml", "--params-file", file, "-p", "day=2026-02-02"];
        let run = bench.json(&arguments);
        assert_eq!(run["params"], json!({"day": "2026-02-02", "count": 5}), "{file}");
        assert_eq!(run["jobs"][1]["output"], "report of 2026-02-02");
    }
}

#[test]
fn parameters_on_standard_input_are_read() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let run = |name: &str, arguments: &[&str]| {
        let mut command = bench.command();
        command.args(arguments).stdin(std::fs::File::open(bench.path(name)).unwrap());
        Running::start(command).wait()
    };
    bench.write("params.json", r#"{"day": "2026-01-01", "count": 5}"#);
    bench.write("params.yaml", "day: 2026-01-02\ncount: 6\n");
    let from_stdin = ["run", "good.toml", "--params-file", "-"];
    run("params.json", &[&from_stdin[..], &["-p", "count=9"]].concat()).code(0);
    run("params.yaml", &[&from_stdin[..], &["--format", "yaml"]].concat()).code(0);
    let params = |id: &str| bench.json(&["inspect", id])["params"].clone();
    assert_eq!(params("1"), json!({"day": "2026-01-01", "count": 9}));
    assert_eq!(params("2"), json!({"day": "2026-01-02", "count": 6}));
    run("params.yaml", &from_stdin).code(2).tells(&["standard input:1:", "--format yaml"]);
    run("params.json", &["run", "-", "--params-file", "-"])
        .fails(2, &["the workflow and the parameters at once"]);
    run("params.json", &["run", "good.toml", "--params-file", "params.json", "--format", "json"])
        .fails(2, &["--format is for standard input"]);
}

#[test]
fn parameters_that_do_not_fit_are_all_named() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let arguments = ["run", "good.toml", "-p", "dya=1", "-p", "count=many", "-p", "day=soon"];
    bench.windlass(&arguments).fails(
        2,
        &[
            "`dya`",
            "did you mean `day`",
            "`count` must be an integer",
            "`day` must be a date",
            "-p day=YYYY-MM-DD",
        ],
    );
    bench.windlass(&["run", "good.toml", "-p", "day"]).fails(2, &["write day=VALUE"]);
    assert!(!bench.database.exists());
}

#[test]
fn the_same_key_is_the_same_run() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml", "--run-key", "k"]).code(0);
    let again = bench.windlass(&["run", "good.toml", "--run-key", "k"]);
    again.code(0).tells(&["the run key belongs to run 1", "run 1 successful"]);
    assert!(!again.stderr.contains("started"), "{again:#?}");
    let submitted = bench.json(&["submit", "good.toml", "--run-key", "k"]);
    assert_eq!(submitted, json!({"run_id": 1, "workflow": "good", "status": "SUCCESSFUL", "created": false}));
    assert_eq!(bench.json(&["runs"]).as_array().unwrap().len(), 1);
}

#[test]
fn the_same_key_continues_an_unfinished_run() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["submit", "good.toml", "--run-key", "k"]).code(0);
    bench.windlass(&["run", "good.toml", "--run-key", "k"]).code(0).tells(&["run 1 successful"]);
}

#[test]
fn submitting_prints_the_number_and_nothing_else() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let outcome = bench.windlass(&["submit", "good.toml"]);
    assert_eq!(outcome.code(0).stdout, "1\n");
    outcome.tells(&["run 1", "windlass worker", "windlass watch 1"]);
    let detached = bench.json(&["run", "good.toml", "--detach"]);
    assert_eq!(detached, json!({"run_id": 2, "workflow": "good", "status": "PENDING", "created": true}));
}

#[test]
fn resume_continues_all_runs_or_one() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    for _run in 0..3 {
        bench.windlass(&["submit", "good.toml"]).code(0);
    }
    bench.windlass(&["resume", "2"]).code(0).tells(&["run 2  good", "run 2 successful"]);
    let rest = bench.windlass(&["resume"]);
    rest.code(0).tells(&[
        "run 1  good",
        "run 3  good",
        "1/fetch started",
        "run 1 successful",
        "run 3 successful",
    ]);
    bench.windlass(&["resume"]).code(0).tells(&["nothing to resume"]);
    bench.windlass(&["resume", "2"]).code(0).tells(&["already ended", "run 2 successful"]);
    bench.windlass(&["resume", "9"]).fails(5, &["run 9 does not exist", "the newest is run 3"]);
    assert_eq!(bench.json(&["resume"]), json!([]));
}

#[test]
fn the_exit_code_of_resume_is_that_of_the_worst_run() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.write("bad.toml", BAD);
    bench.windlass(&["submit", "good.toml"]).code(0);
    bench.windlass(&["submit", "bad.toml"]).code(0);
    bench.windlass(&["resume"]).code(1).tells(&["run 1 successful", "run 2 failed"]);
    bench.windlass(&["resume", "2"]).code(1);
}

#[test]
fn retry_reruns_failed_and_skipped_jobs() {
    let bench = Bench::new();
    let file = bench.write(
        "fix.toml",
        r#"
        name = "fix"
        [jobs.first]
        run = "echo x >> first.count"
        [jobs.check]
        needs = ["first"]
        run = "test -e fixed"
        [jobs.last]
        needs = ["check"]
        run = "true"
        "#,
    );
    bench.windlass(&["run".as_ref(), file.as_os_str()]).code(1);
    bench.write("fixed", "");
    bench.windlass(&["retry", "1"]).code(0).tells(&["2 jobs of run 1", "run 1 successful", "3 successful"]);
    assert_eq!(std::fs::read_to_string(bench.path("first.count")).unwrap(), "x\n");
    bench.windlass(&["retry", "1"]).fails(2, &["run 1 is SUCCESSFUL", "windlass retry 1 --from JOB"]);
    bench.windlass(&["retry", "1", "--from", "frist"]).fails(5, &["no job `frist`", "did you mean `first`"]);
    bench.windlass(&["retry", "1", "--from", "first"]).code(0).tells(&["3 jobs of run 1"]);
    assert_eq!(std::fs::read_to_string(bench.path("first.count")).unwrap(), "x\nx\n");
    bench
        .windlass(&["retry", "1", "--from", "last", "--detach"])
        .code(0)
        .tells(&["1 job of run 1", "windlass watch 1"]);
    bench
        .windlass(&["retry", "1"])
        .fails(2, &["run 1 is PENDING; only a run that has ended can be retried", "windlass resume 1"]);
    bench.windlass(&["retry", "9"]).fails(5, &["run 9 does not exist"]);
}

/// A pipe on the command line is read: the shell's `<(…)` is one. Its jobs start in the current folder.
#[test]
fn a_named_pipe_is_read() {
    let bench = Bench::new();
    bench.write("marker", "");
    let shell = |script: &str| {
        let mut command = bench.prepared(std::process::Command::new("bash"));
        command.args(["-c", script, env!("CARGO_BIN_EXE_windlass")]);
        crate::support::Running::start(command).wait()
    };
    let workflow = "printf 'name = \"piped\"\\n[params]\\nday = {}\\n[jobs.a]\\nrun = \"test -e marker\"\\n'";
    shell(&format!("\"$0\" run <({workflow}) --params-file <(echo '{{\"day\": \"x\"}}')")).code(0);
    shell(&format!("{workflow} | \"$0\" run /dev/stdin -p day=x")).code(0);
    shell(&format!("\"$0\" validate <({workflow})")).code(0);
    shell("\"$0\" enqueue shell --payloads <(echo '{\"run\": \"true\"}')").code(0);
    shell("\"$0\" validate /dev/zero").code(2).tells(&["the file is too large"]);
    let listed = bench.json(&["runs"]);
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["workflow"]), (2, &"piped".into()));
}

/// The format of standard input is named, or JSON if it begins so, else TOML. Its paths start in the current folder.
#[test]
fn a_workflow_on_standard_input_is_read() {
    let bench = Bench::new();
    bench.write("marker", "");
    bench.write("common.toml", "[env]\nGREETING = 'hello'\n");
    // A file of this name is not meant.
    bench.write("-", "invalid");
    let windlass = |text: &str, arguments: &[&str]| {
        bench.write("input", text);
        let mut command = bench.command();
        command.args(arguments).stdin(std::fs::File::open(bench.path("input")).unwrap());
        crate::support::Running::start(command).wait()
    };
    let toml = "include = 'common.toml'\n[jobs.a]\nrun = 'test -e marker && test $GREETING = hello'\n";
    let yaml = "jobs:\n  a:\n    run: test -e marker\n";
    windlass(toml, &["run", "-"]).code(0);
    windlass(r#"{"jobs": {"a": {"run": "test -e marker"}}}"#, &["run", "-"]).code(0);
    windlass(yaml, &["run", "-", "--format", "yaml"]).code(0);
    windlass(toml, &["submit", "-"]).code(0).says(&["4"]);
    windlass(toml, &["plan", "-"]).code(0).says(&["stdin: 1 job"]);
    windlass(toml, &["graph", "-"]).code(0).says(&["a"]);
    windlass(toml, &["validate", "-"]).code(0).says(&["standard input: valid, workflow `stdin`"]);
    assert_eq!(bench.json(&["runs"])[0]["workflow"], "stdin");

    windlass(yaml, &["run", "-"]).code(2).tells(&["standard input:1:5", "--format yaml"]);
    windlass(yaml, &["validate", "-"]).code(2).tells(&["standard input:1:5", "--format yaml"]);
    windlass(&" ".repeat(64 * 1024 * 1024 + 1), &["run", "-"]).code(2).tells(&["the file is too large"]);
    windlass(toml, &["run", "good.toml", "--format", "toml"]).fails(2, &["--format is for standard input"]);
    windlass(toml, &["validate", "good.toml", "--format", "toml"]).fails(2, &["no `-` is named"]);
    windlass(toml, &["apply", "-"]).fails(2, &["standard input can't be registered"]);
    windlass(toml, &["retry", "1", "--latest"]).code(2).tells(&["did not come from a file", "--with FILE"]);
}

#[test]
fn a_rerun_is_a_new_run_with_the_same_definition_and_other_params() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml", "-p", "day=2026-01-31", "-p", "count=5"]).code(0);
    // The run has a definition of its own, so the file is not needed any more.
    std::fs::remove_file(bench.path("good.toml")).unwrap();
    bench.windlass(&["rerun", "1", "-p", "count=7"]).code(0).tells(&["run 2 ", "day=2026-01-31 count=7"]);
    let outcome = bench.windlass(&["rerun", "2", "--detach"]);
    outcome.code(0);
    assert_eq!(outcome.stdout, "3\n");
    bench.windlass(&["rerun", "1", "-p", "nope=7"]).code(2).tells(&["no parameter `nope`"]);
    bench.windlass(&["rerun", "99"]).code(5);
}

#[test]
fn only_one_job_of_a_workflow_runs() {
    let bench = Bench::new();
    let file = "[jobs.a]\nrun = 'echo 7'\noutput = 'text'\n[jobs.b]\nneeds = ['a']\nrun = 'true'
[jobs.c]\nneeds = ['b']\nenv = { A = '{{ jobs.a.output }}' }\nrun = 'true'\n[finally.z]\nrun = 'exit 9'\n";
    bench.write("part.toml", file);
    bench
        .windlass(&["run", "part.toml", "--only", "b"])
        .code(0)
        .tells(&["run 1  part  1 job", "1 successful"]);
    bench.windlass(&["run", "part.toml", "--only", "c", "--with-upstream"]).code(0).tells(&["3 successful"]);
    bench.windlass(&["run", "part.toml", "--only", "c"]).code(2).tells(&["reads job `a`", "--with-upstream"]);
    bench
        .windlass(&["run", "part.toml", "--only", "cc"])
        .code(2)
        .tells(&["no job `cc`", "did you mean `c`?"]);
    bench.windlass(&["run", "part.toml", "--only", "z"]).code(2).tells(&["a job of `finally`"]);
}

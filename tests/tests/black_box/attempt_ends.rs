//! What the end of an attempt makes of its job: `skip_if`, `success_if`, `retry.if`, and the keys that feed and read it.

use serde_json::{Value, json};
use windlass_tests::Sandbox;

/// Runs a file, which must end with `code`, and gives the state, the number of attempts and the last error of each job.
fn ends(sandbox: &Sandbox, file: &str, code: i32) -> Vec<(String, i64, String)> {
    let path = sandbox.write("ends.toml", file);
    let _run = sandbox.run(&["run", &path]).exited(code);
    let tables = sandbox.tables();
    let ends = "SELECT status, attempt, coalesce(last_error, '') FROM jobs ORDER BY id";
    tables.rows(ends, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
}

fn output(sandbox: &Sandbox, job: &str) -> Value {
    let output = sandbox.tables().jobs_of(1)[job].output.clone();
    serde_json::from_str(output.as_deref().unwrap_or("null")).expect("an output is JSON")
}

#[test]
fn an_exit_code_can_mean_success_or_nothing_to_do() {
    let sandbox = Sandbox::new();
    let ends = ends(
        &sandbox,
        r#"
        [params]
        most = { type = "integer", default = 3 }
        [jobs.list]
        run = "printf 'a\n\nb c\n'; exit 3"
        output = "lines"
        success_if = "exit_code in [0, params.most]"
        [jobs.nothing]
        needs = ["list"]
        run = "exit 99"
        skip_if = "exit_code == 99 and jobs.list.output | length == 3"
        success_if = "exit_code == 99"
        [jobs.after]
        needs = ["nothing"]
        run = "true"
        [jobs.anyway]
        needs = ["list", "nothing"]
        when = "none_failed"
        run = "true"
        "#,
        0,
    );
    assert_eq!(output(&sandbox, "list"), json!(["a", "", "b c"]));
    let states: Vec<&str> = ends.iter().map(|(status, ..)| status.as_str()).collect();
    assert_eq!(states, ["SUCCESSFUL", "SKIPPED", "SKIPPED", "SUCCESSFUL"]);
    assert!(ends[1].2.starts_with("skipped: `skip_if` was true: exit_code == 99"), "{}", ends[1].2);
    sandbox.run(&["db", "check"]).exited(0);
    let why = sandbox.run(&["why", "1/nothing"]).exited(0);
    assert!(why.stdout.contains("`skip_if` was true"), "{}", why.stdout);
}

#[test]
fn a_failure_is_repeated_only_if_the_condition_says_so() {
    let sandbox = Sandbox::new();
    let ends = ends(
        &sandbox,
        r#"
        [jobs.usage]
        run = "exit 64"
        retry = { max_attempts = 4, delay = "1ms", if = "exit_code != 64" }
        [jobs.later]
        run = 'exit $((66 - WINDLASS_ATTEMPT))'
        retry = { max_attempts = 4, delay = "1ms", if = "exit_code != 64" }
        [jobs.late]
        run = "sleep 600"
        timeout = "1s"
        skip_if = "true"
        success_if = "true"
        retry = { max_attempts = 2, delay = "1ms", if = "timed_out and exit_code is none" }
        [jobs.killed]
        run = 'kill -9 $$'
        retry = { max_attempts = 2, delay = "1ms", if = "exit_code != 64 and signal == 9" }
        [jobs.strange]
        run = "echo '{}' > $WINDLASS_OUTPUT; exit 5"
        retry = { max_attempts = 2, delay = "1ms", if = "output.again" }
        "#,
        1,
    );
    assert!(ends.iter().all(|(status, ..)| status == "FAILED"), "{ends:?}");
    let attempts: Vec<i64> = ends.iter().map(|(_, attempt, _)| *attempt).collect();
    assert_eq!(attempts, [1, 2, 2, 2, 1]);
    let errors: Vec<&str> = ends.iter().map(|(.., error)| error.as_str()).collect();
    assert_eq!(errors[0], "exit code 64; not tried again: `retry.if` was false: exit_code != 64");
    assert!(errors[2].starts_with("timed out after 1 s"), "{}", errors[2]);
    assert!(
        errors[4].starts_with("exit code 5; `retry.if` could not be decided: `output.again`: "),
        "{}",
        errors[4]
    );
}

/// More than a pipe holds, and more than the environment of a process may.
const LARGE: usize = 900_000;

#[test]
fn a_process_reads_its_standard_input_or_leaves_it() {
    let sandbox = Sandbox::new();
    let ends = ends(
        &sandbox,
        &format!(
            r#"
        [jobs.make]
        run = "head -c {LARGE} /dev/zero | tr '\\0' x"
        output = "text"
        [jobs.count]
        needs = ["make"]
        run = "wc -c"
        output = "json"
        stdin = "{{{{ jobs.make.output }}}}{{{{ jobs.make.output }}}}{{{{ jobs.make.output }}}}"
        [jobs.ignore]
        needs = ["make"]
        run = "head -c 1 > first; exec 0<&-; test x = $(cat first)"
        stdin = "{{{{ jobs.make.output }}}}"
        [jobs.too-much]
        needs = ["make"]
        allow_failure = true
        run = "cat"
        stdin = "{}"
        "#,
            "{{ jobs.make.output }}".repeat(19)
        ),
        0,
    );
    let states: Vec<&str> = ends.iter().map(|(status, ..)| status.as_str()).collect();
    assert_eq!(states, ["SUCCESSFUL", "SUCCESSFUL", "SUCCESSFUL", "FAILED"]);
    assert_eq!(output(&sandbox, "count"), json!(3 * LARGE));
    assert_eq!(ends[3].2, "`stdin`: the text grows beyond 16384 KiB");
}

#[test]
fn a_job_fails_at_its_deadline_over_all_attempts() {
    let sandbox = Sandbox::new();
    let ends = ends(
        &sandbox,
        r#"
        [jobs.runs]
        run = "echo $WINDLASS_ATTEMPT >> attempts; test -e attempts2 && sleep 600; touch attempts2; exit 1"
        retry = { max_attempts = 9, delay = "1ms" }
        deadline = "3s"
        [jobs.pauses]
        run = "exit 7"
        retry = { max_attempts = 9, delay = "10m" }
        deadline = "2s"
        [jobs.in-time]
        run = "true"
        deadline = "10m"
        "#,
        1,
    );
    let states: Vec<&str> = ends.iter().map(|(status, ..)| status.as_str()).collect();
    assert_eq!(states, ["FAILED", "FAILED", "SUCCESSFUL"]);
    assert!(ends[0].2.starts_with("not over at its deadline: sent SIGTERM"), "{}", ends[0].2);
    assert_eq!((ends[0].1, sandbox.read("attempts").lines().count()), (2, 2), "it is not tried again");
    assert_eq!(ends[1].2, "it was not over at its deadline: exit code 7");
    assert_eq!(sandbox.leftovers(), []);
}

/// The last line of many programs says nothing: the end of a stack trace, a version, a number of errors.
#[test]
fn the_error_of_a_process_is_the_line_that_says_what_went_wrong() {
    let sandbox = Sandbox::new();
    let file = r#"
        [jobs.trace]
        run = "printf 'TypeError: no host\n    at start (/srv/app.js:7:3)\n\nNode.js v20.20.2\n' >&2; exit 1"
        [jobs.logged]
        run = "echo '2026-11-22 07:42:01,120 ERROR no host'; echo '2026-11-22 07:42:01,130 INFO the end' >&2; exit 1"
        [jobs.unknown]
        run = "echo 'one'; echo 'two' >&2; exit 1"
        [jobs.words]
        run = "echo 'the upload failed'; echo 'see above'; exit 1"
        [jobs.silent]
        run = "echo 'one'; exit 1"
        "#;
    let errors: Vec<String> = ends(&sandbox, file, 1).into_iter().map(|(.., error)| error).collect();
    assert_eq!(
        errors,
        [
            "exit code 1: TypeError: no host",
            "exit code 1: ERROR no host",
            "exit code 1: two",
            "exit code 1: the upload failed",
            "exit code 1",
        ]
    );
}

//! Jobs that stand alone: `enqueue`, `jobs`, `why`, and the worker that executes them.

use std::process::Stdio;

use serde_json::json;

use crate::support::Bench;

#[test]
fn an_invalid_payload_of_a_built_in_kind_is_refused() {
    let bench = Bench::new();
    let wrong = ["enqueue", "shell", "--payload", r#"{"rum": "echo hello"}"#];
    bench.windlass(&wrong).fails(2, &["kind `shell` has the unknown key `rum`", "did you mean `run`?"]);
    bench.windlass(&["enqueue", "shell"]).fails(2, &["needs either `run`", "--payload '{\"run\""]);
    let misplaced = ["enqueue", "shell", r#"{"run": "true"}"#];
    bench
        .windlass(&misplaced)
        .fails(2, &["stands alone", r#"windlass enqueue shell --payload '{"run": "true"}'"#]);
    bench.write("payloads", "{\"run\": \"true\"}\n{\"rum\": \"true\"}\n");
    let many = bench.windlass(&["enqueue", "shell", "--payloads", "payloads"]);
    many.code(2).says(&["j1\n"]).tells(&["line 2 of payloads cannot be used", "did you mean `run`?"]);
    assert_eq!(bench.json(&["jobs"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_kind_that_looks_mistyped_is_accepted_with_a_word() {
    let bench = Bench::new();
    let similar = bench.windlass(&["enqueue", "shel", "--payload", r#"{"run": "true"}"#]);
    similar.code(0).says(&["j1\n"]).tells(&[
        "handler for `shel`",
        "did you mean `shell`?",
        "windlass cancel j1",
    ]);
    let other = bench.windlass(&["enqueue", "mail", "--payload", r#"{"rnu": 7}"#]);
    assert!(!other.code(0).stderr.contains("warning"), "{other:#?}");
}

#[test]
fn an_enqueued_job_is_executed_by_a_worker() {
    let bench = Bench::new();
    let outcome = bench.windlass(&["enqueue", "shell", "--payload", r#"{"run": "echo hello"}"#]);
    assert_eq!(outcome.code(0).stdout, "j1\n");
    outcome.tells(&["job j1 is accepted", "windlass worker", "windlass why j1"]);
    assert!(!outcome.stderr.contains("warning"), "{outcome:#?}");
    bench.windlass(&["why", "j1"]).code(0).says(&[
        "job j1 is PENDING",
        "No worker is alive",
        "`windlass worker`",
    ]);
    bench.windlass(&["worker", "--until-idle"]).code(0);
    bench.windlass(&["why", "j1"]).code(0).says(&["job j1 is SUCCESSFUL", "It succeeded"]);
    bench.windlass(&["logs", "j1"]).code(0).says(&["hello\n"]);
    bench.windlass(&["inspect", "j1"]).code(0).says(&["job j1", "SUCCESSFUL", "script", "echo hello"]);
}

#[test]
fn options_of_enqueue_reach_the_job() {
    let bench = Bench::new();
    let arguments = [
        "enqueue",
        "mail",
        "--payload",
        "{\"to\": 7}",
        "--queue",
        "outbox",
        "--priority",
        "high",
        "--at",
        "2099-01-01T00:00:00Z",
        "--max-attempts",
        "5",
    ];
    assert_eq!(bench.json(&arguments), json!({ "job_id": 1 }));
    let job = bench.json(&["inspect", "j1"]);
    assert_eq!(job["payload"], json!({"to": 7}));
    assert_eq!(job["queue"], "outbox");
    assert_eq!(job["priority"], 10);
    assert_eq!(job["status"], "SCHEDULED");
    assert_eq!(job["max_attempts"], 5);
    assert_eq!(job["execute_after"], "2099-01-01T00:00:00.000Z");
    bench.windlass(&["why", "j1"]).code(0).says(&["It starts at 2099-01-01 00:00:00", "handler for `mail`"]);
    bench.windlass(&["enqueue", "mail", "--delay", "1h"]).code(0);
    assert_eq!(bench.json(&["inspect", "j2"])["status"], "SCHEDULED");
}

#[test]
fn a_file_of_payloads_becomes_one_job_per_line() {
    let bench = Bench::new();
    let text: String = (0..2_500).map(|number| format!("{{\"n\": {number}}}\n")).collect();
    bench.write("payloads.jsonl", &text);
    let outcome = bench.windlass(&[
        "enqueue",
        "mail",
        "--payloads",
        "payloads.jsonl",
        "--queue",
        "a",
        "--priority",
        "high",
    ]);
    let numbers: String = (1..=2_500).map(|number| format!("j{number}\n")).collect();
    assert_eq!(outcome.code(0).stdout, numbers);
    outcome.tells(&["2500 jobs are accepted"]);
    let job = bench.json(&["inspect", "j2500"]);
    assert_eq!(
        (&job["payload"], &job["queue"], &job["priority"]),
        (&json!({"n": 2499}), &json!("a"), &json!(10))
    );
    bench.write("two.jsonl", "{\"run\": \"true\"}\n{\"rnu\": 1}\n");
    let ids = bench.json(&["enqueue", "shell", "--payloads", "two.jsonl"]);
    assert_eq!(ids, json!([{ "job_id": 2501 }]), "the lines before an invalid one are accepted");
}

#[test]
fn a_pipe_of_payloads_is_accepted_line_by_line_until_an_invalid_one() {
    use std::io::{BufRead, BufReader, Write};

    let bench = Bench::new();
    let mut command = bench.command();
    command.args(["enqueue", "mail", "--payloads", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    let mut numbers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    for expected in ["j1", "j2"] {
        writeln!(input, "7").expect("it reads");
        // Each job is acknowledged before the next is written.
        assert_eq!(numbers.next().expect("a number").expect("text"), expected);
    }
    writeln!(input, "8\n{{x").expect("it reads");
    assert_eq!(numbers.next().expect("a number").expect("text"), "j3");
    drop(input);
    let outcome = child.wait_with_output().expect("it ends");
    assert_eq!(outcome.status.code(), Some(2));
    let told = String::from_utf8_lossy(&outcome.stderr).into_owned();
    for part in ["line 4 of standard input is not JSON", "3 jobs are accepted", "tail -n +4"] {
        assert!(told.contains(part), "{part} is missing in {told}");
    }
}

#[test]
fn wrong_options_of_enqueue_are_refused() {
    let bench = Bench::new();
    let cases: [(&[&str], &str); 5] = [
        (&["--payload", "{x"], "not JSON"),
        (&["--priority", "urgent"], "low, normal, high, critical"),
        (&["--delay", "5"], "did you mean `5s`"),
        (&["--at", "tomorrow"], "2026-11-20T09:00:00Z"),
        (&["--max-attempts", "0"], "0 is not in"),
    ];
    for (options, expected) in cases {
        let arguments = [&["enqueue", "mail"], options].concat();
        bench.windlass(&arguments).fails(2, &[expected]);
    }
    assert!(!bench.database.exists());
}

#[test]
fn until_idle_ignores_other_queues_and_kinds() {
    let bench = Bench::new();
    bench.windlass(&["enqueue", "shell", "--payload", r#"{"run": "true"}"#, "--queue", "a"]).code(0);
    bench.windlass(&["enqueue", "shell", "--payload", r#"{"run": "true"}"#, "--queue", "b"]).code(0);
    bench.windlass(&["enqueue", "mail", "--queue", "a"]).code(0);
    bench.windlass(&["worker", "--queue", "a", "--until-idle"]).code(0);
    let statuses: Vec<_> =
        bench.json(&["jobs"]).as_array().unwrap().iter().map(|job| job["status"].clone()).collect();
    assert_eq!(statuses, ["PENDING", "PENDING", "SUCCESSFUL"], "newest first");
    bench.windlass(&["worker", "--queue", "a,"]).fails(2, &["the name of a queue is empty"]);
    bench.windlass(&["worker", "-o", "json"]).fails(2, &["`worker` prints a log, so -o does not apply"]);
}

#[test]
fn jobs_are_listed_and_filtered() {
    let bench = Bench::new();
    bench.windlass(&["enqueue", "mail", "--queue", "a"]).code(0);
    bench.windlass(&["enqueue", "mail", "--queue", "b"]).code(0);
    bench.windlass(&["jobs"]).code(0).says(&["JOB", "j2", "b", "j1", "a"]);
    let of_queue = bench.json(&["jobs", "--queue", "a"]);
    assert_eq!(of_queue.as_array().unwrap().len(), 1);
    assert_eq!(bench.json(&["jobs", "--limit", "1"])[0]["job_id"], 2);
    for before in ["2", "j2"] {
        let page = bench.json(&["jobs", "-n", "1", "--before", before]);
        assert_eq!((page[0]["job_id"].as_i64(), page[1].is_null()), (Some(1), true));
    }
    bench.windlass(&["jobs", "--before", "j1"]).code(0).tells(&["no job matches"]);
    bench.windlass(&["jobs", "--before", "1/a"]).fails(2, &["the number of a job such as j42"]);
    assert_eq!(bench.json(&["jobs", "--status", "failed"]), json!([]));
    bench.windlass(&["jobs", "--status", "failed"]).code(0).tells(&["no job matches"]);
    bench.windlass(&["jobs", "--status", "done"]).fails(2, &["'done'", "SUCCESSFUL"]);
    bench.windlass(&["jobs", "--run", "4"]).fails(5, &["run 4 does not exist"]);
    let lines = bench.windlass(&["jobs", "-o", "jsonl"]);
    assert_eq!(lines.code(0).stdout.lines().count(), 2);
}

#[test]
fn why_explains_each_kind_of_waiting() {
    let bench = Bench::new();
    bench.write("bad.toml", crate::support::BAD);
    bench.windlass(&["submit", "bad.toml"]).code(0);
    bench.windlass(&["why", "1/load"]).code(0).says(&[
        "is PENDING",
        "No worker is alive",
        "`windlass resume 1`",
    ]);
    bench.windlass(&["why", "1/after"]).code(0).says(&["is BLOCKED", "an unfinished job: 1/load (PENDING)"]);
    let why = bench.json(&["why", "1/after"]);
    assert_eq!(why["reasons"][0]["kind"], "waits_for_parents");
    assert_eq!(why["job"], "after");
    bench.windlass(&["resume"]).code(1);
    bench.windlass(&["why", "1/load"]).code(0).says(&[
        "is FAILED",
        "exit code 3",
        "windlass logs j",
        "windlass retry 1",
    ]);
    bench.windlass(&["why", "1/after"]).code(0).says(&["is SKIPPED", "`load` is FAILED"]);
    bench
        .windlass(&["why", "1/after"])
        .code(0)
        .says(&["`windlass retry 1` reruns what failed, and then this job."]);
    bench.windlass(&["why", "1/laod"]).fails(5, &["no job `laod`", "`load`"]);
    bench.windlass(&["why", "j99"]).fails(5, &["job j99 does not exist"]);
}

#[test]
fn why_names_all_jobs_because_of_which_a_job_was_skipped() {
    let bench = Bench::new();
    let jobs: String = (0..10).map(|number| format!("[jobs.f{number}]\nrun = 'exit 1'\n")).collect();
    let needs: Vec<String> = (0..10).map(|number| format!("'f{number}'")).collect();
    let text = format!(
        "{jobs}[jobs.two]\nrun = 'true'\nneeds = ['f3', 'f4']\n[jobs.later]\nrun = 'true'\nneeds = ['two', 'f5']\n\
         [jobs.ten]\nrun = 'true'\nneeds = [{}]\n",
        needs.join(", ")
    );
    bench.write("many.toml", &text);
    bench.windlass(&["run", "many.toml"]).code(1);
    bench.windlass(&["why", "1/two"]).code(0).says(&["It was skipped: `f3` is FAILED and `f4` is FAILED. `"]);
    bench
        .windlass(&["why", "1/later"])
        .code(0)
        .says(&["It was skipped: `f3` is FAILED, `f4` is FAILED and `f5` is FAILED."]);
    let ten = bench.windlass(&["why", "1/ten"]);
    ten.code(0).says(&["`f7` is FAILED, and more jobs before it did not succeed."]);
    assert!(!ten.stdout.contains("f8"), "{}", ten.stdout);
}

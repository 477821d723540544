//! The interface for scripts: JSON, exit codes, streams, run keys, retries.

use std::io::Read;
use std::process::Stdio;

use serde_json::Value;
use windlass_test_database::{Access, DatabaseKind};
use windlass_tests::{Sandbox, eventually};

use crate::support::{assert_says, job_id, submit, trivial_chain};

/// A job that fails until the file `fixed` exists, with one before it and one after it.
const FIXABLE: &str = r#"
name = "fixable"
[jobs.before]
run = 'echo before >> ran'
[jobs.breaks]
needs = ["before"]
run = 'echo breaks >> ran; test -e fixed'
[jobs.after]
needs = ["breaks"]
run = 'echo after >> ran'
"#;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().map(|object| object.keys().map(String::as_str).collect()).unwrap_or_default()
}

const RUN_KEYS: [&str; 26] = [
    "run_id",
    "workflow",
    "status",
    "outcome",
    "stop_reason",
    "waits_for",
    "concurrency_key",
    "params",
    "run_key",
    "tags",
    "source",
    "started_by",
    "schedule_id",
    "scheduled_for",
    "dir",
    "created_at",
    "started_at",
    "finished_at",
    "duration_ms",
    "interrupted",
    "parent",
    "job_counts",
    "outputs",
    "workspace",
    "definitions",
    "jobs",
];

const JOB_KEYS: [&str; 34] = [
    "job_id",
    "run_id",
    "job",
    "kind",
    "queue",
    "status",
    "priority",
    "needs",
    "attempt",
    "max_attempts",
    "failures",
    "interruptions",
    "execute_after",
    "created_at",
    "ready_at",
    "started_at",
    "finished_at",
    "duration_ms",
    "worker_id",
    "allow_failure",
    "waits_for",
    "upstream_failed",
    "handler",
    "exit_code",
    "deadline_at",
    "group",
    "index",
    "item",
    "last_error",
    "output",
    "payload",
    "rounds",
    "max_rounds",
    "attempts",
];

#[test]
fn json_has_the_documented_fields() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("fixable.toml", FIXABLE);
    let of_run = sandbox.run(&["run", &file, "-o", "json"]).exited(1).json();
    let inspected = sandbox.run(&["inspect", "1", "-o", "json"]).exited(0).json();
    assert_eq!(of_run, inspected, "`run -o json` and `inspect -o json` differ");
    assert_eq!(keys(&inspected), RUN_KEYS);
    assert_eq!(keys(&inspected["jobs"][0]), JOB_KEYS[..JOB_KEYS.len() - 4]);
    assert_eq!(inspected["job_counts"]["total"], 3);
    assert_eq!(inspected["job_counts"]["skipped"], 1);

    let id = job_id(&sandbox, 1, "breaks");
    let job = sandbox.run(&["inspect", &format!("j{id}"), "-o", "json"]).exited(0).json();
    assert_eq!(keys(&job), JOB_KEYS);
    assert_eq!(
        keys(&job["attempts"][0]),
        ["attempt", "outcome", "error", "worker_id", "ready_at", "started_at", "finished_at"]
    );
    assert_eq!(job, sandbox.run(&["inspect", "1/breaks", "-o", "json"]).exited(0).json());
    let started = job["started_at"].as_str().unwrap_or_default();
    assert!(started.len() == "2026-11-20T23:05:28.123Z".len() && started.ends_with('Z'), "{started:?}");

    let runs = sandbox.run(&["runs", "-o", "json"]).exited(0).json();
    assert_eq!(keys(&runs[0]), RUN_KEYS[..22]);
    let jobs = sandbox.run(&["jobs", "--run", "1", "-o", "jsonl"]).exited(0).stdout;
    assert_eq!(jobs.lines().count(), 3);
    let stats = sandbox.run(&["stats", "-o", "json"]).exited(0).json();
    assert_eq!(
        (&stats["job_counts"]["failed"], &stats["run_counts"]["failed"]),
        (&Value::from(1), &Value::from(1))
    );
    let check = sandbox.run(&["db", "check", "-o", "json"]).exited(0).json();
    assert_eq!(check["ok"], true, "{check}");
}

#[test]
fn submit_prints_a_number_and_the_same_key_means_the_same_run() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 2);
    let submit = |arguments: &[&str]| {
        let mut all = vec!["submit", &file, "-o", "json"];
        all.extend(arguments);
        sandbox.run(&all).exited(0).json()
    };
    let first = submit(&["--run-key", "monday"]);
    assert_eq!((&first["run_id"], &first["created"]), (&Value::from(1), &Value::from(true)));
    let again = submit(&["--run-key", "monday"]);
    assert_eq!((&again["run_id"], &again["created"]), (&Value::from(1), &Value::from(false)));
    assert_eq!(submit(&[])["run_id"], 2);
    sandbox.run(&["run", &file, "--run-key", "monday"]).exited(0);
    let attempts =
        |run: i64| sandbox.tables().jobs_of(run).values().map(|job| job.attempt).collect::<Vec<_>>();
    assert_eq!(attempts(1), [1, 1]);
    sandbox.run(&["run", &file, "--run-key", "monday"]).exited(0);
    assert_eq!(attempts(1), [1, 1], "a finished run was run again");
    assert_eq!(attempts(2), [0, 0], "`run` executed another run");
}

#[test]
fn a_retry_reruns_failed_and_skipped_jobs() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("fixable.toml", FIXABLE);
    sandbox.run(&["run", &file]).exited(1);
    sandbox.run(&["retry", "1"]).exited(1);
    sandbox.write("fixed", "");
    sandbox.run(&["retry", "1"]).exited(0);
    assert_eq!(sandbox.read("ran"), "before\nbreaks\nbreaks\nbreaks\nafter\n");
    sandbox.run(&["retry", "1", "--from", "breaks"]).exited(0);
    assert_eq!(sandbox.read("ran"), "before\nbreaks\nbreaks\nbreaks\nafter\nbreaks\nafter\n");
    assert_eq!(sandbox.tables().run_status(1), "SUCCESSFUL");
}

#[test]
fn why_gives_the_reason() {
    let sandbox = Sandbox::new();
    let run = submit(&sandbox, &sandbox.write("fixable.toml", FIXABLE));
    let why = |job: &str| sandbox.run(&["why", &format!("{run}/{job}")]).exited(0).stdout;
    assert!(why("after").contains("breaks"), "{}", why("after"));
    assert!(why("before").to_lowercase().contains("worker"), "{}", why("before"));
    let id = sandbox.run(&["enqueue", "shell", "--payload", "{\"run\":\"true\"}", "--delay", "1h"]).exited(0);
    let reasons = sandbox.run(&["why", id.stdout.trim(), "-o", "json"]).exited(0).json();
    assert_eq!(keys(&reasons).last(), Some(&"reasons"));
    assert!(reasons["reasons"][0]["text"].is_string(), "{reasons}");
    sandbox.run(&["resume", "1"]).exited(1);
    assert!(why("after").contains("breaks"), "{}", why("after"));
}

#[test]
fn a_closed_pipe_is_no_crash() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("many.toml", "name = \"many\"\n[jobs.a]\nrun = 'seq 1 20000'\n");
    sandbox.run(&["run", &file]).exited(0);
    let mut command = sandbox.command(&["logs", "1"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut stdout = child.stdout.take().expect("it has a pipe");
    stdout.read_exact(&mut [0; 10]).expect("ten bytes");
    drop(stdout);
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    child.wait().expect("it ends");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn data_goes_to_stdout_and_messages_to_stderr() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 2);
    let ran = sandbox.run(&["run", &file, "-o", "json"]).exited(0);
    assert_eq!(ran.json()["status"], "SUCCESSFUL");
    assert!(ran.stderr.contains("job_0001"), "no progress in a pipe: {:?}", ran.stderr);
    let submitted = sandbox.run(&["submit", &file]).exited(0);
    assert_eq!(submitted.stdout, "2\n");
    assert!(submitted.stderr.contains("windlass"), "no next step: {:?}", submitted.stderr);
}

#[test]
fn watch_ends_with_the_run_and_its_code() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("fixable.toml", FIXABLE);
    submit(&sandbox, &file);
    let mut watcher = sandbox.spawn(&["watch", "1"]);
    sandbox.run(&["resume", "1"]).exited(1);
    assert_says(&watcher.wait(), 1, &[]);
}

#[test]
fn graphs_and_completions_are_printed() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("fixable.toml", FIXABLE);
    for (format, mark) in [("text", "breaks"), ("mermaid", "-->"), ("dot", "digraph"), ("svg", "<svg")] {
        let shown = sandbox.run(&["graph", &file, "--format", format]).exited(0).stdout;
        assert!(shown.contains(mark) && shown.contains("after"), "{format}: {shown}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(sandbox.run(&["completions", shell]).exited(0).stdout.contains("windlass"));
    }
}

#[test]
fn prune_removes_old_ended_runs() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 2);
    sandbox.run(&["run", &file]).exited(0);
    submit(&sandbox, &file);
    sandbox.run(&["db", "prune", "--older-than", "1h"]).exited(0);
    assert_eq!(sandbox.tables().value::<i64>("SELECT count(*) FROM runs"), 2);
    eventually("a finished run that is older than 1 ms", || {
        sandbox.run(&["db", "prune", "--older-than", "1ms"]).exited(0);
        (sandbox.tables().value::<i64>("SELECT count(*) FROM runs") == 1).then_some(())
    });
    assert_eq!(sandbox.tables().run_status(2), "PENDING");
}

#[test]
fn a_database_from_a_newer_version() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 1);
    sandbox.run(&["run", &file]).exited(0);
    let sql = "INSERT INTO schema_migrations (version, name, applied_at) VALUES (9999, 'later', 0)";
    sandbox.database().sql(Access::Write).execute(sql);
    for verb in [&["runs"][..], &["run", &file], &["db", "migrate"]] {
        assert_says(&sandbox.run(verb), 6, &["9999", "newer"]);
    }
    let runs: i64 = sandbox.tables().value("SELECT count(*) FROM runs");
    assert_eq!(runs, 1);
}

/// Otherwise the tests would run on another database than the chosen one.
#[test]
fn the_tables_are_in_the_database_that_the_tests_chose() {
    let sandbox = Sandbox::new();
    sandbox.run(&["run", &trivial_chain(&sandbox, 1)]).exited(0);
    assert_eq!(sandbox.database().kind(), windlass_test_database::chosen_kind());
    assert!(sandbox.database().has_table("jobs"));
    let is_file = sandbox.path("windlass.db").exists();
    match windlass_test_database::chosen_kind() {
        DatabaseKind::Sqlite => assert!(is_file),
        DatabaseKind::Postgres => assert!(!is_file),
    }
}

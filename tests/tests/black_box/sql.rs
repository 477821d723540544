//! Promise: the tables are an interface. Another language inserts a row, and a running worker executes the job.

use std::process::Command;

use serde_json::json;
use windlass_test_database::DatabaseKind;
use windlass_tests::{Sandbox, eventually};

use crate::support::submit;

/// Runs code of another language and returns its output: Python with the path of the file, or SQL in psql.
fn from_outside(sandbox: &Sandbox, python: &str, sql: &str) -> String {
    let address = sandbox.database().address();
    let command = match sandbox.database().kind() {
        DatabaseKind::Sqlite => sandbox.prepared(Command::new("python3"), &["-c", python, &address]),
        DatabaseKind::Postgres => {
            let (server, schema) = address.split_once("?schema=").expect("a schema of the test's own");
            let arguments =
                ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command", sql, server];
            let mut command = sandbox.prepared(Command::new("psql"), &arguments);
            command.env("PGOPTIONS", format!("-c search_path={schema}"));
            command
        }
    };
    sandbox.start(command).wait().exited(0).stdout
}

#[test]
fn an_inserted_row_is_executed_by_a_running_worker() {
    let sandbox = Sandbox::new();
    let mut worker = sandbox.spawn(&["worker"]);
    eventually("the worker's registration", || {
        let there = sandbox.database().has_table("workers") && worker_count(&sandbox) == 1;
        there.then_some(())
    });
    from_outside(
        &sandbox,
        r#"
import json, sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=20)
with database:
    database.execute("INSERT INTO jobs (kind, payload) VALUES (?, ?)",
                     ("shell", json.dumps({"run": "echo by hand", "output": "text"})))
"#,
        r#"
INSERT INTO jobs (kind, payload) VALUES ('shell', '{"run": "echo by hand", "output": "text"}')
"#,
    );
    let job = eventually("the row's success", || {
        let job = sandbox.tables().jobs().into_iter().next()?;
        (job.status == "SUCCESSFUL").then_some(job)
    });
    assert_eq!(job.output.as_deref(), Some("\"by hand\""));
    assert_eq!((job.attempt, job.run_id, job.max_attempts), (1, None, 3));
    assert!(worker.is_running());
}

fn worker_count(sandbox: &Sandbox) -> i64 {
    sandbox.tables().value("SELECT count(*) FROM workers WHERE status = 'ALIVE'")
}

#[test]
fn enqueued_jobs_wait_for_their_time_and_run_by_priority() {
    let sandbox = Sandbox::new();
    let enqueue = |name: &str, options: &[&str]| -> i64 {
        let payload = json!({ "run": format!("echo {name} >> order") }).to_string();
        let mut arguments = vec!["enqueue", "shell", "--payload", &payload];
        arguments.extend(options);
        let printed = sandbox.run(&arguments).exited(0).stdout;
        let number = printed.trim().strip_prefix('j').expect("`enqueue` prints a job as jN");
        number.parse().expect("a number")
    };
    enqueue("low", &["--priority", "-10"]);
    enqueue("normal", &[]);
    enqueue("high", &["--priority", "10"]);
    let far = enqueue("far", &["--delay", "1h"]);
    let elsewhere = enqueue("elsewhere", &["--queue", "other"]);
    let mut worker = sandbox.spawn(&["worker", "--queue", "default", "--threads", "1"]);
    eventually("three jobs", || (sandbox.read("order").lines().count() == 3).then_some(()));
    worker.kill_9();
    assert_eq!(sandbox.read("order"), "high\nnormal\nlow\n");
    let jobs = sandbox.tables().jobs();
    let status = |id: i64| jobs.iter().find(|job| job.id == id).map(|job| job.status.as_str());
    assert_eq!(status(far), Some("SCHEDULED"));
    assert_eq!(status(elsewhere), Some("PENDING"));
}

#[test]
fn views_can_be_read_from_another_language() {
    let sandbox = Sandbox::new();
    let file =
        sandbox.write("v.toml", "name = \"v\"\n[jobs.good]\nrun = 'true'\n[jobs.bad]\nrun = 'exit 3'\n");
    sandbox.run(&["run", &file]).exited(1);
    let said = from_outside(
        &sandbox,
        r#"
import json, sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=20)
print(json.dumps({
    "stats": dict(database.execute("SELECT status, jobs FROM job_stats")),
    "dead": [row[0] for row in database.execute("SELECT name FROM dead_letters")],
    "runs": database.execute("SELECT workflow, status, started_at FROM runs_readable").fetchall(),
    "jobs": [row[0] for row in database.execute("SELECT name FROM jobs_readable ORDER BY id")],
}))
"#,
        r#"
SELECT json_build_object(
    'stats', (SELECT json_object_agg(status, jobs) FROM job_stats),
    'dead', (SELECT json_agg(name) FROM dead_letters),
    'runs', (SELECT json_agg(json_build_array(workflow, status, started_at)) FROM runs_readable),
    'jobs', (SELECT json_agg(name ORDER BY id) FROM jobs_readable))
"#,
    );
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["stats"], json!({ "FAILED": 1, "SUCCESSFUL": 1 }));
    assert_eq!(said["dead"], json!(["bad"]));
    assert_eq!(said["jobs"], json!(["good", "bad"]));
    assert_eq!((&said["runs"][0][0], &said["runs"][0][1]), (&json!("v"), &json!("FAILED")));
    let started = said["runs"][0][2].as_str().unwrap_or_default();
    assert!(started.starts_with("20") && started.contains(':'), "{started:?} is not a readable time");
}

#[test]
fn a_job_of_an_unknown_kind_waits_with_a_reason() {
    let sandbox = Sandbox::new();
    let id = sandbox.run(&["enqueue", "no-such-kind", "--payload", "{}"]).exited(0).stdout;
    let why = sandbox.run(&["why", id.trim()]).exited(0).stdout;
    assert!(why.contains("no-such-kind") || why.to_lowercase().contains("worker"), "{why}");
    let run = submit(&sandbox, &sandbox.write("a.toml", "name = \"a\"\n[jobs.a]\nrun = 'true'\n"));
    sandbox.run(&["resume", &run.to_string()]).exited(0);
}

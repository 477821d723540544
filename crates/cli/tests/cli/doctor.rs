//! `doctor`: one line for each check, and an exit code.

use serde_json::Value;
use windlass_test_database::{Access, DatabaseKind};

use crate::support::{Bench, GOOD};

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    bench
}

fn finding(bench: &Bench, about: &str) -> Value {
    let report = bench.json(&["doctor"]);
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["about"] == about).cloned().unwrap_or_else(|| panic!("{report}"))
}

#[test]
fn a_new_database_has_no_problems() {
    let bench = bench();
    let outcome = bench.windlass(&["doctor"]);
    outcome.code(0).says(&[
        "version",
        "durability",
        "writes",
        "clock",
        "workers",
        "jobs",
        "schedules",
        "backup",
    ]);
    let lines = outcome.stdout.lines().count();
    assert!((10..=13).contains(&lines), "{}", outcome.stdout);
    assert!(outcome.stdout.lines().all(|line| line.starts_with("ok")), "{}", outcome.stdout);
    let product = match bench.database.kind() {
        DatabaseKind::Sqlite => "SQLite 3.",
        DatabaseKind::Postgres => "PostgreSQL 1",
    };
    outcome.says(&[product]);
    assert_eq!(bench.json(&["doctor"])["ok"], true);
}

#[test]
fn each_problem_is_named_with_a_next_step_and_an_exit_code() {
    let now = "(SELECT CAST(1000 AS BIGINT) * 1700000000)";
    let ahead = "4102444800000";
    let worker = format!(
        "INSERT INTO workers (id, host, pid, process, kinds, lease_ms, heartbeat_at, started_at)
         VALUES (77, 'elsewhere', 1, 'opaque', '[\"other\"]', 30000, {now}, {now});"
    );
    let cases = [
        ("workers", "INSERT INTO jobs (kind, status) VALUES ('shell', 'PENDING')".to_owned(), "1 job is due"),
        (
            "workers",
            "INSERT INTO jobs (kind, status, worker_id) VALUES ('shell', 'RUNNING', 9)".to_owned(),
            "1 job was left by dead workers",
        ),
        (
            "jobs",
            format!(
                "{worker} INSERT INTO jobs (kind, status, execute_after, updated_at)
                     VALUES ('shell', 'PENDING', {now}, {now})"
            ),
            "1 job has waited for more than a minute, and no worker can take it",
        ),
        (
            "jobs",
            format!("{worker} INSERT INTO jobs (kind, execute_after) VALUES ('shell', {now})"),
            "1 job has been due for more than ten seconds",
        ),
        (
            "reports",
            format!("INSERT INTO jobs (kind, status, updated_at) VALUES ('x', 'FAILED', {now})"),
            "1 report is from workers in other languages not processed",
        ),
        (
            "schedules",
            format!(
                "INSERT INTO registrations (name, version, workflow_id) SELECT 'w', 1, min(id) FROM workflows;
                 INSERT INTO schedules (workflow, name, next_at) VALUES ('w', 'nightly', {now})"
            ),
            "w/nightly was due",
        ),
        ("clock", format!("UPDATE jobs SET updated_at = {ahead}"), "in the future"),
    ];
    for (about, statement, words) in cases {
        let bench = bench();
        bench.database.sql(Access::Write).execute(&statement);
        let found = finding(&bench, about);
        assert_eq!(found["state"], "problem", "{statement}: {found}");
        assert!(found["message"].as_str().unwrap().contains(words), "{statement}: {found}");
        assert!(!found["next_step"].as_str().unwrap().is_empty());
        bench.windlass(&["doctor"]).code(1).says(&["problem", words, "next: "]);
    }
}

#[test]
fn a_killed_worker_is_not_alive_and_doctor_changes_nothing() {
    let bench = bench();
    let registered = || {
        let sql = "SELECT count(*) FROM workers WHERE status = 'ALIVE'";
        bench.database.exists().then(|| bench.database.sql(Access::Read).value::<i64>(sql))
    };
    let mut worker = bench.start(&["worker"]);
    bench.wait_for("a worker", || (registered() == Some(1)).then_some(()));
    worker.child.kill().unwrap();
    worker.wait();
    bench.windlass(&["enqueue", "shell", "--payload", r#"{"run": "true"}"#]).code(0);
    let found = finding(&bench, "workers");
    assert_eq!(found["state"], "problem", "{found}");
    assert!(found["message"].as_str().unwrap().starts_with("no worker is alive; 1 job is due"), "{found}");
    assert_eq!(registered(), Some(1), "a doctor only looks");
}

#[test]
fn a_warning_is_not_a_problem() {
    let bench = bench();
    bench.database.sql(Access::Write).execute(
        "INSERT INTO queues (name, paused_at) VALUES ('reports', 1);
         INSERT INTO workers (id, host, pid, process, lease_ms, heartbeat_at, started_at)
         VALUES (77, 'elsewhere', 1, 'opaque', 30000, 1, 1)",
    );
    assert_eq!(finding(&bench, "queues")["state"], "warning");
    assert_eq!(finding(&bench, "workers")["state"], "warning", "it is silent");
    let schedules = |statement: &str| {
        bench.database.sql(Access::Write).execute(statement);
        let found = finding(&bench, "schedules");
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        (text("state"), text("message"), text("next_step"))
    };
    let (state, message, next_step) =
        schedules("INSERT INTO schedules (workflow, name, paused_at) VALUES ('w', 'nightly', 1)");
    assert_eq!((state.as_str(), message.as_str()), ("warning", "the only schedule is paused"));
    assert!(
        next_step.contains("schedule list") && next_step.contains("runs --status RUNNING"),
        "{next_step}"
    );
    let (state, message, _) =
        schedules("INSERT INTO schedules (workflow, name, paused_at) VALUES ('w', 'weekly', 1)");
    assert_eq!(
        (state.as_str(), message.as_str()),
        ("warning", "all 2 schedules are paused, as after `db restore`")
    );
    bench.windlass(&["doctor", "--durability", "normal"]).code(0).says(&["warning", "power cut"]);
}

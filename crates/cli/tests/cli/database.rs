//! `db`: check, migrate, prune.

use serde_json::json;
use windlass_test_database::Access;

use crate::support::{Bench, GOOD};

fn bench_with_a_run() -> Bench {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["run", "good.toml"]).code(0);
    bench
}

#[test]
fn a_check_finds_inconsistent_rows() {
    let bench = bench_with_a_run();
    bench.windlass(&["db", "check"]).code(0).says(&[bench.database.shown_as(), " is sound"]);
    assert_eq!(bench.json(&["db", "check"]), json!({"ok": true, "problems": []}));
    bench.database.sql(Access::Write).execute("UPDATE runs SET unfinished_jobs = 5");
    let outcome = bench.windlass(&["db", "check"]);
    outcome.code(6).says(&["broken:", "run 1 is SUCCESSFUL, and counts 5"]).tells(&[
        "error: ",
        bench.database.shown_as(),
        " is damaged",
        "help: ",
    ]);
    let verdict = bench.json(&["db", "check"]);
    assert_eq!(verdict["ok"], false);
    assert!(verdict["problems"][0]["check"].is_string(), "{verdict:#}");
    assert!(verdict["problems"][0]["message"].is_string(), "{verdict:#}");
}

#[test]
fn migrate_creates_the_tables() {
    let bench = Bench::new();
    bench.windlass(&["db", "migrate"]).code(0).says(&[bench.database.shown_as(), " have version"]);
    bench.windlass(&["runs"]).code(0).tells(&["no runs yet"]);
    assert!(bench.json(&["db", "migrate"])["schema_version"].is_i64());
}

#[test]
fn prune_deletes_old_runs() {
    let bench = bench_with_a_run();
    bench.windlass(&["submit", "good.toml"]).code(0);
    bench.windlass(&["db", "prune", "--older-than", "1h"]).code(0).says(&["deleted 0 runs and 0 jobs"]);
    let pruned = bench.json(&["db", "prune", "--older-than", "0s"]);
    assert_eq!(pruned, json!({"deleted_runs": 1, "deleted_jobs": 2}));
    let left = bench.json(&["runs"]);
    assert_eq!(left[0]["status"], "PENDING", "what is not over stays");
    assert_eq!(left.as_array().unwrap().len(), 1);
    bench.windlass(&["db", "prune"]).fails(2, &["--older-than"]);
    bench.windlass(&["run", "good.toml"]).code(0);
    bench.windlass(&["run", "good.toml"]).code(0);
    bench.windlass(&["db", "prune", "--keep", "1"]).code(0).says(&["deleted 1 run and 2 jobs", "newest 1"]);
    bench.windlass(&["db", "prune", "--keep", "1"]).code(0).says(&["deleted 0 runs"]);
    bench.windlass(&["db", "prune", "--keep=-1"]).fails(2, &["--keep"]);
    bench.windlass(&["db", "prune", "--older-than", "1M"]).fails(2, &["unclear"]);
}

#[test]
fn restored_rows_are_fenced() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["submit", "good.toml"]).code(0);
    bench.windlass(&["signal", "paid"]).code(0);
    bench.windlass(&["enqueue", "mail", "--concurrency-key", "k"]).code(0);
    bench.database.sql(Access::Write).execute(
        "INSERT INTO workers (id, host, pid, process, lease_ms, heartbeat_at, started_at)
             VALUES (1, 'elsewhere', 1, 'opaque', 3600000, 1, 1);
         INSERT INTO jobs (kind, status, worker_id, attempt) VALUES ('shell', 'RUNNING', 1, 1);
         INSERT INTO schedules (workflow, name) VALUES ('w', 'nightly')",
    );
    let mut fenced = bench.json(&["db", "restore", "--fence"]);
    let database = fenced.as_object_mut().unwrap().remove("database").unwrap();
    assert!(!database.as_str().unwrap().is_empty());
    let expected = json!({
        "backup": null,
        "fenced_workers": 1,
        "paused_schedules": 1,
        "interrupted_jobs": 1,
        "interrupted": ["j4"],
        "unfinished_runs": 1,
        "unfinished": [1],
        "undispatched": 1,
        "pending_jobs": 3,
        "waiting_jobs": 1,
    });
    assert_eq!(fenced, expected);
    let again = bench.json(&["db", "restore", "--fence"]);
    assert_eq!((&again["fenced_workers"], &again["interrupted_jobs"]), (&0.into(), &0.into()));
    bench.windlass(&["db", "check"]).code(0);
    bench.windlass(&["db", "restore"]).fails(2, &["BACKUP"]);
}

#[test]
fn everything_is_deleted_only_with_yes() {
    let bench = bench_with_a_run();
    bench.windlass(&["db", "prune", "--keep", "0"]).fails(2, &["--keep 0 deletes every run", "--yes"]);
    assert_eq!(bench.json(&["runs"]).as_array().unwrap().len(), 1);
    let pruned = bench.json(&["db", "prune", "--keep", "0", "--yes"]);
    assert_eq!(pruned["deleted_runs"], 1);
}

#[test]
fn an_empty_name_of_a_database_is_refused() {
    let bench = Bench::new();
    bench.windlass(&["--db", "", "runs"]).fails(2, &["the name of the database is empty", "leave --db out"]);
    bench.windlass(&["--lease", "x", "runs"]).fails(2, &["'x'", "--lease", "write a number and a unit"]);
}

//! Jobs that belong to no run: retrying, changing and deleting them.

use crate::support::{BAD, Bench};
use serde_json::json;

/// Enqueues jobs of kind `shell` that fail, and lets a worker execute them.
fn with_dead_letters(errors: &[&str]) -> Bench {
    let bench = Bench::new();
    for code in errors {
        let payload = json!({ "run": format!("exit {code}") }).to_string();
        bench.windlass(&["enqueue", "shell", "--payload", &payload, "--max-attempts", "1"]).code(0);
    }
    execute(&bench);
    bench
}

/// Lets a worker execute all jobs that can be executed.
fn execute(bench: &Bench) {
    let mut worker = bench.start(&["worker"]);
    bench.wait_for("the ends of the jobs", || {
        let active = bench.json(&["jobs", "--status", "pending"]).as_array()?.len()
            + bench.json(&["jobs", "--status", "scheduled"]).as_array()?.len()
            + bench.json(&["jobs", "--status", "running"]).as_array()?.len();
        (active == 0).then_some(())
    });
    worker.child.kill().unwrap();
    worker.wait();
}

fn status(bench: &Bench, job: &str) -> String {
    bench.json(&["inspect", job])["status"].as_str().unwrap().to_owned()
}

#[test]
fn one_job_is_retried() {
    let bench = with_dead_letters(&["3"]);
    bench.windlass(&["retry", "j1"]).code(0).tells(&[
        "job j1 is ready to run again",
        "windlass worker",
        "why j1",
    ]);
    let retried = bench.json(&["inspect", "j1"]);
    assert_eq!((&retried["status"], &retried["failures"]), (&json!("SCHEDULED"), &json!(0)));
    bench.windlass(&["retry", "j1"]).fails(2, &["it is SCHEDULED, and has not ended", "why j1"]);
    bench.windlass(&["cancel", "j1"]).code(0);
    assert_eq!(bench.json(&["retry", "j1"])["job_id"], 1);
    bench.write("bad.toml", BAD);
    bench.windlass(&["run", "bad.toml"]).code(1);
    bench
        .windlass(&["retry", "1/load"])
        .fails(2, &["job 1/load belongs to run 1", "retry 1", "retry 1 --from load"]);
    bench.windlass(&["retry", "j99"]).fails(5, &["job j99 does not exist"]);
}

#[test]
fn all_dead_letters_of_a_kind_or_an_error_are_retried() {
    let bench = with_dead_letters(&["3", "3", "4"]);
    let error = ["retry", "--status", "failed", "--kind", "shell", "--error", "CODE 3"];
    bench
        .windlass(&error)
        .code(0)
        .tells(&["2 jobs would run again (FAILED, kind `shell`, error with `CODE 3`); --yes"]);
    assert_eq!(bench.json(&error), json!({ "matching_jobs": 2, "retried_jobs": 0 }));
    assert_eq!(status(&bench, "j1"), "FAILED", "nothing was changed");
    bench.windlass(&[&error[..], &["--dry-run"]].concat()).code(0).tells(&["2 jobs would run again"]);
    let yes = [&error[..], &["--yes"]].concat();
    bench.windlass(&yes).code(0).tells(&["2 jobs are ready to run again"]);
    assert_eq!([1, 2, 3].map(|job| status(&bench, &format!("j{job}"))), ["SCHEDULED", "SCHEDULED", "FAILED"]);
    bench
        .windlass(&yes)
        .code(0)
        .tells(&["no job that belongs to no run matches", "windlass jobs --status failed"]);
    assert_eq!(
        bench.json(&["retry", "--kind", "shell", "--yes"]),
        json!({ "matching_jobs": 1, "retried_jobs": 1 })
    );
    bench.windlass(&["retry", "--status", "running"]).fails(2, &["FAILED or CANCELLED"]);
    bench.windlass(&["retry", "1", "--kind", "shell"]).fails(2, &["cannot be used with"]);
    bench.windlass(&["retry", "--yes"]).fails(2, &["required"]);
    execute(&bench);
    assert_eq!(bench.json(&["inspect", "j3"])["attempt"], 2);
}

#[test]
fn a_job_that_waits_is_changed() {
    let bench = Bench::new();
    bench.windlass(&["enqueue", "mail"]).code(0);
    bench
        .windlass(&["change", "j1", "--at", "2099-01-01T00:00:00Z"])
        .code(0)
        .tells(&["job j1 starts at 2099-01-01"]);
    let changed = bench.json(&["change", "j1", "--priority", "high", "--queue", "slow"]);
    assert_eq!(
        (&changed["priority"], &changed["queue"], &changed["status"]),
        (&json!(10), &json!("slow"), &json!("SCHEDULED"))
    );
    bench.windlass(&["change", "j1", "--in", "0s"]).code(0);
    bench.windlass(&["change", "j1"]).fails(2, &["required"]);
    bench
        .windlass(&["change", "j1", "--in", "1h", "--at", "2099-01-01T00:00:00Z"])
        .fails(2, &["cannot be used with"]);
    bench.windlass(&["cancel", "j1"]).code(0);
    bench
        .windlass(&["change", "j1", "--queue", "x"])
        .fails(2, &["it is CANCELLED, and does not wait", "why j1"]);
}

#[test]
fn jobs_are_deleted() {
    let bench = with_dead_letters(&["3"]);
    bench.windlass(&["enqueue", "mail"]).code(0);
    bench.write("bad.toml", BAD);
    bench.windlass(&["run", "bad.toml"]).code(1);
    bench.windlass(&["delete", "1/load"]).fails(2, &["it belongs to run 1", "db prune"]);
    bench.windlass(&["delete", "1"]).fails(2, &["1 is a run", "db prune"]);
    bench.windlass(&["delete", "j1", "j99"]).fails(5, &["job j99 does not exist"]);
    assert_eq!(status(&bench, "j1"), "FAILED", "all are found before one is deleted");
    assert_eq!(bench.json(&["delete", "j1", "j2"]), json!([{ "job_id": 1 }, { "job_id": 2 }]));
    bench.windlass(&["inspect", "j1"]).fails(5, &["job j1 does not exist"]);
    bench.windlass(&["db", "check"]).code(0);
}

#[test]
fn all_dead_letters_that_match_are_deleted() {
    let bench = with_dead_letters(&["3", "3", "4"]);
    let bounced = ["delete", "--kind", "shell", "--error", "code 3"];
    for preview in [&bounced[..], &[&bounced[..], &["--dry-run"]].concat()] {
        bench.windlass(preview).code(0).tells(&[
            "2 jobs would be deleted (FAILED, kind `shell`, error with `code 3`); --yes deletes them",
        ]);
    }
    assert_eq!(bench.json(&bounced), json!({ "matching_jobs": 2, "deleted_jobs": 0 }));
    bench.windlass(&[&bounced[..], &["--yes"]].concat()).code(0).tells(&["deleted: 2 jobs"]);
    bench.windlass(&["inspect", "j1"]).fails(5, &["job j1 does not exist"]);
    assert_eq!(status(&bench, "j3"), "FAILED");
    bench.windlass(&bounced).code(0).tells(&["no job that belongs to no run matches"]);
    bench.windlass(&["delete", "--status", "pending"]).fails(2, &["FAILED or CANCELLED"]);
    bench.windlass(&["delete", "j3", "--kind", "shell"]).fails(2, &["cannot be used with"]);
    bench.windlass(&["delete", "--kind", "shell", "--yes", "--dry-run"]).fails(2, &["cannot be used with"]);
    bench.windlass(&["delete"]).fails(2, &["required"]);
}

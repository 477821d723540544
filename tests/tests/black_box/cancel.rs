//! Stopping a run or a job from another process, and deadlines of runs.

use windlass_tests::{Engine, Sandbox, eventually};

use crate::support::{assert_says, job_id};

const TWO_BRANCHES: &str = r#"
name = "branches"
[jobs.long]
run = 'echo long >> started; sleep 600'
[jobs.after]
needs = ["long"]
run = 'true'
[jobs.short]
run = 'true'
"#;

fn start(sandbox: &Sandbox) -> Engine {
    let file = sandbox.write("branches.toml", TWO_BRANCHES);
    let engine = sandbox.spawn(&["run", &file, "--threads", "2"]);
    eventually("both branches", || {
        let short_done = || sandbox.tables().jobs_of(1)["short"].status == "SUCCESSFUL";
        (sandbox.read("started") == "long\n" && short_done()).then_some(())
    });
    engine
}

#[test]
fn a_cancelled_run_stops_running_jobs_and_starts_none() {
    let sandbox = Sandbox::new();
    let mut engine = start(&sandbox);
    sandbox.run(&["cancel", "1"]).exited(0);
    assert_says(&engine.wait(), 3, &["cancelled"]);
    let jobs = sandbox.tables().jobs_of(1);
    let statuses = ["long", "after", "short"].map(|name| jobs[name].status.as_str());
    assert_eq!(statuses, ["CANCELLED", "CANCELLED", "SUCCESSFUL"]);
    assert_eq!(sandbox.tables().run_status(1), "CANCELLED");
    assert_eq!(sandbox.leftovers(), []);
}

#[test]
fn a_cancelled_job_takes_its_children_with_it() {
    let sandbox = Sandbox::new();
    let mut engine = start(&sandbox);
    let job = job_id(&sandbox, 1, "long");
    sandbox.run(&["cancel", &format!("j{job}")]).exited(0);
    let ended = engine.wait();
    assert!(matches!(ended.code, Some(1 | 3)), "{ended:?}");
    let jobs = sandbox.tables().jobs_of(1);
    let statuses = ["long", "after", "short"].map(|name| jobs[name].status.as_str());
    assert_eq!(statuses, ["CANCELLED", "SKIPPED", "SUCCESSFUL"]);
    assert_eq!(sandbox.leftovers(), []);
}

#[test]
fn cancelling_an_ended_run_changes_nothing() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("done.toml", "name = \"done\"\n[jobs.a]\nrun = 'true'\n");
    sandbox.run(&["run", &file]).exited(0);
    let outcome = sandbox.run(&["cancel", "1"]);
    assert!(outcome.stderr.to_lowercase().contains("successful"), "{outcome:?}");
    assert_eq!(sandbox.tables().run_status(1), "SUCCESSFUL");
}

#[test]
fn a_run_that_times_out_ends_with_4() {
    let sandbox = Sandbox::new();
    let file = sandbox.write(
        "slow.toml",
        "name = \"slow\"\ntimeout = \"300ms\"\n[jobs.a]\nrun = 'sleep 600'\n[jobs.b]\nneeds = [\"a\"]\nrun = 'true'\n",
    );
    assert_says(&sandbox.run(&["run", &file]), 4, &["timed out"]);
    let reason: String = sandbox.tables().value("SELECT stop_reason FROM runs");
    assert_eq!(reason, "timed_out");
    assert_eq!(sandbox.leftovers(), []);
}

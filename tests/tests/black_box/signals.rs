//! Ctrl-C: the first one waits for running jobs, the second one stops them. The run can be resumed after both.

use rustix::process::Signal;
use windlass_tests::{Engine, Sandbox, eventually};

use crate::support::{assert_says, submit};

/// Two jobs: the first waits for the file `go`, the second needs the first.
const TWO_JOBS: &str = r#"
name = "two-jobs"
[jobs.first]
run = 'echo first >> started; until [ -e go ]; do sleep 0.02; done'
[jobs.second]
needs = ["first"]
run = 'echo second >> started'
"#;

/// Starts the run and waits until its first job runs.
fn start(sandbox: &Sandbox) -> Engine {
    let file = sandbox.write("two-jobs.toml", TWO_JOBS);
    let engine = sandbox.spawn(&["run", &file]);
    eventually("the first job's start", || (sandbox.read("started") == "first\n").then_some(()));
    engine
}

#[test]
fn the_first_drains() {
    for signal in [Signal::INT, Signal::TERM] {
        let sandbox = Sandbox::new();
        let mut engine = start(&sandbox);
        engine.signal(signal);
        eventually("word of the drain", || engine.stderr_so_far().contains("stopping").then_some(()));
        assert!(engine.is_running(), "it did not wait for the running job");
        sandbox.write("go", "");
        let outcome = engine.wait();
        assert_says(&outcome, 130, &["windlass resume 1"]);

        assert_eq!(sandbox.read("started"), "first\n", "a new job was started while draining");
        let jobs = sandbox.tables().jobs_of(1);
        assert_eq!((jobs["first"].status.as_str(), jobs["first"].attempt), ("SUCCESSFUL", 1));
        sandbox.run(&["resume", "1"]).exited(0);
        assert_eq!(sandbox.read("started"), "first\nsecond\n");
    }
}

#[test]
fn the_second_stops_what_runs() {
    let sandbox = Sandbox::new();
    let mut engine = start(&sandbox);
    engine.signal(Signal::INT);
    eventually("word of the drain", || engine.stderr_so_far().contains("stopping").then_some(()));
    engine.signal(Signal::INT);
    let outcome = engine.wait();
    assert_says(&outcome, 130, &["windlass resume 1"]);
    assert_eq!(sandbox.leftovers(), []);

    sandbox.write("go", "");
    sandbox.run(&["resume", "1"]).exited(0);
    assert_eq!(sandbox.read("started"), "first\nfirst\nsecond\n");
}

#[test]
fn a_drained_worker_leaves_other_jobs() {
    let sandbox = Sandbox::new();
    let run = submit(&sandbox, &sandbox.write("two-jobs.toml", TWO_JOBS));
    let mut worker = sandbox.spawn(&["worker"]);
    eventually("the first job's start", || (sandbox.read("started") == "first\n").then_some(()));
    worker.signal(Signal::TERM);
    eventually("word of the drain", || worker.stderr_so_far().contains("stopping").then_some(()));
    sandbox.write("go", "");
    assert_says(&worker.wait(), 0, &[]);
    sandbox.run(&["worker", "--until-idle"]).exited(0);
    assert_eq!(sandbox.tables().run_status(run), "SUCCESSFUL");
}

//! `serve` and signals: draining within the grace period, stopping, reloading, and `kill -9`.

use std::fs;

use rustix::process::Signal;
use windlass_tests::{Engine, Sandbox, eventually};

use crate::support::{assert_says, submit};

/// Two jobs. The first runs until the file `go` exists.
const TWO_JOBS: &str = r#"
name = "two-jobs"
[jobs.first]
run = 'echo first >> started; until [ -e go ]; do sleep 0.02; done'
[jobs.second]
needs = ["first"]
run = 'echo second >> started'
"#;

fn await_word(service: &mut Engine, word: &str) {
    eventually(&format!("{word:?} in the log"), || {
        assert!(service.is_running(), "the service ended: {}", service.stderr_so_far());
        service.stderr_so_far().contains(word).then_some(())
    });
}

/// A service that executes the first job of a run.
fn busy(sandbox: &Sandbox, options: &[&str]) -> (Engine, i64) {
    let mut service = sandbox.spawn(&[&["serve"], options].concat());
    await_word(&mut service, " serves ");
    let run = submit(sandbox, &sandbox.write("two-jobs.toml", TWO_JOBS));
    eventually("the first job's start", || (sandbox.read("started") == "first\n").then_some(()));
    (service, run)
}

#[test]
fn a_job_that_ends_within_the_grace_period_is_finished_and_others_are_left() {
    let sandbox = Sandbox::new();
    let (mut service, run) = busy(&sandbox, &["--grace", "1h"]);
    service.signal(Signal::TERM);
    await_word(&mut service, "stopping");
    sandbox.write("go", "");
    assert_says(&service.wait(), 0, &["stopping"]);
    let jobs = sandbox.tables().jobs_of(run);
    assert_eq!((jobs["first"].status.as_str(), jobs["first"].interruptions), ("SUCCESSFUL", 0));
    assert_eq!(jobs["second"].status, "PENDING");
    assert_eq!(sandbox.read("started"), "first\n", "a new job was started while draining");
    sandbox.run(&["worker", "--until-idle"]).exited(0);
    assert_eq!(sandbox.tables().run_status(run), "SUCCESSFUL");
}

#[test]
fn a_job_that_outlasts_the_grace_period_runs_on_another_worker() {
    let sandbox = Sandbox::new();
    let (mut service, run) = busy(&sandbox, &["--grace", "100ms"]);
    service.signal(Signal::TERM);
    let outcome = service.wait();
    assert_says(&outcome, 0, &["stopping", "the grace period is over"]);
    assert_eq!(sandbox.leftovers(), []);
    let jobs = sandbox.tables().jobs_of(run);
    assert_eq!((jobs["first"].status.as_str(), jobs["first"].interruptions), ("PENDING", 1));
    sandbox.write("go", "");
    sandbox.run(&["worker", "--until-idle"]).exited(0);
    assert_eq!(sandbox.read("started"), "first\nfirst\nsecond\n");
    assert_eq!(sandbox.tables().run_status(run), "SUCCESSFUL");
}

#[test]
fn a_second_signal_ends_the_grace_period() {
    let sandbox = Sandbox::new();
    let (mut service, _run) = busy(&sandbox, &["--grace", "1h"]);
    service.signal(Signal::TERM);
    await_word(&mut service, "stopping");
    service.signal(Signal::TERM);
    assert_says(&service.wait(), 0, &["second signal"]);
    assert_eq!(sandbox.leftovers(), []);
}

#[test]
fn ctrl_c_drains_and_has_its_own_exit_code() {
    let sandbox = Sandbox::new();
    let (mut service, _run) = busy(&sandbox, &[]);
    service.signal(Signal::INT);
    await_word(&mut service, "stopping");
    sandbox.write("go", "");
    assert_says(&service.wait(), 130, &["unfinished runs and jobs are kept", "windlass serve"]);
}

#[test]
fn the_next_service_continues_the_jobs_of_a_killed_one() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("flows")).expect("a sandbox can be written to");
    sandbox.write("flows/two-jobs.toml", TWO_JOBS);
    let options = ["--workflows", "flows"];
    let (mut service, run) = busy(&sandbox, &options);
    service.kill_9();
    sandbox.write("go", "");
    let mut next = sandbox.spawn(&["serve", "--workflows", "flows"]);
    eventually("the end of the run", || (sandbox.tables().run_status(run) == "SUCCESSFUL").then_some(()));
    assert_eq!(sandbox.read("started"), "first\nfirst\nsecond\n");
    await_word(&mut next, "1 workflow");
    let versions = sandbox.run(&["workflows", "history", "two-jobs", "-o", "json"]).exited(0).json();
    assert_eq!(versions.as_array().map(Vec::len), Some(1), "nothing was registered twice");
    next.signal(Signal::TERM);
    assert_says(&next.wait(), 0, &[]);
}

#[test]
fn two_services_share_the_work() {
    let sandbox = Sandbox::new();
    let mut services: Vec<Engine> =
        (0..2).map(|_number| sandbox.spawn(&["serve", "--threads", "1"])).collect();
    for service in &mut services {
        await_word(service, " serves ");
    }
    let both = "[jobs.a]\nrun = 'touch a; until [ -e b ]; do sleep 0.02; done'\n\
                [jobs.b]\nrun = 'touch b; until [ -e a ]; do sleep 0.02; done'\n";
    let run = submit(&sandbox, &sandbox.write("both.toml", both));
    eventually("the end of the run", || (sandbox.tables().run_status(run) == "SUCCESSFUL").then_some(()));
}

#[test]
fn a_reload_applies_settings_and_names_those_that_need_a_restart() {
    let sandbox = Sandbox::new();
    for folder in ["old", "new"] {
        fs::create_dir(sandbox.path(folder)).expect("a sandbox can be written to");
        sandbox.write(&format!("{folder}/{folder}.toml"), "[jobs.only]\nrun = 'true'\n");
    }
    sandbox.write("windlass.toml", "workflows = 'old'\nthreads = 2\n");
    let mut service = sandbox.spawn(&["serve"]);
    await_word(&mut service, "2 threads");
    sandbox.write(
        "windlass.toml",
        "workflows = 'new'\nthreads = 3\nlog_level = 'debug'\n[retention]\nmax_age = '30d'\n",
    );
    service.signal(Signal::HUP);
    await_word(&mut service, "reloaded");
    let log = service.stderr_so_far();
    for word in [
        "these settings change only after a restart: threads",
        "retention: for 30d",
        "workflow registered",
        "workflow=new",
    ] {
        assert!(log.contains(word), "{word:?} is not in\n{log}");
    }
    // A missing folder leaves the current one active. The next reload tries again.
    let missing = "workflows = 'missing'\n[retention]\nmax_age = '30d'\n";
    for _reload in 0..2 {
        let before = service.stderr_so_far().matches("the folder of workflows stays unchanged").count();
        sandbox.write("windlass.toml", missing);
        service.signal(Signal::HUP);
        eventually("word of the missing folder", || {
            let log = service.stderr_so_far();
            (log.matches("the folder of workflows stays unchanged").count() > before).then_some(())
        });
    }
    // An invalid configuration changes nothing.
    sandbox.write("windlass.toml", "wrokflows = 'old'\n");
    service.signal(Signal::HUP);
    await_word(&mut service, "did you mean `workflows`?");
    sandbox.write("new/another.toml", "[jobs.only]\nrun = 'true'\n");
    await_word(&mut service, "workflow=another");
    service.signal(Signal::TERM);
    assert_says(&service.wait(), 0, &[]);
}

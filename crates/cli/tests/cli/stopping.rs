//! Stopping: by `cancel`, by signals, by `kill -9`.

use rustix::process::Signal;

use crate::support::{Bench, Running, SLOW};

fn slow() -> (Bench, Running) {
    let bench = Bench::new();
    bench.write("slow.toml", SLOW);
    let running = bench.start(&["run", "slow.toml"]);
    bench.wait_for("a database", || bench.database.exists().then_some(()));
    bench.wait_for_status("1/wait", "RUNNING");
    (bench, running)
}

#[test]
fn a_cancelled_run_ends_with_its_own_exit_code() {
    let (bench, running) = slow();
    bench.windlass(&["cancel", "1"]).code(0).tells(&["run 1 is being cancelled", "windlass watch 1"]);
    running.wait().code(3).tells(&["run 1 cancelled in ", "windlass retry 1"]);
    bench.windlass(&["cancel", "1"]).code(0).tells(&["already CANCELLED"]);
    bench.windlass(&["cancel", "1/wait"]).code(0).tells(&["already CANCELLED"]);
    bench
        .windlass(&["why", "1/wait"])
        .code(0)
        .says(&["It was cancelled: sent SIGTERM", "`windlass retry 1`"]);
    bench.windlass(&["cancel", "8"]).fails(5, &["run 8 does not exist"]);
    bench.windlass(&["cancel", "1/wiat"]).fails(5, &["no job `wiat`", "`wait`"]);
}

#[test]
fn a_cancelled_job_skips_what_needs_it() {
    let (bench, running) = slow();
    bench.windlass(&["cancel", "1/wait"]).code(0).tells(&["job 1/wait is being cancelled"]);
    let outcome = running.wait();
    assert!([1, 3].contains(&outcome.code), "{outcome:#?}");
    outcome.tells(&["after skipped: `wait` is CANCELLED"]);
}

#[test]
fn the_first_signal_lets_running_jobs_finish() {
    let (bench, running) = slow();
    running.signal(Signal::INT);
    bench.wait_for("the worker to drain", || {
        let stats = bench.json(&["stats"]);
        (stats["workers"][0]["status"] == "DRAINING").then_some(())
    });
    bench.write("go", "");
    running.wait().code(130).tells(&[
        "stopping: waiting for running jobs to finish",
        "wait successful",
        "run 1 is interrupted: 1 of 2 jobs",
        "resume with: windlass resume 1\n",
    ]);
    let run = bench.json(&["inspect", "1"]);
    assert_eq!(run["interrupted"], true);
    assert_eq!(run["jobs"][0]["status"], "SUCCESSFUL");
    bench.windlass(&["inspect", "1"]).code(0).says(&["(interrupted)", "windlass resume 1"]);
    bench.windlass(&["resume", "1"]).code(0).tells(&["2 jobs, 1 finished before", "run 1 successful"]);
}

#[test]
fn the_second_signal_stops_running_jobs() {
    let (bench, running) = slow();
    running.signal(Signal::TERM);
    bench.wait_for("the worker to drain", || {
        let stats = bench.json(&["stats"]);
        (stats["workers"][0]["status"] == "DRAINING").then_some(())
    });
    running.signal(Signal::TERM);
    running.wait().code(130).tells(&["stopping running jobs", "resume with: windlass resume 1\n"]);
    bench.write("go", "");
    bench.windlass(&["resume"]).code(0).tells(&["wait started, attempt 2", "run 1 successful"]);
}

#[test]
fn a_killed_run_continues_where_it_was() {
    let (bench, mut running) = slow();
    running.child.kill().unwrap();
    running.wait();
    bench.windlass(&["runs"]).code(0).says(&["RUNNING (interrupted)", "0/2"]);
    bench.write("go", "");
    bench.windlass(&["resume"]).code(0).tells(&["wait successful", "after successful", "run 1 successful"]);
    let run = bench.json(&["inspect", "1"]);
    assert_eq!(run["jobs"][0]["attempt"], 2);
    assert_eq!(run["jobs"][0]["interruptions"], 1);
}

#[test]
fn a_run_whose_engine_was_killed_can_be_cancelled() {
    let (bench, mut running) = slow();
    running.child.kill().unwrap();
    running.wait();
    bench.windlass(&["cancel", "1"]).code(0).tells(&["run 1 is cancelled"]);
    bench.windlass(&["runs"]).code(0).says(&["CANCELLED"]);
}

#[test]
fn watch_follows_a_run_of_a_worker() {
    let bench = Bench::new();
    bench.write("slow.toml", SLOW);
    bench.windlass(&["submit", "slow.toml"]).code(0);
    let watch = bench.start(&["watch", "1", "-o", "json"]);
    let logs = bench.start(&["logs", "1", "-f"]);
    let worker = bench.start(&["worker", "--until-idle"]);
    bench.wait_for_status("1/wait", "RUNNING");
    bench.write("go", "");
    let watched = watch.wait();
    watched.code(0).tells(&["run 1  slow  2 jobs", "after successful", "run 1 successful"]);
    watched.says(&["\"status\": \"SUCCESSFUL\""]);
    logs.wait().code(0).says(&["wait  | went", "after | after"]);
    worker.wait().code(0).tells(&["worker started", "no job is left"]);
    bench.windlass(&["watch", "9"]).fails(5, &["run 9 does not exist"]);
}

#[test]
fn watch_says_when_no_worker_executes_the_run() {
    let (bench, mut running) = slow();
    let watch = bench.start(&["watch", "1"]);
    watch.wait_until_it_tells(&bench, "run 1  slow");
    running.child.kill().unwrap();
    running.wait();
    bench.write("go", "");
    bench.wait_for_status("1/wait", "PENDING");
    watch.wait_until_it_tells(&bench, "no worker executes this run");
    bench.windlass(&["resume", "1"]).code(0);
    watch
        .wait()
        .code(0)
        .tells(&["no worker executes this run; `windlass resume 1` continues it", "run 1 successful"]);
}

#[test]
fn sigterm_is_a_success_and_ctrl_c_is_an_interruption() {
    for (signal, code) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let bench = Bench::new();
        let worker = bench.start(&["worker"]);
        worker.wait_until_it_tells(&bench, "worker started");
        worker.signal(signal);
        let outcome = worker.wait();
        outcome.code(code).tells(&["stopping"]);
        let hint = "stopped; unfinished runs and jobs are kept\nresume with: windlass worker";
        assert_eq!(outcome.stderr.contains(hint), code == 130, "{outcome:#?}");
    }
}

//! A job whose engine died: it runs again, up to a limit.

use std::time::{Duration, Instant};

use windlass_tests::{Engine, Sandbox, eventually};

use crate::support::{assert_says, job_id, submit};

/// Much less than the lease of 30 seconds: a rescue within this time needs a proof of death.
const WELL_WITHIN_THE_LEASE: Duration = Duration::from_secs(15);

/// A job that writes a line to a file and runs until it is killed. If the file `go` exists, it ends at once.
fn waiting_job(extra: &str) -> String {
    format!(
        "name = \"waiting\"\n[jobs.waits]\n{extra}\n\
         run = 'echo \"$WINDLASS_ATTEMPT $WINDLASS_IDEMPOTENCY_KEY\" >> started; test -e go || sleep 600'\n"
    )
}

fn starts(sandbox: &Sandbox) -> usize {
    sandbox.read("started").lines().count()
}

/// Starts an engine, waits until the job runs in it, and kills the engine.
fn start_and_kill(sandbox: &Sandbox) {
    let before = starts(sandbox);
    let mut engine = sandbox.spawn(&["resume"]);
    await_start(sandbox, before, &mut engine);
    engine.kill_9();
}

fn await_start(sandbox: &Sandbox, before: usize, engine: &mut Engine) {
    eventually("the job's start", || {
        assert!(engine.is_running(), "the engine ended: {}", engine.stderr_so_far());
        (starts(sandbox) > before).then_some(())
    });
}

#[test]
fn an_interrupted_job_runs_again_with_the_same_key() {
    let sandbox = Sandbox::new();
    let run = submit(&sandbox, &sandbox.write("waiting.toml", waiting_job("")));
    start_and_kill(&sandbox);
    sandbox.write("go", "");
    sandbox.run(&["resume", &run.to_string()]).exited(0);
    let started = sandbox.read("started");
    let (attempts, keys): (Vec<&str>, Vec<&str>) =
        started.lines().filter_map(|line| line.split_once(' ')).unzip();
    assert_eq!(attempts, ["1", "2"]);
    assert!(!keys[0].is_empty());
    assert_eq!(keys[0], keys[1], "the key is the job's, not the attempt's");
    let tables = sandbox.tables();
    let job = &tables.jobs()[0];
    assert_eq!((job.attempt, job.interruptions, job.failures), (2, 1, 0));
    assert_eq!(tables.attempts()[0].outcome, "interrupted");
    assert_eq!(sandbox.leftovers(), []);
}

#[test]
fn a_job_that_must_not_run_twice_fails_and_says_why() {
    let sandbox = Sandbox::new();
    let run = submit(&sandbox, &sandbox.write("waiting.toml", waiting_job("on_interrupt = \"fail\"")));
    start_and_kill(&sandbox);
    sandbox.write("go", "");
    sandbox.run(&["resume"]).exited(1);
    let tables = sandbox.tables();
    let job = &tables.jobs_of(run)["waits"];
    assert_eq!(job.status, "FAILED");
    let error = job.last_error.clone().unwrap_or_default();
    assert!(error.contains("interrupted, outcome unknown"), "{error}");
    assert_eq!(starts(&sandbox), 1, "it was started again");
    eventually("the end of its processes", || sandbox.leftovers().is_empty().then_some(()));
}

#[test]
fn interruptions_have_a_limit() {
    let sandbox = Sandbox::new();
    let run = submit(&sandbox, &sandbox.write("waiting.toml", waiting_job("max_interruptions = 2")));
    for _ in 0..3 {
        start_and_kill(&sandbox);
    }
    sandbox.run(&["resume"]).exited(1);
    let job = &sandbox.tables().jobs_of(run)["waits"];
    assert_eq!((job.status.as_str(), job.attempt, job.interruptions), ("FAILED", 3, 3));
    assert_eq!(starts(&sandbox), 3, "it was started once too often");
}

#[test]
fn a_dead_worker_is_noticed_before_its_lease_ends() {
    let sandbox = Sandbox::new();
    submit(&sandbox, &sandbox.write("waiting.toml", waiting_job("")));
    let mut first = sandbox.spawn(&["worker"]);
    await_start(&sandbox, 0, &mut first);
    let mut second = sandbox.spawn(&["worker", "--until-idle"]);
    eventually("the second worker's registration", || {
        let workers: i64 = sandbox.tables().value("SELECT count(*) FROM workers WHERE status = 'ALIVE'");
        (workers == 2).then_some(())
    });
    sandbox.write("go", "");
    first.kill_9();
    let killed_at = Instant::now();
    second.wait().exited(0);
    assert!(killed_at.elapsed() < WELL_WITHIN_THE_LEASE, "took {:?}", killed_at.elapsed());
    assert_eq!(sandbox.tables().jobs()[0].status, "SUCCESSFUL");
}

#[test]
fn nothing_to_resume_is_not_a_failure() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("done.toml", "name = \"done\"\n[jobs.a]\nrun = 'true'\n");
    sandbox.run(&["run", &file]).exited(0);
    let outcome = sandbox.run(&["resume"]);
    assert_says(&outcome, 0, &["nothing"]);
    assert_says(&sandbox.run(&["resume", "99"]), 5, &["99"]);
}

#[test]
fn a_run_keeps_the_definition_it_was_submitted_with() {
    let sandbox = Sandbox::new();
    let file =
        sandbox.write("pinned.toml", "name = \"pinned\"\n[jobs.a]\nrun = 'echo old'\noutput = \"text\"\n");
    let run = submit(&sandbox, &file);
    sandbox.write("pinned.toml", "name = \"pinned\"\n[jobs.a]\nrun = 'echo new'\noutput = \"text\"\n");
    sandbox.run(&["resume"]).exited(0);
    let job = &sandbox.tables().jobs_of(run)["a"];
    assert_eq!(job.output.as_deref(), Some("\"old\""));
    assert_eq!(job.id, job_id(&sandbox, run, "a"));
}

//! Promise: an event that was answered, and the end of a run, start exactly one run of each workflow that takes them, with
//! two services and whatever is killed.

use std::time::Duration;

use windlass_tests::seed::{round_rng, seed};
use windlass_tests::{Engine, Sandbox, eventually};

const DEPLOY: &str = r#"
    name = "deploy"
    [params]
    n = { type = "integer" }
    [[triggers]]
    event = "push"
    if = "event.payload.n >= 0"
    params = { n = "{{ event.payload.n }}" }
    [jobs.only]
    run = 'test "$WINDLASS_PARAM_N" -ne 3'
"#;

const ALERT: &str = r#"
    name = "alert"
    [params]
    of = {}
    [[triggers]]
    after = ["*"]
    status = ["FAILED"]
    params = { of = "{{ event.run.workflow }} {{ event.run.id }}" }
    [jobs.only]
    env = { OF = "{{ params.of }}" }
    run = 'echo "$OF" >> alerts.txt'
"#;

const EVENTS: i64 = 12;

fn apply(sandbox: &Sandbox) {
    std::fs::create_dir_all(sandbox.path("flows")).expect("a sandbox can be written to");
    sandbox.write("flows/deploy.toml", DEPLOY);
    sandbox.write("flows/alert.toml", ALERT);
    sandbox.run(&["apply", "flows"]).exited(0);
}

fn serve(sandbox: &Sandbox) -> Engine {
    sandbox.spawn(&["serve", "--workflows", "flows"])
}

/// Waits until all runs have ended: one for each event, and an alert for the one that failed.
fn await_runs(sandbox: &Sandbox) {
    let tables = sandbox.tables();
    eventually("the runs of all events, and an alert", || {
        let left: i64 = tables.value("SELECT count(*) FROM runs WHERE finished_at IS NULL");
        let runs: i64 = tables.value("SELECT count(*) FROM runs");
        (left == 0 && runs > EVENTS).then_some(())
    });
    eventually("nothing left to dispatch", || {
        let left: i64 = tables.value(
            "SELECT (SELECT count(*) FROM events WHERE dispatched_at IS NULL) + (SELECT count(*) FROM run_ends)",
        );
        (left == 0).then_some(())
    });
}

fn assert_one_run_each(sandbox: &Sandbox) {
    let tables = sandbox.tables();
    let numbers: i64 = tables.value("SELECT count(DISTINCT params) FROM runs WHERE workflow = 'deploy'");
    let deploys: i64 = tables.value("SELECT count(*) FROM runs WHERE workflow = 'deploy'");
    assert_eq!((deploys, numbers), (EVENTS, EVENTS));
    let failed: i64 = tables.value("SELECT id FROM runs WHERE workflow = 'deploy' AND status = 'FAILED'");
    let alerts =
        tables.rows("SELECT params FROM runs WHERE workflow = 'alert'", |row| row.get::<_, String>(0));
    assert_eq!(alerts, [format!("{{\"of\":\"deploy {failed}\"}}")]);
    sandbox.run(&["db", "check"]).exited(0);
}

#[test]
fn signals_start_one_run_each_with_services_that_are_killed_at_random_moments() {
    let mut rng = round_rng(seed("signals_start_one_run_each"), 0);
    let sandbox = Sandbox::new();
    apply(&sandbox);
    for n in 0..EVENTS {
        if n % 3 == 0 {
            let mut services = [serve(&sandbox), serve(&sandbox)];
            // This is no wait for a condition: the moment of the kill is random.
            std::thread::sleep(Duration::from_millis(rng.u64(0..300)));
            services.iter_mut().for_each(Engine::kill_9);
        }
        let payload = format!("{{\"n\": {n}}}");
        sandbox.run(&["signal", "push", "--payload", &payload, "--id", &format!("id-{n}")]).exited(0);
    }
    let _services = [serve(&sandbox), serve(&sandbox)];
    await_runs(&sandbox);
    assert_one_run_each(&sandbox);
}

#[test]
fn a_trigger_is_shown_where_its_workflow_is_and_doctor_says_why_it_started_nothing() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("flows")).expect("a sandbox can be written to");
    sandbox.write("flows/deploy.toml", DEPLOY);
    let applied = sandbox.run(&["apply", "flows/deploy.toml"]).exited(0);
    assert!(
        format!("{}{}", applied.stdout, applied.stderr).contains("trigger event push"),
        "{}",
        applied.stdout
    );
    assert!(sandbox.run(&["workflows"]).exited(0).stdout.contains("event push"));
    let service = serve(&sandbox);
    sandbox.run(&["signal", "push", "--payload", "{\"n\": 1}"]).exited(0);
    eventually("the log names the run, the trigger and what started it", || {
        let log = service.stderr_so_far();
        let line = log.lines().find(|line| line.contains("the trigger starts a run"))?.to_owned();
        let parts = ["run_id=1", "trigger=deploy/", "started_by=event:1"];
        parts.iter().all(|part| line.contains(part)).then_some(())
    });
    sandbox.run(&["signal", "push", "--payload", "{\"n\": \"x\"}"]).exited(0);
    eventually("doctor says why", || {
        let doctor = sandbox.run(&["doctor"]).stdout;
        (doctor.contains("deploy/default") && doctor.contains("started no run for event:2")).then_some(())
    });
    let shown = sandbox.run(&["workflows", "show", "deploy"]).exited(0).stdout;
    assert!(shown.contains("default: event push") && shown.contains("started no run for event:2"), "{shown}");
    sandbox.run(&["signal", "push", "--payload", "{\"n\": 4}"]).exited(0);
    eventually("the next event starts a run", || {
        let runs = sandbox.run(&["runs", "-o", "json"]).exited(0).json();
        (runs[0]["source"] == "event" && runs[0]["status"] == "SUCCESSFUL").then_some(())
    });
    assert!(!sandbox.run(&["doctor"]).stdout.contains("started no run"));
}

/// A run whose only job calls a workflow that fails.
const OUTER: &str = r#"
    name = "outer"
    [workflows.inner.jobs.only]
    run = "exit 1"
    [jobs.call]
    workflow = "inner"
"#;

#[test]
fn a_run_that_a_job_has_started_starts_nothing_and_the_run_at_the_top_does() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("flows")).expect("a sandbox can be written to");
    sandbox.write("flows/alert.toml", ALERT);
    let outer = sandbox.write("outer.toml", OUTER);
    sandbox.run(&["apply", "flows"]).exited(0);
    sandbox.run(&["run", &outer]).exited(1);
    let _service = serve(&sandbox);
    let tables = sandbox.tables();
    eventually("the alert", || {
        let ended: i64 = tables.value(
            "SELECT count(*) FROM runs WHERE workflow = 'alert' AND status = 'SUCCESSFUL'
             AND (SELECT count(*) FROM run_ends) = 0",
        );
        (ended > 0).then_some(())
    });
    assert_eq!(tables.value::<i64>("SELECT count(*) FROM runs WHERE parent_job_id IS NOT NULL"), 1);
    assert_eq!(sandbox.read("flows/alerts.txt"), "outer 1\n");
}

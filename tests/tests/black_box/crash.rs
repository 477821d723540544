//! Promise: after `kill -9` at any moment, finished jobs stay finished, the others continue, and no job succeeds
//! twice.

use std::thread;
use std::time::Duration;

use windlass_tests::graphs::Graph;
use windlass_tests::seed::{number_from, round_rng, seed};
use windlass_tests::{Sandbox, audit, claims, journal, order};

use crate::support::{assert_none, probes, submit};

/// How many runs are killed. `scripts/soak` sets more.
const ROUNDS_VARIABLE: &str = "WINDLASS_CRASH_ROUNDS";
const DEFAULT_ROUNDS: u64 = 4;
const JOBS: usize = 200;
const EDGES: usize = 400;
const MOST_KILLS: u64 = 4;
/// Kills come within this time after the start of the engine. The time covers a whole undisturbed run.
const LATEST_KILL_MS: u64 = 1_500;
const LONGEST_WORK_MS: u64 = 30;

#[test]
fn killed_at_random_moments() {
    let seed = seed("killed_at_random_moments");
    let rounds = number_from(ROUNDS_VARIABLE).unwrap_or(DEFAULT_ROUNDS);
    let mut total = Damage::default();
    for round in 0..rounds {
        let damage = one_round(seed, round);
        total = Damage {
            kills: total.kills + damage.kills,
            interruptions: total.interruptions + damage.interruptions,
        };
    }
    println!(
        "{rounds} runs of {JOBS} jobs; {} kills hit a working engine and interrupted {} attempts",
        total.kills, total.interruptions
    );
    assert!(total.interruptions > 0, "no kill hit a running job: the test proves nothing");
}

/// The effects of the kills.
#[derive(Debug, Clone, Copy, Default)]
struct Damage {
    /// Kills that came before the end of the work.
    kills: u64,
    /// Attempts that kills ended.
    interruptions: i64,
}

/// A run that is killed several times, and resumed after each kill.
fn one_round(seed: u64, round: u64) -> Damage {
    let mut rng = round_rng(seed, round);
    let sandbox = Sandbox::new();
    let graph = Graph::random(&mut rng, JOBS, EDGES);
    let work: Vec<u64> = (0..JOBS).map(|_| rng.u64(0..=LONGEST_WORK_MS)).collect();
    let run = submit(&sandbox, &probes(&sandbox, "crash", &graph, |index| work[index]));
    audit::install(sandbox.database());

    let moments: Vec<u64> = (0..rng.u64(1..=MOST_KILLS)).map(|_| rng.u64(0..=LATEST_KILL_MS)).collect();
    println!("round {round}: kill -9 after {moments:?} ms");
    let mut kills = 0;
    for moment in moments {
        let mut engine = sandbox.spawn(&["resume", "--threads", "4"]);
        // This is no wait for a condition: the moment of the kill is random.
        thread::sleep(Duration::from_millis(moment));
        kills += u64::from(engine.is_running());
        engine.kill_9();
    }
    let outcome = sandbox.run(&["resume", "--threads", "4"]).exited(0);
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    assert_eq!(sandbox.tables().run_status(run), "SUCCESSFUL");
    Damage { kills, interruptions: assert_kept(&sandbox) }
}

/// Conditions and handlers: each round has one branch that is not needed, one that runs because a job failed, and handlers.
/// Whenever it is killed, it ends as an undisturbed run does.
#[test]
fn conditions_and_handlers_killed_at_random_moments() {
    assert_ends_as_undisturbed("conditions_and_handlers_killed_at_random_moments", BRANCHES);
}

/// Jobs with `for_each`: items that are read from an output, a few at a time, one of which fails, and a job that reads all
/// outputs. Whenever it is killed, it ends as an undisturbed run does, with each item once.
#[test]
fn items_killed_at_random_moments() {
    assert_ends_as_undisturbed("items_killed_at_random_moments", ITEMS);
}

/// Jobs that call workflows, two deep and for each item, one of which fails. Whenever it is killed, it ends as an undisturbed run
/// does, with the same child runs.
#[test]
fn calls_killed_at_random_moments() {
    assert_ends_as_undisturbed("calls_killed_at_random_moments", CALLS);
}

/// Runs a workflow that fails, once undisturbed, and then several times with kills.
fn assert_ends_as_undisturbed(name: &str, workflow: &str) {
    let seed = seed(name);
    let sandbox = Sandbox::new();
    sandbox.write("branches.toml", workflow);
    let outcome = sandbox.run(&["run", "branches.toml", "--threads", "4"]);
    outcome.exited(1);
    let ends = |run: i64| ends(&sandbox, run);
    let undisturbed = ends(1);
    let mut rng = round_rng(seed, 0);
    let rounds = number_from(ROUNDS_VARIABLE).unwrap_or(BRANCH_RUNS);
    for _round in 0..rounds {
        let run = submit(&sandbox, "branches.toml");
        for _kill in 0..3 {
            let mut engine = sandbox.spawn(&["resume", "--threads", "4"]);
            // This is no wait for a condition: the moment of the kill is random.
            thread::sleep(Duration::from_millis(rng.u64(0..400)));
            engine.kill_9();
        }
        let _status = sandbox.run(&["resume", "--threads", "4"]);
        assert_eq!(sandbox.tables().run_status(run), "FAILED", "run {run}");
        assert_eq!(ends(run), undisturbed, "run {run}");
    }
    sandbox.run(&["db", "check"]).exited(0);
    assert_eq!(sandbox.leftovers(), [], "processes left behind");
}

/// The names and the ends of all jobs of a run and of the runs below it, with what they gave.
fn ends(sandbox: &Sandbox, run: i64) -> Vec<(String, String, String, Option<String>)> {
    let sql = format!(
        "SELECT runs.workflow, jobs.name, jobs.status, jobs.output FROM jobs
         JOIN runs ON runs.id = jobs.run_id WHERE runs.id = {run} OR runs.root_run_id = {run}"
    );
    let mut ends =
        sandbox.tables().rows(&sql, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
    ends.sort_unstable();
    ends
}

/// How many runs of the branches are killed.
const BRANCH_RUNS: u64 = 7;

const ITEMS: &str = r#"
    name = "items"
    [jobs.list]
    run = "echo '[1, 2, 3, 4, 5, 6, 7, 8]'"
    output = "json"
    [jobs.load]
    needs = ["list"]
    for_each = { in = "jobs.list.output", max_parallel = 3 }
    run = "sleep 0.03; echo $WINDLASS_ITEM"
    output = "json"
    [jobs.check]
    needs = ["load"]
    for_each = { in = "jobs.load.output", max_parallel = 2 }
    env = { ITEM = "{{ item }}" }
    run = "sleep 0.02; test $ITEM != 3"
    [jobs.report]
    needs = ["load"]
    command = ["test", "{{ jobs.load.output }}", "=", "[1,2,3,4,5,6,7,8]"]
    [finally.clean]
    for_each = "run.failed"
    command = ["test", "{{ item }}", "=", "check[2]"]
"#;

const CALLS: &str = r#"
    name = "calls"
    [workflows.load]
    params = { n = { type = "integer" } }
    outputs = { half = "jobs.halve.output", n = "params.n" }
    [workflows.load.jobs.copy]
    run = "sleep 0.02; test $WINDLASS_PARAM_N != 3"
    [workflows.load.jobs.halve]
    needs = ["copy"]
    workflow = "halve"
    params = { n = "{{ params.n }}" }
    [workflows.load.finally.clean]
    run = "sleep 0.01"
    [workflows.halve]
    params = { n = { type = "integer" } }
    outputs = { half = "jobs.half.output" }
    [workflows.halve.jobs.half]
    run = "sleep 0.02; echo $((WINDLASS_PARAM_N / 2))"
    output = "json"
    [jobs.list]
    run = "echo '[1, 2, 3, 4]'"
    output = "json"
    [jobs.each]
    needs = ["list"]
    for_each = { in = "jobs.list.output", max_parallel = 2 }
    workflow = "load"
    params = { n = "{{ item }}" }
    allow_failure = true
    [jobs.alone]
    workflow = "halve"
    params = { n = 9 }
    [jobs.report]
    needs = ["each", "alone"]
    stdin = "{{ jobs.each.output }} {{ jobs.alone.output }}"
    run = "cat; exit 1"
"#;

const BRANCHES: &str = r#"
    name = "branches"
    [jobs.first]
    run = "sleep 0.02"
    [jobs.broken]
    needs = ["first"]
    run = "sleep 0.02; exit 3"
    [jobs.repair]
    needs = ["broken"]
    when = "any_failed"
    if = "jobs.broken.exit_code == 3"
    run = "sleep 0.02"
    [jobs.never]
    needs = ["first"]
    if = "run.key == 'none'"
    run = "exit 9"
    [jobs.after-never]
    needs = ["never", "repair"]
    run = "exit 9"
    [jobs.nothing-to-do]
    needs = ["first"]
    deadline = "10m"
    stdin = "{{ run.id }}"
    run = "sleep 0.02; exit 9"
    skip_if = "exit_code == 9 and jobs.first.status == 'SUCCESSFUL'"
    retry = { max_attempts = 9, if = "exit_code != 9" }
    [jobs.always]
    needs = ["never", "broken", "repair", "nothing-to-do"]
    when = "all_finished"
    run = "sleep 0.02"
    [on_success.party]
    run = "exit 9"
    [on_failure.alert]
    run = "sleep 0.02"
    [finally.clean]
    run = "sleep 0.02"
    [finally.sweep]
    needs = ["clean"]
    run = "sleep 0.02"
"#;

/// Checks the rows, the record of changes and the journal of the jobs at the end. Returns the number of interrupted
/// attempts.
fn assert_kept(sandbox: &Sandbox) -> i64 {
    let tables = sandbox.tables();
    let (jobs, changes) = (tables.jobs(), audit::changes(&tables));
    assert_eq!(jobs.len(), JOBS);
    assert_none("lost", &claims::lost(&jobs, &changes));
    assert_none("owners", &claims::owner_problems(&changes));
    assert_none("bounds", &claims::bound_problems(&jobs, &tables.attempts()));
    let journal = journal::parse(&sandbox.read("journal"));
    assert_none("journal", &journal::problems(&journal, &jobs));
    assert_none("order", &order::time_problems(&jobs, &tables.dependencies()));
    assert_eq!(sandbox.leftovers(), [], "processes left behind");
    jobs.iter().map(|job| job.interruptions).sum()
}

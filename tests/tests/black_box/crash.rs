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

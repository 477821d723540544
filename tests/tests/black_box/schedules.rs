//! Promise: an occurrence of a schedule makes exactly one run, with any number of processes and with `kill -9` at any
//! moment.

use std::thread;
use std::time::Duration;

use windlass_test_database::Access;
use windlass_tests::seed::{number_from, round_rng, seed};
use windlass_tests::{Engine, Sandbox, eventually};

/// How often the service is killed. `scripts/soak` sets more.
const KILLS_VARIABLE: &str = "WINDLASS_SCHEDULE_KILLS";
const DEFAULT_KILLS: u64 = 50;
/// Kills come within this time after the start of the service. The time covers the first occurrence.
const LATEST_KILL_MS: u64 = 600;
/// How long no service has run, as the schedule sees it.
const OUTAGE_MS: i64 = 120_000;

const WORKFLOW: &str = r#"
name = "tick"
[jobs.note]
run = "true"
"#;

/// A database with a schedule that fires every second.
fn ticking(options: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    let file = sandbox.write("tick.toml", WORKFLOW);
    sandbox.run(&["apply", &file]).exited(0);
    let add = ["schedule", "add", "second", "tick", "--every", "1s"];
    sandbox.run(&[&add[..], options].concat()).exited(0);
    sandbox
}

fn service(sandbox: &Sandbox) -> Engine {
    sandbox.spawn(&["serve", "--durability", "normal"])
}

/// The nominal times of the runs in seconds, ascending.
fn seconds_with_a_run(sandbox: &Sandbox) -> Vec<i64> {
    sandbox.tables().rows(
        "SELECT scheduled_for / 1000 FROM runs WHERE schedule_id IS NOT NULL ORDER BY scheduled_for",
        |row| row.get(0),
    )
}

/// Every second of a span has one run.
fn assert_each_once(seconds: &[i64]) {
    let (Some(first), Some(last)) = (seconds.first(), seconds.last()) else { panic!("there are none") };
    let expected: Vec<i64> = (*first..=*last).collect();
    assert_eq!(seconds, expected, "each second once, and none is missing");
}

#[test]
fn each_occurrence_has_one_run_after_many_kills() {
    let seed = seed("each_occurrence_has_one_run_after_many_kills");
    let kills = number_from(KILLS_VARIABLE).unwrap_or(DEFAULT_KILLS);
    let mut rng = round_rng(seed, 0);
    let sandbox = ticking(&["--catchup", "all"]);
    sandbox.database().sql(Access::Write).execute(&format!(
        "UPDATE schedules SET decided_until = decided_until - {OUTAGE_MS}, next_at = next_at - {OUTAGE_MS}"
    ));
    let begin = sandbox.tables().value::<i64>("SELECT next_at / 1000 FROM schedules");
    for _kill in 0..kills {
        let mut service = service(&sandbox);
        // This is no wait for a condition: the moment of the kill is random.
        thread::sleep(Duration::from_millis(rng.u64(0..=LATEST_KILL_MS)));
        service.kill_9();
        assert!(!service.stderr_so_far().contains("panicked"), "{}", service.stderr_so_far());
    }
    let mut last = service(&sandbox);
    let killed_until = sandbox.tables().value::<i64>("SELECT decided_until / 1000 FROM schedules");
    eventually("everything having run", || {
        assert!(last.is_running(), "the service ended: {}", last.stderr_so_far());
        let sql = format!(
            "SELECT count(*) FROM runs WHERE scheduled_for / 1000 <= {killed_until} AND status = 'SUCCESSFUL'"
        );
        (sandbox.tables().value::<i64>(&sql) == killed_until - begin + 1).then_some(())
    });
    last.kill_9();
    let seconds = seconds_with_a_run(&sandbox);
    assert_eq!(seconds.first(), Some(&begin));
    assert_each_once(&seconds);
    let caught_up = sandbox.tables().value::<i64>("SELECT count(*) FROM runs WHERE source = 'catchup'");
    assert!(caught_up >= OUTAGE_MS / 1_000 - 20, "only {caught_up} were caught up: the test proves nothing");
    println!("{kills} kills; {} runs, {caught_up} of them caught up", seconds.len());
}

#[test]
fn three_services_fire_each_occurrence_once() {
    let sandbox = ticking(&["--overlap", "allow"]);
    let mut services = [service(&sandbox), service(&sandbox), service(&sandbox)];
    eventually("some occurrences", || (seconds_with_a_run(&sandbox).len() >= 5).then_some(()));
    let said: Vec<usize> = services
        .iter_mut()
        .map(|service| {
            service.kill_9();
            service.stderr_so_far().matches("the schedule starts a run").count()
        })
        .collect();
    assert_each_once(&seconds_with_a_run(&sandbox));
    println!("runs started by each: {said:?}");
    let late = sandbox.tables().value::<i64>("SELECT max(created_at - scheduled_for) FROM runs");
    assert!((0..5_000).contains(&late), "fired {late} ms late");
}

#[test]
fn a_killed_and_repeated_backfill_makes_each_run_once() {
    let seed = seed("a_killed_and_repeated_backfill_makes_each_run_once");
    let mut rng = round_rng(seed, 0);
    let sandbox = ticking(&["--catchup", "none"]);
    sandbox.run(&["schedule", "pause", "second"]).exited(0);
    let backfill = |from, to| {
        let range = ["schedule", "backfill", "second", "--from", from, "--to", to, "--limit", "4"];
        sandbox.spawn(&range)
    };
    let count = || sandbox.tables().value::<i64>("SELECT count(*) FROM occurrences WHERE status = 'WAITING'");
    // The largest backfill, killed at a random moment.
    let large = || backfill("2026-01-01T00:00:01Z", "2026-01-02T03:00:00Z");
    let mut before = 0;
    for _kill in 0..10 {
        let mut command = large();
        thread::sleep(Duration::from_millis(rng.u64(0..=150)));
        command.kill_9();
        assert!(count() >= before, "nothing is lost");
        before = count();
    }
    large().wait().exited(0);
    assert_eq!(count(), 27 * 3_600);
    count_at_once(&sandbox);
    sandbox
        .database()
        .sql(Access::Write)
        .execute("DELETE FROM occurrences WHERE scheduled_for > 1767225700000");
    sandbox.run(&["schedule", "resume", "second"]).exited(0);
    let mut service = service(&sandbox);
    let backfilled = "SELECT count(*) FROM runs WHERE source = 'backfill' AND status = 'SUCCESSFUL'";
    eventually("half of them", || (sandbox.tables().value::<i64>(backfilled) >= 50).then_some(()));
    service.kill_9();
    backfill("2026-01-01T00:00:01Z", "2026-01-01T00:01:40Z").wait().exited(0);
    let mut service = self::service(&sandbox);
    eventually("all of them", || (sandbox.tables().value::<i64>(backfilled) == 100).then_some(()));
    service.kill_9();
    assert_each_once(
        &sandbox
            .tables()
            .rows("SELECT scheduled_for / 1000 FROM runs WHERE source = 'backfill' ORDER BY id", |row| {
                row.get(0)
            }),
    );
    let most = sandbox.tables().value::<i64>("SELECT max(unfinished) FROM test_at_once");
    assert_eq!(most, 4, "as many at once as were asked for, and no more");
}

/// Makes the database record the number of unfinished backfill runs whenever one is created.
fn count_at_once(sandbox: &Sandbox) {
    let count = "INSERT INTO test_at_once SELECT count(*) FROM runs
                 WHERE source = 'backfill' AND status IN ('PENDING', 'RUNNING');";
    sandbox.database().sql(Access::Write).execute_either(
        &format!(
            "CREATE TABLE test_at_once (unfinished INTEGER);
             CREATE TRIGGER test_at_once_runs AFTER INSERT ON runs WHEN NEW.source = 'backfill'
             BEGIN {count} END;"
        ),
        &format!(
            "CREATE TABLE test_at_once (unfinished BIGINT);
             CREATE FUNCTION test_count_at_once() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN {count} RETURN NULL; END $$;
             CREATE TRIGGER test_at_once_runs AFTER INSERT ON runs FOR EACH ROW
             WHEN (NEW.source = 'backfill') EXECUTE FUNCTION test_count_at_once();"
        ),
    );
}

/// A job that handles SIGTERM itself, and records its start.
fn stubborn(answer: &str) -> String {
    format!(
        "name = \"slow\"\n[jobs.work]\nrun = '''\n{answer}\necho begin >> journal\n\
         while true; do sleep 0.05; done\n'''\n"
    )
}

#[test]
fn the_next_occurrence_replaces_a_run() {
    let cases = [
        ("cancel_running", "trap 'echo polite >> journal; exit 1' TERM", "begin\npolite\nbegin\n"),
        ("terminate_running", "trap 'echo polite >> journal' TERM", "begin\nbegin\n"),
    ];
    for (overlap, answer, expected) in cases {
        let sandbox = Sandbox::new();
        let file = sandbox.write("slow.toml", stubborn(answer));
        sandbox.run(&["apply", &file]).exited(0);
        sandbox.run(&["schedule", "add", "second", "slow", "--every", "1s", "--overlap", overlap]).exited(0);
        // Nothing waits for the end of this grace period.
        let mut service = sandbox.spawn(&["serve", "--grace", "1h"]);
        eventually(&format!("a second run with {overlap}"), || {
            assert!(service.is_running(), "the service ended: {}", service.stderr_so_far());
            sandbox.read("journal").starts_with(expected).then_some(())
        });
        service.kill_9();
        let cancelled = "SELECT count(*) FROM runs WHERE status = 'CANCELLED' AND stop_reason = 'cancelled'";
        assert!(sandbox.tables().value::<i64>(cancelled) >= 1);
        let killed = "SELECT count(*) FROM job_logs WHERE stream = 'engine' AND text LIKE '%at once: sending SIGKILL%'";
        let has_killed = sandbox.tables().value::<i64>(killed) >= 1;
        assert_eq!(has_killed, overlap == "terminate_running");
    }
}

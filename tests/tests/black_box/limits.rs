//! Promise: the limits of queues and concurrency keys hold at every instant, with several processes, even if one of
//! them is killed. A queue with limits does not delay a queue without limits.
//!
//! The proof is a record that the database keeps. The end of a job is recorded before the start that it allows, so the
//! sum of the record up to any line is the number of running jobs.

use std::collections::HashMap;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use windlass_test_database::Access;
use windlass_tests::seed::{round_rng, seed};
use windlass_tests::{Engine, Sandbox, audit, claims, eventually, within};

use crate::support::assert_none;

/// How many jobs the queue with a limit and the queue without one have. `scripts/soak-limits` sets more.
const JOBS_VARIABLE: &str = "WINDLASS_LIMITED_JOBS";
const DEFAULT_JOBS: u64 = 1_500;
const WORKERS: usize = 3;
const LEASE_MS: u64 = 1_500;

const MAX_RUNNING: i64 = 3;
const KEY_LIMIT: i64 = 2;
const RATE: (usize, i64) = (50, 500);

/// How many jobs the queues with a key, with a rate and with --fifo have.
const FEW: u64 = 200;

fn insert(sandbox: &Sandbox, jobs: u64) {
    let rows = |queue: &str, key: &str, count: u64| {
        format!(
            "INSERT INTO jobs (kind, payload, queue, concurrency_key, concurrency_limit)
             WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})
             SELECT 'sleep', '0', '{queue}', {key}, {KEY_LIMIT} FROM numbers"
        )
    };
    let sql = sandbox.database().sql(Access::Write);
    sql.execute(&rows("narrow", "NULL", jobs));
    sql.execute(&rows("wide", "NULL", jobs));
    sql.execute(&rows("keyed", "'tenant-' || (n % 3)", FEW));
    sql.execute(&rows("slow", "NULL", FEW));
    sql.execute(&rows("line", "NULL", FEW));
}

fn worker(sandbox: &Sandbox) -> Engine {
    let command = Command::new(env!("CARGO_BIN_EXE_windlass-handlers"));
    let mut command = sandbox.prepared::<&str>(command, &[]);
    command.env("WINDLASS_LEASE_MS", LEASE_MS.to_string());
    sandbox.start(command)
}

/// A start or an end, with the queue and the key that it counts for.
struct Step {
    group: String,
    is_start: bool,
    job_id: i64,
}

fn steps(sandbox: &Sandbox) -> Vec<Step> {
    sandbox.tables().rows(
        "SELECT test_audit.job_id, before, after, queue || ' ' || coalesce(concurrency_key, '') AS of_group
         FROM test_audit JOIN jobs ON jobs.id = test_audit.job_id
         WHERE before = 'RUNNING' OR after = 'RUNNING' ORDER BY seq",
        |row| {
            let after: String = row.get("after")?;
            Ok(Step { group: row.get("of_group")?, is_start: after == "RUNNING", job_id: row.get("job_id")? })
        },
    )
}

/// The largest number of running jobs in each group, and the order in which jobs first started.
fn most_at_a_time(steps: &[Step]) -> (HashMap<&str, i64>, HashMap<&str, Vec<i64>>) {
    let (mut running, mut most) = (HashMap::<&str, i64>::new(), HashMap::<&str, i64>::new());
    let mut order = HashMap::<&str, Vec<i64>>::new();
    for Step { group, is_start, job_id } in steps {
        let now = running.entry(group).or_default();
        *now += if *is_start { 1 } else { -1 };
        let most = most.entry(group).or_default();
        *most = (*most).max(*now);
        let order = order.entry(group).or_default();
        if *is_start && order.last() != Some(job_id) {
            order.push(*job_id);
        }
    }
    (most, order)
}

#[test]
fn limits_hold_at_every_instant() {
    let mut rng = round_rng(seed("limits_hold_at_every_instant"), 0);
    let jobs = std::env::var(JOBS_VARIABLE).ok().map_or(DEFAULT_JOBS, |jobs| jobs.parse().expect("a number"));
    let sandbox = Sandbox::new();
    let limit = |queue: &str, limits: &[&str]| {
        sandbox.run(&[&["queue", "limit", queue], limits].concat()).exited(0);
    };
    limit("narrow", &["--max-running", &MAX_RUNNING.to_string()]);
    limit("slow", &["--rate", &format!("{}/{}ms", RATE.0, RATE.1)]);
    limit("line", &["--fifo"]);
    audit::install(sandbox.database());
    insert(&sandbox, jobs);

    let began = Instant::now();
    let mut workers: Vec<Engine> = (0..WORKERS).map(|_| worker(&sandbox)).collect();
    let limit = Duration::from_millis(60_000 + jobs * 10);
    // One query per state, so that each uses its own index: the tables are large.
    let is_over = |condition: &str| {
        let is_left = |status: &str| -> bool {
            let sql = format!(
                "SELECT count(*) FROM (SELECT 1 FROM jobs WHERE {status} AND {condition} LIMIT 1) AS found"
            );
            sandbox.tables().value::<i64>(&sql) > 0
        };
        let states = ["SCHEDULED", "RUNNING", "WAITING"].map(|status| format!("status = '{status}'"));
        let pending = "status = 'PENDING' AND kind > ''".to_owned();
        (!states.iter().chain([&pending]).any(|status| is_left(status))).then_some(())
    };
    eventually("some work", || {
        let done: i64 = sandbox.tables().value("SELECT count(*) FROM jobs WHERE status = 'SUCCESSFUL'");
        (done > 200).then_some(())
    });
    let victim = rng.usize(0..WORKERS);
    workers[victim].signal(Signal::KILL);
    workers[victim] = worker(&sandbox);
    within(limit, || is_over("queue = 'wide'")).expect("the end of the queue without limits");
    let wide = began.elapsed();
    let narrow_left: i64 =
        sandbox.tables().value("SELECT count(*) FROM jobs WHERE queue = 'narrow' AND status <> 'SUCCESSFUL'");
    within(limit, || is_over("queue <> 'none'")).expect("the end of all jobs");
    println!(
        "{jobs} jobs without a limit in {wide:.1?}, when {narrow_left} of as many with one were left; all in {:.1?}",
        began.elapsed()
    );
    for worker in &mut workers {
        worker.signal(Signal::TERM);
        worker.wait().exited(0);
    }
    assert_limits(&sandbox);
}

fn assert_limits(sandbox: &Sandbox) {
    let steps = steps(sandbox);
    let (most, order) = most_at_a_time(&steps);
    assert_eq!(most["narrow "], MAX_RUNNING, "the limit, all of it");
    assert_eq!(most["line "], 1);
    assert!(order["line "].is_sorted(), "in the order of arrival: {:?}", order["line "]);
    for tenant in 0..3 {
        assert_eq!(most[format!("keyed tenant-{tenant}").as_str()], KEY_LIMIT);
    }
    assert!(most["wide "] > MAX_RUNNING, "nobody limits the other queue");
    let starts: Vec<i64> = sandbox.tables().rows(
        "SELECT started_at FROM jobs WHERE queue = 'slow' AND attempt = 1 ORDER BY started_at",
        |row| row.get("started_at"),
    );
    // The clocks of processes that follow the clock of a server differ a little.
    let fastest = starts.windows(RATE.0 + 1).map(|window| window[RATE.0] - window[0]).min();
    assert!(
        fastest.is_some_and(|fastest| fastest >= RATE.1 - 20),
        "{fastest:?} ms for one more than the rate"
    );
    let changes = audit::changes(&sandbox.tables());
    assert_none("owners", &claims::owner_problems(&changes));
    sandbox.run(&["db", "check"]).exited(0);
}

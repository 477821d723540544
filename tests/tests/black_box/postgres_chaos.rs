//! Promise: whatever happens to workers and to the server, no job is lost and no attempt has two owners.
//!
//! Eight workers run in their own processes. Some are killed, some are stopped for longer than their lease and
//! continue, and the server crashes and restarts three times.

use std::process::Command;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use rustix::process::Signal;
use windlass_test_server::PrivateServer;
use windlass_tests::audit::Change;
use windlass_tests::seed::{number_from, round_rng, seed};
use windlass_tests::{Engine, Sandbox, claims, eventually};

use crate::support::assert_none;

/// How many jobs run. `scripts/soak-postgres` sets more.
const JOBS_VARIABLE: &str = "WINDLASS_CHAOS_JOBS";
const DEFAULT_JOBS: u64 = 6_000;
const WORKERS: usize = 8;
const SERVER_CRASHES: u64 = 3;
const LEASE_MS: u64 = 1_500;
/// The time between two faults.
const CALM: Duration = Duration::from_millis(150);

const AUDIT: &str = "
    CREATE TABLE windlass.test_audit (
        seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        job_id BIGINT, before TEXT, after TEXT, attempt BIGINT, worker_id BIGINT);
    CREATE FUNCTION windlass.test_audit() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO windlass.test_audit (job_id, before, after, attempt, worker_id)
        VALUES (NEW.id, OLD.status, NEW.status, NEW.attempt, NEW.worker_id);
        RETURN NULL;
    END $$;
    CREATE TRIGGER test_audit AFTER UPDATE ON windlass.jobs FOR EACH ROW
        WHEN (OLD.status <> NEW.status OR OLD.attempt <> NEW.attempt OR OLD.worker_id IS DISTINCT FROM NEW.worker_id)
        EXECUTE FUNCTION windlass.test_audit();";

/// A worker, and when it continues if it is stopped.
struct Victim {
    engine: Engine,
    stopped_until: Option<Instant>,
}

struct Chaos<'a> {
    sandbox: &'a Sandbox,
    server: &'a PrivateServer,
    victims: Vec<Victim>,
    kills: u64,
    stops: u64,
    crashes: u64,
}

impl Chaos<'_> {
    fn worker(sandbox: &Sandbox, server: &PrivateServer) -> Victim {
        let command = Command::new(env!("CARGO_BIN_EXE_windlass-handlers"));
        let mut command = sandbox.prepared::<&str>(command, &[]);
        command.env("WINDLASS_DB", server.url()).env("WINDLASS_LEASE_MS", LEASE_MS.to_string());
        Victim { engine: sandbox.start(command), stopped_until: None }
    }

    /// Kills or stops a worker, or does nothing.
    fn strike(&mut self, rng: &mut fastrand::Rng) {
        let victim = &mut self.victims[rng.usize(..WORKERS)];
        match rng.u8(..4) {
            0 => {
                victim.engine.kill_9();
                *victim = Chaos::worker(self.sandbox, self.server);
                self.kills += 1;
            }
            1 if victim.stopped_until.is_none() => {
                victim.engine.signal(Signal::STOP);
                let stopped_ms = rng.u64(50..2 * LEASE_MS);
                victim.stopped_until = Some(Instant::now() + Duration::from_millis(stopped_ms));
                self.stops += 1;
            }
            _ => {}
        }
        self.wake(|until| until <= Instant::now());
    }

    fn wake(&mut self, is_time: impl Fn(Instant) -> bool) {
        for victim in &mut self.victims {
            if victim.stopped_until.take_if(|until| is_time(*until)).is_some() {
                victim.engine.signal(Signal::CONT);
            }
        }
    }

    fn crash_server(&mut self) {
        self.server.stop_immediate();
        self.server.start();
        self.crashes += 1;
    }
}

fn connect(server: &PrivateServer) -> Client {
    eventually("the server", || Client::connect(&server.url(), NoTls).ok())
}

/// The number of ended jobs, or `None` if the server does not answer.
fn done(server: &PrivateServer) -> Option<u64> {
    let sql = "SELECT count(*) FROM windlass.jobs WHERE finished_at IS NOT NULL";
    let row = Client::connect(&server.url(), NoTls).ok()?.query_one(sql, &[]).ok()?;
    u64::try_from(row.get::<_, i64>(0)).ok()
}

#[test]
fn no_job_is_lost_or_owned_twice_whatever_dies() {
    let jobs = number_from(JOBS_VARIABLE).unwrap_or(DEFAULT_JOBS);
    let mut rng = round_rng(seed("no_job_is_lost_or_owned_twice_whatever_dies"), 0);
    let (server, sandbox) = (PrivateServer::new(&[]), Sandbox::new());
    let migrate = {
        let mut command = sandbox.command(&["db", "migrate"]);
        command.env("WINDLASS_DB", server.url());
        command
    };
    sandbox.start(migrate).wait().exited(0);
    connect(&server).batch_execute(AUDIT).expect("a trigger can be made");
    let workers = (0..WORKERS).map(|_| Chaos::worker(&sandbox, &server)).collect();
    let mut chaos =
        Chaos { sandbox: &sandbox, server: &server, victims: workers, kills: 0, stops: 0, crashes: 0 };
    connect(&server)
        .batch_execute(&format!(
            "INSERT INTO windlass.jobs (kind, payload, max_interruptions)
             SELECT 'sleep', (n * 7919 % 20)::TEXT, 1000 FROM generate_series(1, {jobs}) AS n"
        ))
        .expect("jobs can be inserted");

    let began = Instant::now();
    let limit = Duration::from_secs(120 + jobs / 100);
    loop {
        let done = done(&server).unwrap_or_default();
        if done >= jobs {
            break;
        }
        assert!(began.elapsed() < limit, "{done} of {jobs} jobs are over after {limit:?}");
        if chaos.crashes < SERVER_CRASHES && done >= jobs * (chaos.crashes + 1) / (SERVER_CRASHES + 1) {
            chaos.crash_server();
        }
        chaos.strike(&mut rng);
        std::thread::sleep(CALM);
    }
    println!(
        "{jobs} jobs in {:.1} s; {} workers killed, {} stopped, {} crashes of the server",
        began.elapsed().as_secs_f64(),
        chaos.kills,
        chaos.stops,
        chaos.crashes
    );
    chaos.wake(|_until| true);
    for victim in &mut chaos.victims {
        victim.engine.signal(Signal::TERM);
        victim.engine.wait().exited(0);
    }
    assert!(chaos.crashes == SERVER_CRASHES && chaos.kills > 0 && chaos.stops > 0, "the test proves nothing");
    prove(&server, &sandbox, jobs);
}

fn prove(server: &PrivateServer, sandbox: &Sandbox, jobs: u64) {
    let mut client = connect(server);
    let changes: Vec<Change> = client
        .query("SELECT * FROM windlass.test_audit ORDER BY seq", &[])
        .expect("the record can be read")
        .iter()
        .map(|row| Change {
            seq: row.get("seq"),
            job_id: row.get("job_id"),
            before: row.get("before"),
            after: row.get("after"),
            attempt: row.get("attempt"),
            worker_id: row.get("worker_id"),
        })
        .collect();
    assert_none("owners", &claims::owner_problems(&changes));
    let successes = changes.iter().filter(|change| change.after == "SUCCESSFUL").count() as u64;
    assert_eq!(successes, jobs, "each job succeeded once");
    let sql = "SELECT count(*) FROM windlass.jobs WHERE status <> 'SUCCESSFUL'";
    assert_eq!(client.query_one(sql, &[]).expect("jobs can be counted").get::<_, i64>(0), 0);
    let mut check = sandbox.command(&["db", "check"]);
    check.env("WINDLASS_DB", server.url());
    sandbox.start(check).wait().exited(0);
}

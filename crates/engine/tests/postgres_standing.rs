//! Operations that wait for a transaction of somebody else on a server, and the claim of an idle worker, which is one.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use support::noop;
use support::standing::{everything, ids, soon_ms, statuses};
use windlass_engine::db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_engine::db::{Connection, Database, WriteOperation, all, one};
use windlass_engine::error::Unavailable;
use windlass_engine::executor::{Attempt, Handlers, Worker, WorkerOptions};
use windlass_engine::signal::Hints;
use windlass_engine::transition::Outcome;
use windlass_engine::{Clock, Error, JobStatus, Random, Result, Store};
use windlass_test_server::Schema;

const PATIENCE: Duration = Duration::from_secs(60);

struct Server {
    schema: Schema,
    database: Arc<PostgresDatabase>,
    store: Store,
    clock: Clock,
}

impl Server {
    fn new() -> Server {
        let schema = Schema::new();
        let address = PostgresAddress::parse(&schema.url(), &|_name| None).unwrap();
        let options = PostgresOptions::default();
        let database = Arc::new(PostgresDatabase::open(&address, &options).unwrap());
        let shared = Arc::clone(&database) as Arc<dyn Database>;
        let store = Store::new(shared, options.clock.clone(), Random::from_seed(1));
        Server { schema, database, store, clock: options.clock }
    }
}

#[test]
fn a_standing_claim_is_committed_with_the_jobs_that_it_takes() {
    let server = Server::new();
    let claim = server.store.claim_with_next(everything(&server.store, 2), soon_ms(&server.clock)).unwrap();
    let jobs = server.store.enqueue(vec![noop(); 3]).unwrap();
    use JobStatus::{Pending, Running};
    assert_eq!(statuses(&server.store, &jobs), [Running, Running, Pending]);
    assert_eq!(server.database.standing(), 0);
    assert_eq!(ids(claim.take_back().unwrap().unwrap()), jobs[..2]);
    let sql = "SELECT count(DISTINCT started_at) FROM jobs WHERE status = 'RUNNING'";
    assert_eq!(server.schema.client().query_one(sql, &[]).unwrap().get::<_, i64>(0), 1);
    assert_eq!(server.store.check().unwrap(), []);
}

/// An operation that notes that it ran, changes something, and then ends in a way.
fn ends(how: fn(&mut dyn Connection) -> Result<()>) -> (WriteOperation, Arc<AtomicBool>) {
    let has_run = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&has_run);
    let operation = Box::new(move |connection: &mut dyn Connection| {
        noted.store(true, Ordering::Relaxed);
        connection.execute("UPDATE jobs SET kind = 'spoilt'", &[])?;
        connection.hint(Hints::CANCEL);
        how(connection)
    });
    (operation, has_run)
}

#[test]
fn what_fails_in_somebody_elses_transaction_hurts_nobody_else() {
    let server = Server::new();
    let ways: [fn(&mut dyn Connection) -> Result<()>; 5] = [
        |_connection| Err(Error::invalid("try", "no luck")),
        |_connection| panic!("no luck"),
        |connection| connection.execute("SELECT 1 / 0", &[]).map(drop),
        |connection| connection.execute_with_next("SELECT 1 / 0", &[]),
        |connection| connection.batch("nonsense"),
    ];
    for how in ways {
        let (operation, has_run) = ends(how);
        let standing = server.database.write_with_next(Hints::PENDING, operation).unwrap();
        let cancelled = server.database.signals().listen(Hints::CANCEL);
        let jobs = server.store.enqueue(vec![noop()]).unwrap();
        assert!(has_run.load(Ordering::Relaxed));
        assert!(standing.take_back().unwrap().is_err());
        assert_eq!(server.store.job(jobs[0]).unwrap().kind, "noop", "it was taken back");
        assert!(cancelled.wait(Duration::ZERO).is_empty(), "and nobody hears of it");
    }
    let standing = Box::new(|_connection: &mut dyn Connection| Err(Error::invalid("try", "at once")));
    let standing = server.database.write_with_next(Hints::PENDING, standing).unwrap();
    server.store.enqueue(vec![noop()]).unwrap();
    assert!(standing.take_back().unwrap().is_err());
}

/// A statement is prepared when it is used again, ahead of the savepoint that goes with it.
#[test]
fn what_can_not_even_be_prepared_in_somebody_elses_transaction_hurts_nobody_else() {
    let server = Server::new();
    let mut outside = server.schema.client();
    outside.batch_execute("CREATE TABLE gone (id INTEGER)").unwrap();
    for is_there in [true, false] {
        let ask = Box::new(|connection: &mut dyn Connection| {
            one(connection, "SELECT count(*) FROM gone", &[], |row| row.integer(0)).map(drop)
        });
        let standing = server.database.write_with_next(Hints::PENDING, ask).unwrap();
        server.store.enqueue(vec![noop()]).unwrap();
        assert_eq!(standing.take_back().unwrap().is_ok(), is_there);
        outside.batch_execute("DROP TABLE IF EXISTS gone").unwrap();
    }
    let rows = outside.query_one("SELECT count(*) FROM jobs", &[]).unwrap();
    assert_eq!(rows.get::<_, i64>(0), 2);
}

/// Else it would fail in this session again and again, until somebody's own transaction meets it there.
#[test]
fn a_statement_that_is_outdated_is_forgotten_also_when_somebody_elses_transaction_meets_it() {
    let server = Server::new();
    let mut outside = server.schema.client();
    outside.batch_execute("CREATE TABLE shape (id INTEGER)").unwrap();
    // At first without a name, then prepared, then outdated.
    for (round, succeeds) in [true, true, false, true].into_iter().enumerate() {
        let ask = Box::new(|connection: &mut dyn Connection| {
            all(connection, "SELECT * FROM shape", &[], |_row| Ok(())).map(drop)
        });
        let standing = server.database.write_with_next(Hints::PENDING, ask).unwrap();
        server.store.enqueue(vec![noop()]).unwrap();
        assert_eq!(standing.take_back().unwrap().is_ok(), succeeds, "in round {round}");
        if round == 1 {
            outside.batch_execute("ALTER TABLE shape ADD COLUMN width INTEGER").unwrap();
        }
    }
}

#[test]
fn an_error_that_an_operation_passes_over_is_its_own_also_in_somebody_elses_transaction() {
    let server = Server::new();
    let (operation, _has_run) = ends(|connection| {
        let _passed_over = connection.execute("SELECT 1 / 0", &[]);
        Ok(())
    });
    let standing = server.database.write_with_next(Hints::PENDING, operation).unwrap();
    let jobs = server.store.enqueue(vec![noop()]).unwrap();
    assert!(standing.take_back().unwrap().is_err());
    assert_eq!(server.store.job(jobs[0]).unwrap().kind, "noop", "it was taken back");
}

/// Somebody has locked the worker's row, and goes on.
#[test]
fn who_has_an_operation_run_does_not_wait_long_for_what_it_waits_for() {
    let server = Server::new();
    let waits = Box::new(|connection: &mut dyn Connection| {
        let wait = one(connection, "SELECT current_setting('lock_timeout')", &[], |row| row.text(0))?;
        assert_eq!(wait, "200ms");
        Ok(())
    });
    let standing = server.database.write_with_next(Hints::PENDING, waits).unwrap();
    server.store.enqueue(vec![noop()]).unwrap();
    assert_eq!(standing.take_back(), Some(Ok(())));
    let claim = server.store.claim_with_next(everything(&server.store, 9), soon_ms(&server.clock)).unwrap();
    let mut locker = server.schema.client();
    locker.batch_execute("BEGIN; SELECT * FROM workers FOR UPDATE").unwrap();
    let jobs = server.store.enqueue(vec![noop()]).unwrap();
    assert_eq!(statuses(&server.store, &jobs), [JobStatus::Pending]);
    assert!(matches!(claim.take_back(), Some(Err(Error::Unavailable { reason: Unavailable::Locked, .. }))));
    locker.batch_execute("COMMIT").unwrap();
}

#[test]
fn a_connection_that_is_lost_meanwhile_is_nobodys_error_but_its_own() {
    let server = Server::new();
    let (operation, has_run) =
        ends(|connection| connection.execute("SELECT pg_terminate_backend(pg_backend_pid())", &[]).map(drop));
    let standing = server.database.write_with_next(Hints::PENDING, operation).unwrap();
    let jobs = server.store.enqueue(vec![noop()]).unwrap();
    assert!(has_run.load(Ordering::Relaxed) && standing.take_back().unwrap().is_err());
    assert_eq!(statuses(&server.store, &jobs), [JobStatus::Pending]);
    let rows = server.schema.client().query_one("SELECT count(*) FROM jobs", &[]).unwrap();
    assert_eq!(rows.get::<_, i64>(0), 1, "the transaction was run once more");
}

#[test]
fn a_transaction_that_was_taken_back_is_nobodys() {
    let server = Server::new();
    let (operation, has_run) = ends(|_connection| Ok(()));
    let standing = server.database.write_with_next(Hints::PENDING, operation).unwrap();
    let hint_and_fail = Box::new(|connection: &mut dyn Connection| {
        connection.hint(Hints::PENDING);
        Err(Error::invalid("try", "no luck"))
    });
    assert!(server.database.write("hint and fail", hint_and_fail).is_err());
    assert!(!has_run.load(Ordering::Relaxed) && standing.take_back().is_none());
}

#[test]
fn a_commit_that_fails_is_no_claim() {
    let server = Server::new();
    server
        .schema
        .client()
        .batch_execute(
            "CREATE TABLE parents (id INTEGER PRIMARY KEY);
             CREATE TABLE children (parent_id INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)",
        )
        .unwrap();
    let jobs = server.store.enqueue(vec![noop()]).unwrap();
    let claim = server.store.claim_with_next(everything(&server.store, 9), soon_ms(&server.clock)).unwrap();
    let fail = Box::new(|connection: &mut dyn Connection| {
        connection.execute("INSERT INTO children VALUES (1)", &[])?;
        connection.hint(Hints::PENDING);
        Ok(())
    });
    assert!(server.database.write("fail when it is committed", fail).is_err());
    assert!(claim.take_back().unwrap().is_err());
    assert_eq!(statuses(&server.store, &jobs), [JobStatus::Pending]);
}

#[test]
fn a_job_that_comes_to_an_idle_worker_is_claimed_when_it_is_acknowledged() {
    let server = Server::new();
    let ((begun, has_begun), (end, may_end)) = (channel(), channel());
    let (begun, may_end) = (Mutex::new(begun), Mutex::new(may_end));
    let mut handlers = Handlers::new();
    handlers.register("noop", move |_attempt: &Attempt| {
        begun.lock().unwrap().send(()).unwrap();
        may_end.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        Outcome::Successful { output: None }
    });
    let worker = Worker::start(&server.store, handlers, WorkerOptions::default()).unwrap();
    for round in 1..=3 {
        let began = Instant::now();
        while server.database.standing() == 0 {
            assert!(began.elapsed() < PATIENCE, "the worker does not rest in round {round}");
            std::thread::yield_now();
        }
        let jobs = server.store.enqueue(vec![noop()]).unwrap();
        assert_eq!(statuses(&server.store, &jobs), [JobStatus::Running], "when it is acknowledged");
        has_begun.recv_timeout(PATIENCE).unwrap();
        end.send(()).unwrap();
        while statuses(&server.store, &jobs) != [JobStatus::Successful] {
            assert!(began.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
    }
    worker.drain();
    worker.join().unwrap();
    assert_eq!(server.database.standing(), 0, "who ends leaves no claim behind");
    assert_eq!(server.store.check().unwrap(), []);
}

//! Operations that wait for a transaction of somebody else, and the claim of an idle worker, which is one.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use support::noop;
use support::standing::{everything, ids, soon_ms, statuses};
use windlass_engine::db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_engine::db::{Connection, Database, WriteOperation};
use windlass_engine::error::Unavailable;
use windlass_engine::executor::{Attempt, Handlers, Worker, WorkerOptions};
use windlass_engine::signal::Hints;
use windlass_engine::store::Claims;
use windlass_engine::transition::Outcome;
use windlass_engine::{Clock, Error, JobStatus, Random, Result, Store};

const PATIENCE: Duration = Duration::from_secs(60);

struct File {
    database: Arc<SqliteDatabase>,
    store: Store,
    clock: Clock,
    _folder: tempfile::TempDir,
}

impl File {
    fn new() -> File {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("windlass.db");
        let database = Arc::new(SqliteDatabase::open(&path, &SqliteOptions::default()).unwrap());
        let clock = Clock::system();
        let shared = Arc::clone(&database) as Arc<dyn Database>;
        let store = Store::new(shared, clock.clone(), Random::from_seed(1));
        File { database, store, clock, _folder: folder }
    }
}

#[test]
fn a_standing_claim_is_committed_with_the_jobs_that_it_takes() {
    let file = File::new();
    let claim = file.store.claim_with_next(everything(&file.store, 2), soon_ms(&file.clock)).unwrap();
    assert_eq!(file.database.standing(), 1);
    let other = Box::new(|connection: &mut dyn Connection| {
        connection.hint(Hints::DUE | Hints::PROGRESS);
        Ok(())
    });
    file.database.write("hint at something else", other).unwrap();
    assert_eq!(file.database.standing(), 1, "nothing could be claimed");
    let before = file.database.commits();
    let jobs = file.store.enqueue(vec![noop(); 3]).unwrap();
    assert_eq!(file.database.commits() - before, 1);
    use JobStatus::{Pending, Running};
    assert_eq!(statuses(&file.store, &jobs), [Running, Running, Pending]);
    assert_eq!(file.database.standing(), 0);
    assert_eq!(ids(claim.take_back().unwrap().unwrap()), jobs[..2]);
    assert_eq!(file.store.check().unwrap(), []);
}

#[test]
fn a_claim_that_was_taken_back_or_came_too_late_takes_nothing() {
    let file = File::new();
    let taken_back = file.store.claim_with_next(everything(&file.store, 9), soon_ms(&file.clock)).unwrap();
    assert!(taken_back.take_back().is_none());
    drop(file.store.claim_with_next(everything(&file.store, 9), soon_ms(&file.clock)).unwrap());
    let late = file.store.claim_with_next(everything(&file.store, 9), file.clock.monotonic_ms()).unwrap();
    let jobs = file.store.enqueue(vec![noop()]).unwrap();
    assert_eq!(statuses(&file.store, &jobs), [JobStatus::Pending]);
    assert!(ids(late.take_back().unwrap().unwrap()).is_empty());
}

#[test]
fn the_claim_of_a_worker_that_lost_its_lease_takes_nothing() {
    let file = File::new();
    let request = everything(&file.store, 9);
    let claim = file.store.claim_with_next(request.clone(), soon_ms(&file.clock)).unwrap();
    file.store.set_worker_status(request.worker_id, windlass_engine::WorkerStatus::Stopped).unwrap();
    let jobs = file.store.enqueue(vec![noop()]).unwrap();
    assert_eq!(statuses(&file.store, &jobs), [JobStatus::Pending]);
    assert_eq!(claim.take_back().unwrap().unwrap(), Claims::Fenced);
}

/// An operation that notes that it ran, and then fails in a way.
fn fails(how: fn() -> Result<()>) -> (WriteOperation, Arc<Mutex<bool>>) {
    let has_run = Arc::new(Mutex::new(false));
    let noted = Arc::clone(&has_run);
    let operation = Box::new(move |connection: &mut dyn Connection| {
        *noted.lock().unwrap() = true;
        connection.execute("UPDATE jobs SET kind = 'spoilt'", &[])?;
        how()
    });
    (operation, has_run)
}

#[test]
fn what_fails_in_somebody_elses_transaction_hurts_nobody_else() {
    let file = File::new();
    let ways: [fn() -> Result<()>; 2] = [|| Err(Error::invalid("try", "no luck")), || panic!("no luck")];
    for how in ways {
        let (operation, has_run) = fails(how);
        let standing = file.database.write_with_next(Hints::PENDING, operation).unwrap();
        let jobs = file.store.enqueue(vec![noop()]).unwrap();
        assert!(*has_run.lock().unwrap());
        assert!(standing.take_back().unwrap().is_err());
        assert_eq!(file.store.job(jobs[0]).unwrap().kind, "noop", "it was taken back");
    }
}

#[test]
fn a_transaction_that_was_taken_back_is_nobodys() {
    let file = File::new();
    let (operation, has_run) = fails(|| Ok(()));
    let standing = file.database.write_with_next(Hints::PENDING, operation).unwrap();
    let refused = file.database.write(
        "hint and fail",
        Box::new(|connection| {
            connection.hint(Hints::PENDING);
            Err(Error::invalid("try", "no luck"))
        }),
    );
    assert!(refused.is_err() && !*has_run.lock().unwrap());
    assert!(standing.take_back().is_none());
}

#[test]
fn a_commit_that_fails_is_no_claim() {
    let file = File::new();
    let raw = rusqlite::Connection::open(file.database.path()).unwrap();
    raw.execute_batch(
        "CREATE TABLE parents (id INTEGER PRIMARY KEY);
         CREATE TABLE children (parent_id INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)",
    )
    .unwrap();
    let jobs = file.store.enqueue(vec![noop()]).unwrap();
    let claim = file.store.claim_with_next(everything(&file.store, 9), soon_ms(&file.clock)).unwrap();
    let refused = file.database.write(
        "fail when it is committed",
        Box::new(|connection| {
            connection.execute("INSERT INTO children VALUES (1)", &[])?;
            connection.hint(Hints::PENDING);
            Ok(())
        }),
    );
    assert!(refused.is_err() && claim.take_back().unwrap().is_err());
    assert_eq!(statuses(&file.store, &jobs), [JobStatus::Pending]);
    let claim = file.store.claim_with_next(everything(&file.store, 9), soon_ms(&file.clock)).unwrap();
    let others = file.store.enqueue(vec![noop()]).unwrap();
    assert_eq!(
        ids(claim.take_back().unwrap().unwrap()),
        [jobs[0], others[0]],
        "the next one is as good as new"
    );
}

#[test]
fn a_disk_that_is_full_is_told_to_all_of_the_transaction_and_to_nobody_after_them() {
    let file = File::new();
    let limit = Box::new(|connection: &mut dyn Connection| {
        connection.query("PRAGMA max_page_count = 300", &[], &mut |_row| Ok(()))
    });
    file.database.write("make the disk small", limit).unwrap();
    let large = Box::new(|connection: &mut dyn Connection| {
        connection.execute("CREATE TABLE large (content BLOB)", &[])?;
        connection.execute("INSERT INTO large VALUES (zeroblob(4000000))", &[]).map(drop)
    });
    let standing = file.database.write_with_next(Hints::PENDING, large).unwrap();
    let refused = file.store.enqueue(vec![noop()]).unwrap_err();
    assert!(matches!(refused, Error::Unavailable { reason: Unavailable::DiskFull, .. }), "{refused:?}");
    assert!(standing.take_back().unwrap().is_err());
    let jobs = file.store.enqueue(vec![noop()]).unwrap();
    assert_eq!(statuses(&file.store, &jobs), [JobStatus::Pending]);
    assert_eq!(file.store.check().unwrap(), []);
}

/// A worker whose jobs say that they have begun, and wait to be told to end.
fn worker(store: &Store, has_begun: Sender<()>, may_end: Receiver<()>) -> Worker {
    let (has_begun, may_end) = (Mutex::new(has_begun), Mutex::new(may_end));
    let mut handlers = Handlers::new();
    handlers.register("noop", move |_attempt: &Attempt| {
        has_begun.lock().unwrap().send(()).unwrap();
        may_end.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        Outcome::Successful { output: None }
    });
    Worker::start(store, handlers, WorkerOptions::default()).unwrap()
}

#[test]
fn a_job_that_comes_to_an_idle_worker_needs_no_commit_to_start() {
    let file = File::new();
    let ((begun, has_begun), (end, may_end)) = (channel(), channel());
    let worker = worker(&file.store, begun, may_end);
    for round in 1..=3 {
        let began = Instant::now();
        while file.database.standing() == 0 {
            assert!(began.elapsed() < PATIENCE, "the worker does not rest in round {round}");
            std::thread::yield_now();
        }
        let jobs = file.store.enqueue(vec![noop()]).unwrap();
        assert_eq!(statuses(&file.store, &jobs), [JobStatus::Running], "when it is acknowledged");
        has_begun.recv_timeout(PATIENCE).unwrap();
        assert_eq!(file.database.standing(), 0, "it is not idle");
        let second = file.store.enqueue(vec![noop()]).unwrap();
        has_begun.recv_timeout(PATIENCE).unwrap();
        for _job in 0..2 {
            end.send(()).unwrap();
        }
        let ends = [jobs[0], second[0]];
        while statuses(&file.store, &ends) != [JobStatus::Successful; 2] {
            assert!(began.elapsed() < PATIENCE, "{:?}", statuses(&file.store, &ends));
            std::thread::yield_now();
        }
    }
    worker.drain();
    worker.join().unwrap();
    assert_eq!(file.database.standing(), 0, "who ends leaves no claim behind");
    assert_eq!(file.store.check().unwrap(), []);
    let jobs = file.store.enqueue(vec![noop()]).unwrap();
    assert_eq!(statuses(&file.store, &jobs), [JobStatus::Pending]);
}

//! The size of a SQLite file: freed space is given back, and the write-ahead log stays small.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use windlass_db::Database;
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_engine::store::NewJob;
use windlass_engine::{Clock, Random, Store, TABLES};

const PATIENCE: Duration = Duration::from_secs(60);
const MEGABYTE: i64 = 1024 * 1024;

fn open(path: &Path) -> (Arc<SqliteDatabase>, Store) {
    let database = Arc::new(SqliteDatabase::open(path, &TABLES, &SqliteOptions::default()).unwrap());
    let store = Store::new(Arc::clone(&database) as Arc<dyn Database>, Clock::system(), Random::from_seed(1));
    (database, store)
}

fn large(bytes: usize) -> NewJob {
    NewJob::new("noop", format!("\"{}\"", "x".repeat(bytes)))
}

#[test]
fn freed_pages_are_given_back_in_steps_and_by_a_vacuum() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let (database, store) = open(&path);
    store.jobs().enqueue(vec![large(100_000); 100]).unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute("DELETE FROM jobs WHERE id > 1", []).unwrap();
    let full = database.file_size().unwrap();
    assert!(full.is_incremental && full.free_bytes > 9 * MEGABYTE, "{full:?}");
    database.vacuum_step().unwrap();
    let less = database.file_size().unwrap();
    let given_back = full.bytes - less.bytes;
    assert!((1..=MEGABYTE + 8_192).contains(&given_back), "a limited part of it: {given_back}");
    while database.file_size().unwrap().free_bytes > 0 {
        database.vacuum_step().unwrap();
    }
    assert!(database.file_size().unwrap().bytes < MEGABYTE);
    assert_eq!(store.count_jobs(), 1);

    raw.execute_batch("PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
    assert!(!database.file_size().unwrap().is_incremental, "as a file that another program made");
    database.vacuum_whole().unwrap();
    assert!(database.file_size().unwrap().is_incremental);
    assert!(database.empty_wal().unwrap());
    assert_eq!(database.file_size().unwrap().wal_bytes, 0);
    assert_eq!(store.upkeep().check().unwrap(), []);
}

trait Counts {
    fn count_jobs(&self) -> i64;
}

impl Counts for Store {
    fn count_jobs(&self) -> i64 {
        self.upkeep().stats().unwrap().jobs.total()
    }
}

/// Begins a transaction that reads, and keeps it open.
fn begin_to_read(path: &Path) -> rusqlite::Connection {
    let raw = rusqlite::Connection::open(path).unwrap();
    raw.execute_batch("BEGIN").unwrap();
    raw.query_row("SELECT count(*) FROM queues", [], |_row| Ok(())).unwrap();
    raw
}

/// Sets the flag even if the test panics, because the other threads would otherwise run for ever.
struct SetsFlagOnDrop<'a>(&'a AtomicBool);

impl Drop for SetsFlagOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// SQLite's own checkpoints never restart the log while a reader uses it. Here each reader begins before the previous
/// one ends.
#[test]
fn the_log_stays_small_while_there_is_always_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let (database, store) = open(&path);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = begin_to_read(&path);
            while !over.load(Ordering::Relaxed) {
                let next = begin_to_read(&path);
                drop(std::mem::replace(&mut reader, next));
            }
        });
        let _over = SetsFlagOnDrop(&over);
        for _megabyte in 0..200 {
            store.jobs().enqueue(vec![large(100_000); 10]).unwrap();
        }
    });
    let largest = database.file_size().unwrap().wal_bytes;
    assert!(largest < 100 * MEGABYTE, "200 MB were written, and the log has {largest} bytes");
    assert_eq!(store.upkeep().check().unwrap(), []);
}

/// An open transaction keeps the log from restarting. After it has ended, the log stops growing.
#[test]
fn the_log_restarts_when_the_last_reader_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let (database, store) = open(&path);
    let reader = begin_to_read(&path);
    let wal_bytes = || database.file_size().unwrap().wal_bytes;
    while wal_bytes() < 28 * MEGABYTE {
        store.jobs().enqueue(vec![large(100_000); 10]).unwrap();
    }
    drop(reader);
    let began = Instant::now();
    loop {
        let before = wal_bytes();
        for _megabyte in 0..20 {
            store.jobs().enqueue(vec![large(100_000); 10]).unwrap();
        }
        if wal_bytes() <= before {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "it grows to {}", wal_bytes());
    }
}

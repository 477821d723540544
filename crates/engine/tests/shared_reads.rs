//! Reads that belong together share a transaction on a server, until one fails. Nothing is left open behind them.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_db::{Database, ReadDeadline, Recovery, one};
use windlass_engine::{Clock, Result, TABLES};
use windlass_test_database::{DatabaseKind, TestDatabase};

const LONGEST: Duration = Duration::from_secs(60);

struct Bench {
    database: Arc<dyn Database>,
    kind: DatabaseKind,
    _test_database: TestDatabase,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let test_database = TestDatabase::in_folder(folder.path());
        let address = test_database.address();
        let kind = test_database.kind();
        let database: Arc<dyn Database> = match kind {
            DatabaseKind::Sqlite => {
                Arc::new(SqliteDatabase::open(address.as_ref(), &TABLES, &SqliteOptions::default()).unwrap())
            }
            DatabaseKind::Postgres => {
                let address = PostgresAddress::parse(&address, &|_variable| None).unwrap();
                Arc::new(PostgresDatabase::open(&address, &TABLES, &PostgresOptions::default()).unwrap())
            }
        };
        Bench { database, kind, _test_database: test_database, _folder: folder }
    }

    /// What reads that belong together, and have a deadline, have seen.
    fn page(read: impl Fn(&Bench, &mut Vec<i64>)) -> (Bench, Vec<i64>) {
        let (bench, mut seen) = (Bench::new(), Vec::new());
        ReadDeadline::set_for_this_thread(&Clock::system(), LONGEST);
        bench.database.read_together(&mut || read(&bench, &mut seen));
        (bench, seen)
    }

    fn number(&self, sql: &'static str) -> Result<i64> {
        let mut found = 0;
        self.database.read(&mut |connection| {
            found = one(connection, sql, &[], |row| row.integer(0))?;
            Ok(())
        })?;
        Ok(found)
    }

    fn queues(&self) -> i64 {
        self.number("SELECT count(*) FROM queues").unwrap()
    }

    fn add_queue(&self, name: &'static str) {
        let insert = move |connection: &mut dyn windlass_db::Connection| {
            connection.execute("INSERT INTO queues (name) VALUES ($1)", &[name.into()]).map(drop)
        };
        self.database.write("add a queue", Box::new(insert), Recovery::Repeat).unwrap();
    }

    /// How many sessions of the server have a transaction that has read queues.
    fn open_transactions(&self) -> i64 {
        match self.kind {
            DatabaseKind::Sqlite => 0,
            DatabaseKind::Postgres => self
                .number(
                    "SELECT count(*) FROM pg_locks
                     WHERE relation = to_regclass('queues') AND pid <> pg_backend_pid()",
                )
                .unwrap(),
        }
    }

    /// What a read of the same page sees of a change by others.
    fn seen(&self, shared: i64, alone: i64) -> i64 {
        match self.kind {
            DatabaseKind::Sqlite => alone,
            DatabaseKind::Postgres => shared,
        }
    }
}

#[test]
fn reads_that_belong_together_share_a_snapshot_of_a_server() {
    let (bench, mut seen) = Bench::page(|bench, seen| {
        seen.push(bench.queues());
        // The same thread can write beside its reads.
        bench.add_queue("a");
        seen.push(bench.queues());
    });
    seen.push(bench.queues());
    assert_eq!(seen, [0, bench.seen(0, 1), 1]);
    assert_eq!(bench.open_transactions(), 0);
}

#[test]
fn after_a_read_that_fails_the_next_one_has_another_transaction() {
    let (bench, seen) = Bench::page(|bench, seen| {
        seen.push(bench.queues());
        bench.add_queue("a");
        bench.number("SELECT no_such_column FROM queues").unwrap_err();
        seen.push(bench.queues());
        // The operation fails, and the server has no error.
        let refused = bench.database.read(&mut |connection| {
            one(connection, "SELECT count(*) FROM queues", &[], |row| row.integer(0))?;
            Err(windlass_engine::Error::invalid("read", "the operation does not like it"))
        });
        refused.unwrap_err();
        bench.add_queue("b");
        seen.push(bench.queues());
    });
    assert_eq!(seen, [0, 1, 2]);
    assert_eq!(bench.open_transactions(), 0);
}

#[test]
fn a_panic_ends_the_shared_transaction() {
    let bench = Bench::new();
    ReadDeadline::set_for_this_thread(&Clock::system(), LONGEST);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        bench.database.read_together(&mut || {
            bench.queues();
            panic!("on purpose");
        });
    }));
    assert!(panicked.is_err());
    bench.add_queue("a");
    assert_eq!(bench.queues(), 1);
    assert_eq!(bench.open_transactions(), 0);
}

/// Only reads with a deadline have an end that is near.
#[test]
fn reads_without_a_deadline_share_nothing() {
    let bench = Bench::new();
    let mut seen = Vec::new();
    bench.database.read_together(&mut || {
        seen.push(bench.queues());
        bench.add_queue("a");
        seen.push(bench.queues());
    });
    assert_eq!(seen, [0, 1]);
}

/// The limit that the server has for a statement is what is left, however long ago the transaction began.
#[test]
fn a_shared_transaction_keeps_the_deadline() {
    let bench = Bench::new();
    let clock = Clock::manual(0);
    ReadDeadline::set_for_this_thread(&clock, LONGEST);
    let limit = || match bench.kind {
        DatabaseKind::Sqlite => 0,
        DatabaseKind::Postgres => {
            bench.number("SELECT setting::int8 FROM pg_settings WHERE name = 'statement_timeout'").unwrap()
        }
    };
    let mut limits = Vec::new();
    bench.database.read_together(&mut || {
        limits.push(limit());
        clock.advance_ms(20_000);
        limits.push(limit());
        clock.advance_ms(15_000);
        limits.push(limit());
        clock.advance_ms(25_000);
        assert!(bench.number("SELECT 7").is_err(), "the deadline has passed");
    });
    ReadDeadline::set_for_this_thread(&clock, LONGEST);
    assert_eq!(limits, [60_000, 40_000, 25_000].map(|limit| bench.seen(limit, 0)));
    assert_eq!(bench.open_transactions(), 0);
}

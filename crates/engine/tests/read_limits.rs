//! A read of a thread with a limit is ended, and its connection can be used again.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_db::{Database, ReadLimit, one};
use windlass_engine::{Clock, Error, Result, TABLES, Unavailable};
use windlass_test_database::{DatabaseKind, TestDatabase};

const ENDLESS: &str =
    "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n > 0)
    SELECT count(*) FROM numbers WHERE n < 0";

fn read(database: &dyn Database, sql: &'static str) -> Result<i64> {
    let mut found = 0;
    database.read(&mut |connection| {
        found = one(connection, sql, &[], |row| row.integer(0))?;
        Ok(())
    })?;
    Ok(found)
}

fn open(database: &TestDatabase) -> Arc<dyn Database> {
    let address = database.address();
    match database.kind() {
        DatabaseKind::Sqlite => {
            Arc::new(SqliteDatabase::open(address.as_ref(), &TABLES, &SqliteOptions::default()).unwrap())
        }
        DatabaseKind::Postgres => {
            let address = PostgresAddress::parse(&address, &|_variable| None).unwrap();
            Arc::new(PostgresDatabase::open(&address, &TABLES, &PostgresOptions::default()).unwrap())
        }
    }
}

#[test]
fn an_endless_read_is_ended_and_its_connection_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let test_database = TestDatabase::in_folder(folder.path());
    let database = open(&test_database);
    // A server measures the time itself; SQLite asks a clock that this test moves.
    let (clock, longest) = match test_database.kind() {
        DatabaseKind::Sqlite => (Clock::manual(0), Duration::from_secs(2)),
        DatabaseKind::Postgres => (Clock::system(), Duration::from_millis(200)),
    };
    let ended = Arc::new(AtomicBool::new(false));
    let reader = {
        let (database, clock, ended) = (Arc::clone(&database), clock.clone(), Arc::clone(&ended));
        std::thread::spawn(move || {
            ReadLimit { clock, longest }.set_for_this_thread();
            let error = read(&*database, ENDLESS).unwrap_err();
            ended.store(true, Ordering::SeqCst);
            // The next read of this thread has a limit of its own.
            assert_eq!(read(&*database, "SELECT 7"), Ok(7));
            error
        })
    };
    while !ended.load(Ordering::SeqCst) {
        clock.advance_ms(2_000);
        std::thread::yield_now();
    }
    let error = reader.join().unwrap();
    assert!(matches!(&error, Error::Unavailable { reason: Unavailable::Cancelled(_), .. }), "{error}");
    // A thread without a limit gets the same connection.
    clock.advance_ms(10_000);
    assert_eq!(
        read(
            &*database,
            "WITH RECURSIVE numbers (n) AS
        (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000) SELECT max(n) FROM numbers"
        ),
        Ok(100_000)
    );
}

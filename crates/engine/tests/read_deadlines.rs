//! The reads of a thread with a deadline are ended by it, however many there are, and their connections can be used again.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_db::{Database, Dialect, ReadDeadline, one};
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

fn is_cancelled(error: &Error) -> bool {
    matches!(error, Error::Unavailable { reason: Unavailable::Cancelled(_), .. })
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
            ReadDeadline::set_for_this_thread(&clock, longest);
            let error = read(&*database, ENDLESS).unwrap_err();
            ended.store(true, Ordering::SeqCst);
            // The same thread reads again once it has another deadline.
            ReadDeadline::set_for_this_thread(&Clock::manual(0), longest);
            assert_eq!(read(&*database, "SELECT 7"), Ok(7));
            error
        })
    };
    while !ended.load(Ordering::SeqCst) {
        clock.advance_ms(2_000);
        std::thread::yield_now();
    }
    let error = reader.join().unwrap();
    assert!(is_cancelled(&error), "{error}");
    // A thread without a deadline gets the same connection.
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

/// The limit of the next statement as a server has it, in milliseconds. SQLite has none.
fn statement_limit_ms(connection: &mut dyn windlass_db::Connection) -> Result<Option<i64>> {
    match connection.dialect() {
        Dialect::Sqlite => Ok(None),
        Dialect::Postgres => {
            let sql = "SELECT setting::int8 FROM pg_settings WHERE name = 'statement_timeout'";
            one(connection, sql, &[], |row| row.integer(0)).map(Some)
        }
    }
}

#[test]
fn all_reads_of_a_thread_have_one_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let test_database = TestDatabase::in_folder(folder.path());
    let database = open(&test_database);
    let clock = Clock::manual(0);
    let longest = Duration::from_secs(60);
    let limits_of_one_read = |pause_ms| {
        let mut limits = Vec::new();
        database.read(&mut |connection| {
            limits = vec![statement_limit_ms(connection)?];
            clock.advance_ms(pause_ms);
            limits.push(statement_limit_ms(connection)?);
            Ok(())
        })?;
        Ok(limits)
    };
    let only_on_a_server = |limits: [i64; 2]| match test_database.kind() {
        DatabaseKind::Sqlite => Ok(vec![None, None]),
        DatabaseKind::Postgres => Ok(limits.map(Some).to_vec()),
    };

    ReadDeadline::set_for_this_thread(&clock, longest);
    assert_eq!(read(&*database, "SELECT 7"), Ok(7));
    clock.advance_ms(20_000);
    assert_eq!(limits_of_one_read(15_000), only_on_a_server([40_000, 25_000]), "what is left");
    clock.advance_ms(24_999);
    assert_eq!(read(&*database, "SELECT 8"), Ok(8));
    clock.advance_ms(1);
    let error = read(&*database, "SELECT 9").unwrap_err();
    assert!(is_cancelled(&error), "{error}");

    // Another request of the same thread.
    ReadDeadline::set_for_this_thread(&clock, longest);
    assert_eq!(read(&*database, "SELECT 10"), Ok(10));
    let passed: Result<Vec<Option<i64>>> = limits_of_one_read(60_000);
    match test_database.kind() {
        // Its clock is read every few thousand steps of a statement.
        DatabaseKind::Sqlite => assert_eq!(passed, Ok(vec![None, None])),
        DatabaseKind::Postgres => assert!(is_cancelled(&passed.unwrap_err())),
    }
}

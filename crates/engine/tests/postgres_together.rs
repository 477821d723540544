//! Statements that are sent together: large ones pass each other, and an error or a break in the middle leaves no
//! answer to be read by the next statement.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use support::graph;
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::{Connection, Database, Query, Recovery, Row, Statement, Value, one};
use windlass_engine::store::{Claims, Scope};
use windlass_engine::{Clock, Error, JobStatus, Random, Result, Store, TABLES};
use windlass_test_server::{Pooler, Schema};

/// More than the buffers of both sockets hold.
const LARGE_BYTES: usize = 12_000_000;
const BACK: &str = "SELECT $1 || 'x'";
const SEVEN: &str = "SELECT CAST(7 AS BIGINT)";
const SESSION: &str = "SELECT CAST(pg_backend_pid() AS BIGINT)";
const ROWS: &str = "SELECT number FROM generate_series(1, 100000) AS number";
const BROKEN_AT_LAST: &str = "SELECT 1 / (100000 - number) FROM generate_series(1, 100000) AS number";

fn open(schema: &Schema) -> PostgresDatabase {
    open_at(&schema.url())
}

fn open_at(url: &str) -> PostgresDatabase {
    let address = PostgresAddress::parse(url, &|_name| None).unwrap();
    PostgresDatabase::open(&address, &TABLES, &PostgresOptions::default()).unwrap()
}

fn write(
    database: &PostgresDatabase,
    operation: impl FnMut(&mut dyn Connection) -> Result<()> + Send + 'static,
) -> Result<()> {
    database.write("send together", Box::new(operation), Recovery::Report)
}

/// A query of which only the number of rows matters.
fn counted<'q>(sql: &'static str, on_row: &'q mut dyn FnMut(&dyn Row) -> Result<()>) -> Query<'q> {
    Query { statement: Statement::Plain(sql), parameters: &[], on_row }
}

/// Checks that the session's statements are answered in their order. Returns its process id on the server.
fn session_in_step(database: &PostgresDatabase) -> i64 {
    let session = Arc::new(AtomicI64::new(0));
    let found = Arc::clone(&session);
    write(database, move |connection| {
        assert_eq!(one(connection, SEVEN, &[], |row| row.integer(0))?, 7);
        found.store(one(connection, SESSION, &[], |row| row.integer(0))?, Ordering::Relaxed);
        Ok(())
    })
    .unwrap();
    session.load(Ordering::Relaxed)
}

#[test]
fn large_statements_and_large_answers_pass_each_other() {
    let schema = Schema::new();
    let database = open(&schema);
    // From the second time on the statements have names.
    for _round in 0..2 {
        write(&database, |connection| {
            let large = "a".repeat(LARGE_BYTES);
            let [mut first, mut second] = [0, 0];
            connection.execute_with_next("SELECT $1 || 'y'", &[Value::Text(&large)])?;
            let parameters = [Value::Text(&large)];
            let mut read_first = |row: &dyn Row| {
                first += row.text(0)?.len();
                Ok(())
            };
            let mut read_second = |row: &dyn Row| {
                second += row.text(0)?.len();
                Ok(())
            };
            connection.query_all(&mut [
                Query { statement: Statement::Plain(BACK), parameters: &parameters, on_row: &mut read_first },
                Query {
                    statement: Statement::Plain(BACK),
                    parameters: &parameters,
                    on_row: &mut read_second,
                },
            ])?;
            assert_eq!([first, second], [LARGE_BYTES + 1; 2]);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn many_statements_run_in_order() {
    let schema = Schema::new();
    let database = open(&schema);
    schema.client().batch_execute("CREATE TABLE steps (id SERIAL, step BIGINT)").unwrap();
    for _round in 0..2 {
        write(&database, |connection| {
            connection.execute("TRUNCATE steps RESTART IDENTITY", &[])?;
            for step in 1..=100 {
                connection
                    .execute_with_next("INSERT INTO steps (step) VALUES ($1)", &[Value::Integer(step)])?;
            }
            let sql = "SELECT count(*) FROM steps WHERE id = step";
            assert_eq!(one(connection, sql, &[], |row| row.integer(0))?, 100);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn the_number_of_queued_statements_is_limited() {
    let schema = Schema::new();
    let database = open(&schema);
    let error = write(&database, |connection| {
        connection.execute_with_next("SELECT 1 / 0", &[])?;
        for _statement in 0..16 {
            connection.execute_with_next("SELECT 1", &[])?;
        }
        panic!("none of them was sent")
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("division by zero"), "{error}");
}

#[test]
fn an_error_in_the_middle_leaves_no_answer_for_the_next_statement() {
    let schema = Schema::new();
    let database = open(&schema);
    let before = session_in_step(&database);
    for _round in 0..3 {
        let failed = write(&database, |connection| {
            connection.query_all(&mut [
                counted(ROWS, &mut |_row| Ok(())),
                counted(BROKEN_AT_LAST, &mut |_row| Ok(())),
                counted(ROWS, &mut |_row| Ok(())),
            ])
        });
        let error = failed.unwrap_err().to_string();
        assert!(error.contains("division by zero"), "{error}");
        assert_eq!(session_in_step(&database), before);
    }
}

#[test]
fn a_reader_that_fails_leaves_no_answer_for_the_next_statement() {
    let schema = Schema::new();
    let database = open(&schema);
    let before = session_in_step(&database);
    let refuse = |_row: &dyn Row| Err(Error::conflict("read", "refused"));
    let panic = |_row: &dyn Row| -> Result<()> { panic!("a reader panics, as it should in this test") };
    for alone in [true, false] {
        for mut on_row in [Box::new(refuse) as Box<dyn FnMut(&dyn Row) -> Result<()> + Send>, Box::new(panic)]
        {
            write(&database, move |connection| match alone {
                true => connection.query(ROWS, &[], &mut on_row),
                false => {
                    connection.query_all(&mut [counted(ROWS, &mut on_row), counted(ROWS, &mut |_row| Ok(()))])
                }
            })
            .unwrap_err();
            assert_eq!(session_in_step(&database), before);
        }
    }
}

#[test]
fn a_connection_that_breaks_in_the_middle_is_replaced_and_everything_repeated() {
    let schema = Schema::new();
    let database = open(&schema);
    let before = session_in_step(&database);
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    write(&database, move |connection| {
        let is_first = counter.fetch_add(1, Ordering::Relaxed) == 0;
        connection.execute_with_next("INSERT INTO queues (name) VALUES ('a')", &[])?;
        let end = match is_first {
            true => "SELECT pg_terminate_backend(pg_backend_pid())",
            false => "SELECT true",
        };
        connection.query_all(&mut [counted(end, &mut |_row| Ok(())), counted(ROWS, &mut |_row| Ok(()))])?;
        assert_eq!(one(connection, "SELECT count(*) FROM queues", &[], |row| row.integer(0))?, 1);
        Ok(())
    })
    .unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    assert_ne!(session_in_step(&database), before);
}

#[test]
fn a_statement_name_that_is_lost_in_the_middle_leads_to_one_retry() {
    let schema = Schema::new();
    let database = open(&schema);
    let runs = Arc::new(AtomicUsize::new(0));
    let send = || {
        let counter = Arc::clone(&runs);
        write(&database, move |connection| {
            counter.fetch_add(1, Ordering::Relaxed);
            connection.execute_with_next("INSERT INTO queues (name) SELECT 'a' WHERE false", &[])?;
            let mut seven = 0;
            connection.query_all(&mut [
                counted(ROWS, &mut |_row| Ok(())),
                counted(SEVEN, &mut |row| {
                    seven = row.integer(0)?;
                    Ok(())
                }),
            ])?;
            assert_eq!(seven, 7);
            Ok(())
        })
        .unwrap();
        runs.swap(0, Ordering::Relaxed)
    };
    assert_eq!((send(), send(), send()), (1, 1, 1));
    write(&database, |connection| connection.batch("DEALLOCATE ALL")).unwrap();
    assert_eq!((send(), send()), (2, 1));
}

#[test]
fn connections_that_ended_while_idle_are_skipped() {
    let schema = Schema::new();
    let database = open(&schema);
    let before = session_in_step(&database);
    let ended = "SELECT pg_terminate_backend($1, 10000)";
    let pid = i32::try_from(before).unwrap();
    assert!(schema.client().query_one(ended, &[&pid]).map(|row| row.get::<_, bool>(0)).unwrap());
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    write(&database, move |connection| {
        connection.execute("INSERT INTO queues (name) VALUES ('once')", &[])?;
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })
    .unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    assert_ne!(session_in_step(&database), before);
}

/// The server's sessions move between clients after each transaction, but never within statements that are sent
/// together.
#[test]
fn runs_are_executed_behind_a_pooler_in_transaction_mode() {
    const LINKS: usize = 10;
    let schema = Schema::new();
    let server: postgres::Config = schema.url().split_once('?').unwrap().0.parse().unwrap();
    let port = server.get_ports()[0];
    let pooler = Pooler::before(port);
    let url = schema.url().replace(&format!(":{port}/"), &format!(":{}/", pooler.port()));
    let chain = || graph((0..LINKS).map(|link: usize| link.checked_sub(1).into_iter().collect()).collect());
    // Each process needs a different seed. With the same seed both would give their jobs the same tokens.
    let stores = [1, 2, 3, 4]
        .map(|seed| Store::new(Arc::new(open_at(&url)), Clock::system(), Random::from_seed(seed)));
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(move || {
                let run_id = support::submit(store, chain());
                let worker = store.for_workers().register(support::new_worker()).unwrap();
                let request = support::request(worker, Scope::Runs(vec![run_id]), 1);
                let mut claims = store.for_workers().claim(request.clone()).unwrap();
                for _link in 0..LINKS {
                    let Claims::Jobs(jobs) = claims else { panic!("fenced") };
                    assert_eq!(jobs.iter().map(|job| job.run_id).collect::<Vec<_>>(), [Some(run_id)]);
                    let end = vec![support::finish(worker, &jobs[0], support::success())];
                    claims = store.for_workers().finish_and_claim(end, Some(request.clone())).unwrap().1;
                }
            });
        }
    });
    assert_eq!(stores[0].upkeep().check().unwrap(), []);
    assert_eq!(
        stores[0].upkeep().stats().unwrap().jobs.of(JobStatus::Successful),
        (stores.len() * LINKS) as i64
    );
}

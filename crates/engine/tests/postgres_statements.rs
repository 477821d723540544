//! Prepared statements: used if a connection has its session for itself, never run in the session of another
//! connection, limited in number, and given up if the server does not know them.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{TryRecvError, channel};
use std::time::{Duration, Instant};

use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::{Connection, Database, Query, Recovery, Statement, Value, all, one};
use windlass_engine::{Clock, Error, Random, Store, TABLES, Unavailable};
use windlass_test_server::{Pooler, Schema, SharedServer};

/// The statement that these tests run repeatedly.
const QUEUES: &str = "SELECT count(*) FROM queues";
/// The session's prepared statements, with the numbers of generic and custom plans.
const KEPT: &str = "SELECT statement, generic_plans, custom_plans FROM pg_prepared_statements";
/// More names than the client gives in one test process.
const NAMES_MAX: usize = 2_000;

fn open(schema: &Schema) -> PostgresDatabase {
    open_at(&schema.url())
}

fn open_at(url: &str) -> PostgresDatabase {
    let address = PostgresAddress::parse(url, &|_name| None).unwrap();
    PostgresDatabase::open(&address, &TABLES, &PostgresOptions::default()).unwrap()
}

/// Reads the prepared statements of a session that writes: the numbers of generic and custom plans.
fn kept(database: &PostgresDatabase) -> BTreeMap<String, (i64, i64)> {
    let kept = Arc::new(std::sync::Mutex::new(BTreeMap::new()));
    let found = Arc::clone(&kept);
    let read = move |connection: &mut dyn Connection| {
        let rows = all(connection, KEPT, &[], |row| Ok((row.text(0)?, (row.integer(1)?, row.integer(2)?))))?;
        *found.lock().unwrap() = rows.into_iter().collect();
        Ok(())
    };
    database.write("look", Box::new(read), Recovery::Report).unwrap();
    kept.lock().unwrap().clone()
}

/// Runs a transaction that writes. Returns how many queues it saw, and how often it was run.
fn write(database: &PostgresDatabase) -> (i64, usize) {
    let seen = Arc::new(std::sync::Mutex::new((0, 0)));
    let noted = Arc::clone(&seen);
    let operation = move |connection: &mut dyn Connection| {
        noted.lock().unwrap().1 += 1;
        let queues = one(connection, QUEUES, &[], |row| row.integer(0))?;
        noted.lock().unwrap().0 = queues;
        Ok(())
    };
    database.write("count", Box::new(operation), Recovery::Report).unwrap();
    *seen.lock().unwrap()
}

fn batch(database: &PostgresDatabase, sql: String) {
    database
        .write("prepare the test", Box::new(move |connection| connection.batch(&sql)), Recovery::Report)
        .unwrap();
}

/// Prepares what another process would leave in the session: the same names for different statements.
fn names_of_another_process() -> String {
    give_names_to("SELECT CAST(666 AS BIGINT)")
}

/// Gives all of these names to one statement.
fn give_names_to(statement: &str) -> String {
    (0..NAMES_MAX).map(|number| format!("PREPARE s{number} AS {statement};")).collect()
}

#[test]
fn a_repeated_statement_is_prepared_with_a_generic_plan() {
    let schema = Schema::new();
    let database = open(&schema);
    write(&database);
    assert!(!kept(&database).contains_key(QUEUES), "a statement that is used once is not prepared");
    (0..10).for_each(|_| assert_eq!(write(&database), (0, 1)));
    let (generic, custom) = kept(&database)[QUEUES];
    assert_eq!((generic, custom), (10, 0));
}

/// A plan that was made for a small table is bad once the table has grown, so reads are planned for each execution.
#[test]
fn reads_are_planned_for_each_execution() {
    let schema = Schema::new();
    let database = open(&schema);
    let read_again = |parameter: i64| {
        let mut read = |connection: &mut dyn Connection| {
            const SQL: &str = "SELECT count(*) FROM jobs WHERE id = $1";
            one(connection, SQL, &[parameter.into()], |row| row.integer(0)).map(|_none| ())
        };
        database.read(&mut read).unwrap();
    };
    (0..20).for_each(read_again);
    let kept = kept(&database);
    assert_eq!(kept["SELECT count(*) FROM jobs WHERE id = $1"], (0, 19));
}

#[test]
fn the_number_of_prepared_statements_is_limited() {
    let schema = Schema::new();
    let database = open(&schema);
    let texts: Vec<&'static str> =
        (0..300).map(|number| &*format!("SELECT CAST({number} AS BIGINT)").leak()).collect();
    for (number, sql) in texts.iter().copied().enumerate() {
        let mut read = |connection: &mut dyn Connection| {
            for _use in 0..3 {
                assert_eq!(one(connection, sql, &[], |row| row.integer(0))?, number as i64);
            }
            Ok(())
        };
        database.read(&mut read).unwrap();
    }
    let kept = kept(&database);
    assert!((100..=128).contains(&kept.len()), "{} are kept", kept.len());
    assert!(kept.contains_key(texts[299]) && !kept.contains_key(texts[0]));
}

#[test]
fn a_statement_of_another_process_with_the_same_name_is_never_run() {
    let schema = Schema::new();
    let database = open(&schema);
    (0..3).for_each(|_| assert_eq!(write(&database), (0, 1)));
    // The pooler gives this session to another process, which makes a connection in it, and then gives it back. A
    // sequence keeps its value even if the transaction is rolled back.
    let names = give_names_to("SELECT nextval('counts_runs')");
    batch(
        &database,
        format!(
            "CREATE SEQUENCE counts_runs; DEALLOCATE ALL; {names}
             SELECT set_config('windlass.session', 'another', false)"
        ),
    );
    assert_eq!(write(&database), (0, 2), "the preamble failed, and everything that was sent with it");
    (0..3).for_each(|_| assert_eq!(write(&database), (0, 1)));
    assert_eq!(kept(&database), BTreeMap::new(), "no statement is prepared any more");
    let mut count = |connection: &mut dyn Connection| {
        let was_run = one(
            connection,
            "SELECT CAST(CAST(is_called AS INTEGER) AS BIGINT) FROM counts_runs",
            &[],
            |row| row.integer(0),
        )?;
        assert_eq!(was_run, 0, "the other process's statement");
        Ok(())
    };
    database.read(&mut count).unwrap();
}

#[test]
fn an_unknown_statement_name_leads_to_one_retry_without_names() {
    let schema = Schema::new();
    let database = open(&schema);
    (0..3).for_each(|_| assert_eq!(write(&database), (0, 1)));
    batch(&database, "DEALLOCATE ALL".to_owned());
    assert_eq!(write(&database), (0, 2), "repeated from its start");
    (0..3).for_each(|_| assert_eq!(write(&database), (0, 1)));
    assert_eq!(kept(&database), BTreeMap::new(), "no statement is prepared any more");
}

#[test]
fn a_taken_statement_name_leads_to_one_retry_without_names() {
    let schema = Schema::new();
    let database = open(&schema);
    assert_eq!(write(&database), (0, 1));
    batch(&database, names_of_another_process());
    assert_eq!(write(&database), (0, 2), "repeated from its start");
    (0..3).for_each(|_| assert_eq!(write(&database), (0, 1)));
    assert_eq!(kept(&database), BTreeMap::new(), "no statement is prepared any more");
}

#[test]
fn changed_tables_lead_to_one_retry_with_names() {
    const SQL: &str = "SELECT * FROM changing";
    let schema = Schema::new();
    let database = open(&schema);
    let mut client = schema.client();
    client.batch_execute("CREATE TABLE changing (id BIGINT); INSERT INTO changing VALUES (7)").unwrap();
    let runs = AtomicUsize::new(0);
    let read = || {
        let mut read = |connection: &mut dyn Connection| {
            runs.fetch_add(1, Ordering::Relaxed);
            assert_eq!(one(connection, SQL, &[], |row| row.integer(0))?, 7);
            Ok(())
        };
        database.read(&mut read).unwrap();
        runs.swap(0, Ordering::Relaxed)
    };
    assert_eq!((read(), read(), read()), (1, 1, 1));
    client.batch_execute("ALTER TABLE changing ADD COLUMN more BIGINT").unwrap();
    assert_eq!(read(), 2, "repeated from its start");
    assert_eq!((read(), read(), read()), (1, 1, 1));
    assert!(kept(&database).contains_key(SQL));
}

/// A plan that was made for few rows may read all of them.
#[test]
fn plans_are_renewed_when_the_tables_have_grown() {
    const SQL: &str = "SELECT count(*) FROM jobs";
    let schema = Schema::new();
    let clock = Clock::manual(1_000_000);
    let address = PostgresAddress::parse(&schema.url(), &|_name| None).unwrap();
    let options = PostgresOptions { clock: clock.clone(), ..PostgresOptions::default() };
    let database = PostgresDatabase::open(&address, &TABLES, &options).unwrap();
    let count = |jobs: i64| {
        let operation = move |connection: &mut dyn Connection| {
            assert_eq!(one(connection, SQL, &[], |row| row.integer(0))?, jobs);
            Ok(())
        };
        database.write("count", Box::new(operation), Recovery::Report).unwrap();
    };
    (0..5).for_each(|_| count(0));
    assert_eq!(kept(&database)[SQL], (4, 0));
    let insert = "INSERT INTO jobs (kind) SELECT 'noop' FROM generate_series(1, 5000)";
    schema.client().batch_execute(insert).unwrap();
    clock.advance_ms(1_000);
    (0..3).for_each(|_| count(5_000));
    assert_eq!(kept(&database)[SQL], (3, 0), "prepared again");
}

/// Like a long migration: meanwhile the leases of live workers must be renewed.
#[test]
fn a_lease_is_renewed_while_somebody_has_locked_the_jobs() {
    let schema = Schema::new();
    let store = Store::new(Arc::new(open(&schema)), Clock::system(), Random::from_seed(1));
    let worker_id = store.for_workers().register(support::new_worker()).unwrap();
    (0..3).for_each(|_| assert!(store.for_workers().heartbeat(worker_id).unwrap()));
    let mut client = schema.client();
    let locked = "BEGIN; LOCK TABLE jobs, runs, job_dependencies, schedules IN ACCESS EXCLUSIVE MODE";
    client.batch_execute(locked).unwrap();
    (0..3).for_each(|_| assert!(store.for_workers().heartbeat(worker_id).unwrap()));
    client.batch_execute("ROLLBACK").unwrap();
}

/// Puts a pooler in front of a schema's server. Returns the pooler and the schema's address there.
fn behind_a_pooler(schema: &Schema) -> (Pooler, String) {
    let server: postgres::Config = SharedServer::get().url().parse().unwrap();
    let port = server.get_ports()[0];
    let pooler = Pooler::before(port);
    let url = schema.url().replace(&format!(":{port}/"), &format!(":{}/", pooler.port()));
    (pooler, url)
}

/// This must not depend on an error, because some transactions can't be repeated, such as that of a copy.
#[test]
fn a_session_with_the_token_of_another_process_is_recognized_on_connecting() {
    let schema = Schema::new();
    open(&schema);
    let (_pooler, url) = behind_a_pooler(&schema);
    let (at_pooler, _schema) = url.split_once('?').unwrap();
    let mut other = postgres::Client::connect(at_pooler, postgres::NoTls).unwrap();
    let marked =
        format!("{} SELECT set_config('windlass.session', 'another', false)", names_of_another_process());
    other.batch_execute(&marked).unwrap();
    let database = open_at(&url);
    (0..4).for_each(|_| assert_eq!(write(&database), (0, 1), "not repeated"));
    assert!(
        kept(&database).values().all(|plans| *plans == (0, 0)),
        "the statements belong to another process, and none was run"
    );
}

/// Otherwise another program that uses such names would get errors.
#[test]
fn the_names_of_a_session_are_free_after_a_pooler_was_detected() {
    let schema = Schema::new();
    let database = open(&schema);
    let mut hold = |connection: &mut dyn Connection| {
        (0..3).try_for_each(|_| one(connection, QUEUES, &[], |row| row.integer(0)).map(drop))?;
        batch(&database, "SELECT set_config('windlass.session', 'another', false)".to_owned());
        assert_eq!(write(&database), (0, 2), "it ran in the session of another connection");
        Ok(())
    };
    database.read(&mut hold).unwrap();
    write(&database);
    assert_eq!(kept(&database), BTreeMap::new());
}

/// A statement is closed on the server when the cache is full. That may happen in a transaction that finds out that
/// the session is not its own.
#[test]
fn a_statement_of_another_process_with_the_same_name_is_never_closed() {
    let schema = Schema::new();
    let (_pooler, url) = behind_a_pooler(&schema);
    let database = open_at(&url);
    let texts: Vec<&'static str> =
        (0..=128).map(|number| &*format!("SELECT CAST({number} AS BIGINT)").leak()).collect();
    let use_twice = |texts: &[&'static str]| {
        let mut read = |connection: &mut dyn Connection| {
            let mut uses = texts.iter().flat_map(|sql| [sql, sql]);
            uses.try_for_each(|sql| one(connection, sql, &[], |row| row.integer(0)).map(drop))
        };
        database.read(&mut read).unwrap();
    };
    use_twice(&texts[..128]);
    let (at_pooler, _schema) = url.split_once('?').unwrap();
    let mut other = postgres::Client::connect(at_pooler, postgres::NoTls).unwrap();
    let marked = format!(
        "DEALLOCATE ALL; {} SELECT set_config('windlass.session', 'another', false)",
        names_of_another_process()
    );
    other.batch_execute(&marked).unwrap();
    use_twice(&texts[128..]);
    let count = "SELECT count(*) FROM pg_prepared_statements";
    let counted = other.simple_query(count).unwrap().into_iter().find_map(|message| {
        let postgres::SimpleQueryMessage::Row(row) = message else { return None };
        row.get(0).map(str::to_owned)
    });
    assert_eq!(counted, Some(NAMES_MAX.to_string()), "all statements of the other process are there");
}

/// If the preamble is cancelled at its first moment, no transaction begins, and the statements sent with it run by
/// themselves.
#[test]
fn a_write_that_reports_a_refusal_has_written_nothing_whenever_it_is_cancelled() {
    let schema = Schema::new();
    let database = open(&schema);
    let table = format!("\"{}\".done", schema.name());
    let mut client = schema.client();
    client.batch_execute(&format!("CREATE TABLE {table} (number BIGINT)")).unwrap();
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity, generate_series(1, 20)
                  WHERE query LIKE '%windlass.tells%' AND pid <> pg_backend_pid() AND query LIKE $1";
    let insert: &'static str = format!("INSERT INTO {table} VALUES ($1)").leak();
    let mut canceller = schema.client();
    let named = format!("%{}%", schema.name());
    std::thread::scope(|scope| {
        // This is also dropped by a panic, so that the cancelling stops.
        let (_goes_on, end) = channel::<()>();
        scope.spawn(move || {
            while matches!(end.try_recv(), Err(TryRecvError::Empty)) {
                canceller.query(cancel, &[&named]).unwrap();
            }
        });
        let began = Instant::now();
        for number in 0_i64.. {
            let insert = move |connection: &mut dyn Connection| {
                connection.execute(insert, &[number.into()]).map(|_rows| ())
            };
            let written = database.write("insert", Box::new(insert), Recovery::Report);
            let count = format!("SELECT count(*) FROM {table} WHERE number = $1");
            let is_done = client.query_one(&count, &[&number]).unwrap().get::<_, i64>(0) == 1;
            let is_unknown = |error: &Error| {
                matches!(error, Error::Unavailable { reason: Unavailable::CommitUnknown, .. })
            };
            match written {
                Ok(()) => assert!(is_done),
                Err(error) if is_unknown(&error) && is_done => break,
                Err(error) => assert!(!is_done || is_unknown(&error), "{number} is there: {error}"),
            }
            assert!(began.elapsed() < Duration::from_secs(60), "it was never cancelled at that moment");
        }
    });
}

/// Tells a test process which of the two it is, where they meet, and where the pooler is.
const ONE_OF_TWO: &str = "WINDLASS_TEST_ONE_OF_TWO";

/// Both give the same names to different statements, and the pooler passes sessions from one to the other.
#[test]
fn two_processes_behind_a_pooler_get_their_own_results() {
    let schema = Schema::new();
    let (_pooler, url) = behind_a_pooler(&schema);
    open_at(&url);
    let folder = tempfile::tempdir().unwrap();
    let processes = [1, 2].map(|number| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "as_one_of_two_processes", "--ignored", "--nocapture"])
            .env(ONE_OF_TWO, format!("{number} {} {url}", folder.path().display()))
            .spawn()
            .unwrap()
    });
    for mut process in processes {
        assert!(process.wait().unwrap().success(), "it got the result of another process");
    }
}

#[test]
#[ignore = "a process that another test starts"]
fn as_one_of_two_processes() {
    let told = std::env::var(ONE_OF_TWO).unwrap();
    let [number, folder, url] = told.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let database = open_at(url);
    let texts: Vec<(i64, &'static str)> = (0..20)
        .map(|text| format!("{number}{text:02}"))
        .map(|answer| (answer.parse().unwrap(), &*format!("SELECT CAST({answer} AS BIGINT)").leak()))
        .collect();
    // Each prepares all statements in one session while the other process is in another session.
    let mut prepare = |connection: &mut dyn Connection| {
        for (answer, sql) in texts.iter().chain(&texts).chain(&texts) {
            assert_eq!(one(connection, sql, &[], |row| row.integer(0))?, *answer);
        }
        std::fs::write(Path::new(folder).join(number), "").unwrap();
        let began = Instant::now();
        while std::fs::read_dir(folder).unwrap().count() < 2 {
            assert!(began.elapsed() < Duration::from_secs(30), "the other process did not arrive");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    };
    database.read(&mut prepare).unwrap();
    std::thread::scope(|scope| {
        for _thread in 0..4 {
            scope.spawn(|| {
                for (answer, sql) in texts.iter().cycle().take(500) {
                    let mut read = |connection: &mut dyn Connection| {
                        assert_eq!(one(connection, sql, &[], |row| row.integer(0))?, *answer);
                        Ok(())
                    };
                    database.read(&mut read).unwrap();
                }
            });
        }
    });
}

#[test]
fn statements_that_are_sent_together_run_in_order() {
    let schema = Schema::new();
    let database = open(&schema);
    // From the second time on the statements have names.
    for round in 0..2_i64 {
        let found = Arc::new(std::sync::Mutex::new(Vec::new()));
        let kept = Arc::clone(&found);
        let operation = move |connection: &mut dyn Connection| {
            let news = [[Value::Text("a"), Value::Integer(1)], [Value::Text("b\0"), Value::Null]];
            connection.execute_with_next(
                "INSERT INTO queues (name, max_running)
                 SELECT name || $2, max_running FROM {rows $1: name text, max_running integer} AS news",
                &[Value::rows(&news), Value::Text(if round == 0 { "0" } else { "1" })],
            )?;
            let (mut first, mut second) = (Vec::new(), Vec::new());
            let names = "SELECT name || coalesce(CAST(max_running AS TEXT), '-') FROM queues ORDER BY name";
            let read = Query {
                statement: Statement::Plain(names),
                parameters: &[],
                on_row: &mut |row| {
                    first.push(row.text(0)?);
                    Ok(())
                },
            };
            let change = Query {
                statement: Statement::Plain(
                    "UPDATE queues SET max_running = $1 WHERE name = 'a0' RETURNING max_running",
                ),
                parameters: &[round.into()],
                on_row: &mut |row| {
                    second.push(row.integer(0)?.to_string());
                    Ok(())
                },
            };
            connection.query_all(&mut [read, change])?;
            first.extend(second);
            *kept.lock().unwrap() = first;
            Ok(())
        };
        database.write("send together", Box::new(operation), Recovery::Report).unwrap();
        let expected: &[&str] = match round {
            0 => &["a01", "b\u{fffd}0-", "0"],
            _ => &["a00", "a11", "b\u{fffd}0-", "b\u{fffd}1-", "1"],
        };
        assert_eq!(*found.lock().unwrap(), expected);
    }
}

#[test]
fn an_error_in_a_queued_statement_is_reported() {
    let schema = Schema::new();
    let database = open(&schema);
    let twice = "INSERT INTO queues (name) VALUES ('a'), ('a')";
    let alone = |connection: &mut dyn Connection| connection.execute_with_next(twice, &[]);
    let with_next = |connection: &mut dyn Connection| {
        connection.execute_with_next(twice, &[])?;
        connection.execute("UPDATE queues SET fifo = 1", &[]).map(|_rows| ())
    };
    for (place, error) in [
        database.write("insert", Box::new(alone), Recovery::Report).unwrap_err(),
        database.write("insert", Box::new(with_next), Recovery::Report).unwrap_err(),
    ]
    .iter()
    .enumerate()
    {
        assert!(error.is_conflict(), "{place}: {error}");
    }
    assert_eq!(write(&database).0, 0, "nothing was written");
}

#[test]
fn a_set_of_rows_arrives_unchanged_even_if_empty_or_with_nulls() {
    const SQL: &str =
        "SELECT number, word, $2, note FROM {rows $1: number integer, word text, note text} AS given
                       ORDER BY number";
    let words = ["", "NULL", "{a,\"b\"}", "\\", "'", "\r\n\u{1}\u{10ffff}"];
    let full = words.iter().zip([i64::MIN, -1, 0, 1, 2, i64::MAX]);
    let full: Vec<[Value<'_>; 3]> =
        full.map(|(word, number)| [Value::Integer(number), Value::Text(word), Value::Null]).collect();
    let empty: Vec<[Value<'_>; 3]> = Vec::new();
    let schema = Schema::new();
    let database = open(&schema);
    // From the second time on the statement has a name, and then it gets different values.
    for rows in [&full, &full, &empty, &vec![[Value::Null, Value::Null, Value::Null]]] {
        let mut read = |connection: &mut dyn Connection| {
            let found = all(connection, SQL, &[Value::rows(rows), Value::Real(0.5)], |row| {
                assert_eq!((row.value(2)?, row.value(3)?), (Value::Real(0.5), Value::Null));
                Ok((row.optional_integer(0)?, row.optional_text(1)?))
            })?;
            let given = rows.iter().map(|[number, word, _note]| {
                let number = if let Value::Integer(number) = number { Some(*number) } else { None };
                let word = if let Value::Text(word) = word { Some((*word).to_owned()) } else { None };
                (number, word)
            });
            assert_eq!(found, given.collect::<Vec<_>>());
            Ok(())
        };
        database.read(&mut read).unwrap();
    }
}

//! What lists, counts and reports read on SQLite: no whole table, and no more rows than the answer needs.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::path::Path;
use std::sync::{Arc, Mutex};

use support::reading;
use support::tapped::{Tap, Tapped};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_db::{Connection, Dialect, Statement, Value};
use windlass_engine::store::{Count, OldPending};
use windlass_engine::{Clock, Random, Store, TABLES};

/// A statement with its parameters.
type Recorded = Vec<(Statement, Vec<rusqlite::types::Value>)>;

/// More steps of SQLite's machine than any page or report of a few rows takes. One pass over the runs takes ten times as
/// many.
const STEPS_MAX: i32 = 25_000;

fn owned(value: &Value<'_>) -> rusqlite::types::Value {
    match value {
        Value::Null => rusqlite::types::Value::Null,
        Value::Integer(number) => (*number).into(),
        Value::Real(number) => (*number).into(),
        Value::Text(text) => (*text).to_owned().into(),
        Value::Rows { .. } => panic!("a list asks with no rows"),
    }
}

/// The statements of some reads, in a database that was used for long.
fn record(path: &Path, read: fn(&Store)) -> Recorded {
    drop(SqliteDatabase::open(path, &TABLES, &SqliteOptions::default()).unwrap());
    let raw = rusqlite::Connection::open(path).unwrap();
    raw.execute_batch(&format!("BEGIN; {}; COMMIT", reading::FILL.join(";"))).unwrap();
    drop(raw);
    record_reads(path, read)
}

/// The same in a database that is filled.
fn record_reads(path: &Path, read: fn(&Store)) -> Recorded {
    let inner = SqliteDatabase::open(path, &TABLES, &SqliteOptions::default()).unwrap();
    let recorded = Arc::new(Mutex::new(Recorded::new()));
    let kept = Arc::clone(&recorded);
    let tap: Tap = Arc::new(move |_connection: &mut dyn Connection, statement, parameters| {
        kept.lock().unwrap().push((statement, parameters.iter().map(owned).collect()));
        Ok(())
    });
    let database = Arc::new(Tapped::new(inner, tap));
    read(&Store::new(database, Clock::manual(200_000_000), Random::from_seed(1)));
    std::mem::take(&mut *recorded.lock().unwrap())
}

/// The only statements that read a table from its end on: as many rows as they say.
fn reads_the_newest(statement: Statement) -> bool {
    let statement = statement.to_string();
    statement.contains("FROM jobs ORDER BY id DESC LIMIT") && statement.contains("FROM (SELECT")
}

fn assert_no_table_is_read_whole(raw: &rusqlite::Connection, statements: &Recorded) {
    assert!(!statements.is_empty());
    for (statement, _parameters) in statements {
        for text in statement.texts(Dialect::Sqlite, TABLES.fragments) {
            let mut plan = raw.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
            let steps: Vec<String> =
                plan.raw_query().mapped(|row| row.get(3)).collect::<Result<_, _>>().unwrap();
            for table in ["jobs", "runs", "job_logs", "job_dependencies", "job_attempts"] {
                let whole = [format!("SCAN {table}"), format!("SCAN {table} USING INDEX sqlite")];
                let is_whole = steps.iter().any(|step| *step == whole[0] || step.starts_with(&whole[1]));
                assert!(!is_whole || reads_the_newest(*statement), "{steps:#?}, in: {statement}");
            }
        }
    }
}

#[test]
fn lists_and_reports_read_no_more_rows_than_they_need() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let statements = record(&path, reading::read_by_indexes);
    let raw = rusqlite::Connection::open(&path).unwrap();
    assert_no_table_is_read_whole(&raw, &statements);
    assert_steps(&raw, &statements, STEPS_MAX);
}

/// Each statement takes fewer steps.
fn assert_steps(raw: &rusqlite::Connection, statements: &Recorded, most: i32) {
    for (statement, parameters) in statements {
        for text in statement.texts(Dialect::Sqlite, TABLES.fragments) {
            let mut prepared = raw.prepare(&text).unwrap();
            for (number, parameter) in (1..).zip(parameters) {
                if let Some(index) = prepared.parameter_index(&format!("${number}")).unwrap() {
                    prepared.raw_bind_parameter(index, parameter).unwrap();
                }
            }
            let mut rows = prepared.raw_query();
            while rows.next().unwrap().is_some() {}
            drop(rows);
            let steps = prepared.get_status(rusqlite::StatementStatus::VmStep);
            assert!(steps < most, "{steps} steps for {parameters:?} in: {statement}");
        }
    }
}

/// A page about queues and the health count jobs up to a bound. Without one, a statement would take five times as many steps.
#[test]
fn a_backlog_is_not_counted_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    record(&path, |_store| {});
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch(
        "INSERT INTO jobs (queue, kind, status)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000)
         SELECT 'backlog', 'noop', 'PENDING' FROM numbers",
    )
    .unwrap();
    let read = |store: &Store| {
        let page = store.queues().page(Some("a"), 100).unwrap();
        let backlog = page.rows.iter().find(|queue| queue.name == "backlog").unwrap();
        assert_eq!(backlog.pending, Count { number: 20_000, is_exact: false });
        assert!(!store.upkeep().health().unwrap().pending.is_exact);
        store.queues().find("backlog").unwrap();
    };
    assert_steps(&raw, &record_reads(&path, read), 300_000);
}

/// Jobs wait in 3,000 queues. A page looks at a part of them, and `doctor` at all.
#[test]
fn a_page_looks_for_old_jobs_in_some_claim_partitions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    record(&path, |_store| {});
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch(
        "INSERT INTO jobs (queue, kind, status, execute_after, updated_at)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000)
         SELECT 'q' || (10000 + n), 'noop', 'PENDING', 199000000 - n, 0 FROM numbers",
    )
    .unwrap();
    let queues_of = |old: &[OldPending]| -> Vec<String> {
        let queue =
            |id| raw.query_row("SELECT queue FROM jobs WHERE id = $1", [id], |row| row.get(0)).unwrap();
        old.iter().map(|partition| queue(partition.first_id)).collect()
    };
    let read = |store: &Store| {
        assert_eq!(store.upkeep().health_for_pages().unwrap().old_pending.len(), 50);
    };
    assert_steps(&raw, &record_reads(&path, read), 150_000);
    let store = Store::new(
        Arc::new(SqliteDatabase::open(&path, &TABLES, &SqliteOptions::default()).unwrap()),
        Clock::manual(200_000_000),
        Random::from_seed(1),
    );
    // The most urgent are the last queue's.
    let of_page = queues_of(&store.upkeep().health_for_pages().unwrap().old_pending);
    assert!(of_page.contains(&"q10998".to_owned()) && !of_page.contains(&"q13000".to_owned()), "{of_page:?}");
    assert!(queues_of(&store.upkeep().health().unwrap().old_pending).contains(&"q13000".to_owned()));
    let partitions = |statement: &&(Statement, Vec<rusqlite::types::Value>)| {
        statement.0.to_string().contains("first_of_partition")
    };
    assert_eq!(record_reads(&path, read).iter().filter(partitions).count(), 1, "one statement for all");
}

/// A server plans each statement again, so forty-eight parts are not as many statements.
#[test]
fn a_histogram_is_two_statements() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let statements = record(&path, |store| {
        store.runs().histogram(10_000_000, 50_000_000, 48).unwrap();
    });
    assert_eq!(statements.len(), 2);
}

/// A list of 200 workflows shows the newest runs of each, and a list of runs how long those of each usually take.
#[test]
fn many_workflows_are_as_many_statements_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let statements = record(&path, |store| {
        let names: Vec<String> = (0..200).map(|number| format!("w{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        store.runs().newest_of_each(&names, 30).unwrap();
        store.runs().usual_durations(&names).unwrap();
    });
    assert_eq!(statements.len(), 3);
}

/// The page of a workflow compares the jobs of its newest runs.
#[test]
fn the_jobs_of_many_runs_are_one_statement() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let statements = record(&path, |store| {
        store.jobs().first_of_each(&(1..=20).collect::<Vec<i64>>(), 200).unwrap();
    });
    assert_eq!(statements.len(), 1);
}

/// Each of 99 queues is counted, and none has a statement of its own. Jobs in 3,000 queues are not all looked at.
#[test]
fn many_queues_are_few_statements_and_few_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    record(&path, |_store| {});
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch(
        "INSERT INTO jobs (queue, kind, status)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000)
         SELECT 'q' || (10000 + n), 'noop', 'PENDING' FROM numbers",
    )
    .unwrap();
    let statements = record_reads(&path, |store| {
        let metrics = store.upkeep().metrics(None).unwrap();
        assert_eq!((metrics.queues.len(), metrics.queues["q10001"].pending), (100, 1));
    });
    assert!(statements.len() < 10, "{} statements", statements.len());
    assert_steps(&raw, &statements, 150_000);
    let of_page = record_reads(&path, |store| {
        assert_eq!(store.queues().oldest_jobs_from("q12000").unwrap().len(), 200);
    });
    assert_steps(&raw, &of_page, 30_000);
}

#[test]
fn counts_and_searches_read_along_indexes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let statements = record(&path, reading::read_to_a_bound);
    assert_no_table_is_read_whole(&rusqlite::Connection::open(&path).unwrap(), &statements);
}

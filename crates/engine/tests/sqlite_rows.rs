//! What other programs can do only on SQLite, and what only a file allows: values that are not valid text, a lock on
//! everything, and a copy while the database is in use.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use support::{Bench, graph, noop, success};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_engine::store::{JobFilter, Pruned};
use windlass_engine::{JobStatus, Random, RunStatus, Store, TABLES};
use windlass_test_database::TestDatabase;

fn open(database: &TestDatabase) -> SqliteDatabase {
    SqliteDatabase::open(database.address().as_ref(), &TABLES, &SqliteOptions::default()).unwrap()
}

/// A copy of the database, in a folder of its own.
fn backup(bench: &Bench) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::in_folder(folder.path());
    open(&bench.database).backup(database.address().as_ref()).unwrap();
    let clock = bench.clock.clone();
    let store = Store::new(Arc::new(open(&database)), clock.clone(), Random::from_seed(1));
    Bench { store, clock, database, folder }
}

/// Other programs may write invalid rows. Such a job fails alone, and does not block others.
#[test]
fn a_job_with_invalid_text_fails_alone() {
    let bench = Bench::new();
    let worker = bench.worker();
    let raw = bench.raw();
    let mut invalid = HashMap::new();
    for (column, value) in [
        ("payload", "CAST(x'22e922' AS TEXT)"),
        ("name", "CAST(x'ff' AS TEXT)"),
        ("attempt", "9223372036854775807"),
    ] {
        let sql = format!("INSERT INTO jobs (kind, {column}) VALUES ('noop', {value})");
        invalid.insert(raw.value(&format!("{sql} RETURNING id")), column);
    }
    let sql = "INSERT INTO jobs (kind, retry) VALUES ('noop', CAST(x'ff' AS TEXT)) RETURNING id";
    let without_retry: i64 = raw.value(sql);
    raw.execute("UPDATE jobs SET execute_after = 0");
    raw.execute("UPDATE jobs SET failures = 9223372036854775807 WHERE name IS NOT NULL");
    bench.store.for_scheduler().promote_due().unwrap();
    let sound = bench.enqueue(noop());
    let claimed: Vec<i64> = bench.claim(worker, 10).iter().map(|job| job.id).collect();
    assert_eq!(claimed, [without_retry, sound]);
    for (id, column) in invalid {
        let job = bench.store.jobs().get(id).unwrap();
        assert_eq!(job.status, JobStatus::Failed, "{column}");
        let error = job.last_error.unwrap();
        assert!(error.contains(column), "{error}");
    }
    assert_eq!(bench.store.jobs().list(&JobFilter::newest(10)).unwrap().rows.len(), 5);
    bench.store.for_scheduler().rescue(vec![(worker, 0)]).unwrap();
    assert_eq!(
        bench.store.jobs().get(without_retry).unwrap().status,
        JobStatus::Pending,
        "it is rescued as it is"
    );
}

#[test]
fn a_job_of_a_run_with_invalid_text_counts_as_failed() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run_id = bench.submit(graph(vec![vec![], vec![0], vec![]]));
    bench.raw().execute("UPDATE jobs SET payload = CAST(x'ff' AS TEXT) WHERE name = 'j0'");
    let rest = bench.claim(worker, 10);
    assert_eq!(rest.len(), 1);
    bench.finish(worker, &rest[0], success());
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Failed);
    bench.assert_sound();
}

#[test]
fn a_queue_with_an_invalid_name_is_listed() {
    let bench = Bench::new();
    let worker = bench.worker();
    let id = bench.enqueue(noop());
    bench.raw().execute("UPDATE jobs SET queue = CAST(x'ff' AS TEXT)");
    let sound = bench.enqueue(noop());
    let mut claimed: Vec<i64> = bench.claim(worker, 10).iter().map(|job| job.id).collect();
    claimed.sort_unstable();
    assert_eq!(claimed, [id, sound]);
}

#[test]
fn a_worker_with_an_invalid_name_is_listed() {
    let bench = Bench::new();
    bench.worker();
    bench.raw().execute("UPDATE workers SET host = CAST(x'ff' AS TEXT), queues = CAST(x'ff' AS TEXT)");
    assert_eq!(bench.store.workers().live().unwrap().len(), 1);
}

#[test]
fn an_invalid_concurrency_key_does_not_block_others() {
    let bench = Bench::new();
    let invalid = "INSERT INTO jobs (kind, execute_after, concurrency_key, on_full)
                  VALUES ('noop', 0, CAST(x'ff' AS TEXT), 'skip')";
    bench.raw().execute(invalid);
    bench
        .raw()
        .execute("INSERT INTO jobs (kind, execute_after, concurrency_key) VALUES ('noop', 0, 'sound')");
    bench.store.for_scheduler().promote_due().unwrap();
    bench.store.for_scheduler().admit_waiting("").unwrap();
    assert_eq!(bench.claim(bench.worker(), 10).len(), 1);
}

/// The ids of new rows are consecutive. A trigger that inserts jobs too would put its ids among them.
#[test]
fn jobs_inserted_by_a_trigger_are_not_returned_as_ours() {
    let bench = Bench::new();
    bench.raw().execute("CREATE TABLE journal (job_id INTEGER)");
    let journal = "CREATE TRIGGER noted AFTER INSERT ON jobs BEGIN INSERT INTO journal VALUES (new.id); END";
    bench.raw().execute(journal);
    let ids = bench.store.jobs().enqueue(vec![noop(); 3]).unwrap();
    assert_eq!(ids.len(), 3);
    assert!(ids.windows(2).all(|pair| pair[1] == pair[0] + 1), "rows in other tables do not matter: {ids:?}");
    bench.raw().execute(
        "CREATE TRIGGER doubled AFTER INSERT ON jobs WHEN new.kind = 'noop'
         BEGIN INSERT INTO jobs (kind) VALUES ('audit'); END",
    );
    let error = bench.store.jobs().enqueue(vec![noop(); 3]).unwrap_err().to_string();
    assert!(error.contains("`doubled` inserts into jobs"), "{error}");
    let id = bench.enqueue(noop());
    assert_eq!(bench.store.jobs().get(id).unwrap().kind, "noop", "one row's id is known");
    let kept = JobFilter::newest(10);
    assert_eq!(
        bench.store.jobs().list(&kept).unwrap().rows.len(),
        5,
        "nothing of the refused write was kept"
    );
}

/// Jobs that were accepted before the copy are the same jobs in both databases. Later jobs are not.
#[test]
fn a_copy_is_a_different_database_with_the_same_jobs() {
    let original = Bench::new();
    original.enqueue(noop());
    let copy = backup(&original);
    let instances = [original.store.instance().unwrap(), copy.store.instance().unwrap()];
    assert_ne!(instances[0], instances[1]);
    let keys = |bench: &Bench| {
        bench.raw().execute("INSERT INTO jobs (kind, status) VALUES ('noop', 'PENDING')");
        let mut jobs = bench.claim(bench.worker(), 10);
        jobs.sort_by_key(|job| job.id);
        jobs.into_iter().map(|job| (job.id, job.idempotency_key())).collect::<Vec<_>>()
    };
    let (first, second) = (keys(&original), keys(&copy));
    assert_eq!(first[0], second[0], "it was enqueued before the copy");
    assert_eq!((first[1].0, second[1].0), (2, 2), "these have the same id");
    assert_ne!(first[1].1, second[1].1, "and are different jobs");
    let of_copy = backup(&copy);
    assert_ne!(of_copy.store.instance().unwrap(), instances[1]);
}

#[test]
fn a_step_that_finds_nothing_takes_no_write_lock() {
    let bench = Bench::new();
    bench.enqueue(noop());
    let writer = bench.raw();
    writer.execute("BEGIN IMMEDIATE");
    assert_eq!(
        bench.store.for_scheduler().prune_step(support::older_than(bench.clock.now_ms() + 1)).unwrap(),
        Pruned::default()
    );
}

/// Columns that are NULL in most rows stand last in `jobs`, where SQLite stores nothing for them. A column with a value behind
/// them would cost a byte for each, in every row, and the time to read and write it at each claim and each end.
#[test]
fn a_row_has_no_bytes_for_the_columns_that_it_does_not_use() {
    let bench = Bench::new();
    bench.store.jobs().enqueue(vec![noop(); 100]).unwrap();
    let bytes = |raw: &str| bench.raw().value::<i64>(raw);
    let columns = bytes("SELECT count(*) FROM pragma_table_info('jobs')");
    let row = bytes("SELECT sum(payload) / 100 FROM dbstat WHERE name = 'jobs'");
    assert!(row <= 100, "{row} bytes for a job that waits, in a table of {columns} columns");
}

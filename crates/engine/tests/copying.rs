//! Copying a database from a file to a server and back, in the middle of a run.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use support::tapped::{Tap, Tapped};
use support::{graph, noop, request, success};
use windlass_db::Database;
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_engine::store::{
    ClaimedJob, Claims, CopyError, Job, JobFilter, LogLine, LogPosition, LogStream, NewJob, RunFilter, Scope,
};
use windlass_engine::{Clock, Error, Random, RunStatus, Store, TABLES, Unavailable, WorkerStatus};
use windlass_test_server::{PrivateServer, Schema};

fn in_file(folder: &Path, name: &str, clock: &Clock) -> Store {
    let database = SqliteDatabase::open(&folder.join(name), &TABLES, &SqliteOptions::default()).unwrap();
    Store::new(Arc::new(database), clock.clone(), Random::from_seed(1))
}

fn on_server(schema: &Schema, clock: &Clock) -> Store {
    let address = PostgresAddress::parse(&schema.url(), &|_variable| None).unwrap();
    let options = PostgresOptions { clock: clock.clone(), ..PostgresOptions::default() };
    let database = PostgresDatabase::open(&address, &TABLES, &options).unwrap();
    Store::new(Arc::new(database), clock.clone(), Random::from_seed(1))
}

fn all_jobs(store: &Store) -> Vec<Job> {
    store.jobs().list_full(&JobFilter::newest(1_000)).unwrap().rows
}

fn tagged(store: &Store, tag: &str) -> Vec<i64> {
    let filter = RunFilter { tag: Some(tag.to_owned()), ..RunFilter::newest(10) };
    store.runs().list(&filter).unwrap().rows.iter().map(|run| run.id).collect()
}

/// Registers a worker, finishes up to `most` jobs of the run successfully, and stops the worker. Returns those jobs.
fn work(store: &Store, run_id: i64, most: usize) -> Vec<ClaimedJob> {
    let worker_id = store.for_workers().register(support::new_worker()).unwrap();
    let mut done = Vec::new();
    while done.len() < most {
        let wanted = request(worker_id, Scope::Runs(vec![run_id]), most - done.len());
        let Claims::Jobs(jobs) = store.for_workers().claim(wanted).unwrap() else { panic!("fenced") };
        if jobs.is_empty() {
            break;
        }
        let finishes = jobs.iter().map(|job| support::finish(worker_id, job, success())).collect();
        store.for_workers().finish_and_claim(finishes, None).unwrap();
        done.extend(jobs);
    }
    assert!(store.for_workers().set_status(worker_id, WorkerStatus::Stopped).unwrap());
    done
}

#[test]
fn a_run_that_is_copied_there_and_back_ends_as_if_it_had_stayed() {
    let (folder, schema, clock) = (tempfile::tempdir().unwrap(), Schema::new(), Clock::manual(1_000_000));
    let first = in_file(folder.path(), "first.db", &clock);
    let mut workflow = graph(vec![vec![], vec![0], vec![0], vec![1, 2], vec![3]]);
    workflow.tags = vec!["etl".to_owned(), "night".to_owned()];
    let run_id = support::submit(&first, workflow);
    let lonely = first
        .jobs()
        .enqueue(vec![
            NewJob { unique_key: Some("once".to_owned()), execute_after: Some(9_000_000), ..noop() },
            NewJob {
                payload: r#"{"text": "ü \u0000 ' \" \\"}"#.to_owned(),
                queue: "slow".to_owned(),
                ..noop()
            },
        ])
        .unwrap();
    first.queues().pause("slow").unwrap();
    let pruned = first.jobs().enqueue(vec![noop()]).unwrap()[0];
    first.jobs().cancel(pruned).unwrap();
    clock.advance_ms(1_000);
    assert_eq!(first.for_scheduler().prune_step(support::older_than(clock.now_ms())).unwrap().jobs, 1);
    let done = work(&first, run_id, 2);
    let line = LogLine {
        job_id: done[0].id,
        attempt: 1,
        line: 1,
        at: 5,
        stream: LogStream::Stdout,
        text: "hello".to_owned(),
    };
    first.for_workers().append_logs(Arc::new(vec![line.clone()])).unwrap();

    let second = on_server(&schema, &clock);
    let copied = first.upkeep().copy_to(&second).unwrap();
    assert!(copied.tables.contains(&("jobs", 7)), "{copied:?}");
    assert_eq!(all_jobs(&second), all_jobs(&first));
    assert_eq!(second.runs().get(run_id).unwrap(), first.runs().get(run_id).unwrap());
    assert_eq!(tagged(&second, "night"), [run_id]);
    assert_eq!(second.jobs().dependencies(run_id).unwrap(), first.jobs().dependencies(run_id).unwrap());
    assert_eq!(second.queues().paused().unwrap(), ["slow"]);
    let from_start = LogPosition { job_id: line.job_id, attempt: 0, line: 0 };
    assert_eq!(second.logs().after(from_start, 10).unwrap(), [line]);
    let unique = NewJob { unique_key: Some("once".to_owned()), ..noop() };
    assert!(matches!(second.jobs().enqueue(vec![unique]), Err(Error::Conflict { .. })), "keys are kept");
    let moved = work(&second, run_id, 2);
    let file = rusqlite::Connection::open(folder.path().join("first.db")).unwrap();
    for job in moved {
        let sql = "SELECT created_at || '-' || token FROM jobs WHERE id = ?1";
        let key: String = file.query_row(sql, [job.id], |row| row.get(0)).unwrap();
        assert_eq!(job.idempotency_key(), key, "idempotency keys are kept");
    }

    let third = in_file(folder.path(), "third.db", &clock);
    second.upkeep().copy_to(&third).unwrap();
    assert_eq!(all_jobs(&third), all_jobs(&second));
    work(&third, run_id, 10);
    assert_eq!(third.runs().get(run_id).unwrap().status, RunStatus::Successful);
    let new = third.jobs().enqueue(vec![noop()]).unwrap()[0];
    assert!(new > pruned && new > lonely[1], "an id was used twice: {new} after {pruned}");
    let instances = [&first, &second, &third].map(|store| store.instance().unwrap());
    assert!(instances[0] != instances[1] && instances[1] != instances[2], "{instances:?}");
    assert_eq!(third.upkeep().check().unwrap(), []);
}

#[test]
fn a_refused_copy_leaves_the_target_unchanged() {
    let (folder, schema, clock) = (tempfile::tempdir().unwrap(), Schema::new(), Clock::manual(1_000_000));
    let (source, target) = (in_file(folder.path(), "source.db", &clock), on_server(&schema, &clock));
    let instance = target.instance().unwrap();
    source.jobs().enqueue(vec![noop()]).unwrap();
    let worker_id = source.for_workers().register(support::new_worker()).unwrap();
    let error = source.upkeep().copy_to(&target).unwrap_err();
    assert!(error.to_string().contains("1 workers are alive"), "{error}");
    source.for_workers().claim(request(worker_id, Scope::Everything, 1)).unwrap();
    source.for_workers().set_status(worker_id, WorkerStatus::Dead).unwrap();
    let error = source.upkeep().copy_to(&target).unwrap_err();
    assert!(error.to_string().contains("1 jobs run in the source"), "{error}");
    assert_eq!((all_jobs(&target), target.instance().unwrap()), (Vec::new(), instance));
    source.for_scheduler().rescue(Vec::new()).unwrap();
    source.upkeep().copy_to(&target).unwrap();
    let error = source.upkeep().copy_to(&target).unwrap_err();
    assert!(error.to_string().contains("the target is not empty"), "{error}");
    assert_eq!(all_jobs(&target), all_jobs(&source));
}

#[test]
fn no_transaction_is_open_while_the_other_database_is_read_as_a_whole() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::manual(1_000_000));
    let open = Arc::new(AtomicUsize::new(0));
    let standing = Arc::clone(&open);
    // A statement that reads a whole table must run while no other transaction is open, because a server ends a
    // transaction that is idle for so long.
    let tap: Tap = Arc::new(move |_connection, statement, _parameters| {
        let sql = statement.to_string();
        let reads_everything = sql.contains("{damage}") || sql == "SELECT count(*) FROM job_logs";
        assert!(
            !reads_everything || standing.load(Ordering::SeqCst) == 1,
            "another transaction is open during: {sql}"
        );
        Ok(())
    });
    let [source, target] = ["source.db", "target.db"].map(|name| {
        let database =
            SqliteDatabase::open(&folder.path().join(name), &TABLES, &SqliteOptions::default()).unwrap();
        let tapped = Tapped { inner: database, tap: Arc::clone(&tap), open: Arc::clone(&open) };
        Store::new(Arc::new(tapped), clock.clone(), Random::from_seed(1))
    });
    source.jobs().enqueue(vec![noop()]).unwrap();
    source.upkeep().copy_to(&target).unwrap();
    assert_eq!(all_jobs(&target), all_jobs(&source));
}

/// Copies, and closes all connections to the server once jobs are written into the target. `to_server` says whether
/// the server has the target or the source.
fn interrupted_copy(to_server: bool, is_stopped: bool) -> CopyError {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::manual(1_000_000));
    let server = Arc::new(PrivateServer::new(&[]));
    let address = PostgresAddress::parse(&server.url(), &|_variable| None).unwrap();
    let options = PostgresOptions { clock: clock.clone(), ..PostgresOptions::default() };
    let on_server = PostgresDatabase::open(&address, &TABLES, &options).unwrap();
    let in_file =
        SqliteDatabase::open(&folder.path().join("windlass.db"), &TABLES, &SqliteOptions::default()).unwrap();
    let (breaking, has_broken) = (Arc::clone(&server), AtomicBool::new(false));
    let tap: Tap = Arc::new(move |_connection, statement, _parameters| {
        if statement.to_string().starts_with("INSERT INTO jobs (") && !has_broken.swap(true, Ordering::SeqCst)
        {
            match is_stopped {
                true => breaking.stop_immediate(),
                false => assert!(breaking.kill_backends() > 0),
            }
        }
        Ok(())
    });
    let store = |database: Arc<dyn Database>| Store::new(database, clock.clone(), Random::from_seed(1));
    let (source, target) = match to_server {
        true => (store(Arc::new(in_file)), store(Arc::new(Tapped::new(on_server, tap)))),
        false => (store(Arc::new(on_server)), store(Arc::new(Tapped::new(in_file, tap)))),
    };
    source.jobs().enqueue(vec![noop(); 3_000]).unwrap();
    let error = source.upkeep().copy_to(&target).unwrap_err();
    if !to_server {
        assert_eq!(all_jobs(&target), [], "all or nothing");
    }
    error
}

#[test]
fn a_source_that_goes_away_during_a_copy_is_named() {
    for is_stopped in [false, true] {
        let error = interrupted_copy(false, is_stopped);
        assert!(
            matches!(
                error,
                CopyError::Source(Error::Unavailable { reason: Unavailable::Unreachable(_), .. })
            ),
            "{error:?}"
        );
    }
}

#[test]
fn a_target_that_goes_away_during_a_copy_is_named() {
    let error = interrupted_copy(true, true);
    assert!(
        matches!(error, CopyError::Target(Error::Unavailable { reason: Unavailable::Unreachable(_), .. })),
        "{error:?}"
    );
}

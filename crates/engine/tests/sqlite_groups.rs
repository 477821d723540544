//! Group commit: waiting writes are committed together, and each gets its own answer.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "support/queue_rows.rs"]
#[allow(unreachable_pub)]
mod queue_rows;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use queue_rows::{insert, open, queues};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_db::{Connection, Database, Durability, OpenMode, Recovery, WriteOperation, one};
use windlass_engine::{Error, Random, TABLES};

/// Keeps the writer busy inside an operation until the returned flag is set, so that a group forms behind it.
fn hold_writer(database: &Arc<SqliteDatabase>) -> (Arc<AtomicBool>, std::thread::JoinHandle<()>) {
    let (go_on, began) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(2)));
    let (flag, inside, held) = (Arc::clone(&go_on), Arc::clone(&began), Arc::clone(database));
    let thread = std::thread::spawn(move || {
        let operation = Box::new(move |_connection: &mut dyn Connection| {
            inside.wait();
            while !flag.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            Ok(())
        });
        held.write("hold the writer", operation, Recovery::Report).unwrap();
    });
    began.wait();
    (go_on, thread)
}

#[test]
fn waiting_writes_are_committed_together_and_fail_alone() {
    const NAMES: [&str; 20] = [
        "q00", "q01", "q02", "q03", "q04", "q05", "q06", "q07", "q08", "q09", "q10", "q11", "q12", "q13",
        "q14", "q15", "q16", "q17", "q18", "q19",
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let database = Arc::new(open(&path).unwrap());
    let (go_on, held) = hold_writer(&database);
    let mut threads: Vec<_> = NAMES
        .into_iter()
        .map(|name| {
            let database = Arc::clone(&database);
            std::thread::spawn(move || database.write("insert", insert(name), Recovery::Report))
        })
        .collect();
    let failing = Arc::clone(&database);
    threads
        .push(std::thread::spawn(move || failing.write("insert twice", insert(NAMES[0]), Recovery::Report)));
    let panicking = Arc::clone(&database);
    threads.push(std::thread::spawn(move || {
        panicking.write(
            "panic",
            Box::new(|_connection| std::panic::resume_unwind(Box::new("on purpose"))),
            Recovery::Report,
        )
    }));
    let frames_before = commits(&path);
    // The operation that keeps the writer busy counts too.
    while database.waiting() <= threads.len() {
        std::thread::yield_now();
    }
    go_on.store(true, Ordering::Release);
    held.join().unwrap();
    let results: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let failed = results.iter().filter(|result| result.is_err()).count();
    assert_eq!(failed, 2, "the duplicate and the panic, and nothing else: {results:?}");
    assert_eq!(queues(&database), NAMES);
    // There is one group, unless this machine stood still for as long as a group may take.
    let committed = commits(&path) - frames_before;
    assert!((1..=3).contains(&committed), "{committed} commits for all of them");
}

#[test]
fn a_write_before_a_failed_one_in_its_group_is_kept_once() {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(open(&folder.path().join("windlass.db")).unwrap());
    let (go_on, held) = hold_writer(&database);
    let insert_and_end = |end: fn() -> Result<(), Error>| -> WriteOperation {
        Box::new(move |connection| {
            connection.execute("INSERT INTO jobs (kind, queue) VALUES ('noop', 'counted')", &[])?;
            end()
        })
    };
    let (well, badly): (fn() -> _, fn() -> _) = (|| Ok(()), || Err(Error::invalid("try", "no luck")));
    let threads: Vec<_> = [well, well, badly, well, badly, well]
        .into_iter()
        .map(|end| {
            let (database, operation) = (Arc::clone(&database), insert_and_end(end));
            std::thread::spawn(move || database.write("insert", operation, Recovery::Report).is_ok())
        })
        .collect();
    while database.waiting() <= threads.len() {
        std::thread::yield_now();
    }
    go_on.store(true, Ordering::Release);
    held.join().unwrap();
    let kept: Vec<bool> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(kept, [true, true, false, true, false, true]);
    let mut rows = 0;
    database
        .read(&mut |connection| {
            let sql = "SELECT count(*) FROM jobs WHERE queue = 'counted'";
            rows = one(connection, sql, &[], |row| row.integer(0))?;
            Ok(())
        })
        .unwrap();
    assert_eq!(rows, 4);
}

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("on purpose"));
    }
}

#[test]
fn an_operation_that_panics_on_drop_changes_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(open(&folder.path().join("windlass.db")).unwrap());
    let (go_on, held) = hold_writer(&database);
    let threads: Vec<_> = ["a", "b", "c", "d"]
        .into_iter()
        .map(|name| {
            let (database, bomb, mut insert) = (Arc::clone(&database), PanicsOnDrop, insert(name));
            let operation: WriteOperation = Box::new(move |connection| {
                let _held = &bomb;
                insert(connection)
            });
            std::thread::spawn(move || database.write("insert", operation, Recovery::Report))
        })
        .collect();
    while database.waiting() <= threads.len() {
        std::thread::yield_now();
    }
    go_on.store(true, Ordering::Release);
    held.join().unwrap();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Ok(()));
    }
    assert_eq!(queues(&database), ["a", "b", "c", "d"]);
    assert_eq!(database.waiting(), 0);
}

#[test]
fn a_group_adds_only_one_transaction_to_its_statements() {
    const WRITES: u64 = 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let (database, costs) = SqliteDatabase::open_counted(&path, &TABLES, &SqliteOptions::default()).unwrap();
    let database = Arc::new(database);
    let (go_on, held) = hold_writer(&database);
    let threads: Vec<_> = (0..WRITES)
        .map(|_| {
            let database = Arc::clone(&database);
            let insert: WriteOperation = Box::new(|connection| {
                connection.execute("INSERT INTO jobs (kind) VALUES ('noop')", &[]).map(drop)
            });
            std::thread::spawn(move || database.write("insert", insert, Recovery::Report).unwrap())
        })
        .collect();
    while database.waiting() <= threads.len() {
        std::thread::yield_now();
    }
    // The operation that keeps the writer busy changes nothing, so its commit is not counted.
    let (statements, commits) = (costs.statements(), database.commits());
    go_on.store(true, Ordering::Release);
    held.join().unwrap();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    // That operation ends with its COMMIT. There is a second group if this machine stood still.
    let groups = database.commits() - commits;
    assert!((1..=2).contains(&groups), "{groups} groups");
    assert_eq!(costs.statements() - statements, 1 + WRITES + 2 * groups);
}

#[test]
fn a_group_is_closed_when_its_time_has_passed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let database = Arc::new(open(&path).unwrap());
    let (go_on, held) = hold_writer(&database);
    let threads: Vec<_> = ["a", "b", "c"]
        .into_iter()
        .map(|name| {
            let (database, mut insert) = (Arc::clone(&database), insert(name));
            let slow: WriteOperation = Box::new(move |connection| {
                let began = std::time::Instant::now();
                while began.elapsed() < Duration::from_millis(60) {
                    std::hint::spin_loop();
                }
                insert(connection)
            });
            std::thread::spawn(move || database.write("take long", slow, Recovery::Report))
        })
        .collect();
    let before = commits(&path);
    while database.waiting() <= threads.len() {
        std::thread::yield_now();
    }
    go_on.store(true, Ordering::Release);
    held.join().unwrap();
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
    assert_eq!(queues(&database), ["a", "b", "c"]);
    assert_eq!(commits(&path) - before, 3, "one commit for each write");
}

/// Counts commits in the WAL. A frame that ends a commit holds the size of the database, and other frames hold zero.
fn commits(database: &Path) -> usize {
    let wal = std::fs::read(database.with_extension("db-wal")).unwrap();
    let frame_bytes = 24 + 4_096;
    (0..)
        .map(|frame| 32 + frame * frame_bytes)
        .take_while(|offset| offset + 24 <= wal.len())
        .filter(|offset| wal[offset + 4..offset + 8] != [0; 4])
        .count()
}

/// How an operation of this test ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Well,
    Fails,
    Panics,
    PanicsWhenDropped,
}

fn random_end(random: &Random) -> End {
    match random.fraction() {
        ..0.94 => End::Well,
        ..0.96 => End::Fails,
        ..0.98 => End::Panics,
        _ => End::PanicsWhenDropped,
    }
}

fn inserts_and_ends(name: String, end: End) -> WriteOperation {
    let bomb = (end == End::PanicsWhenDropped).then(|| PanicsOnDrop);
    Box::new(move |connection| {
        let _held = &bomb;
        connection.execute("INSERT INTO queues (name) VALUES ($1)", &[(&name).into()])?;
        match end {
            End::Well | End::PanicsWhenDropped => Ok(()),
            End::Fails => Err(Error::invalid("try", "no luck")),
            End::Panics => std::panic::resume_unwind(Box::new("on purpose")),
        }
    })
}

#[test]
fn each_of_many_writes_gets_its_own_result_and_is_kept_once() {
    const THREADS: u64 = 24;
    const WRITES: u64 = 100;
    let seed: u64 = std::process::id().into();
    println!("seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions { durability: Durability::Normal, mode: OpenMode::Create };
    let database =
        Arc::new(SqliteDatabase::open(&folder.path().join("windlass.db"), &TABLES, &options).unwrap());
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (database, random) = (Arc::clone(&database), Random::from_seed(seed + thread));
            std::thread::spawn(move || {
                let mut kept = Vec::new();
                for number in 0..WRITES {
                    let (name, end) = (format!("{thread:02} {number:03}"), random_end(&random));
                    let written =
                        database.write("insert", inserts_and_ends(name.clone(), end), Recovery::Report);
                    assert_eq!(written.is_ok(), matches!(end, End::Well | End::PanicsWhenDropped), "{end:?}");
                    kept.extend(written.is_ok().then_some(name));
                }
                kept
            })
        })
        .collect();
    let kept: Vec<String> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(queues(&database), kept);
    assert_eq!(database.waiting(), 0);
}

/// Refers to a missing job, which SQLite finds at the commit.
fn fails_at_its_commit() -> WriteOperation {
    Box::new(|connection| {
        connection.batch(
            "PRAGMA defer_foreign_keys = ON;
             INSERT INTO job_dependencies (parent_id, child_id) VALUES (998, 999)",
        )
    })
}

fn has_queue(database: &SqliteDatabase, name: &'static str) -> bool {
    let mut rows = 0;
    database
        .read(&mut |connection| {
            let sql = "SELECT count(*) FROM queues WHERE name = $1";
            rows = one(connection, sql, &[name.into()], |row| row.integer(0))?;
            Ok(())
        })
        .unwrap();
    rows == 1
}

/// A write that succeeded is in the table, and one that failed is not.
#[test]
fn a_failed_commit_is_reported_alone_and_in_a_group() {
    const NAMES: [&str; 4] = ["q0", "q1", "q2", "q3"];
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(open(&folder.path().join("windlass.db")).unwrap());
    let alone = database.write("refer to nothing", fails_at_its_commit(), Recovery::Report);
    assert!(alone.is_err(), "it is refused at the commit");

    let (go_on, held) = hold_writer(&database);
    let guilty = Arc::clone(&database);
    let guilty =
        std::thread::spawn(move || guilty.write("refer to nothing", fails_at_its_commit(), Recovery::Report));
    let others: Vec<_> = NAMES
        .into_iter()
        .map(|name| {
            let database = Arc::clone(&database);
            std::thread::spawn(move || (name, database.write("insert", insert(name), Recovery::Report)))
        })
        .collect();
    while database.waiting() < NAMES.len() + 2 {
        std::thread::yield_now();
    }
    go_on.store(true, Ordering::Release);
    held.join().unwrap();
    assert!(guilty.join().unwrap().is_err());
    for other in others {
        let (name, written) = other.join().unwrap();
        assert_eq!(written.is_ok(), has_queue(&database, name), "{name}: {written:?}");
    }
    assert!(!has_queue(&database, "later"));
    database.write("insert", insert("later"), Recovery::Report).unwrap();
    assert!(has_queue(&database, "later"), "the next transaction is not disturbed");
}

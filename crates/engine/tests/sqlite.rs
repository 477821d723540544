//! The SQLite side of `crates/db`: opening files that are not databases of Windlass, noticing commits of other
//! processes, and backups.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "support/queue_rows.rs"]
#[allow(unreachable_pub)]
mod queue_rows;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use queue_rows::{insert, open, queues};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_db::{Connection, Database, Durability, OpenMode, Recovery, Value, WriteOperation, all, one};
use windlass_engine::{Error, TABLES, Unavailable};
use windlass_system::wake_ups::WakeUps;

fn refusal(path: &Path) -> Unavailable {
    match open(path) {
        Err(Error::Unavailable { reason, .. }) => reason,
        Err(error) => panic!("unexpected error: {error}"),
        Ok(_) => panic!("it was opened"),
    }
}

#[test]
fn a_file_that_is_not_a_windlass_database_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    assert!(matches!(refusal(folder.path()), Unavailable::CannotOpen(_)), "a folder");
    assert!(
        matches!(refusal(&path("absent/windlass.db")), Unavailable::CannotOpen(_)),
        "a path in a missing folder"
    );
    std::fs::write(
        path("text"),
        "this is a text of more than a hundred bytes, and no database at all. ".repeat(9),
    )
    .unwrap();
    assert_eq!(refusal(&path("text")), Unavailable::NotADatabase);
    let options = SqliteOptions { mode: OpenMode::Existing, ..SqliteOptions::default() };
    let missing = SqliteDatabase::open(&path("missing.db"), &TABLES, &options).err().unwrap();
    assert!(matches!(missing, Error::Unavailable { reason: Unavailable::Missing(_), .. }));
    assert!(!path("missing.db").exists());
    rusqlite::Connection::open(path("empty.db")).unwrap().execute_batch("CREATE TABLE own (id)").unwrap();
    let none = SqliteDatabase::open(&path("empty.db"), &TABLES, &options).err().unwrap();
    assert!(matches!(none, Error::Unavailable { reason: Unavailable::NoTables(_), .. }));

    let foreign = rusqlite::Connection::open(path("foreign.db")).unwrap();
    foreign.execute_batch("CREATE TABLE jobs (title TEXT)").unwrap();
    assert_eq!(refusal(&path("foreign.db")), Unavailable::Foreign { table: "jobs".to_owned() });
    let tables: i64 = foreign.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1, "nothing was added to it");

    drop(open(&path("newer.db")).unwrap());
    let newer = rusqlite::Connection::open(path("newer.db")).unwrap();
    newer.execute("INSERT INTO schema_migrations VALUES (999, 'of the future', 0)", []).unwrap();
    assert!(matches!(refusal(&path("newer.db")), Unavailable::NewerVersion { found: 999, .. }));
}

fn fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// Returns the reason for which a path is refused. Opening runs in a thread, because it may hang.
fn refusal_in_time(path: &Path) -> Unavailable {
    let (sender, receiver) = std::sync::mpsc::channel();
    let path = path.to_owned();
    std::thread::spawn(move || sender.send(refusal(&path)));
    receiver.recv_timeout(Duration::from_secs(60)).expect("opening must not hang")
}

/// SQLite would wait for data from a FIFO, even if it lies at the path of the log.
#[test]
fn a_path_that_is_not_a_regular_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fifo(&path("fifo.db"));
    let _socket = std::os::unix::net::UnixListener::bind(path("socket.db")).unwrap();
    for (name, kind) in [("fifo.db", "is a FIFO"), ("socket.db", "is a socket")] {
        let refused = refusal_in_time(&path(name));
        assert!(matches!(&refused, Unavailable::CannotOpen(why) if why.contains(kind)), "{refused:?}");
    }
    let refused = refusal_in_time(Path::new("/dev/zero"));
    assert!(matches!(&refused, Unavailable::CannotOpen(why) if why.contains("is a device")), "{refused:?}");
    for suffix in ["-wal", "-shm", "-journal"] {
        let name = format!("beside{suffix}.db");
        drop(open(&path(&name)).unwrap());
        fifo(&path(&format!("{name}{suffix}")));
        let refused = refusal_in_time(&path(&name));
        assert!(
            matches!(&refused, Unavailable::CannotOpen(why) if why.contains("belongs to it, is a FIFO")),
            "{refused:?}"
        );
    }
}

/// SQLite would keep a separate log under each name, and lose what is committed under the other one.
#[test]
fn a_file_with_two_names_is_refused_under_both() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    drop(open(&path("first.db")).unwrap());
    std::fs::hard_link(path("first.db"), path("second.db")).unwrap();
    for name in ["first.db", "second.db"] {
        let refused = refusal(&path(name));
        assert_eq!(refused, Unavailable::HardLinked { path: path(name), names: 2 });
    }
    std::fs::remove_file(path("second.db")).unwrap();
    assert!(open(&path("first.db")).is_ok(), "the file is unchanged");
}

/// A symbolic link is not a second name, because SQLite keeps the log next to the file to which it leads.
#[test]
fn a_symbolic_link_leads_to_the_same_database() {
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real.db"), other.path().join("link.db"));
    let first = open(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let second = open(&link).unwrap();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    for pair in names.chunks(2) {
        first.write("insert", insert(pair[0]), Recovery::Report).unwrap();
        second.write("insert", insert(pair[1]), Recovery::Report).unwrap();
    }
    let expected = names.map(str::to_owned).to_vec();
    assert_eq!(queues(&first), expected, "each sees the other's commits");
    assert_eq!(queues(&second), expected);
    let beside: Vec<_> =
        std::fs::read_dir(other.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside, ["link.db"], "no log of its own");
}

#[test]
fn a_file_with_tables_of_an_application_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE orders (id INTEGER)").unwrap();
    let instance = |database: &SqliteDatabase| {
        let mut found = String::new();
        database
            .read(&mut |connection| {
                found = one(connection, "SELECT name FROM instance", &[], |row| row.text(0))?;
                Ok(())
            })
            .unwrap();
        found
    };
    let first = instance(&open(&path).unwrap());
    assert_eq!(first, instance(&open(&path).unwrap()), "it is the same database when opened again");
}

#[test]
fn many_can_open_a_new_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = Arc::new(folder.path().join("windlass.db"));
    let gate = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (path, gate) = (Arc::clone(&path), Arc::clone(&gate));
            std::thread::spawn(move || {
                gate.wait();
                open(&path).map(|_| ())
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Ok(()));
    }
}

#[test]
fn a_new_file_is_created_without_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&watch, folder.path(), WatchFlags::CREATE).unwrap();
    drop(open(&folder.path().join("windlass.db")).unwrap());
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut made = inotify::Reader::new(&watch, &mut buffer);
    let mut names = Vec::new();
    while let Ok(event) = made.next() {
        names.push(event.file_name().unwrap().to_str().unwrap().to_owned());
    }
    assert_eq!(names, ["windlass.db", "windlass.db-wal", "windlass.db-shm"]);
}

/// A process may be killed at any write to a new file: at the first page before or after the switch to WAL, and at
/// any frame of the transaction that creates the tables, complete or partial.
#[test]
fn a_file_whose_creation_was_interrupted_can_be_opened() {
    const HEADER_BYTES: usize = 32;
    const FRAME_BYTES: usize = 24 + 4096;
    const VERSIONS: std::ops::Range<usize> = 18..20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.db");
    let made = open(&path).unwrap();
    let first_page = std::fs::read(&path).unwrap();
    let wal = std::fs::read(folder.path().join("made.db-wal")).unwrap();
    drop(made);
    assert_eq!(
        (first_page.len(), &first_page[VERSIONS]),
        (4096, [2, 2].as_slice()),
        "the switch to WAL is done"
    );
    let mut before_wal = first_page.clone();
    before_wal[VERSIONS].fill(1);
    let frames = (wal.len() - HEADER_BYTES) / FRAME_BYTES;
    assert!(frames > 10, "{frames} frames make the tables");
    let cuts = (0..=frames).flat_map(|frame| [0, FRAME_BYTES / 2].map(|more| frame * FRAME_BYTES + more));
    let wals = cuts.map(|cut| &wal[..wal.len().min(HEADER_BYTES + cut)]);
    let states = [(&[][..], &[][..]), (&before_wal, &[]), (&first_page, &[]), (&first_page, &wal[..16])];
    for (number, (file, wal)) in states.into_iter().chain(wals.map(|wal| (&first_page[..], wal))).enumerate()
    {
        let path = folder.path().join(format!("{number}.db"));
        std::fs::write(&path, file).unwrap();
        std::fs::write(folder.path().join(format!("{number}.db-wal")), wal).unwrap();
        let options = SqliteOptions { durability: Durability::Normal, mode: OpenMode::Create };
        let database = SqliteDatabase::open(&path, &TABLES, &options).unwrap();
        database.write("insert", insert("mail"), Recovery::Report).unwrap();
        assert_eq!(queues(&database), ["mail"], "state {number}");
        drop(database);
        let raw = rusqlite::Connection::open(&path).unwrap();
        let vacuum: i64 = raw.query_row("PRAGMA auto_vacuum", [], |row| row.get(0)).unwrap();
        assert_eq!(vacuum, 2, "auto_vacuum is incremental, state {number}");
        drop(raw);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn the_requested_durability_is_set() {
    let synchronous = |options: &SqliteOptions| {
        let folder = tempfile::tempdir().unwrap();
        let database = SqliteDatabase::open(&folder.path().join("windlass.db"), &TABLES, options).unwrap();
        let found = Arc::new(AtomicI64::new(-1));
        let slot = Arc::clone(&found);
        let operation = Box::new(move |connection: &mut dyn Connection| {
            let sql = "SELECT synchronous FROM pragma_synchronous";
            slot.store(one(connection, sql, &[], |row| row.integer(0))?, Ordering::Release);
            Ok(())
        });
        database.write("read a pragma", operation, Recovery::Report).unwrap();
        found.load(Ordering::Acquire)
    };
    let asked_for = |durability| SqliteOptions { durability, mode: OpenMode::Create };
    assert_eq!(synchronous(&asked_for(Durability::Full)), 2, "the WAL is flushed at each commit");
    assert_eq!(synchronous(&asked_for(Durability::Normal)), 1);
    assert_eq!(synchronous(&SqliteOptions::default()), 2, "this is the default");
}

#[test]
fn a_commit_by_another_process_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let database = open(&path).unwrap();
    database.watch();
    let listener = database.wake_ups().listen(WakeUps::PENDING);
    while !listener.wait(Duration::ZERO).is_empty() {}
    // Another connection counts as another process.
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute("INSERT INTO jobs (kind) VALUES ('noop')", [])
        .unwrap();
    assert!(listener.wait(Duration::from_secs(60)).intersects(WakeUps::PENDING));
}

#[test]
fn other_processes_are_notified_of_what_they_wait_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let database = open(&path).unwrap();
    database.write("insert", insert("first"), Recovery::Report).unwrap();
    let wal = path.with_extension("db-wal");
    let is_told = |name, wake_ups| {
        // Written by another process, because opening the file a second time in this process would drop SQLite's
        // locks.
        let touched = std::process::Command::new("touch").args(["-a", "-d", "@1000"]).arg(&wal).status();
        assert!(touched.unwrap().success());
        let mut insert = insert(name);
        let insert_and_hint: WriteOperation = Box::new(move |connection| {
            connection.wake(wake_ups);
            insert(connection)
        });
        database.write("insert", insert_and_hint, Recovery::Report).unwrap();
        let accessed = std::fs::metadata(&wal).unwrap().accessed().unwrap();
        accessed.duration_since(std::time::UNIX_EPOCH).unwrap() > Duration::from_secs(1_000)
    };
    assert!(is_told("a", WakeUps::PENDING) && is_told("b", WakeUps::DUE) && is_told("c", WakeUps::CANCEL));
    // A chain of jobs would otherwise notify other processes of each link. Programs that show progress poll anyway.
    assert!(!is_told("d", WakeUps::PROGRESS));
}

#[test]
fn a_backup_is_complete_and_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(&folder.path().join("windlass.db")).unwrap();
    database.write("insert", insert("kept"), Recovery::Report).unwrap();
    let target = folder.path().join("copy.db");
    database.backup(&target).unwrap();
    assert!(matches!(database.backup(&target), Err(Error::Conflict { .. })));
    assert_eq!(queues(&open(&target).unwrap()), ["kept"]);
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Fills the file with about 40 MiB.
fn fill(path: &Path) {
    rusqlite::Connection::open(path)
        .unwrap()
        .execute_batch(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2000)
             INSERT INTO jobs (kind, payload) SELECT 'noop', hex(zeroblob(10000)) FROM numbers;
             PRAGMA wal_checkpoint(TRUNCATE)",
        )
        .unwrap();
}

#[test]
fn a_backup_ends_even_if_another_process_keeps_writing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    let database = open(&path).unwrap();
    fill(&path);
    let (finished, target) = (Arc::new(AtomicBool::new(false)), folder.path().join("copy.db"));
    let (stop, source) = (Arc::clone(&finished), path.clone());
    let foreign = std::thread::spawn(move || {
        let raw = rusqlite::Connection::open(source).unwrap();
        raw.busy_timeout(Duration::from_secs(60)).unwrap();
        raw.pragma_update(None, "synchronous", "OFF").unwrap();
        // A checkpoint would be a pause. A copy that starts again after each commit could finish in it.
        raw.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        let mut written = 0;
        while !stop.load(Ordering::Acquire) {
            raw.execute("INSERT INTO jobs (kind) VALUES ('late')", []).unwrap();
            written += 1;
        }
        written
    });
    let (answer, answered) = std::sync::mpsc::channel();
    let copying = std::thread::spawn(move || answer.send(database.backup(&target)).unwrap());
    let result = answered.recv_timeout(Duration::from_secs(30));
    finished.store(true, Ordering::Release);
    assert!(foreign.join().unwrap() > 0);
    copying.join().unwrap();
    assert_eq!(result.unwrap(), Ok(()));
    assert_eq!(names(folder.path()).into_iter().filter(|name| name.contains("copy")).count(), 1);
}

#[test]
fn a_failed_backup_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("windlass.db");
    drop(open(&path).unwrap());
    fill(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64 * 1024].fill(0xab);
    std::fs::write(&path, bytes).unwrap();
    let target = folder.path().join("copy.db");
    let database = open(&path).unwrap();
    let failure = database.backup(&target).unwrap_err();
    assert!(matches!(failure, Error::Unavailable { reason: Unavailable::Corrupt(_), .. }), "{failure}");
    assert_eq!(names(folder.path()), ["windlass.db", "windlass.db-shm", "windlass.db-wal"]);
}

/// The rows are bound in parts, and most parts have more parameters than rows.
#[test]
fn a_set_of_any_number_of_rows_is_written_completely_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(&folder.path().join("windlass.db")).unwrap();
    for count in [0, 1, 2, 8, 9, 32, 33, 500, 512, 513, 1_030] {
        let write = move |connection: &mut dyn Connection| {
            let names: Vec<String> = (0..count).map(|number| format!("queue {number}")).collect();
            // Every third row has a limit, the others have NULL.
            let rows: Vec<[Value<'_>; 2]> = (0_i64..)
                .zip(&names)
                .map(|(number, name)| [name.into(), Some(number).filter(|number| number % 3 == 0).into()])
                .collect();
            let sql = "INSERT INTO queues (name, max_running)
                       SELECT name, most FROM {rows $1: name text, most integer} AS news WHERE $2 = 7
                       RETURNING name";
            let returned = all(connection, sql, &[Value::rows(&rows), 7.into()], |row| row.text(0))?;
            assert_eq!(returned, names);
            let limits = one(connection, "SELECT count(max_running) FROM queues", &[], |row| row.integer(0))?;
            assert_eq!(limits, (i64::from(count) + 2) / 3);
            let removed = connection.execute(
                "DELETE FROM queues WHERE name IN (SELECT name FROM {rows $1: name text, most integer} AS old)",
                &[Value::rows(&rows)],
            )?;
            assert_eq!(removed, names.len() as u64);
            Ok(())
        };
        assert_eq!(database.write("write a set", Box::new(write), Recovery::Report), Ok(()), "{count} rows");
    }
}

/// An unbound parameter is NULL, which marks a row that does not exist.
#[test]
fn a_row_that_begins_with_null_is_refused_and_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(&folder.path().join("windlass.db")).unwrap();
    let write = |connection: &mut dyn Connection| {
        let rows: [[Value<'_>; 2]; 2] = [["kept".into(), Value::Null], [Value::Null, 7.into()]];
        let sql = "INSERT INTO queues (name, max_running)
                   SELECT name, most FROM {rows $1: name text, most integer} AS news WHERE true";
        connection.execute(sql, &[Value::rows(&rows)]).map(|_inserted| ())
    };
    let refused = database.write("write a set", Box::new(write), Recovery::Report).unwrap_err();
    assert!(refused.to_string().contains("begins with NULL"), "{refused}");
    assert_eq!(queues(&database), Vec::<String>::new());
}

//! Checkpoints of the write-ahead log (WAL), beside the commits.
//!
//! SQLite by itself copies the log into the database inside the commit that made the log long, and that commit waits for
//! thousands of pages and two flushes. Here a thread with a connection of its own does it: first in passes that block
//! nobody, then, for the little that was added meanwhile, with the write lock, so that the next commit writes over the
//! log from its start. The log keeps its length, because a commit that makes it longer is slower.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::open::open_beside;

/// A log of so many pages is copied into the database: 12 MB. With SQLite's own 1,000 the pages that every transaction
/// changes would be copied, and two flushes waited for, many times a second. When a reader keeps the log from being
/// emptied, the next checkpoint comes when the log has grown by as much again.
const CHECKPOINT_PAGES: i64 = 3_000;
/// Passes without the write lock at most. SQLite flushes the database only when nothing was added to the log during a
/// pass; otherwise the step with the write lock has to flush, and writers wait for it.
const PASSES_MAX: usize = 20;
/// How often the step with the write lock waits a millisecond, for the lock or for readers. Writers wait as well.
const WAITS_MAX: i32 = 50;
/// A log of so many pages, 256 MB, is reported once: a reader does not end.
const WARN_PAGES: i64 = 65_536;

/// The name that SQLite gives to the log of a database: beside the file itself, not beside a link to it.
pub(super) fn wal_of(path: &Path) -> PathBuf {
    let mut name = std::fs::canonicalize(path).unwrap_or_else(|_unknown| path.to_owned()).into_os_string();
    name.push("-wal");
    PathBuf::from(name)
}

thread_local! {
    /// The length of the log after the last commit of this thread. SQLite tells it to a plain function.
    static COMMITTED_PAGES: Cell<i64> = const { Cell::new(0) };
}

/// SQLite calls this in a commit, instead of making a checkpoint.
fn committed(_wal: &rusqlite::hooks::Wal, pages: i32) -> rusqlite::Result<()> {
    COMMITTED_PAGES.set(pages.into());
    Ok(())
}

/// The log, for the one connection of this process that writes.
pub(super) struct Wal {
    database: PathBuf,
    file: PathBuf,
    /// Started when it is first needed: most processes write little.
    checkpointer: Option<Checkpointer>,
    /// The next checkpoint is due at this length.
    due_pages: i64,
    is_reported: bool,
}

impl Wal {
    /// The log of a database that `connection` writes. SQLite makes no checkpoints in its commits any more.
    pub(super) fn of(database: &Path, connection: &Connection) -> Wal {
        connection.wal_hook(Some(committed));
        Wal {
            database: database.to_owned(),
            file: wal_of(database),
            checkpointer: None,
            due_pages: CHECKPOINT_PAGES,
            is_reported: false,
        }
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Asks for a checkpoint if the last commit of this thread made the log long.
    pub(super) fn after_commit(&mut self) {
        let pages = COMMITTED_PAGES.take();
        if pages == 0 {
            // Nothing was written.
            return;
        }
        if pages < CHECKPOINT_PAGES {
            self.due_pages = CHECKPOINT_PAGES;
            self.is_reported = false;
            return;
        }
        if pages < self.due_pages {
            return;
        }
        self.due_pages = pages + CHECKPOINT_PAGES;
        self.checkpointer.get_or_insert_with(|| Checkpointer::start(&self.database)).request();
        if pages >= WARN_PAGES && !std::mem::replace(&mut self.is_reported, true) {
            tracing::warn!(
                pages,
                "the write-ahead log grows: a program reads the database in a transaction that does not end; \
                 `windlass doctor` tells which programs have it open"
            );
        }
    }
}

/// How long the log is, in pages, and how many of these are in the database already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pages {
    all: i64,
    copied: i64,
}

/// How long the log is; takes no lock.
fn pages(connection: &Connection) -> rusqlite::Result<Pages> {
    connection
        .prepare_cached("PRAGMA wal_checkpoint(NOOP)")?
        .query_row([], |row| Ok(Pages { all: row.get(1)?, copied: row.get(2)? }))
}

/// The handle of the thread that makes checkpoints. Dropping it ends the thread.
struct Checkpointer {
    requests: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    fn start(database: &Path) -> Checkpointer {
        let (requests, inbox) = sync_channel(1);
        let database = database.to_owned();
        let thread = std::thread::Builder::new()
            .name("windlass-checkpointer".to_owned())
            .spawn(move || serve_checkpoints(&database, &inbox));
        if let Err(error) = &thread {
            tracing::warn!(%error, "no thread copies the write-ahead log into the database: the log grows");
        }
        Checkpointer { requests: Some(requests), thread: thread.ok() }
    }

    /// Asks for a checkpoint. One that waits already is enough.
    fn request(&self) {
        if let Some(requests) = &self.requests {
            let _one_waits = requests.try_send(());
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn serve_checkpoints(database: &Path, inbox: &Receiver<()>) {
    let mut connection = None;
    while inbox.recv() == Ok(()) {
        if connection.is_none() {
            connection = open_beside(database)
                .inspect_err(|error| tracing::debug!(%error, "no connection for a checkpoint"))
                .ok();
        }
        if let Some(Err(error)) = connection.as_ref().map(checkpoint) {
            tracing::debug!(%error, "the write-ahead log could not be copied into the database");
        }
    }
}

/// Copies the log into the database. The next commit begins the log again, unless somebody still reads from it.
fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    let mut copied_before = -1;
    for _pass in 0..PASSES_MAX {
        run(connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
        let Pages { all, copied } = pages(connection)?;
        // A reader stands in the way when nothing more was copied.
        if copied == all || copied == copied_before {
            break;
        }
        copied_before = copied;
    }
    connection.busy_handler(Some(wait_a_little))?;
    run(connection, "PRAGMA wal_checkpoint(RESTART)")
}

fn run(connection: &Connection, checkpoint: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(checkpoint)?.query_row([], |_row| Ok(()))
}

fn wait_a_little(waits: i32) -> bool {
    std::thread::sleep(Duration::from_millis(1));
    waits < WAITS_MAX
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Instant;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A file in WAL mode, and its log.
    fn file(folder: &Path) -> (Wal, Connection) {
        let path = folder.join("file.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE blobs (blob BLOB)",
            )
            .unwrap();
        (Wal::of(&path, &connection), connection)
    }

    fn write(connection: &Connection, pages: i64) {
        connection.execute("INSERT INTO blobs VALUES (zeroblob(? * 4096))", [pages]).unwrap();
    }

    #[test]
    fn a_thread_copies_a_long_log_and_the_next_commit_begins_it_again() {
        let folder = tempfile::tempdir().unwrap();
        let (mut wal, connection) = file(folder.path());
        write(&connection, CHECKPOINT_PAGES / 2);
        wal.after_commit();
        assert!(wal.checkpointer.is_none(), "the log is short");
        write(&connection, CHECKPOINT_PAGES / 2);
        wal.after_commit();
        let began = Instant::now();
        loop {
            let Pages { all, copied } = pages(&connection).unwrap();
            if all == copied {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{copied} of {all} pages are copied");
            std::thread::yield_now();
        }
        let length = std::fs::metadata(wal.file()).unwrap().len();
        write(&connection, 1);
        assert!(pages(&connection).unwrap().all < 10, "the log begins again");
        assert_eq!(std::fs::metadata(wal.file()).unwrap().len(), length, "the file keeps its length");
    }

    #[test]
    fn a_reader_postpones_the_new_start_of_the_log_and_its_end_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let (wal, connection) = file(folder.path());
        let reader = Connection::open(&wal.database).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM blobs").unwrap();
        write(&connection, 100);
        let beside = open_beside(&wal.database).unwrap();
        checkpoint(&beside).unwrap();
        write(&connection, 100);
        assert!(pages(&connection).unwrap().all > 200, "somebody reads from the log");
        drop(reader);
        checkpoint(&beside).unwrap();
        write(&connection, 1);
        assert!(pages(&connection).unwrap().all < 10, "the log begins again");
    }

    #[test]
    fn a_checkpoint_is_requested_each_time_the_log_has_grown_by_as_much() {
        let folder = tempfile::tempdir().unwrap();
        let (mut wal, connection) = file(folder.path());
        // No thread empties this log: its connection can't be opened.
        wal.database = folder.path().join("missing").join("file.db");
        let mut due = Vec::new();
        for _write in 0..8 {
            write(&connection, CHECKPOINT_PAGES / 2);
            wal.after_commit();
            due.push(wal.due_pages / CHECKPOINT_PAGES);
        }
        assert_eq!(due, [1, 2, 2, 3, 3, 4, 4, 5]);
        run(&connection, "PRAGMA wal_checkpoint(RESTART)").unwrap();
        write(&connection, 1);
        wal.after_commit();
        assert_eq!(wal.due_pages, CHECKPOINT_PAGES, "the log is short again");
    }
}

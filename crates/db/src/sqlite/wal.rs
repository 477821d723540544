//! Checkpoints of the write-ahead log (WAL), in a thread of their own.
//!
//! By default SQLite copies the log into the database inside a commit, and that commit waits for thousands of pages and two
//! flushes. Here a thread with its own connection does it. It first copies in passes that do not block writers. Then it takes
//! the write lock and copies the pages that were added meanwhile, so that the next commit starts the log again from its
//! beginning. The file of the log keeps its size, because a commit that makes the file longer is slower.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::open::{companion_file, open_maintenance};

/// A log of this many pages (12 MB) is copied into the database. With SQLite's default of 1,000 pages there would be many
/// checkpoints a second, each with two flushes. If a reader prevents the log from starting again, the next checkpoint comes
/// when the log has grown by the same number of pages.
const CHECKPOINT_PAGES: i64 = 3_000;
/// The most passes without the write lock. SQLite flushes the database only after a pass during which no page was added to
/// the log. Otherwise the step with the write lock flushes, and writers wait for it.
const PASSES_MAX: usize = 20;
/// How often the step with the write lock waits a millisecond for the lock or for readers. Writers wait meanwhile.
const WAITS_MAX: i32 = 50;
/// A log of this many pages (256 MB) is reported once, because it means that a reader does not end.
const WARN_PAGES: i64 = 65_536;

thread_local! {
    /// The length of the log after the last commit of this thread. It is thread-local because SQLite's hook is a plain
    /// function.
    static COMMITTED_PAGES: Cell<i64> = const { Cell::new(0) };
}

/// The hook that SQLite calls in a commit. It replaces SQLite's own checkpoint.
fn note_length(_wal: &rusqlite::hooks::Wal, pages: i32) -> rusqlite::Result<()> {
    COMMITTED_PAGES.set(pages.into());
    Ok(())
}

/// The write-ahead log of a database, and its checkpoints.
pub(super) struct Wal {
    database: PathBuf,
    file: PathBuf,
    /// Started when it is first needed, because most processes write little.
    checkpointer: Option<Checkpointer>,
    /// The length of the log at which the next checkpoint is requested.
    next_checkpoint_pages: i64,
    is_growth_reported: bool,
}

impl Wal {
    /// The log of a database that `connection` writes. From now on SQLite makes no checkpoints in its commits.
    pub(super) fn of(database: &Path, connection: &Connection) -> Wal {
        connection.wal_hook(Some(note_length));
        Wal {
            database: database.to_owned(),
            file: companion_file(database, "-wal"),
            checkpointer: None,
            next_checkpoint_pages: CHECKPOINT_PAGES,
            is_growth_reported: false,
        }
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Requests a checkpoint if the last commit of this thread made the log too long.
    pub(super) fn after_commit(&mut self) {
        let pages = COMMITTED_PAGES.take();
        if pages == 0 {
            // Nothing was written.
            return;
        }
        if pages < CHECKPOINT_PAGES {
            self.next_checkpoint_pages = CHECKPOINT_PAGES;
            self.is_growth_reported = false;
            return;
        }
        if pages < self.next_checkpoint_pages {
            return;
        }
        self.next_checkpoint_pages = pages + CHECKPOINT_PAGES;
        self.checkpointer.get_or_insert_with(|| Checkpointer::start(&self.database)).request();
        if pages >= WARN_PAGES && !std::mem::replace(&mut self.is_growth_reported, true) {
            tracing::warn!(
                pages,
                "the write-ahead log grows: a program reads the database in a transaction that does not end; \
                 `windlass doctor` tells which programs have it open"
            );
        }
    }
}

/// The length of the log in pages, and how many of these are copied into the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogLength {
    pages: i64,
    copied: i64,
}

/// Reads the length of the log, without a lock.
fn log_length(connection: &Connection) -> rusqlite::Result<LogLength> {
    connection
        .prepare_cached("PRAGMA wal_checkpoint(NOOP)")?
        .query_row([], |row| Ok(LogLength { pages: row.get(1)?, copied: row.get(2)? }))
}

/// The handle of the checkpointer thread. Dropping it ends the thread.
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
            .spawn(move || run_checkpointer(&database, &inbox));
        if let Err(error) = &thread {
            tracing::warn!(%error, "no thread copies the write-ahead log into the database: the log grows");
        }
        Checkpointer { requests: Some(requests), thread: thread.ok() }
    }

    /// Requests a checkpoint, unless one is requested already.
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

fn run_checkpointer(database: &Path, inbox: &Receiver<()>) {
    let mut connection = None;
    while inbox.recv() == Ok(()) {
        if connection.is_none() {
            connection = open_maintenance(database)
                .inspect_err(|error| tracing::debug!(%error, "no connection for a checkpoint"))
                .ok();
        }
        if let Some(Err(error)) = connection.as_ref().map(checkpoint) {
            tracing::debug!(%error, "the write-ahead log could not be copied into the database");
        }
    }
}

/// Copies the log into the database. The next commit starts the log again, unless a reader still uses it.
fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    let mut copied_before = -1;
    for _pass in 0..PASSES_MAX {
        run(connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
        let LogLength { pages, copied } = log_length(connection)?;
        // If nothing more was copied, a reader prevents it.
        if copied == pages || copied == copied_before {
            break;
        }
        copied_before = copied;
    }
    connection.busy_handler(Some(wait_one_ms))?;
    run(connection, "PRAGMA wal_checkpoint(RESTART)")
}

fn run(connection: &Connection, checkpoint: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(checkpoint)?.query_row([], |_row| Ok(()))
}

fn wait_one_ms(waits: i32) -> bool {
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
    fn the_checkpointer_copies_a_long_log_and_the_next_commit_starts_it_again() {
        let folder = tempfile::tempdir().unwrap();
        let (mut wal, connection) = file(folder.path());
        write(&connection, CHECKPOINT_PAGES / 2);
        wal.after_commit();
        assert!(wal.checkpointer.is_none(), "the log is short");
        write(&connection, CHECKPOINT_PAGES / 2);
        wal.after_commit();
        let began = Instant::now();
        loop {
            let LogLength { pages, copied } = log_length(&connection).unwrap();
            if pages == copied {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{copied} of {pages} pages are copied");
            std::thread::yield_now();
        }
        let length = std::fs::metadata(wal.file()).unwrap().len();
        write(&connection, 1);
        assert!(log_length(&connection).unwrap().pages < 10, "the log begins again");
        assert_eq!(std::fs::metadata(wal.file()).unwrap().len(), length, "the file keeps its length");
    }

    #[test]
    fn the_log_starts_again_only_after_its_readers_have_ended() {
        let folder = tempfile::tempdir().unwrap();
        let (wal, connection) = file(folder.path());
        let reader = Connection::open(&wal.database).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM blobs").unwrap();
        write(&connection, 100);
        let second = open_maintenance(&wal.database).unwrap();
        checkpoint(&second).unwrap();
        write(&connection, 100);
        assert!(log_length(&connection).unwrap().pages > 200, "somebody reads from the log");
        drop(reader);
        checkpoint(&second).unwrap();
        write(&connection, 1);
        assert!(log_length(&connection).unwrap().pages < 10, "the log begins again");
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
            due.push(wal.next_checkpoint_pages / CHECKPOINT_PAGES);
        }
        assert_eq!(due, [1, 2, 2, 3, 3, 4, 4, 5]);
        run(&connection, "PRAGMA wal_checkpoint(RESTART)").unwrap();
        write(&connection, 1);
        wal.after_commit();
        assert_eq!(wal.next_checkpoint_pages, CHECKPOINT_PAGES, "the log is short again");
    }
}

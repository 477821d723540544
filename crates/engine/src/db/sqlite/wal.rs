//! The write-ahead log beside a file: its pages are moved into the file while others write, and it is kept small.
//!
//! SQLite by itself moves them inside the commit that made the log long, and whoever committed waits for thousands
//! of pages and two flushes. Here a thread with a connection of its own moves them beside the commits. But a log begins
//! again only when all of it is in the file at the moment in which somebody begins to write, and while commits follow
//! each other something is always added meanwhile. So the writer moves what is left when that is little, between two
//! commits. SQLite's own way stays the bound.
//!
//! SQLite flushes the file only when nothing was added while it moved pages. Else whoever moves the rest waits for the
//! flush of all of them. So the thread moves at once what was added, several times: each time it is less, until once
//! nothing was.
//!
//! The same thread makes room in the log before commits use it (`room`).

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::open::{open_beside, wait_while_busy};
use super::room::{self, Room};

/// A log of so many pages is moved into the file: 12 MB. At SQLite's own 1,000 the pages that every transaction
/// changes would be moved, and two flushes waited for, many times a second.
const LONG_PAGES: i64 = 3_000;
/// What is left is little when it is this part of the log at most.
const REST_PART: i64 = 4;
/// The thread moves what was added so often at most.
const PASSES_MAX: usize = 20;
/// The thread is told again when the log has grown by so many pages: a reader may hold it up.
const AGAIN_PAGES: i64 = 500;
/// From here on the pages are moved inside a commit: 18 MB. The thread does not get to run, or is gone.
const BOUND_PAGES: i64 = 4_500;

/// A log of this size is cut off with a wait for those who read it: no other checkpoint waits, and with readers
/// that overlap for ever the log would grow for ever.
const LARGE_BYTES: u64 = 24 * 1024 * 1024;
/// The thread moves a log of so many pages once and leaves the rest: it would be in the way for as long as commits follow
/// each other, because it also waits for the disk.
const LARGE_PAGES: i64 = 6_000;
/// How often that is looked at and tried.
const LOOK_MS: i64 = 250;
/// It is waited so long for readers, a millisecond at a time. Writers wait as well.
const TRIES_MAX: i32 = 50;
/// From this size on a reader that does not end is told of.
const HUGE_BYTES: u64 = 256 * 1024 * 1024;

/// The name that SQLite gives to the log of a database: beside the file itself, not beside a link to it.
pub(super) fn wal_of(path: &Path) -> PathBuf {
    let mut name = std::fs::canonicalize(path).unwrap_or_else(|_unknown| path.to_owned()).into_os_string();
    name.push("-wal");
    PathBuf::from(name)
}

thread_local! {
    /// How long the log was made by the last commit of this thread. SQLite tells it in a call that knows no more.
    static COMMITTED_PAGES: Cell<i64> = const { Cell::new(0) };
}

/// What SQLite calls in a commit, in place of a checkpoint of its own.
fn committed(wal: &rusqlite::hooks::Wal, pages: i32) -> rusqlite::Result<()> {
    COMMITTED_PAGES.set(pages.into());
    if i64::from(pages) >= BOUND_PAGES {
        // What is wrong with it is nothing that is wrong with the commit.
        let _tried_again_after_the_next = wal.checkpoint();
    }
    Ok(())
}

/// The log, for the one connection of this process that writes.
pub(super) struct Wal {
    database: PathBuf,
    file: PathBuf,
    room: Room,
    /// Started when there is something for it to do: most processes write little.
    checkpointer: Option<Checkpointer>,
    /// How long the log was when the thread was told; 0 when it was not since the log began.
    told_at_pages: i64,
    looked_at_ms: i64,
    /// How large it was then.
    looked_bytes: u64,
    is_huge: bool,
}

/// How long the log is, in pages, and how many of these are in the file already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pages {
    all: i64,
    moved: i64,
}

/// What is to be done about the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    /// The thread moves it.
    Moving,
    /// Little is left: the writer moves it, and the log begins again.
    Rest,
}

/// What the thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    Rests,
    /// It was told to do something, and is not done.
    Moves,
}

fn due(pages: Pages, told_at_pages: i64, thread: Thread) -> Due {
    let left = pages.all - pages.moved;
    if pages.all < LONG_PAGES || left == 0 || thread == Thread::Moves {
        Due::Nothing
    } else if left <= pages.all / REST_PART {
        Due::Rest
    } else if told_at_pages == 0 || pages.all - told_at_pages >= AGAIN_PAGES {
        Due::Moving
    } else {
        Due::Nothing
    }
}

impl Wal {
    /// The log of a database that `connection` writes. Its commits move nothing any more, up to the bound.
    pub(super) fn of(database: &Path, connection: &Connection) -> Wal {
        connection.wal_hook(Some(committed));
        Wal {
            database: database.to_owned(),
            file: wal_of(database),
            checkpointer: None,
            told_at_pages: 0,
            looked_at_ms: 0,
            looked_bytes: 0,
            is_huge: false,
            room: Room::of(connection, LONG_PAGES),
        }
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Looks after the log when this thread has committed something. What fails here is tried again after the next
    /// commit.
    pub(super) fn after_commit(&mut self, connection: &Connection, now_ms: i64) {
        // While the thread moves pages it would be in vain; and it is told of more only after that.
        if now_ms - self.looked_at_ms >= LOOK_MS && self.thread() == Thread::Rests {
            self.looked_at_ms = now_ms;
            self.keep_small(connection);
        }
        match COMMITTED_PAGES.take() {
            // Nothing was written.
            0 => {}
            short @ 1..LONG_PAGES => {
                // It may be longer than the one before when it is looked at next.
                self.told_at_pages = 0;
                self.keep_room(short);
            }
            _long => {
                if let Err(error) = self.keep_short(connection) {
                    tracing::debug!(%error, "the write-ahead log was not moved into the file");
                }
            }
        }
    }

    fn thread(&self) -> Thread {
        self.checkpointer.as_ref().map_or(Thread::Rests, Checkpointer::does)
    }

    /// Has the thread make room in a log of so many pages, when that is worth it.
    fn keep_room(&mut self, pages: i64) {
        if let Some(longer_pages) = self.room.after_commit(pages)
            && self.thread() == Thread::Rests
        {
            self.room.made(longer_pages);
            self.checkpointer().tell(Word::MakeRoom { pages: longer_pages });
        }
    }

    fn checkpointer(&mut self) -> &Checkpointer {
        self.checkpointer.get_or_insert_with(|| Checkpointer::start(&self.database))
    }

    fn keep_short(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let pages = pages(connection)?;
        if pages.all < self.told_at_pages {
            // It has begun again.
            self.told_at_pages = 0;
        }
        match due(pages, self.told_at_pages, self.thread()) {
            Due::Nothing => Ok(()),
            Due::Moving => {
                self.told_at_pages = pages.all;
                self.checkpointer().tell(Word::Move);
                Ok(())
            }
            Due::Rest => move_pages(connection),
        }
    }

    /// Moves a log that has grown large all the same, and cuts it off.
    fn keep_small(&mut self, connection: &Connection) {
        let size = |file: &Path| std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        let bytes = size(&self.file);
        if bytes < std::mem::replace(&mut self.looked_bytes, bytes) {
            // Another process has cut it off.
            self.room.forget();
        }
        if bytes < LARGE_BYTES {
            return;
        }
        let _ignored = connection.busy_handler(Some(wait_for_readers));
        let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        let _ignored = connection.busy_handler(Some(wait_while_busy));
        match emptied {
            Ok(0_i64) => {
                self.is_huge = false;
                self.looked_bytes = 0;
                self.room.forget();
            }
            Ok(_busy) => self.tell_of_huge(size(&self.file)),
            Err(error) => tracing::debug!(%error, "the write-ahead log was not cut off"),
        }
    }

    /// Once each time it becomes so large.
    fn tell_of_huge(&mut self, bytes: u64) {
        if bytes >= HUGE_BYTES && !std::mem::replace(&mut self.is_huge, true) {
            tracing::warn!(
                megabytes = bytes / (1024 * 1024),
                "the write-ahead log grows: a program reads the database in a transaction that does not end; \
                 `windlass doctor` tells which programs have it open"
            );
        }
    }
}

/// How long the log is; takes no lock.
fn pages(connection: &Connection) -> rusqlite::Result<Pages> {
    connection
        .prepare_cached("PRAGMA wal_checkpoint(NOOP)")?
        .query_row([], |row| Ok(Pages { all: row.get(1)?, moved: row.get(2)? }))
}

/// Moves what nobody reads any more, and waits for nobody. Does nothing when somebody else moves pages right now.
fn move_pages(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?.query_row([], |_row| Ok(()))
}

fn wait_for_readers(tries: i32) -> bool {
    std::thread::sleep(Duration::from_millis(1));
    tries < TRIES_MAX
}

/// What the thread is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// Pages are to be moved.
    Move,
    /// The log is to be made so long.
    MakeRoom { pages: i64 },
}

/// The handle of a thread that does what it is told. Dropping it ends the thread.
struct Checkpointer {
    words: Option<SyncSender<Word>>,
    /// From the word on until it is done.
    is_moving: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    fn start(database: &Path) -> Checkpointer {
        let (words, inbox) = sync_channel(1);
        let is_moving = Arc::new(AtomicBool::new(false));
        let (database, moving) = (database.to_owned(), Arc::clone(&is_moving));
        let thread = std::thread::Builder::new()
            .name("windlass-checkpointer".to_owned())
            .spawn(move || serve_checkpoints(&database, &inbox, &moving));
        if let Err(error) = &thread {
            tracing::debug!(%error, "no thread moves the write-ahead log into the file; commits do");
        }
        Checkpointer { words: Some(words), is_moving, thread: thread.ok() }
    }

    /// Where there is no thread, nobody does it.
    fn tell(&self, word: Word) {
        self.is_moving.store(true, Ordering::Release);
        if self.words.as_ref().is_none_or(|words| words.try_send(word).is_err()) {
            self.is_moving.store(false, Ordering::Release);
        }
    }

    fn does(&self) -> Thread {
        if self.is_moving.load(Ordering::Acquire) { Thread::Moves } else { Thread::Rests }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        drop(self.words.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn serve_checkpoints(database: &Path, inbox: &Receiver<Word>, is_moving: &AtomicBool) {
    let mut connection = None;
    while let Ok(word) = inbox.recv() {
        if connection.is_none() {
            connection = open_beside(database)
                .inspect_err(|error| tracing::debug!(%error, "no connection looks after the write-ahead log"))
                .ok();
        }
        if let Some(Err(error)) = connection.as_ref().map(|connection| obey(word, connection, database)) {
            tracing::debug!(%error, ?word, "the write-ahead log stays as it is");
        }
        is_moving.store(false, Ordering::Release);
    }
}

fn obey(word: Word, connection: &Connection, database: &Path) -> rusqlite::Result<()> {
    match word {
        Word::Move => move_to_the_end(connection),
        Word::MakeRoom { pages } => {
            room::make(connection, &wal_of(database), pages)?;
            // That flushes the log, and no commit waits for so much.
            move_pages(connection)
        }
    }
}

/// Moves all that can be moved, also what is added meanwhile.
fn move_to_the_end(connection: &Connection) -> rusqlite::Result<()> {
    let mut before = pages(connection)?;
    for _pass in 0..PASSES_MAX {
        move_pages(connection)?;
        let after = pages(connection)?;
        if !is_worth_another(before, after) {
            break;
        }
        before = after;
    }
    Ok(())
}

/// Whether pages are left that nobody reads any more. None was moved when somebody reads what is left.
fn is_worth_another(before: Pages, after: Pages) -> bool {
    after.moved > before.moved && after.moved < after.all && after.all < LARGE_PAGES
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Instant;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_long_log_is_moved_and_the_writer_moves_what_little_is_left() {
        let told = |pages, told_at_pages| due(pages, told_at_pages, Thread::Rests);
        for (all, moved, told_at_pages, expected) in [
            (-1, -1, 0, Due::Nothing),
            (2_999, 0, 0, Due::Nothing),
            (3_000, 0, 0, Due::Moving),
            (3_499, 0, 3_000, Due::Nothing),
            (3_500, 0, 3_000, Due::Moving),
            (4_000, 2_999, 3_500, Due::Moving),
            (4_000, 3_000, 3_500, Due::Rest),
            (4_000, 3_999, 0, Due::Rest),
            (4_000, 4_000, 0, Due::Nothing),
        ] {
            assert_eq!(told(Pages { all, moved }, told_at_pages), expected, "{all} {moved} {told_at_pages}");
        }
    }

    #[test]
    fn nobody_moves_beside_the_thread_which_goes_on_while_it_gets_on() {
        let at = |moved, all| Pages { all, moved };
        assert_eq!(due(at(3_000, 3_200), 3_000, Thread::Moves), Due::Nothing, "it is about to");
        assert_eq!(due(at(0, 3_600), 3_000, Thread::Moves), Due::Nothing, "it need not be told");
        for (before, after, expected) in [
            (at(0, 3_000), at(3_000, 3_200), true),
            (at(3_000, 3_200), at(3_200, 3_210), true),
            (at(3_000, 3_200), at(3_200, 3_200), false),
            (at(500, 3_000), at(500, 3_200), false),
            (at(3_000, 3_200), at(0, 10), false),
            (at(3_000, 5_900), at(5_900, 6_000), false),
        ] {
            assert_eq!(is_worth_another(before, after), expected, "{before:?} {after:?}");
        }
    }

    /// A file in WAL mode, and its log.
    fn file(folder: &Path) -> (Wal, Connection) {
        let path = folder.join("file.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
                 CREATE TABLE blobs (blob BLOB)",
            )
            .unwrap();
        (Wal::of(&path, &connection), connection)
    }

    fn write(connection: &Connection, pages: i64) {
        connection.execute("INSERT INTO blobs VALUES (zeroblob(? * 4096))", [pages]).unwrap();
    }

    fn is_moved(connection: &Connection) -> bool {
        let Pages { all, moved } = pages(connection).unwrap();
        all == moved
    }

    #[test]
    fn a_thread_moves_a_long_log_and_the_next_commit_begins_it_again() {
        let folder = tempfile::tempdir().unwrap();
        let (mut wal, connection) = file(folder.path());
        write(&connection, LONG_PAGES / 2);
        wal.after_commit(&connection, 0);
        assert!(wal.checkpointer.is_none(), "it is short");
        write(&connection, LONG_PAGES / 2);
        wal.after_commit(&connection, 0);
        let began = Instant::now();
        while !is_moved(&connection) {
            assert!(began.elapsed() < PATIENCE, "{:?}", pages(&connection));
            std::thread::yield_now();
        }
        write(&connection, 1);
        assert!(pages(&connection).unwrap().all < 10, "{:?}", pages(&connection));
    }

    #[test]
    fn the_writer_moves_what_was_added_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let (mut wal, connection) = file(folder.path());
        write(&connection, LONG_PAGES);
        // The thread gets as far as where somebody reads.
        let reader = Connection::open(&wal.database).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM blobs").unwrap();
        write(&connection, LONG_PAGES / 10);
        move_pages(&connection).unwrap();
        let left = pages(&connection).unwrap();
        assert!(left.moved >= LONG_PAGES && left.moved < left.all, "{left:?}");
        drop(reader);
        wal.after_commit(&connection, 0);
        assert!(is_moved(&connection) && wal.checkpointer.is_none());
    }

    #[test]
    fn the_thread_is_told_of_each_log_when_it_is_long() {
        let folder = tempfile::tempdir().unwrap();
        let (mut wal, connection) = file(folder.path());
        // The log is moved here, so that it is known when.
        wal.database = folder.path().join("missing").join("file.db");
        for longer in 0..3 {
            write(&connection, 1);
            wal.after_commit(&connection, 0);
            write(&connection, LONG_PAGES + longer);
            wal.after_commit(&connection, 0);
            let all = pages(&connection).unwrap().all;
            assert!((LONG_PAGES..LONG_PAGES + AGAIN_PAGES).contains(&all), "it has begun again: {all}");
            assert_eq!(wal.told_at_pages, all, "no shorter than the one before");
            let began = Instant::now();
            while wal.checkpointer.as_ref().unwrap().does() == Thread::Moves {
                assert!(began.elapsed() < PATIENCE);
                std::thread::yield_now();
            }
            move_pages(&connection).unwrap();
        }
    }

    /// The cut is not put off to the next look because of the thread, which would begin anew before that.
    #[test]
    fn a_large_log_is_cut_off_by_the_first_commit_after_which_the_thread_rests() {
        let folder = tempfile::tempdir().unwrap();
        let (mut wal, connection) = file(folder.path());
        let is_moving = Arc::new(AtomicBool::new(true));
        wal.checkpointer =
            Some(Checkpointer { words: None, is_moving: Arc::clone(&is_moving), thread: None });
        let bytes = || std::fs::metadata(wal_of(&folder.path().join("file.db"))).unwrap().len();
        write(&connection, LARGE_PAGES + LARGE_PAGES / 10);
        wal.after_commit(&connection, LOOK_MS);
        assert!(bytes() >= LARGE_BYTES, "the thread has it");
        is_moving.store(false, Ordering::Release);
        wal.after_commit(&connection, LOOK_MS);
        assert_eq!(bytes(), 0);
    }

    #[test]
    fn room_is_made_again_in_a_log_that_another_process_has_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let (_unflushed, connection) = file(folder.path());
        connection
            .execute_batch(
                "PRAGMA synchronous = FULL; CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT)",
            )
            .unwrap();
        let mut wal = Wal::of(&folder.path().join("file.db"), &connection);
        let bytes = |wal: &Wal| std::fs::metadata(wal.file()).unwrap().len();
        let other = Connection::open(&wal.database).unwrap();
        for round in 0..2 {
            for _commit in 0..100 {
                connection.execute("INSERT INTO blobs VALUES (NULL)", []).unwrap();
                wal.after_commit(&connection, round * 2 * LOOK_MS);
            }
            let began = Instant::now();
            while wal.thread() == Thread::Moves {
                assert!(began.elapsed() < PATIENCE);
                std::thread::yield_now();
            }
            assert!(bytes(&wal) > 1_000 * 4_096, "{} in round {round}", bytes(&wal));
            connection.execute("INSERT INTO blobs VALUES (NULL)", []).unwrap();
            wal.after_commit(&connection, (round * 2 + 1) * LOOK_MS);
            other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_row| Ok(())).unwrap();
            assert_eq!(bytes(&wal), 0);
        }
    }

    #[test]
    fn a_log_without_a_thread_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let (mut wal, connection) = file(folder.path());
        wal.database = folder.path().join("missing").join("file.db");
        write(&connection, LONG_PAGES);
        wal.after_commit(&connection, 0);
        assert!(wal.told_at_pages >= LONG_PAGES && !is_moved(&connection));
        write(&connection, BOUND_PAGES - LONG_PAGES);
        assert!(is_moved(&connection), "the commit has done it");
    }
}

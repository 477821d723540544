//! Room in the write-ahead log, made before the commits that use it.
//!
//! A flush of a file that has become longer writes the file system's journal as well. So a small commit takes a third
//! longer where it makes the log longer than where it writes over what an earlier lap of the log left. For a process
//! that makes many small ones the log is therefore made longer in steps, beside the commits. SQLite has no call for that,
//! but of a transaction it writes what does not fit into its memory into the log, and when that is taken back the next
//! commits write over it.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

/// The level of `synchronous` from which on each commit is flushed.
const FULL: i64 = 2;
/// After so many commits of one lap more are expected.
const COMMITS_MIN: i64 = 64;
/// Pages of a small commit, on the average. Of larger ones a lap has few.
const SMALL_PAGES: i64 = 16;
/// So many pages are made at a time: whoever begins to write meanwhile waits for some 5 ms.
const STEP_PAGES: i64 = 1_024;
/// More are made when so few are left.
const LEFT_PAGES: i64 = 64;
/// What is written at a time, and how often at most.
const ROW_BYTES: i64 = 1024 * 1024;
const ROWS_MAX: i64 = 32;
/// What a connection keeps in memory while it makes room, in pages: nearly all goes into the log.
const MEMORY_PAGES: i64 = 16;
/// How often the lock to write is tried, a millisecond apart. Who closes the file waits for it too, and another process
/// may hold it for long.
const TRIES_MAX: i32 = 100;

/// What is known of the room in the log.
pub(super) struct Room {
    need: Need,
    /// Commits of this lap, and the pages that the log has by them.
    commits: i64,
    pages: i64,
    /// How long the log was made, in pages; 0 where it was not.
    made_pages: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Commits are flushed, up to this length of the log, in pages, at which it begins again.
    Until(i64),
    /// They are not: there is nothing to spare.
    Never,
}

impl Room {
    /// Of a log that `connection` writes, which begins again at `lap_pages`.
    pub(super) fn of(connection: &Connection, lap_pages: i64) -> Room {
        let synchronous = connection.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0));
        let need =
            if synchronous.is_ok_and(|level| level >= FULL) { Need::Until(lap_pages) } else { Need::Never };
        Room { need, commits: 0, pages: 0, made_pages: 0 }
    }

    /// The log was cut off.
    pub(super) fn forget(&mut self) {
        *self = Room { need: self.need, commits: 0, pages: 0, made_pages: 0 };
    }

    /// Takes note of a commit, after which the log has so many pages; returns how long it is to be made, if that is
    /// worth it now.
    pub(super) fn after_commit(&mut self, pages: i64) -> Option<i64> {
        if pages < self.pages {
            // It has begun again.
            self.commits = 0;
        }
        self.pages = pages;
        self.commits += 1;
        let Need::Until(lap_pages) = self.need else { return None };
        let are_many = self.commits >= COMMITS_MIN && pages <= self.commits * SMALL_PAGES;
        let is_used_up = pages + LEFT_PAGES >= self.made_pages && self.made_pages < lap_pages;
        (are_many && is_used_up).then(|| (pages + STEP_PAGES).min(lap_pages))
    }

    /// It is being made so long.
    pub(super) fn made(&mut self, pages: i64) {
        self.made_pages = pages;
    }
}

/// Makes the log so many pages long, if it is not.
///
/// # Errors
/// The database's. Nothing is left of it then either.
pub(super) fn make(connection: &Connection, file: &Path, pages: i64) -> rusqlite::Result<()> {
    let page_bytes: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let enough_bytes = u64::try_from(pages * page_bytes).unwrap_or(u64::MAX);
    let is_made = || std::fs::metadata(file).is_ok_and(|metadata| metadata.len() >= enough_bytes);
    if is_made() {
        return Ok(());
    }
    connection.busy_handler(Some(wait_for_the_lock))?;
    connection.pragma_update(None, "cache_size", MEMORY_PAGES)?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let mut written = Ok(());
    for _row in 0..ROWS_MAX {
        if written.is_err() || is_made() {
            break;
        }
        // A table of SQLite's own, which every database of ours has and which nothing depends on here.
        written = connection
            .prepare_cached("INSERT INTO sqlite_sequence (name, seq) VALUES ('room in the log', zeroblob(?))")
            .and_then(|mut insert| insert.execute([ROW_BYTES]))
            .map(|_inserted| ());
    }
    // On a full disk SQLite has done so.
    if !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    written
}

fn wait_for_the_lock(tries: i32) -> bool {
    std::thread::sleep(Duration::from_millis(1));
    tries < TRIES_MAX
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::PathBuf;
    use std::time::Instant;

    use super::super::open::open_beside;
    use super::*;

    const LAP_PAGES: i64 = 3_000;
    const NOTHING: [i64; 0] = [];

    fn room(need: Need) -> Room {
        Room { need, commits: 0, pages: 0, made_pages: 0 }
    }

    /// Commits of so many pages each, on top of so many; returns what is to be made after the last one.
    fn commit(room: &mut Room, commits: i64, each_pages: i64) -> Vec<i64> {
        let before = room.pages;
        let due: Vec<Option<i64>> =
            (1..=commits).map(|commit| room.after_commit(before + commit * each_pages)).collect();
        due.into_iter().flatten().collect()
    }

    #[test]
    fn room_is_made_after_many_small_commits() {
        assert_eq!(commit(&mut room(Need::Until(LAP_PAGES)), 63, 3), NOTHING);
        assert_eq!(commit(&mut room(Need::Until(LAP_PAGES)), 64, 3), [192 + STEP_PAGES]);
        assert_eq!(commit(&mut room(Need::Until(LAP_PAGES)), 64, 16), [1_024 + STEP_PAGES]);
        assert_eq!(commit(&mut room(Need::Until(LAP_PAGES)), 100, 17), NOTHING, "they are large");
        assert_eq!(commit(&mut room(Need::Never), 200, 3), NOTHING, "they are not flushed");
    }

    #[test]
    fn more_is_made_when_little_is_left_up_to_a_lap_and_again_when_the_log_was_cut_off() {
        let mut room = room(Need::Until(LAP_PAGES));
        assert_eq!(commit(&mut room, 64, 10), [640 + STEP_PAGES]);
        room.made(640 + STEP_PAGES);
        assert_eq!(commit(&mut room, 95, 10), NOTHING);
        assert_eq!(commit(&mut room, 1, 10), [1_600 + STEP_PAGES]);
        room.made(1_600 + STEP_PAGES);
        assert_eq!(commit(&mut room, 96, 10), [LAP_PAGES]);
        room.made(LAP_PAGES);
        assert_eq!(commit(&mut room, 100, 10), NOTHING);
        room.pages = 0;
        assert_eq!(commit(&mut room, 250, 10), NOTHING, "the log has begun again, over what is there");
        room.forget();
        assert_eq!(commit(&mut room, 64, 10), [640 + STEP_PAGES]);
    }

    /// Whoever closes the file waits for the thread.
    #[test]
    fn a_lock_of_somebody_else_is_not_waited_for_as_long_as_a_write_would() {
        let folder = tempfile::tempdir().unwrap();
        let (locker, log) = file(folder.path());
        locker.execute_batch("BEGIN IMMEDIATE").unwrap();
        let connection = open_beside(&folder.path().join("file.db")).unwrap();
        let began = Instant::now();
        let error = make(&connection, &log, 1_500).unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }

    /// A file in WAL mode with a row, and its log.
    fn file(folder: &Path) -> (Connection, PathBuf) {
        let connection = Connection::open(folder.join("file.db")).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; CREATE TABLE kept (id INTEGER PRIMARY KEY AUTOINCREMENT);
                 INSERT INTO kept VALUES (NULL)",
            )
            .unwrap();
        (connection, folder.join("file.db-wal"))
    }

    #[test]
    fn a_log_is_made_longer_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (connection, log) = file(folder.path());
        let bytes = || std::fs::metadata(&log).unwrap().len();
        make(&connection, &log, 1_500).unwrap();
        let made = bytes();
        assert!((1_500 * 4_096..2_000 * 4_096).contains(&made), "{made}");
        make(&connection, &log, 1_500).unwrap();
        connection.execute("INSERT INTO kept VALUES (NULL)", []).unwrap();
        assert_eq!(bytes(), made, "it is there, and written over");
        let rows = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!((rows("SELECT count(*) FROM kept"), rows("SELECT count(*) FROM sqlite_sequence")), (2, 1));
        let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
    }

    #[test]
    fn what_can_not_be_made_leaves_no_transaction() {
        let folder = tempfile::tempdir().unwrap();
        let (connection, log) = file(folder.path());
        connection.pragma_update(None, "max_page_count", 400).unwrap();
        let error = make(&connection, &log, 1_500).unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DiskFull));
        assert!(connection.is_autocommit());
        connection.execute("INSERT INTO kept VALUES (NULL)", []).unwrap();
    }
}

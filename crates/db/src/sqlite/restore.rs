//! Restores a backup. It is first copied to a file next to the database, where it is checked and prepared. Then SQLite copies
//! that file into the database, in one transaction. So a restore that fails or is killed does not change the database, and
//! SQLite's locks are kept.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::backup::{PartialFile, copy_pages, refuse_damage};
use super::error::from_sqlite;
use super::open::{companion_file, refuse_special};
use super::{SqliteDatabase, SqliteOptions};
use crate::error::{Error, Result, Unavailable};
use crate::{OpenMode, Tables};

const OPERATION: &str = "restore the database";
/// How long to wait for transactions of other processes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// A copy of a backup, next to the database that it will replace. It is removed when this is dropped.
pub struct StagedBackup {
    partial: PartialFile,
    target: PathBuf,
}

impl StagedBackup {
    /// Copies a backup, and checks that it is not damaged. The backup is not changed.
    ///
    /// # Errors
    /// When the backup is not a database, is damaged, or the disk is full.
    pub fn copy(backup: &Path, target: &Path) -> Result<StagedBackup> {
        let mut source = open_backup(backup)?;
        let partial = PartialFile::next_to(OPERATION, target)?;
        let mut copy = Connection::open(&partial.path).map_err(|error| from_sqlite(OPERATION, &error))?;
        copy_pages(OPERATION, &mut source, &mut copy)?;
        refuse_damage(OPERATION, &copy)?;
        copy.close().map_err(|(_copy, error)| from_sqlite(OPERATION, &error))?;
        Ok(StagedBackup { partial, target: target.to_owned() })
    }

    /// Opens the copy, with its tables migrated, to prepare it.
    ///
    /// # Errors
    /// When it has no tables of Windlass, or tables of a newer version.
    pub fn open(&self, tables: &'static Tables) -> Result<SqliteDatabase> {
        let options = SqliteOptions { mode: OpenMode::Existing, ..SqliteOptions::default() };
        SqliteDatabase::open(&self.partial.path, tables, &options)
    }

    /// Replaces the contents of the database, in one transaction. Processes that have the database open may go on.
    ///
    /// # Errors
    /// When the database stays locked, or the disk is full. Then the database is not changed.
    pub fn put_in_place(self) -> Result<()> {
        let target = self.target;
        if target.symlink_metadata().is_err() {
            return self.partial.move_to(OPERATION, &target);
        }
        let failed = |error: rusqlite::Error| from_sqlite(OPERATION, &error);
        let mut source = Connection::open(&self.partial.path).map_err(failed)?;
        let mut database = Connection::open(&target).map_err(failed)?;
        database.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        copy_pages(OPERATION, &mut source, &mut database)?;
        refuse_damage(OPERATION, &database)?;
        // Only to save space, so it may fail because of readers.
        let _busy = database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_row| Ok(()));
        database.close().map_err(|(_database, error)| failed(error))
    }
}

/// Opens a backup, perhaps in a folder that can't be written. Then it is opened as an immutable file, which is correct if it
/// has no WAL.
fn open_backup(backup: &Path) -> Result<Connection> {
    let unusable = |reason| Err(Error::unavailable(OPERATION, reason));
    match std::fs::metadata(backup) {
        // Hard links are allowed: backup programs use them, and nothing is written here.
        Ok(metadata) => {
            if let Err(reason) = refuse_special(backup, &metadata) {
                return unusable(Unavailable::CannotOpen(reason));
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return unusable(Unavailable::Missing(backup.to_owned()));
        }
        Err(error) => return unusable(Unavailable::CannotOpen(format!("{}: {error}", backup.display()))),
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(backup, flags).and_then(is_readable);
    match opened {
        Ok(connection) => Ok(connection),
        Err(_refused) if !companion_file(backup, "-wal").exists() => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(immutable_uri(backup), flags)
                .and_then(is_readable)
                .map_err(|error| from_sqlite(OPERATION, &error))
        }
        Err(error) => Err(from_sqlite(OPERATION, &error)),
    }
}

fn is_readable(connection: Connection) -> rusqlite::Result<Connection> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_row| Ok(()))?;
    Ok(connection)
}

/// The URI that opens a file as immutable.
fn immutable_uri(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_unknown| path.to_owned());
    let mut address = String::from("file://");
    for byte in absolute.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                address.push(char::from(*byte))
            }
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    address.push_str("?immutable=1");
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uri_of_a_file_escapes_special_characters_of_its_path() {
        assert_eq!(immutable_uri(Path::new("/a b/c?#%.db")), "file:///a%20b/c%3F%23%25.db?immutable=1");
    }
}

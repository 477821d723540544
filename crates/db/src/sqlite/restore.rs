//! Brings a backup back: into a file beside the database first, where it is checked and prepared, and from
//! there through SQLite's own copying into the database, as one transaction of it. So a restore that fails or
//! is killed leaves the database as it was, and no lock of SQLite's is lost.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::backup::{Partial, copy_pages, refuse_damage};
use super::error::from_sqlite;
use super::open::{beside, refuse_special};
use super::{SqliteDatabase, SqliteOptions};
use crate::error::{Error, Result, Unavailable};
use crate::{OpenMode, Tables};

const WHAT: &str = "restore the database";
/// How long it is waited for whoever reads or writes at the moment.
const PATIENCE: Duration = Duration::from_secs(10);

/// A copy of a backup beside the database that it is to become. Dropped before that, it vanishes.
pub struct Staged {
    partial: Partial,
    target: PathBuf,
}

impl Staged {
    /// Copies a backup, which is not changed, and checks that its storage is sound.
    ///
    /// # Errors
    /// When there is no database in the backup, it is damaged, or there is no room.
    pub fn copy(backup: &Path, target: &Path) -> Result<Staged> {
        let mut source = open_backup(backup)?;
        let partial = Partial::beside(WHAT, target)?;
        let mut copy = Connection::open(&partial.path).map_err(|error| from_sqlite(WHAT, &error))?;
        copy_pages(WHAT, &mut source, &mut copy)?;
        refuse_damage(WHAT, &copy)?;
        copy.close().map_err(|(_copy, error)| from_sqlite(WHAT, &error))?;
        Ok(Staged { partial, target: target.to_owned() })
    }

    /// Opens the copy, with its tables migrated, to prepare it.
    ///
    /// # Errors
    /// When its tables are none of Windlass, or of a newer version.
    pub fn open(&self, tables: &'static Tables) -> Result<SqliteDatabase> {
        let options = SqliteOptions { mode: OpenMode::Existing, ..SqliteOptions::default() };
        SqliteDatabase::open(&self.partial.path, tables, &options)
    }

    /// Makes it the database. Whoever has that open sees all of it from one moment on.
    ///
    /// # Errors
    /// When the database stays locked, or there is no room; then it is as it was.
    pub fn put_in_place(self) -> Result<()> {
        let target = self.target;
        if target.symlink_metadata().is_err() {
            return self.partial.move_to(WHAT, &target);
        }
        let failed = |error: rusqlite::Error| from_sqlite(WHAT, &error);
        let mut source = Connection::open(&self.partial.path).map_err(failed)?;
        let mut database = Connection::open(&target).map_err(failed)?;
        database.busy_timeout(PATIENCE).map_err(failed)?;
        copy_pages(WHAT, &mut source, &mut database)?;
        refuse_damage(WHAT, &database)?;
        // Only to save room: readers may hold it up.
        let _busy = database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_row| Ok(()));
        database.close().map_err(|(_database, error)| failed(error))
    }
}

/// A backup may lie where nothing can be written. Then it is read as a file that nobody changes, which is right
/// as long as no WAL lies beside it.
fn open_backup(backup: &Path) -> Result<Connection> {
    let unusable = |reason| Err(Error::unavailable(WHAT, reason));
    match std::fs::metadata(backup) {
        // It may have several names: folders of backups are made of hard links, and nothing is written here.
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
        Err(_refused) if !beside(backup, "-wal").exists() => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(unchanging(backup), flags)
                .and_then(is_readable)
                .map_err(|error| from_sqlite(WHAT, &error))
        }
        Err(error) => Err(from_sqlite(WHAT, &error)),
    }
}

fn is_readable(connection: Connection) -> rusqlite::Result<Connection> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_row| Ok(()))?;
    Ok(connection)
}

/// The address of a file that nobody changes.
fn unchanging(path: &Path) -> String {
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
    fn the_address_of_a_file_names_every_byte_of_its_path() {
        assert_eq!(unchanging(Path::new("/a b/c?#%.db")), "file:///a%20b/c%3F%23%25.db?immutable=1");
    }
}

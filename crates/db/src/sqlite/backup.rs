//! Copies a database while other processes use it. The copy is one snapshot, and gets its name only when it is complete.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, TransactionBehavior};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::error::from_sqlite;
use crate::Tables;
use crate::error::{Error, Result, Unavailable};

const OPERATION: &str = "back up the database";

/// Copies everything that a reader sees into a new file. A copy that fails leaves no file.
///
/// The pages are copied inside a read transaction. Otherwise each commit of another process would restart the copy. Writers
/// are not blocked, but the write-ahead log grows meanwhile, as with any long reader.
pub(super) fn backup(source: &mut Connection, tables: &Tables, target: &Path) -> Result<()> {
    if target.symlink_metadata().is_ok() {
        return Err(exists(OPERATION, target));
    }
    let partial = PartialFile::next_to(OPERATION, target)?;
    let mut copy = Connection::open(&partial.path).map_err(|error| from_sqlite(OPERATION, &error))?;
    copy_pages(OPERATION, source, &mut copy)?;
    refuse_damage(OPERATION, &copy)?;
    rename_database(&copy, tables).map_err(|error| from_sqlite(OPERATION, &error))?;
    copy.close().map_err(|(_copy, error)| from_sqlite(OPERATION, &error))?;
    partial.move_to(OPERATION, target)
}

/// Copies everything that a reader of `source` sees into `copy`, as one transaction of it.
pub(super) fn copy_pages(operation: &str, source: &mut Connection, copy: &mut Connection) -> Result<()> {
    match copy_all_pages(source, copy) {
        Ok(StepResult::Done) => Ok(()),
        Ok(_busy) => Err(Error::unavailable(operation, Unavailable::Locked)),
        Err(error) => Err(from_sqlite(operation, &error)),
    }
}

fn copy_all_pages(source: &mut Connection, copy: &mut Connection) -> rusqlite::Result<StepResult> {
    const ALL_PAGES: i32 = -1;
    let snapshot = source.transaction_with_behavior(TransactionBehavior::Deferred)?;
    // The first read of a transaction determines its snapshot.
    let _tables: i64 = snapshot.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Backup::new(&snapshot, copy)?.step(ALL_PAGES)
}

/// Returns an error if the database is damaged, or if rows refer to missing rows.
pub(super) fn refuse_damage(operation: &str, database: &Connection) -> Result<()> {
    let failed = |error: rusqlite::Error| from_sqlite(operation, &error);
    let verdict: String =
        database.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(failed)?;
    if verdict != "ok" {
        return Err(Error::unavailable(operation, Unavailable::Corrupt(verdict)));
    }
    let orphans: i64 = database
        .query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))
        .map_err(failed)?;
    if orphans > 0 {
        let detail = format!("{orphans} rows refer to rows that are missing");
        return Err(Error::unavailable(operation, Unavailable::Corrupt(detail)));
    }
    Ok(())
}

/// Gives the copy a name of its own. If both databases are used, neither takes processes of the other for its own.
fn rename_database(copy: &Connection, tables: &Tables) -> rusqlite::Result<usize> {
    let name = uuid::Uuid::now_v7().simple().to_string();
    copy.execute(tables.rename_database, [name])
}

/// A file that is not complete yet. It is removed when this is dropped.
pub(super) struct PartialFile {
    pub(super) path: PathBuf,
}

impl PartialFile {
    /// An unused name in the folder of `target`, so that the file can be renamed to `target`.
    pub(super) fn next_to(operation: &str, target: &Path) -> Result<PartialFile> {
        let Some(name) = target.file_name() else {
            return Err(Error::invalid(operation, format!("{} names no file", target.display())));
        };
        let mut partial = OsString::from(".");
        partial.push(name);
        partial.push(format!(".{}.partial", uuid::Uuid::now_v7().simple()));
        Ok(PartialFile { path: target.with_file_name(partial) })
    }

    /// Flushes the file and renames it to `target`, unless `target` exists by now.
    pub(super) fn move_to(self, operation: &str, target: &Path) -> Result<()> {
        let failed = |error| failed(operation, error);
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        File::open(&self.path).and_then(|file| file.sync_all()).map_err(failed)?;
        match renameat_with(CWD, &self.path, CWD, target, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(exists(operation, target)),
            // Some network file systems support only a rename that replaces the target.
            Err(Errno::INVAL | Errno::NOSYS) if !target.exists() => {
                std::fs::rename(&self.path, target).map_err(failed)?;
            }
            Err(error) => return Err(failed(error.into())),
        }
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        for suffix in ["", "-journal", "-wal", "-shm"] {
            let mut path = self.path.clone().into_os_string();
            path.push(suffix);
            let _absent = std::fs::remove_file(path);
        }
    }
}

fn exists(operation: &str, target: &Path) -> Error {
    Error::conflict(operation, format!("{} exists already", target.display()))
}

fn failed(operation: &str, error: std::io::Error) -> Error {
    let full = error.kind() == std::io::ErrorKind::StorageFull;
    let reason = if full { Unavailable::DiskFull } else { Unavailable::InputOutput(error.to_string()) };
    Error::unavailable(operation, reason)
}

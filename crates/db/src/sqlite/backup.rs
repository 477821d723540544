//! Copies a database while others work with it: of one snapshot, and into its place only when it is whole.

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

const WHAT: &str = "back up the database";

/// Copies everything a reader sees into a new file. Nothing is left of a copy that failed.
///
/// The snapshot is held open while pages are copied: without it each commit of another process would
/// begin the copy anew. Writers go on; the WAL grows meanwhile, as with any long reader.
pub(super) fn backup(source: &mut Connection, tables: &Tables, target: &Path) -> Result<()> {
    if target.symlink_metadata().is_ok() {
        return Err(exists(WHAT, target));
    }
    let partial = Partial::beside(WHAT, target)?;
    let mut copy = Connection::open(&partial.path).map_err(|error| from_sqlite(WHAT, &error))?;
    copy_pages(WHAT, source, &mut copy)?;
    refuse_damage(WHAT, &copy)?;
    rename_database(&copy, tables).map_err(|error| from_sqlite(WHAT, &error))?;
    copy.close().map_err(|(_copy, error)| from_sqlite(WHAT, &error))?;
    partial.move_to(WHAT, target)
}

/// Copies everything that a reader of `source` sees into `copy`, as one transaction of it.
pub(super) fn copy_pages(what: &str, source: &mut Connection, copy: &mut Connection) -> Result<()> {
    match step_over_all(source, copy) {
        Ok(StepResult::Done) => Ok(()),
        Ok(_busy) => Err(Error::unavailable(what, Unavailable::Locked)),
        Err(error) => Err(from_sqlite(what, &error)),
    }
}

fn step_over_all(source: &mut Connection, copy: &mut Connection) -> rusqlite::Result<StepResult> {
    const ALL_PAGES: i32 = -1;
    let snapshot = source.transaction_with_behavior(TransactionBehavior::Deferred)?;
    // A transaction has its snapshot from its first read on.
    let _tables: i64 = snapshot.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Backup::new(&snapshot, copy)?.step(ALL_PAGES)
}

/// The pages of a database fit together, and its rows refer to rows that are there.
pub(super) fn refuse_damage(what: &str, database: &Connection) -> Result<()> {
    let failed = |error: rusqlite::Error| from_sqlite(what, &error);
    let verdict: String =
        database.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(failed)?;
    if verdict != "ok" {
        return Err(Error::unavailable(what, Unavailable::Corrupt(verdict)));
    }
    let orphans: i64 = database
        .query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))
        .map_err(failed)?;
    if orphans > 0 {
        let detail = format!("{orphans} rows refer to rows that are missing");
        return Err(Error::unavailable(what, Unavailable::Corrupt(detail)));
    }
    Ok(())
}

/// The copy is a database of its own: of two that go on side by side neither takes the other's processes for its own.
fn rename_database(copy: &Connection, tables: &Tables) -> rusqlite::Result<usize> {
    let name = uuid::Uuid::now_v7().simple().to_string();
    copy.execute(tables.rename_database, [name])
}

/// The file that becomes the copy. Dropped before that, it vanishes.
pub(super) struct Partial {
    pub(super) path: PathBuf,
}

impl Partial {
    /// A name of its own in the same folder, so that the last step is a rename.
    pub(super) fn beside(what: &str, target: &Path) -> Result<Partial> {
        let Some(name) = target.file_name() else {
            return Err(Error::invalid(what, format!("{} names no file", target.display())));
        };
        let mut partial = OsString::from(".");
        partial.push(name);
        partial.push(format!(".{}.partial", uuid::Uuid::now_v7().simple()));
        Ok(Partial { path: target.with_file_name(partial) })
    }

    /// Flushes the file and gives it its name, which stays that of another if somebody was faster.
    pub(super) fn move_to(self, what: &str, target: &Path) -> Result<()> {
        let failed = |error| failed(what, error);
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        File::open(&self.path).and_then(|file| file.sync_all()).map_err(failed)?;
        match renameat_with(CWD, &self.path, CWD, target, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(exists(what, target)),
            // Some network file systems know only the plain rename.
            Err(Errno::INVAL | Errno::NOSYS) if !target.exists() => {
                std::fs::rename(&self.path, target).map_err(failed)?;
            }
            Err(error) => return Err(failed(error.into())),
        }
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        for suffix in ["", "-journal", "-wal", "-shm"] {
            let mut path = self.path.clone().into_os_string();
            path.push(suffix);
            let _absent = std::fs::remove_file(path);
        }
    }
}

fn exists(what: &str, target: &Path) -> Error {
    Error::conflict(what, format!("{} exists already", target.display()))
}

fn failed(what: &str, error: std::io::Error) -> Error {
    let full = error.kind() == std::io::ErrorKind::StorageFull;
    let reason = if full { Unavailable::DiskFull } else { Unavailable::InputOutput(error.to_string()) };
    Error::unavailable(what, reason)
}

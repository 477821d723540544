//! The size of a database file, and giving space back.

use std::path::PathBuf;

use super::error::from_sqlite;
use super::{SqliteDatabase, open};
use crate::all;
use crate::error::Result;

/// Moves and removes at most 256 pages, because other writers wait meanwhile.
const STEP_PAGES: &str = "PRAGMA incremental_vacuum(256)";

/// The size of a database file and of its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileSize {
    /// The file, in bytes.
    pub bytes: i64,
    /// The part of the file that is free pages, in bytes. New rows use them first.
    pub free_bytes: i64,
    /// The write-ahead log, in bytes.
    pub wal_bytes: i64,
    /// Whether free pages can be given back in small steps.
    pub is_incremental: bool,
}

impl SqliteDatabase {
    /// How large the file is.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn file_size(&self) -> Result<FileSize> {
        let reader = self.reader()?;
        let pragma = |name: &str| {
            reader
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                .map_err(|error| from_sqlite("read the size of the database", &error))
        };
        let page_bytes = pragma("page_size")?;
        // Only the metadata is read: opening and closing the file would drop SQLite's locks.
        let wal_bytes = std::fs::metadata(self.wal()).map_or(0, |metadata| metadata.len());
        Ok(FileSize {
            bytes: pragma("page_count")?.saturating_mul(page_bytes),
            free_bytes: pragma("freelist_count")?.saturating_mul(page_bytes),
            wal_bytes: i64::try_from(wal_bytes).unwrap_or(i64::MAX),
            is_incremental: pragma("auto_vacuum")? == 2,
        })
    }

    /// The path of the write-ahead log.
    #[must_use]
    pub fn wal(&self) -> PathBuf {
        open::companion_file(&self.path, "-wal")
    }

    /// Gives back at most a megabyte of free pages, in one short transaction. Other processes go on.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn vacuum_step(&self) -> Result<()> {
        let vacuum = |connection: &mut dyn crate::Connection| {
            // The statement returns a row for each page, and must be read to its end.
            all(connection, STEP_PAGES, &[], |_row| Ok(())).map(drop)
        };
        self.writer.write("give free pages back", Box::new(vacuum))
    }

    /// Writes the whole file again, without free pages. This needs free disk space of the same size, and no other process can
    /// write meanwhile.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn vacuum_whole(&self) -> Result<()> {
        let failed = |error: rusqlite::Error| from_sqlite("write the database anew", &error);
        let connection = open::open_maintenance(&self.path)?;
        // Takes effect with the next VACUUM, also for a file that was created without it.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(failed)?;
        connection.execute_batch("VACUUM").map_err(failed)
    }

    /// Moves the write-ahead log into the file and truncates the log. Returns `false` if a reader still uses the log.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn empty_wal(&self) -> Result<bool> {
        let connection = open::open_maintenance(&self.path)?;
        let busy: i64 = connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .map_err(|error| from_sqlite("move the write-ahead log into the file", &error))?;
        Ok(busy == 0)
    }
}

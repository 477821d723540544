//! The size of a database in a file: what it is, and giving space back.

use std::path::PathBuf;

use super::error::from_sqlite;
use super::wal::wal_of;
use super::{SqliteDatabase, open};
use crate::all;
use crate::error::Result;

/// Pages that one step moves and cuts off at most: others wait no longer than that takes.
const STEP_PAGES: &str = "PRAGMA incremental_vacuum(256)";

/// How large a file is, and what of it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileSize {
    /// The file, in bytes.
    pub bytes: i64,
    /// Of these, pages that hold nothing, in bytes. New rows take them first.
    pub free_bytes: i64,
    /// The write-ahead log beside it, in bytes.
    pub wal_bytes: i64,
    /// Free pages can be given back in small steps.
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
                .map_err(|error| from_sqlite("look at the size", &error))
        };
        let page_bytes = pragma("page_size")?;
        // Only the name is looked at: the file is never opened beside SQLite.
        let wal_bytes = std::fs::metadata(self.wal()).map_or(0, |metadata| metadata.len());
        Ok(FileSize {
            bytes: pragma("page_count")?.saturating_mul(page_bytes),
            free_bytes: pragma("freelist_count")?.saturating_mul(page_bytes),
            wal_bytes: i64::try_from(wal_bytes).unwrap_or(i64::MAX),
            is_incremental: pragma("auto_vacuum")? == 2,
        })
    }

    /// The write-ahead log.
    #[must_use]
    pub fn wal(&self) -> PathBuf {
        wal_of(&self.path)
    }

    /// Gives a megabyte of free pages back at most, in one short transaction, while others work.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn vacuum_step(&self) -> Result<()> {
        let vacuum = |connection: &mut dyn crate::Connection| {
            // A row a page: the statement has to be read to its end.
            all(connection, STEP_PAGES, &[], |_row| Ok(())).map(drop)
        };
        self.writer.write("give free pages back", Box::new(vacuum))
    }

    /// Writes the file anew without free pages. Needs as much room again, and nobody else can write meanwhile.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn vacuum_whole(&self) -> Result<()> {
        let failed = |error: rusqlite::Error| from_sqlite("write the database anew", &error);
        let connection = open::open_beside(&self.path)?;
        // Takes hold with the next VACUUM, also for a file that was made without it.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(failed)?;
        connection.execute_batch("VACUUM").map_err(failed)
    }

    /// Moves the write-ahead log into the file and cuts it off, unless somebody reads what is in it.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn empty_wal(&self) -> Result<bool> {
        let connection = open::open_beside(&self.path)?;
        let busy: i64 = connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .map_err(|error| from_sqlite("move the write-ahead log into the file", &error))?;
        Ok(busy == 0)
    }
}

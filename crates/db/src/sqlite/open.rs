//! Opens a SQLite file the one safe way: WAL before the pool, pragmas read back, tables migrated.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{OpenFlags, TransactionBehavior};

use super::connection::SqliteConnection;
use super::error::from_sqlite;
use super::statements::Statements;
use crate::error::{Error, Result, Unavailable};
use crate::migrate::{migrate, version};
use crate::{Durability, OpenMode, Tables};
use windlass_system::clock::Clock;
use windlass_system::files::special_kind;

/// Earlier versions can damage a database in WAL mode when two connections write and checkpoint at once.
const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// How often a busy database is tried again, a millisecond apart.
const BUSY_TRIES_MAX: i32 = 10_000;
/// The switch to WAL does not wait for locks by itself.
const WAL_TRIES_MAX: u32 = 2_000;
/// The WAL file is cut back to this size after a checkpoint.
const WAL_SIZE_MAX_BYTES: i64 = 64 * 1024 * 1024;
const STATEMENTS_CACHED: usize = 256;
const OPENING: &str = "open the database";

/// How to open a SQLite file.
#[derive(Debug, Clone, Default)]
pub struct SqliteOptions {
    /// What a commit survives.
    pub durability: Durability,
    /// Whether a missing file is made.
    pub mode: OpenMode,
}

/// The connection that writes.
pub(super) fn open_writer(
    path: &Path,
    tables: &'static Tables,
    options: &SqliteOptions,
) -> Result<rusqlite::Connection> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        let detail = format!("SQLite {} is too old: 3.51.3 is needed", rusqlite::version());
        return Err(Error::unavailable(OPENING, Unavailable::CannotOpen(detail)));
    }
    check_path(path, options.mode)?;
    let mut connection = rusqlite::Connection::open_with_flags(path, flags(options.mode))
        .map_err(|error| from_sqlite(OPENING, &error))?;
    connection.busy_handler(Some(wait_while_busy)).map_err(|error| from_sqlite(OPENING, &error))?;
    // The first look into the file: here it shows when it is something else.
    let version = version(&mut SqliteConnection::new(&connection, &mut Statements::new(tables.fragments)))?;
    if version.is_none() && options.mode == OpenMode::Existing {
        return Err(Error::unavailable(OPENING, Unavailable::NoTables(path.display().to_string())));
    }
    configure(&connection)?;
    switch_to_wal(&connection)?;
    let synchronous = match options.durability {
        Durability::Full => 2,
        Durability::Normal => 1,
    };
    set_pragma(&connection, "synchronous", synchronous)?;
    set_pragma(&connection, "journal_size_limit", WAL_SIZE_MAX_BYTES)?;
    // Who only wants to read must not wait for somebody who writes.
    if version != Some(tables.version()) {
        migrate_tables(&mut connection, tables)?;
    }
    Ok(connection)
}

/// A connection that reads. It can't write: a statement that tries is a defect.
pub(super) fn open_reader(path: &Path) -> Result<rusqlite::Connection> {
    let open = || {
        let connection = rusqlite::Connection::open_with_flags(path, flags(OpenMode::Existing))?;
        connection.busy_handler(Some(wait_while_busy))?;
        keep_plans(&connection)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    };
    open().map_err(|error| from_sqlite("open a connection for reading", &error))
}

/// A connection for what can't be done inside a transaction of the writer.
pub(super) fn open_beside(path: &Path) -> Result<rusqlite::Connection> {
    let connection = rusqlite::Connection::open_with_flags(path, flags(OpenMode::Existing))
        .map_err(|error| from_sqlite(OPENING, &error))?;
    connection.busy_handler(Some(wait_while_busy)).map_err(|error| from_sqlite(OPENING, &error))?;
    Ok(connection)
}

fn flags(mode: OpenMode) -> OpenFlags {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match mode {
        OpenMode::Create => flags | OpenFlags::SQLITE_OPEN_CREATE,
        OpenMode::Existing => flags,
    }
}

/// SQLite says no more than "unable to open database file": look for the reason before. Only the
/// names are looked at; the file is never opened here, which would drop SQLite's locks on it.
fn check_path(path: &Path, mode: OpenMode) -> Result<()> {
    let cannot_open = |reason: String| Err(Error::unavailable(OPENING, Unavailable::CannotOpen(reason)));
    match std::fs::metadata(path) {
        Ok(metadata) => {
            refuse_special(path, &metadata).or_else(cannot_open)?;
            return refuse_second_name(path, &metadata);
        }
        Err(_absent) if mode == OpenMode::Existing => {
            return Err(Error::unavailable(OPENING, Unavailable::Missing(path.to_owned())));
        }
        Err(_absent) => {}
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            cannot_open(format!("the folder {} does not exist", folder.display()))
        }
        Some(_) | None => Ok(()),
    }
}

/// SQLite would wait for ever for what a FIFO brings, also when it lies where the log should be.
pub(super) fn refuse_special(path: &Path, metadata: &Metadata) -> std::result::Result<(), String> {
    if let Some(kind) = special_kind(metadata.file_type()) {
        return Err(format!("{} is {kind}, not a regular file", path.display()));
    }
    for suffix in ["-wal", "-shm", "-journal"] {
        let beside = beside(path, suffix);
        let kind = std::fs::metadata(&beside).ok().and_then(|metadata| special_kind(metadata.file_type()));
        if let Some(kind) = kind {
            let beside = beside.display();
            return Err(format!("{beside}, which belongs to it, is {kind}, not a regular file"));
        }
    }
    Ok(())
}

/// Through a hard link the same file would have two logs, each with commits that the other does not know. A symbolic
/// link does no harm: SQLite puts the log beside the file that it leads to.
fn refuse_second_name(path: &Path, metadata: &Metadata) -> Result<()> {
    match metadata.nlink() {
        0 | 1 => Ok(()),
        names => Err(Error::unavailable(OPENING, Unavailable::HardLinked { path: path.to_owned(), names })),
    }
}

/// The name of a file that SQLite keeps for a database: beside the file itself, not beside a link to it.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = std::fs::canonicalize(path).unwrap_or_else(|_unknown| path.to_owned()).into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// A statement keeps its plan whatever is bound to it. Otherwise SQLite compiles each statement with a
/// bound LIMIT anew every time: half of what a link of a chain costs beside its commit.
fn keep_plans(connection: &rusqlite::Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(|_enabled| ())
}

fn configure(connection: &rusqlite::Connection) -> Result<()> {
    keep_plans(connection).map_err(|error| from_sqlite(OPENING, &error))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    let pages: i64 = connection
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .map_err(|error| from_sqlite(OPENING, &error))?;
    if pages == 0 {
        begin_file(connection).map_err(|error| from_sqlite(OPENING, &error))?;
    }
    set_pragma(connection, "foreign_keys", 1)?;
    set_pragma(connection, "temp_store", 2)
}

/// Writes the first page of a new file. Nobody has been promised anything of it, so it needs neither a journal
/// beside it nor a flush of its own: with both, a new file would cost eight flushes before its first table. The
/// switch to WAL flushes the page. Where another process has made the file meanwhile, nothing of this is done to it.
fn begin_file(connection: &rusqlite::Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |_mode| Ok(()))?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    // Can only be chosen before the first table: lets pruning give space back in small steps.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "synchronous", "FULL")
}

/// A flat millisecond: SQLite's own handler sleeps up to 100 ms while the lock is long free again.
pub(super) fn wait_while_busy(tries: i32) -> bool {
    std::thread::sleep(Duration::from_millis(1));
    tries < BUSY_TRIES_MAX
}

fn switch_to_wal(connection: &rusqlite::Connection) -> Result<()> {
    for _attempt in 0..WAL_TRIES_MAX {
        let mode: rusqlite::Result<String> =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(_other) => {
                let detail =
                    "its file system does not allow the journal mode WAL, which is needed".to_owned();
                return Err(Error::unavailable(OPENING, Unavailable::CannotOpen(detail)));
            }
            Err(error) => {
                let error = from_sqlite(OPENING, &error);
                if error != Error::unavailable(OPENING, Unavailable::Locked) {
                    return Err(error);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    Err(Error::unavailable(OPENING, Unavailable::Locked))
}

/// Sets a pragma and reads it back: SQLite ignores a value it does not know without a word.
fn set_pragma(connection: &rusqlite::Connection, name: &str, value: i64) -> Result<()> {
    connection.pragma_update(None, name, value).map_err(|error| from_sqlite(OPENING, &error))?;
    let found: i64 = connection
        .pragma_query_value(None, name, |row| row.get(0))
        .map_err(|error| from_sqlite(OPENING, &error))?;
    if found == value {
        Ok(())
    } else {
        Err(Error::internal(OPENING, format!("pragma {name} is {found} after it was set to {value}")))
    }
}

fn migrate_tables(connection: &mut rusqlite::Connection, tables: &'static Tables) -> Result<()> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|error| from_sqlite(OPENING, &error))?;
    let name = uuid::Uuid::now_v7().simple().to_string();
    migrate(
        &mut SqliteConnection::new(&transaction, &mut Statements::new(tables.fragments)),
        tables,
        Clock::system().now_ms(),
        &name,
    )?;
    transaction.commit().map_err(|error| from_sqlite(OPENING, &error))
}

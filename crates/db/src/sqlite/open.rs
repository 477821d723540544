//! Opens a SQLite file: checks its path, switches to WAL, sets the pragmas, and migrates the tables.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{OpenFlags, TransactionBehavior};
use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::connection::SqliteConnection;
use super::error::from_sqlite;
use super::statements::Statements;
use crate::error::{Error, Result, Unavailable};
use crate::migrate::{migrate, version};
use crate::{Durability, OpenMode, Tables};
use windlass_system::clock::Clock;
use windlass_system::files::special_kind;

/// Earlier versions can damage a database in WAL mode when two connections write and make checkpoints at the same time.
const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// How often a statement on a busy database is tried again, one millisecond apart.
const BUSY_TRIES_MAX: i32 = 10_000;
/// How often the switch to WAL is tried. It does not use the busy handler.
const WAL_TRIES_MAX: u32 = 2_000;
/// SQLite truncates the WAL file to this size after a checkpoint.
const WAL_SIZE_MAX_BYTES: i64 = 64 * 1024 * 1024;
const STATEMENTS_CACHED: usize = 256;
const OPERATION: &str = "open the database";

/// How to open a SQLite file.
#[derive(Debug, Clone, Default)]
pub struct SqliteOptions {
    /// What a commit survives.
    pub durability: Durability,
    /// Whether a missing file is created.
    pub mode: OpenMode,
}

/// Opens the connection that writes.
pub(super) fn open_writer(
    path: &Path,
    tables: &'static Tables,
    options: &SqliteOptions,
) -> Result<rusqlite::Connection> {
    if rusqlite::version_number() < SQLITE_VERSION_MIN {
        let detail = format!("SQLite {} is too old: 3.51.3 is needed", rusqlite::version());
        return Err(Error::unavailable(OPERATION, Unavailable::CannotOpen(detail)));
    }
    check_path(path, options.mode)?;
    let mut connection = rusqlite::Connection::open_with_flags(path, flags(options.mode))
        .map_err(|error| from_sqlite(OPERATION, &error))?;
    connection.busy_handler(Some(wait_while_busy)).map_err(|error| from_sqlite(OPERATION, &error))?;
    // The first read: it fails if the file is not a database.
    let version = version(&mut SqliteConnection::new(&connection, &mut Statements::new(tables.fragments)))?;
    if version.is_none() && options.mode == OpenMode::Existing {
        return Err(Error::unavailable(OPERATION, Unavailable::NoTables(path.display().to_string())));
    }
    configure(&connection)?;
    switch_to_wal(&connection)?;
    let synchronous = match options.durability {
        Durability::Full => 2,
        Durability::Normal => 1,
    };
    set_pragma(&connection, "synchronous", synchronous)?;
    set_pragma(&connection, "journal_size_limit", WAL_SIZE_MAX_BYTES)?;
    // Without this condition opening would wait for a process that writes.
    if version != Some(tables.version()) {
        migrate_tables(&mut connection, tables)?;
    }
    Ok(connection)
}

/// Opens a connection that can only read.
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

/// Opens a connection for checkpoints and VACUUM, which can't run inside a transaction of the writer.
pub(super) fn open_maintenance(path: &Path) -> Result<rusqlite::Connection> {
    let connection = rusqlite::Connection::open_with_flags(path, flags(OpenMode::Existing))
        .map_err(|error| from_sqlite(OPERATION, &error))?;
    connection.busy_handler(Some(wait_while_busy)).map_err(|error| from_sqlite(OPERATION, &error))?;
    Ok(connection)
}

fn flags(mode: OpenMode) -> OpenFlags {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match mode {
        OpenMode::Create => flags | OpenFlags::SQLITE_OPEN_CREATE,
        OpenMode::Existing => flags,
    }
}

/// Finds reasons why the file can't be opened, because SQLite only says "unable to open database file". This reads only
/// metadata: opening and closing the file would drop SQLite's locks on it.
fn check_path(path: &Path, mode: OpenMode) -> Result<()> {
    let cannot_open = |reason: String| Err(Error::unavailable(OPERATION, Unavailable::CannotOpen(reason)));
    match std::fs::metadata(path) {
        Ok(metadata) => {
            refuse_special(path, &metadata).or_else(cannot_open)?;
            refuse_unreadable(path).or_else(cannot_open)?;
            return refuse_hard_links(path, &metadata);
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return cannot_open(format!(
                "permission denied: you may not look into the folder of {}",
                path.display()
            ));
        }
        Err(_absent) if mode == OpenMode::Existing => {
            return Err(Error::unavailable(OPERATION, Unavailable::Missing(path.to_owned())));
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

/// Refuses a path that is not a regular file. SQLite would wait forever for a FIFO, also in place of the log.
pub(super) fn refuse_special(path: &Path, metadata: &Metadata) -> std::result::Result<(), String> {
    if let Some(kind) = special_kind(metadata.file_type()) {
        return Err(format!("{} is {kind}, not a regular file", path.display()));
    }
    for suffix in ["-wal", "-shm", "-journal"] {
        let companion = companion_file(path, suffix);
        let kind = std::fs::metadata(&companion).ok().and_then(|metadata| special_kind(metadata.file_type()));
        if let Some(kind) = kind {
            let companion = companion.display();
            return Err(format!("{companion}, which belongs to it, is {kind}, not a regular file"));
        }
    }
    Ok(())
}

/// Refuses a file that this user may not read, or whose log this user may not read.
fn refuse_unreadable(path: &Path) -> std::result::Result<(), String> {
    for suffix in ["", "-wal", "-shm"] {
        let file = companion_file(path, suffix);
        if let Err(Errno::ACCESS) = access(&file, Access::READ_OK) {
            return Err(format!("permission denied: you may not read {}", file.display()));
        }
    }
    Ok(())
}

/// Refuses a file with several hard links. SQLite would keep a log for each name, and the logs would have different commits.
/// A symbolic link is harmless, because SQLite puts the log next to the file that it points to.
fn refuse_hard_links(path: &Path, metadata: &Metadata) -> Result<()> {
    match metadata.nlink() {
        0 | 1 => Ok(()),
        names => Err(Error::unavailable(OPERATION, Unavailable::HardLinked { path: path.to_owned(), names })),
    }
}

/// The path of a file that SQLite keeps for a database, such as its write-ahead log. It is next to the file itself, not next
/// to a symbolic link.
pub(super) fn companion_file(path: &Path, suffix: &str) -> PathBuf {
    let mut name = std::fs::canonicalize(path).unwrap_or_else(|_unknown| path.to_owned()).into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes plans independent of bound values. Otherwise SQLite compiles a statement with a bound LIMIT again for each
/// execution, which takes half of the time of a job in a chain, without its commit.
fn keep_plans(connection: &rusqlite::Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(|_enabled| ())
}

fn configure(connection: &rusqlite::Connection) -> Result<()> {
    keep_plans(connection).map_err(|error| from_sqlite(OPERATION, &error))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    let pages: i64 = connection
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .map_err(|error| from_sqlite(OPERATION, &error))?;
    if pages == 0 {
        write_first_page(connection).map_err(|error| from_sqlite(OPERATION, &error))?;
    }
    set_pragma(connection, "foreign_keys", 1)?;
    set_pragma(connection, "temp_store", 2)
}

/// Writes the first page of a new file, without a journal and without a flush. No data can be lost yet, and with both a new
/// file would need eight flushes before its first table. The switch to WAL flushes the page. If another process creates the
/// file at the same time, these pragmas do not change it.
fn write_first_page(connection: &rusqlite::Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |_mode| Ok(()))?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    // Lets pruning give space back in small steps. It can only be set before the first table.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "synchronous", "FULL")
}

/// The busy handler. It always sleeps one millisecond; SQLite's own handler sleeps up to 100 ms, long after the lock is free.
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
                return Err(Error::unavailable(OPERATION, Unavailable::CannotOpen(detail)));
            }
            Err(error) => {
                let error = from_sqlite(OPERATION, &error);
                if error != Error::unavailable(OPERATION, Unavailable::Locked) {
                    return Err(error);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    Err(Error::unavailable(OPERATION, Unavailable::Locked))
}

/// Sets a pragma and reads it back, because SQLite silently ignores unknown values.
fn set_pragma(connection: &rusqlite::Connection, name: &str, value: i64) -> Result<()> {
    connection.pragma_update(None, name, value).map_err(|error| from_sqlite(OPERATION, &error))?;
    let found: i64 = connection
        .pragma_query_value(None, name, |row| row.get(0))
        .map_err(|error| from_sqlite(OPERATION, &error))?;
    if found == value {
        Ok(())
    } else {
        Err(Error::internal(OPERATION, format!("pragma {name} is {found} after it was set to {value}")))
    }
}

fn migrate_tables(connection: &mut rusqlite::Connection, tables: &'static Tables) -> Result<()> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|error| from_sqlite(OPERATION, &error))?;
    let name = uuid::Uuid::now_v7().simple().to_string();
    migrate(
        &mut SqliteConnection::new(&transaction, &mut Statements::new(tables.fragments)),
        tables,
        Clock::system().now_ms(),
        &name,
    )?;
    transaction.commit().map_err(|error| from_sqlite(OPERATION, &error))
}

//! SQLite behind the seam: one connection that writes, with group commit, and a pool of readers.

mod backup;
mod connection;
mod costs;
mod error;
mod group_commit;
mod open;
mod restore;
mod statements;
mod transaction;
mod upkeep;
mod wal;
mod watch;
mod writer;

pub use costs::Costs;
pub use open::SqliteOptions;
pub use restore::Staged;
pub use statements::texts;
pub use upkeep::FileSize;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use r2d2_sqlite::SqliteConnectionManager;

use crate::db::{Connection, Database, Reach, Recovery, WriteOperation};
use crate::error::{Error, Result, Unavailable};
use crate::signal::Signals;
use connection::SqliteConnection;
use error::from_sqlite;
use statements::Statements;
use writer::Writer;

/// Connections for reading, made when they are first needed.
const READERS_MAX: u32 = 8;

/// A database in one SQLite file.
pub struct SqliteDatabase {
    path: PathBuf,
    signals: Signals,
    // Dropped before the writer: who closes the file last flushes the log, and only the writer has done so before.
    readers: r2d2::Pool<SqliteConnectionManager>,
    writer: Writer,
}

impl SqliteDatabase {
    /// Opens the file and makes or migrates its tables.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the reason, when the file can't be used.
    pub fn open(path: &Path, options: &SqliteOptions) -> Result<SqliteDatabase> {
        SqliteDatabase::over(open::open_writer(path, options)?, path)
    }

    /// The same, and counts what the writer's statements cost: of one database of a process at a time, the one that was
    /// opened last in this way. That costs something itself: it is for tests.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the reason, when the file can't be used.
    pub fn open_counted(path: &Path, options: &SqliteOptions) -> Result<(SqliteDatabase, Arc<Costs>)> {
        let connection = open::open_writer(path, options)?;
        let costs = costs::count(&connection);
        Ok((SqliteDatabase::over(connection, path)?, costs))
    }

    fn over(connection: rusqlite::Connection, path: &Path) -> Result<SqliteDatabase> {
        let signals = Signals::default();
        let readers = open::open_readers(path, READERS_MAX)?;
        let writer = Writer::over(connection, path, signals.clone());
        Ok(SqliteDatabase { path: path.to_owned(), signals, readers, writer })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Operations that were handed to the writer and are not answered yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.writer.waiting()
    }

    /// Transactions that the writer has committed, without those that changed nothing. At full durability each of them is one flush of the log.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// Copies the database into a new file while others read and write, through SQLite.
    ///
    /// # Errors
    /// When `target` exists or can't be written.
    pub fn backup(&self, target: &Path) -> Result<()> {
        backup::backup(&mut *self.reader()?, target)
    }

    fn reader(&self) -> Result<r2d2::PooledConnection<SqliteConnectionManager>> {
        // The file was opened before: what is short now is files, memory or readers, and comes back.
        self.readers.get().map_err(|error| {
            let reason = Unavailable::InputOutput(format!("no connection for reading: {error}"));
            Error::unavailable("read from the database", reason)
        })
    }
}

impl Database for SqliteDatabase {
    fn read(&self, operation: &mut dyn FnMut(&mut dyn Connection) -> Result<()>) -> Result<()> {
        let mut pooled = self.reader()?;
        // A transaction of rusqlite rolls back when it is dropped, also by a panic: the pool never
        // gets a connection back that is still inside one.
        let transaction = pooled
            .transaction_with_behavior(rusqlite::TransactionBehavior::Deferred)
            .map_err(|error| from_sqlite("begin to read", &error))?;
        operation(&mut SqliteConnection::new(&transaction, &mut Statements::default()))
    }

    fn write(&self, name: &'static str, operation: WriteOperation, _recovery: Recovery) -> Result<()> {
        // No answer is lost on the way: who commits is in this process. A commit that fails is reported.
        self.writer.write(name, operation)
    }

    fn signals(&self) -> &Signals {
        &self.signals
    }

    fn watch(&self) {
        self.writer.watch();
    }

    fn reach(&self) -> Reach {
        // In WAL mode a database is shared through memory.
        Reach::OneKernel
    }
}

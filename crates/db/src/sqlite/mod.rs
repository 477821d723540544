//! [`Database`] for SQLite: one connection that writes, with group commit, and a pool of connections that read.

mod backup;
mod connection;
mod costs;
mod error;
mod group_commit;
mod interrupt;
mod open;
mod restore;
mod size;
mod statements;
mod transaction;
mod wal;
mod watch;
mod writer;

pub use costs::StatementCosts;
pub use open::SqliteOptions;
pub use restore::StagedBackup;
pub use size::FileSize;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result, Unavailable};
use crate::pool::{NoConnection, Pool, Poolable, Pooled};
use crate::{Capabilities, Connection, Database, Dialect, Recovery, Tables, WriteOperation};
use connection::SqliteConnection;
use error::from_sqlite;
use interrupt::Limited;
use statements::Statements;
use windlass_system::wake_ups::WakeUpChannel;
use writer::Writer;

/// The most connections for reading.
const READERS_MAX: usize = 8;
/// How long a caller waits for one of them.
const READER_TIMEOUT: Duration = Duration::from_secs(10);

/// A database in one SQLite file.
pub struct SqliteDatabase {
    path: PathBuf,
    tables: &'static Tables,
    wake_ups: WakeUpChannel,
    // Dropped before the writer, so that the writer closes the file last and moves the log into it.
    readers: Pool<rusqlite::Connection>,
    writer: Writer,
}

impl SqliteDatabase {
    /// Opens the file, and creates or migrates its tables.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the reason, when the file can't be used.
    pub fn open(path: &Path, tables: &'static Tables, options: &SqliteOptions) -> Result<SqliteDatabase> {
        SqliteDatabase::with_connection(open::open_writer(path, tables, options)?, path, tables)
    }

    /// The same, and counts the costs of the writer's statements. Only the database that was opened last in this way is
    /// counted. Counting takes time itself, so it is for tests.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the reason, when the file can't be used.
    pub fn open_counted(
        path: &Path,
        tables: &'static Tables,
        options: &SqliteOptions,
    ) -> Result<(SqliteDatabase, Arc<StatementCosts>)> {
        let connection = open::open_writer(path, tables, options)?;
        let costs = costs::count(&connection);
        Ok((SqliteDatabase::with_connection(connection, path, tables)?, costs))
    }

    fn with_connection(
        connection: rusqlite::Connection,
        path: &Path,
        tables: &'static Tables,
    ) -> Result<SqliteDatabase> {
        let wake_ups = WakeUpChannel::default();
        let readers = Pool::new(READERS_MAX, READER_TIMEOUT);
        let writer = Writer::new(connection, path, tables.fragments, wake_ups.clone());
        Ok(SqliteDatabase { path: path.to_owned(), tables, wake_ups, readers, writer })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of operations that the writer has not answered yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.writer.waiting()
    }

    /// The number of transactions that the writer has committed, without those that changed nothing. At full durability each
    /// of them flushes the log once.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// Copies the database into a new file, while other threads and processes read and write.
    ///
    /// # Errors
    /// When `target` exists or can't be written.
    pub fn backup(&self, target: &Path) -> Result<()> {
        backup::backup(&mut *self.reader()?, self.tables, target)
    }

    fn reader(&self) -> Result<Pooled<rusqlite::Connection>> {
        let connect = || open::open_reader(&self.path).map_err(error::after_opening);
        self.readers.get(connect, |error| !error.is_temporary()).map_err(|error| match error {
            NoConnection::Failed(error) => error,
            NoConnection::InUse(waited) => {
                let detail = format!("no connection for reading came free within {} s", waited.as_secs());
                Error::unavailable("read from the database", Unavailable::InputOutput(detail))
            }
        })
    }
}

impl Poolable for rusqlite::Connection {
    fn is_broken(&self) -> bool {
        // Only a transaction that could not be rolled back is left open.
        !self.is_autocommit()
    }
}

impl Database for SqliteDatabase {
    fn read(&self, operation: &mut dyn FnMut(&mut dyn Connection) -> Result<()>) -> Result<()> {
        let mut pooled = self.reader()?;
        // Dropping the transaction rolls it back, even after a panic. So no connection in the pool has an open transaction.
        let transaction = pooled
            .transaction_with_behavior(rusqlite::TransactionBehavior::Deferred)
            .map_err(|error| error::after_opening(from_sqlite("begin to read", &error)))?;
        let _limited = Limited::of(&transaction)?;
        operation(&mut SqliteConnection::new(&transaction, &mut Statements::new(self.tables.fragments)))
            .map_err(error::after_opening)
    }

    fn write(&self, name: &'static str, operation: WriteOperation, _recovery: Recovery) -> Result<()> {
        // The answer to a commit can't be lost, because this process commits itself.
        self.writer.write(name, operation).map_err(error::after_opening)
    }

    fn wake_ups(&self) -> &WakeUpChannel {
        &self.wake_ups
    }

    fn watch(&self) {
        self.writer.watch();
    }

    fn capabilities(&self) -> Capabilities {
        Dialect::Sqlite.capabilities()
    }
}

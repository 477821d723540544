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
pub use upkeep::FileSize;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result, Unavailable};
use crate::pool::{Connectable, NoConnection, Pool, Pooled};
use crate::{Capabilities, Connection, Database, Dialect, Recovery, Tables, WriteOperation};
use connection::SqliteConnection;
use error::from_sqlite;
use statements::Statements;
use windlass_system::wake_ups::WakeUpChannel;
use writer::Writer;

/// Connections for reading, made when they are first needed.
const READERS_MAX: usize = 8;
/// How long a caller waits for one of them.
const READER_PATIENCE: Duration = Duration::from_secs(10);

/// A database in one SQLite file.
pub struct SqliteDatabase {
    path: PathBuf,
    tables: &'static Tables,
    wake_ups: WakeUpChannel,
    // Dropped before the writer: who closes the file last flushes the log, and only the writer has done so before.
    readers: Pool<rusqlite::Connection>,
    writer: Writer,
}

impl SqliteDatabase {
    /// Opens the file and makes or migrates its tables.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the reason, when the file can't be used.
    pub fn open(path: &Path, tables: &'static Tables, options: &SqliteOptions) -> Result<SqliteDatabase> {
        SqliteDatabase::over(open::open_writer(path, tables, options)?, path, tables)
    }

    /// The same, and counts what the writer's statements cost: of one database of a process at a time, the one that was
    /// opened last in this way. That costs something itself: it is for tests.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the reason, when the file can't be used.
    pub fn open_counted(
        path: &Path,
        tables: &'static Tables,
        options: &SqliteOptions,
    ) -> Result<(SqliteDatabase, Arc<Costs>)> {
        let connection = open::open_writer(path, tables, options)?;
        let costs = costs::count(&connection);
        Ok((SqliteDatabase::over(connection, path, tables)?, costs))
    }

    fn over(
        connection: rusqlite::Connection,
        path: &Path,
        tables: &'static Tables,
    ) -> Result<SqliteDatabase> {
        let wake_ups = WakeUpChannel::default();
        let readers = Pool::new(READERS_MAX, READER_PATIENCE);
        let writer = Writer::over(connection, path, tables.fragments, wake_ups.clone());
        Ok(SqliteDatabase { path: path.to_owned(), tables, wake_ups, readers, writer })
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
        backup::backup(&mut *self.reader()?, self.tables, target)
    }

    fn reader(&self) -> Result<Pooled<rusqlite::Connection>> {
        let connect = || open::open_reader(&self.path).map_err(error::of_open_database);
        self.readers.get(connect, |error| !error.is_passing()).map_err(|error| match error {
            NoConnection::Failed(error) => error,
            NoConnection::InUse(waited) => {
                let detail = format!("no connection for reading came free within {} s", waited.as_secs());
                Error::unavailable("read from the database", Unavailable::InputOutput(detail))
            }
        })
    }
}

impl Connectable for rusqlite::Connection {
    fn is_broken(&self) -> bool {
        // Only a transaction that could not be rolled back is left open.
        !self.is_autocommit()
    }
}

impl Database for SqliteDatabase {
    fn read(&self, operation: &mut dyn FnMut(&mut dyn Connection) -> Result<()>) -> Result<()> {
        let mut pooled = self.reader()?;
        // A transaction of rusqlite rolls back when it is dropped, also by a panic: the pool never
        // gets a connection back that is still inside one.
        let transaction = pooled
            .transaction_with_behavior(rusqlite::TransactionBehavior::Deferred)
            .map_err(|error| error::of_open_database(from_sqlite("begin to read", &error)))?;
        operation(&mut SqliteConnection::new(&transaction, &mut Statements::new(self.tables.fragments)))
            .map_err(error::of_open_database)
    }

    fn write(&self, name: &'static str, operation: WriteOperation, _recovery: Recovery) -> Result<()> {
        // No answer is lost on the way: who commits is in this process. A commit that fails is reported.
        self.writer.write(name, operation).map_err(error::of_open_database)
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

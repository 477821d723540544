//! [`Database`] for PostgreSQL: a pool of connections, with one connection for each transaction.
//!
//! Settings and locks belong to one transaction, so a pooler in transaction mode can be used. Two things need a session of
//! their own: prepared statements, which are used only while the session is known to belong to the connection, and LISTEN,
//! which is replaced by polling if notifications do not arrive.

mod address;
mod bound;
mod client;
mod connection;
mod driver;
mod error;
mod listener;
mod lookup;
mod notifier;
mod open;
mod preamble;
mod prepared;
mod recover;
mod runtime;
mod session;
mod shared_read;
mod sizes;
mod statements;
mod token;
mod transaction;

pub use address::{AddressError, PostgresAddress, is_postgres};

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::{
    Capabilities, Connection, Database, Dialect, Durability, OpenMode, Recovery, Tables, WriteOperation,
};
use listener::NotificationListener;
use notifier::Notifier;
use session::Sessions;
use shared_read::SharedReads;
use windlass_system::clock::Clock;
use windlass_system::random::Random;
use windlass_system::wake_ups::WakeUpChannel;

/// The most connections of one process to one database: those of transactions, and that of the listener.
pub const CONNECTIONS_MAX: u32 = session::CONNECTIONS_MAX + 1;

/// How to open a database on a server.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// What a commit survives.
    pub durability: Durability,
    /// Whether missing tables are created.
    pub mode: OpenMode,
    /// If it is adjustable, it is set to the server's time.
    pub clock: Clock,
    /// Varies the pauses before transactions are repeated.
    pub random: Random,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        PostgresOptions {
            durability: Durability::default(),
            mode: OpenMode::default(),
            clock: Clock::system().adjustable(),
            random: Random::from_entropy(),
        }
    }
}

/// A database on a PostgreSQL server: the tables in one schema.
///
/// Its methods can be called on every thread. They block, even on a thread of an async runtime.
pub struct PostgresDatabase {
    sessions: Arc<Sessions>,
    wake_ups: WakeUpChannel,
    notifier: Notifier,
    listener: Mutex<Option<NotificationListener>>,
}

impl PostgresDatabase {
    /// Connects, and creates or migrates the tables.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] with the reason, when the database can't be used.
    pub fn open(
        address: &PostgresAddress,
        tables: &'static Tables,
        options: &PostgresOptions,
    ) -> Result<PostgresDatabase> {
        let sessions = Arc::new(open::open(address, tables, options)?);
        let notifier = Notifier::start(Arc::clone(&sessions))?;
        Ok(PostgresDatabase {
            sessions,
            wake_ups: WakeUpChannel::default(),
            notifier,
            listener: Mutex::default(),
        })
    }
}

impl Database for PostgresDatabase {
    fn read(&self, operation: &mut dyn FnMut(&mut dyn Connection) -> Result<()>) -> Result<()> {
        transaction::read(&self.sessions, operation)
    }

    fn read_together(&self, operation: &mut dyn FnMut()) {
        let _shared = SharedReads::begin();
        operation();
    }

    fn write(&self, name: &'static str, mut operation: WriteOperation, mut recovery: Recovery) -> Result<()> {
        let wake_ups = transaction::write(&self.sessions, name, &mut *operation, &mut recovery)?;
        self.wake_ups.publish(wake_ups);
        self.notifier.announce(wake_ups);
        Ok(())
    }

    fn wake_ups(&self) -> &WakeUpChannel {
        &self.wake_ups
    }

    fn watch(&self) {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if listener.is_none() {
            match NotificationListener::start(Arc::clone(&self.sessions), self.wake_ups.clone()) {
                Ok(started) => *listener = Some(started),
                Err(error) => tracing::warn!(%error, "changes of other processes are found by polling only"),
            }
        }
    }

    fn capabilities(&self) -> Capabilities {
        Dialect::Postgres.capabilities()
    }
}

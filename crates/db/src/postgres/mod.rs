//! PostgreSQL behind the seam: a pool of connections, each transaction on its own.
//!
//! Settings hold for one transaction, and locks are rows, so a pooler that hands a session from transaction to
//! transaction changes nothing. Two things need a session: prepared statements, which are used only while it is
//! known to be the connection's own, and LISTEN, and where that does not come through the tables are looked at instead.

mod address;
mod bound;
mod client;
mod connection;
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
use windlass_system::clock::Clock;
use windlass_system::random::Random;
use windlass_system::wake_ups::WakeUpChannel;

/// Connections of one process to one database at most: those of transactions, and the one that listens.
pub const CONNECTIONS_MAX: u32 = session::CONNECTIONS_MAX + 1;

/// How to open a database on a server.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// What a commit survives.
    pub durability: Durability,
    /// Whether missing tables are made.
    pub mode: OpenMode,
    /// Follows the database's clock when it is a led one.
    pub clock: Clock,
    /// Spreads the repeats of transactions that stood in each other's way.
    pub random: Random,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        PostgresOptions {
            durability: Durability::default(),
            mode: OpenMode::default(),
            clock: Clock::system().led(),
            random: Random::from_entropy(),
        }
    }
}

/// A database on a PostgreSQL server: the tables in one schema.
///
/// Its methods can be called on every thread. They wait, also where the thread belongs to an async runtime.
pub struct PostgresDatabase {
    sessions: Arc<Sessions>,
    wake_ups: WakeUpChannel,
    notifier: Notifier,
    listener: Mutex<Option<NotificationListener>>,
}

impl PostgresDatabase {
    /// Connects, and makes or migrates the tables.
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
                Err(error) => tracing::warn!(%error, "changes by other processes are found by looking only"),
            }
        }
    }

    fn capabilities(&self) -> Capabilities {
        Dialect::Postgres.capabilities()
    }
}

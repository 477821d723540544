//! Connections to one server, and whether sessions of the server change hands between them.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::PostgresAddress;
use super::client::{Client, Preamble, Unconnected};
use super::preamble::{IsAsynchronous, Purpose, Settings};
use super::prepared::Prepared;
use super::statements::Statements;
use super::token::{AdvisoryLock, Naming, PoolerSeen, SessionToken};
use crate::error::{Error, Result, Unavailable};
use crate::pool::{self, Connectable, NoConnection, Pool};
use crate::{Durability, Tables};
use windlass_system::clock::Clock;
use windlass_system::random::Random;

/// Connections of one process at most, beside the one that listens.
pub(super) const CONNECTIONS_MAX: u32 = 10;
/// How long a caller waits for a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection of the pool.
pub(super) type Pooled = pool::Pooled<Session>;

/// Makes connections for the pool.
struct Connector {
    address: PostgresAddress,
    growing_tables: &'static [&'static str],
    pooler: PoolerSeen,
}

/// A connection, its statements, and whether it may be used again.
pub(super) struct Session {
    /// Closed before its statements go: they would else be closed one by one, behind a pooler in a session of
    /// somebody else.
    pub(super) client: Client,
    pub(super) prepared: Prepared,
    token: SessionToken,
    is_spent: bool,
}

/// Where a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transaction {
    /// Its end has not been sent.
    Open,
    /// Its commit was sent together with its last statement.
    Committed,
}

/// A connection in which a transaction begins.
pub(super) struct Begun {
    pub(super) session: Pooled,
    pub(super) naming: Naming,
    /// Held until its end, when it is to write.
    pub(super) lock: AdvisoryLock,
}

impl Session {
    /// The pool closes it instead of handing it out again.
    pub(super) fn discard(&mut self) {
        self.is_spent = true;
    }

    /// The lock that the server's session holds.
    pub(super) fn lock(&self) -> AdvisoryLock {
        self.token.lock()
    }
}

impl Connectable for Session {
    fn is_broken(&self) -> bool {
        // What waits to be sent would go ahead of somebody else's message.
        self.is_spent || self.client.is_closed() || self.client.is_beginning()
    }
}

impl Connector {
    fn connect(&self) -> std::result::Result<Session, Unconnected> {
        let mut client = Client::connect(&self.address)?;
        let token = SessionToken::new();
        let messages = client.simple_query(&token.write())?;
        if let Some(older) = SessionToken::found(&messages) {
            self.pooler.note();
            if let Some(release) = SessionToken::release(older) {
                client.simple_query(&release)?;
            }
        }
        Ok(Session {
            client,
            prepared: Prepared::new(self.address.schema(), self.growing_tables),
            token,
            is_spent: false,
        })
    }
}

/// What all parts of one open database share.
pub(super) struct Sessions {
    pub(super) address: PostgresAddress,
    pub(super) clock: Clock,
    pub(super) random: Random,
    pub(super) statements: Statements,
    pub(super) tables: &'static Tables,
    /// By which a process knows its own notifications.
    pub(super) sender: String,
    pooler: PoolerSeen,
    connector: Connector,
    pool: Pool<Session>,
    settings: Settings,
    /// The lock of the next transaction. No other process begins at the same number, whatever its seed is.
    next_lock: AtomicI64,
}

impl Sessions {
    /// `is_asynchronous` says that the server by itself answers a commit before it is on its disk.
    pub(super) fn new(
        address: &PostgresAddress,
        tables: &'static Tables,
        clock: &Clock,
        random: &Random,
        durability: Durability,
        is_asynchronous: IsAsynchronous,
    ) -> Result<Sessions> {
        let sender = format!("{:x}", uuid::Uuid::new_v4());
        let pooler = PoolerSeen::default();
        let connector =
            Connector { address: address.clone(), growing_tables: tables.growing, pooler: pooler.clone() };
        Ok(Sessions {
            address: address.clone(),
            clock: clock.clone(),
            random: random.clone(),
            statements: Statements::new(tables.fragments),
            tables,
            sender,
            pooler,
            connector,
            pool: Pool::new(CONNECTIONS_MAX as usize, CONNECTION_TIMEOUT),
            settings: Settings::of(address.schema(), durability, is_asynchronous),
            next_lock: AtomicI64::new(uuid::Uuid::new_v4().as_u64_pair().1 as i64),
        })
    }

    /// A connection of the pool.
    pub(super) fn connection(&self, operation: &str) -> Result<Pooled> {
        self.pool
            .get(|| self.connector.connect(), |_error| false)
            .map_err(|error| Error::unavailable(operation, self.without_connection(error)))
    }

    /// Why the pool had no connection to give.
    fn without_connection(&self, error: NoConnection<Unconnected>) -> Unavailable {
        match error {
            NoConnection::InUse(waited) => Unavailable::NoConnectionFree(format!(
                "each of the {CONNECTIONS_MAX} of this process was in use for {} s",
                waited.as_secs()
            )),
            NoConnection::Failed(error) => match error.reason(&self.address) {
                reason if reason.is_passing() => reason,
                // A database that was used before comes back: what a person has to mend is waited for too.
                _lasting => Unavailable::Unreachable(error.to_string()),
            },
        }
    }

    /// A connection in which a transaction begins with its first statement.
    pub(super) fn begin(&self, operation: &str, purpose: Purpose, wanted: Naming) -> Result<Begun> {
        let mut session = self.connection(operation)?;
        let naming = if self.pooler.is_seen() { Naming::Unnamed } else { wanted };
        let lock = AdvisoryLock(self.next_lock.fetch_add(1, Ordering::Relaxed));
        let begin = self.settings.begin(purpose, naming, session.token, lock);
        session.client.begin(begin);
        session.prepared.begin(purpose, self.clock.monotonic_ms());
        Ok(Begun { session, naming, lock })
    }

    /// Takes the answer to a transaction's preamble; returns whether the transaction has begun. Its session is nobody else's
    /// while it is open, and only then are statements closed that the session keeps.
    pub(super) fn end_preamble(
        &self,
        session: &mut Session,
        naming: Naming,
        transaction: Transaction,
    ) -> bool {
        match session.client.take_beginning() {
            None | Some(Preamble::Waits(_)) => return false,
            Some(Preamble::Failed | Preamble::Missing) => session.discard(),
            Some(Preamble::Answered(messages)) => match (naming, transaction) {
                // The session is this connection's own: else the preamble would have failed.
                (Naming::Named, Transaction::Open) => session.prepared.close_leaving(),
                (Naming::Named, Transaction::Committed) => {}
                (Naming::Unnamed, _) => self.learn(session, SessionToken::found(&messages)),
            },
        }
        true
    }

    /// Learns from the token of its session whether sessions change hands.
    fn learn(&self, session: &mut Session, found: Option<&str>) {
        let is_own = found.is_some_and(|found| session.token.is(found));
        if !is_own {
            self.pooler.note();
        }
        if !self.pooler.is_seen() {
            return;
        }
        if is_own {
            // It is where it prepared them, perhaps for the last time: their names are free for other programs.
            session.prepared.forget();
        } else if !session.prepared.is_empty() {
            // What it prepared is somewhere. The pooler may clean up after a connection that ends.
            session.discard();
        }
    }

    /// A statement was lost, so sessions change hands: from now on this process prepares nothing.
    pub(super) fn note_pooler(&self) {
        self.pooler.note();
    }

    /// The channel on which processes tell each other of changes.
    pub(super) fn channel(&self) -> String {
        format!("windlass_{}", self.address.schema())
    }
}

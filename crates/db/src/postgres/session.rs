//! The connections to one server, and whether a pooler shares the server's sessions between connections.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::PostgresAddress;
use super::client::{Client, ConnectError};
use super::driver::Preamble;
use super::preamble::{Purpose, ServerCommits, TransactionSettings};
use super::prepared::Prepared;
use super::statements::Statements;
use super::token::{AdvisoryLock, Naming, PoolerFlag, SessionToken};
use crate::error::{Error, Result, Unavailable};
use crate::pool::{self, NoConnection, Pool, Poolable};
use crate::{Durability, Tables};
use windlass_system::clock::Clock;
use windlass_system::random::Random;

/// The most connections of one process, without that of the listener.
pub(super) const CONNECTIONS_MAX: u32 = 10;
/// How long a caller waits for a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection of the pool.
pub(super) type Pooled = pool::Pooled<Session>;

/// Makes connections for the pool.
struct Connector {
    address: PostgresAddress,
    growing_tables: &'static [&'static str],
    pooler: PoolerFlag,
}

/// A connection with its prepared statements.
pub(super) struct Session {
    /// Dropped before its statements. Otherwise they would be closed one by one, behind a pooler perhaps in a session of
    /// another connection.
    pub(super) client: Client,
    pub(super) prepared: Prepared,
    token: SessionToken,
    is_discarded: bool,
}

/// How far a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransactionState {
    /// Its end has not been sent.
    Open,
    /// Its commit was sent together with its last statement.
    CommitSent,
}

/// A connection in which a transaction begins with the first statement.
pub(super) struct BegunTransaction {
    pub(super) session: Pooled,
    pub(super) purpose: Purpose,
    pub(super) naming: Naming,
    /// Held by a transaction that writes, until its end.
    pub(super) lock: AdvisoryLock,
}

impl Session {
    /// Makes the pool close it.
    pub(super) fn discard(&mut self) {
        self.is_discarded = true;
    }

    /// The lock that the server's session holds.
    pub(super) fn lock(&self) -> AdvisoryLock {
        self.token.lock()
    }
}

impl Poolable for Session {
    fn is_broken(&self) -> bool {
        // An unsent preamble would be sent with the next user's message.
        self.is_discarded || self.client.is_closed() || self.client.has_unsent_preamble()
    }
}

impl Connector {
    fn connect(&self) -> std::result::Result<Session, ConnectError> {
        let mut client = Client::connect(&self.address)?;
        let token = SessionToken::new();
        let messages = client.simple_query(&token.write())?;
        if let Some(older) = SessionToken::found(&messages) {
            self.pooler.set();
            if let Some(release) = SessionToken::release(older) {
                client.simple_query(&release)?;
            }
        }
        Ok(Session {
            client,
            prepared: Prepared::new(self.address.schema(), self.growing_tables),
            token,
            is_discarded: false,
        })
    }
}

/// The sessions of one open database: the pool, and the settings and statements that its connections share.
pub(super) struct Sessions {
    pub(super) address: PostgresAddress,
    pub(super) clock: Clock,
    pub(super) random: Random,
    pub(super) statements: Statements,
    pub(super) tables: &'static Tables,
    /// Identifies notifications of this process.
    pub(super) sender: String,
    pooler: PoolerFlag,
    connector: Connector,
    pool: Pool<Session>,
    settings: TransactionSettings,
    /// The lock of the next transaction. It starts at a random number, so that processes use different locks.
    next_lock: AtomicI64,
}

impl Sessions {
    /// No connection is made yet. `server_commits` is the setting of the server.
    pub(super) fn new(
        address: &PostgresAddress,
        tables: &'static Tables,
        clock: &Clock,
        random: &Random,
        durability: Durability,
        server_commits: ServerCommits,
    ) -> Result<Sessions> {
        let sender = format!("{:x}", uuid::Uuid::new_v4());
        let pooler = PoolerFlag::default();
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
            settings: TransactionSettings::of(address.schema(), durability, server_commits),
            next_lock: AtomicI64::new(uuid::Uuid::new_v4().as_u64_pair().1 as i64),
        })
    }

    /// A connection of the pool.
    pub(super) fn connection(&self, operation: &str) -> Result<Pooled> {
        self.pool
            .get(|| self.connector.connect(), |_error| false)
            .map_err(|error| Error::unavailable(operation, self.explain_no_connection(error)))
    }

    /// Why the pool had no connection to give.
    fn explain_no_connection(&self, error: NoConnection<ConnectError>) -> Unavailable {
        match error {
            NoConnection::InUse(waited) => Unavailable::NoConnectionFree(format!(
                "each of the {CONNECTIONS_MAX} of this process was in use for {} s",
                waited.as_secs()
            )),
            NoConnection::Failed(error) => match error.reason(&self.address) {
                reason if reason.is_temporary() => reason,
                // The database could be used before, so even an error that a person must correct is waited for.
                _lasting => Unavailable::Unreachable(error.to_string()),
            },
        }
    }

    /// A connection in which a transaction begins with its first statement.
    pub(super) fn begin(
        &self,
        operation: &str,
        purpose: Purpose,
        wanted: Naming,
    ) -> Result<BegunTransaction> {
        let mut session = self.connection(operation)?;
        let naming = if self.pooler.is_set() { Naming::Unnamed } else { wanted };
        let lock = AdvisoryLock(self.next_lock.fetch_add(1, Ordering::Relaxed));
        let begin = self.settings.begin(purpose, naming, session.token, lock);
        session.client.begin(begin);
        session.prepared.begin(purpose, self.clock.monotonic_ms());
        Ok(BegunTransaction { session, purpose, naming, lock })
    }

    /// Takes the answer to a transaction's preamble, and returns whether the preamble was sent. While the transaction is
    /// open, its session belongs to this connection; only then are removed statements closed.
    pub(super) fn end_preamble(
        &self,
        session: &mut Session,
        naming: Naming,
        transaction: TransactionState,
    ) -> bool {
        match session.client.take_preamble() {
            None | Some(Preamble::Unsent(_)) => return false,
            Some(Preamble::Failed | Preamble::NoTransaction) => session.discard(),
            Some(Preamble::Answered(messages)) => match (naming, transaction) {
                // The preamble succeeded, so the session belongs to this connection.
                (Naming::Named, TransactionState::Open) => session.prepared.close_evicted(),
                (Naming::Named, TransactionState::CommitSent) => {}
                (Naming::Unnamed, _) => self.detect_pooler(session, SessionToken::found(&messages)),
            },
        }
        true
    }

    /// Finds out by the token of the session whether a pooler shares sessions between connections.
    fn detect_pooler(&self, session: &mut Session, found: Option<&str>) {
        let is_own = found.is_some_and(|found| session.token.is(found));
        if !is_own {
            self.pooler.set();
        }
        if !self.pooler.is_set() {
            return;
        }
        if is_own {
            // This is the session that prepared them, perhaps for the last time.
            session.prepared.close_all();
        } else if !session.prepared.is_empty() {
            // Its statements are in another session. The pooler may clean up when the connection ends.
            session.discard();
        }
    }

    /// Notes that a pooler shares sessions, because a statement was lost. From now on this process prepares no statements.
    pub(super) fn note_pooler(&self) {
        self.pooler.set();
    }

    /// The notification channel of the processes that use this schema.
    pub(super) fn channel(&self) -> String {
        format!("windlass_{}", self.address.schema())
    }
}

//! Connections to one server, and the settings that each transaction begins with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use postgres::{SimpleQueryMessage, SimpleQueryRow};

use super::PostgresAddress;
use super::client::{Client, Unconnected};
use super::connection::Statements;
use super::error::{Failure, from_postgres};
use super::prepared::{Naming, Prepared};
use crate::clock::Clock;
use crate::db::Durability;
use crate::error::{Error, Result, Unavailable};
use crate::random::Random;

/// Connections of one process at most, beside the one that listens.
const CONNECTIONS_MAX: u32 = 10;
/// How long a caller waits for a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a caller looks whether a connection came back before it has another one made, and how long it waits
/// between: most transactions are over sooner than that, and a server takes longer to make one. The pool by itself makes
/// one for each caller who waits, and again whenever another one was quicker.
const RETURN_LOOKS: u32 = 10;
const RETURN_TICK: Duration = Duration::from_micros(500);
/// A transaction of a client that says nothing for so long is taken back, and its locks with it: the
/// client's machine may have lost the network. Ours never wait between statements.
const SILENCE_MAX_MS: i64 = 10_000;
/// How long a statement may take: the server does not notice that its client is gone before it is over, and
/// keeps its locks so long. The longest of ours reads every row of a large database once.
const STATEMENT_MAX_MS: i64 = 600_000;
/// How long a statement waits for a lock that somebody else holds.
const LOCK_WAIT_MAX_MS: i64 = 10_000;

/// The setting of a server's session that says whose it is.
const MARK: &str = "windlass.session";

/// What changes rows finds them by their ids, or at the head of an index that is made for it. The planner
/// would sometimes rather read all rows of a state, by statistics from a time when they were few. So the values
/// change nothing, and one plan for all of them does, until the tables have grown: see [`super::sizes`].
const BY_INDEX: &str = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
    SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
    SET LOCAL plan_cache_mode = force_generic_plan";

/// What only reads is planned freely, for its values and for the tables as they are.
const AS_IT_IS: &str = "SET LOCAL plan_cache_mode = force_custom_plan";

/// A connection of the pool.
pub(super) type Pooled = r2d2::PooledConnection<Connector>;

/// Whether sessions of the server change hands, as all connections of a process know it once one has met it.
#[derive(Clone, Default)]
struct PoolerMet(Arc<AtomicBool>);

impl PoolerMet {
    fn is_met(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// From now on this process prepares nothing.
    fn meet(&self) {
        if !self.0.swap(true, Ordering::Relaxed) {
            tracing::info!(
                "another connection has used this server session, as behind a pooler in transaction mode: \
                 statements are planned each time"
            );
        }
    }
}

/// Makes connections for the pool.
pub(super) struct Connector {
    address: PostgresAddress,
    pooler: PoolerMet,
    /// The process's name among all.
    sender: String,
    /// Connections so far.
    connections: AtomicU64,
}

/// A connection, its statements, and whether it may be used again.
pub(super) struct Session {
    /// Closed before its statements go: they would else be closed one by one, behind a pooler in a session of
    /// somebody else.
    pub(super) client: Client,
    pub(super) prepared: Prepared,
    /// What this connection alone has written into the server's session when it was made.
    mark: String,
    is_spent: bool,
}

/// A connection with a transaction begun in it.
pub(super) struct Begun {
    pub(super) session: Pooled,
    /// Of a transaction that writes.
    pub(super) number: Option<String>,
    pub(super) naming: Naming,
}

impl Session {
    /// The pool closes it instead of handing it out again.
    pub(super) fn discard(&mut self) {
        self.is_spent = true;
    }
}

impl r2d2::ManageConnection for Connector {
    type Connection = Session;
    type Error = Unconnected;

    fn connect(&self) -> std::result::Result<Session, Unconnected> {
        let mut client = Client::connect(&self.address)?;
        let mark = format!("{}-{}", self.sender, self.connections.fetch_add(1, Ordering::Relaxed));
        let exchange = format!(
            "SELECT current_setting('{MARK}', true) AS session; SELECT set_config('{MARK}', '{mark}', false)"
        );
        let messages = client.simple_query(&exchange)?;
        // A new session has no mark, and one that was cleaned for the next an empty one.
        let older = answer(&messages).and_then(|row| row.try_get("session").ok().flatten());
        if older.is_some_and(|older| !older.is_empty()) {
            self.pooler.meet();
        }
        Ok(Session { client, prepared: Prepared::new(self.address.schema()), mark, is_spent: false })
    }

    fn is_valid(&self, _session: &mut Session) -> std::result::Result<(), Unconnected> {
        // Not asked: beginning a transaction tells.
        Ok(())
    }

    fn has_broken(&self, session: &mut Session) -> bool {
        session.is_spent || session.client.is_closed()
    }
}

/// What all parts of one open database share.
pub(super) struct Sessions {
    pub(super) address: PostgresAddress,
    pub(super) clock: Clock,
    pub(super) random: Random,
    pub(super) statements: Statements,
    /// By which a process knows its own notifications.
    pub(super) sender: String,
    pooler: PoolerMet,
    pool: r2d2::Pool<Connector>,
    settings: String,
}

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// One consistent snapshot.
    Read,
    /// Guarded updates, each seeing what was committed before it.
    Write,
}

impl Sessions {
    /// `is_asynchronous` says that the server by itself answers a commit before it is on its disk.
    pub(super) fn new(
        address: &PostgresAddress,
        clock: &Clock,
        random: &Random,
        durability: Durability,
        is_asynchronous: IsAsynchronous,
    ) -> Result<Sessions> {
        let sender = format!("{:x}", uuid::Uuid::new_v4());
        let pooler = PoolerMet::default();
        let connector = Connector {
            address: address.clone(),
            pooler: pooler.clone(),
            sender: sender.clone(),
            connections: AtomicU64::new(0),
        };
        let pool = r2d2::Pool::builder()
            .max_size(CONNECTIONS_MAX)
            .min_idle(Some(0))
            .test_on_check_out(false)
            .connection_timeout(CONNECTION_TIMEOUT)
            .error_handler(Box::new(r2d2::NopErrorHandler))
            .build(connector)
            .map_err(|error| {
                Error::unavailable("open the database", Unavailable::Unreachable(error.to_string()))
            })?;
        Ok(Sessions {
            address: address.clone(),
            clock: clock.clone(),
            random: random.clone(),
            statements: Statements::default(),
            sender,
            pooler,
            pool,
            settings: settings(address.schema(), durability, is_asynchronous),
        })
    }

    /// A connection of the pool.
    pub(super) fn connection(&self, operation: &str) -> Result<Pooled> {
        for _look in 0..RETURN_LOOKS {
            if let Some(session) = self.pool.try_get() {
                return Ok(session);
            }
            if self.pool.state().connections == 0 {
                break;
            }
            std::thread::sleep(RETURN_TICK);
        }
        self.pool
            .get()
            .map_err(|error| Error::unavailable(operation, Unavailable::Unreachable(error.to_string())))
    }

    /// A connection with a transaction begun in it. Dead connections of the pool are passed over.
    pub(super) fn begin(&self, operation: &str, purpose: Purpose, wanted: Naming) -> Result<Begun> {
        let begin = match purpose {
            Purpose::Read => {
                format!(
                    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {}; {AS_IT_IS};
                     SELECT current_setting('{MARK}', true) AS session",
                    self.settings
                )
            }
            Purpose::Write => {
                format!(
                    "BEGIN; {}; {BY_INDEX};
                     SELECT current_setting('{MARK}', true) AS session,
                            CAST(pg_current_xact_id() AS TEXT) AS number",
                    self.settings
                )
            }
        };
        let mut tries_left = CONNECTIONS_MAX + 1;
        loop {
            let mut session = self.connection(operation)?;
            tries_left -= 1;
            match session.client.simple_query(&begin) {
                Ok(messages) => {
                    let answer = answer(&messages);
                    let column = |name| answer.and_then(|row| row.try_get(name).ok().flatten());
                    let naming = self.naming(&mut session, wanted, column("session"));
                    session.prepared.begin(purpose, self.clock.monotonic_ms());
                    return Ok(Begun { session, number: column("number").map(str::to_owned), naming });
                }
                Err(error) => {
                    session.discard();
                    // It broke while it lay in the pool.
                    let is_stale = Failure::of(&error) == Failure::ConnectionLost && tries_left > 0;
                    if !is_stale {
                        return Err(from_postgres(operation, &error));
                    }
                }
            }
        }
    }

    /// Whether a transaction may use names, by the mark that it reads in its session.
    fn naming(&self, session: &mut Session, wanted: Naming, mark: Option<&str>) -> Naming {
        let is_own = mark == Some(session.mark.as_str());
        if !is_own {
            self.pooler.meet();
        }
        if !self.pooler.is_met() {
            return wanted;
        }
        if is_own {
            // It is where it prepared them, perhaps for the last time: their names are free for other programs.
            session.prepared.forget();
        } else if !session.prepared.is_empty() {
            // What it prepared is somewhere. The pooler may clean up after a connection that ends.
            session.discard();
        }
        Naming::Unnamed
    }

    /// A statement was lost, so sessions change hands: from now on this process prepares nothing.
    pub(super) fn meet_pooler(&self) {
        self.pooler.meet();
    }

    /// The channel on which processes tell each other of changes.
    pub(super) fn channel(&self) -> String {
        format!("windlass_{}", self.address.schema())
    }
}

/// Whether the server by itself answers a commit before it is on its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IsAsynchronous {
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// Every setting that holds for one transaction. `SET` costs the server less than `set_config` does.
fn settings(schema: &str, durability: Durability, is_asynchronous: IsAsynchronous) -> String {
    let mut settings = vec![
        // Nobody's temporary tables come before ours. The schema's name needs no quotes within.
        ("search_path", format!("\"{schema}\", pg_temp")),
        // Compiling a claim costs a hundred times what it does.
        ("jit", "off".to_owned()),
        ("lock_timeout", LOCK_WAIT_MAX_MS.to_string()),
        ("statement_timeout", STATEMENT_MAX_MS.to_string()),
        // Its commits are announced by this process, and not by the trigger for other programs' rows.
        ("windlass.tells", "itself".to_owned()),
        ("idle_in_transaction_session_timeout", SILENCE_MAX_MS.to_string()),
    ];
    match (durability, is_asynchronous) {
        (Durability::Normal, _) => settings.push(("synchronous_commit", "off".to_owned())),
        (Durability::Full, IsAsynchronous::Yes) => settings.push(("synchronous_commit", "on".to_owned())),
        // As the server is set: it may wait for its standbys too.
        (Durability::Full, IsAsynchronous::No) => {}
    }
    let statements: Vec<String> =
        settings.iter().map(|(name, value)| format!("SET LOCAL {name} = {value}")).collect();
    statements.join("; ")
}

/// The row with which a transaction begins.
fn answer(messages: &[SimpleQueryMessage]) -> Option<&SimpleQueryRow> {
    messages.iter().find_map(|message| {
        let SimpleQueryMessage::Row(row) = message else { return None };
        Some(row)
    })
}

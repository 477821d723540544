//! The session token: the value by which a connection recognizes its own session of the server.
//!
//! A prepared statement has a name in one session of the server. Behind a pooler in transaction mode the transactions of a
//! connection run in many sessions, where a name may be a statement of another connection. So each connection writes a random
//! token into a setting of its first session, and holds an advisory lock with the same number there.
//!
//! - A transaction with prepared statements begins with [`SessionToken::check`]. In a session with another token the
//!   check fails, and the server runs nothing of what was sent with it or after it.
//! - A message that is still on its way can be run by this session only. When another connection gets the lock, the session
//!   has ended or was taken over. In either case the message is never run.
//!
//! A connection that takes over a session overwrites the token first and then releases the lock of the older one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use postgres::SimpleQueryMessage;

/// The setting with the token.
const SETTING: &str = "windlass.session";

/// Whether the statements of a transaction may have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// Yes. The session must be this connection's own.
    Named,
    /// No. The session may be any; each statement is parsed and planned each time.
    Unnamed,
}

/// A number with an advisory lock, which a transaction or a session holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AdvisoryLock(pub(super) i64);

/// The token of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionToken(i64);

impl SessionToken {
    /// A token that no other connection has. It does not depend on the seed of the process.
    pub(super) fn new() -> SessionToken {
        SessionToken(uuid::Uuid::new_v4().as_u64_pair().1 as i64)
    }

    /// The lock that the session holds.
    pub(super) fn lock(self) -> AdvisoryLock {
        AdvisoryLock(self.0)
    }

    /// Statements that write the token and take its lock. Their answer has the token that the session had before.
    pub(super) fn write(self) -> String {
        format!(
            "{}; SELECT set_config('{SETTING}', '{token}', false), pg_advisory_lock({token})",
            SessionToken::read(),
            token = self.0
        )
    }

    /// The statement that releases the lock of an older token of the session.
    pub(super) fn release(older: &str) -> Option<String> {
        let number: i64 = older.parse().ok()?;
        Some(format!("SELECT pg_advisory_unlock({number})"))
    }

    /// Whether a token that was read from a session is this one.
    pub(super) fn is(self, found: &str) -> bool {
        found.parse() == Ok(self.0)
    }

    /// A statement that fails in a session with another token.
    pub(super) fn check(self) -> String {
        format!(
            "SELECT CAST(CASE WHEN current_setting('{SETTING}', true) = '{}' THEN 'true'
                              ELSE 'no, this is the session of another connection' END AS BOOLEAN)",
            self.0
        )
    }

    /// A statement that reads the token of a session.
    pub(super) fn read() -> String {
        format!("SELECT current_setting('{SETTING}', true) AS session")
    }

    /// The token in the answer to [`SessionToken::read`]. A new session has none, and one that was cleaned for the next
    /// connection has an empty one.
    pub(super) fn found(messages: &[SimpleQueryMessage]) -> Option<&str> {
        messages.iter().find_map(|message| {
            let SimpleQueryMessage::Row(row) = message else { return None };
            row.try_get("session").ok()?.filter(|token| !token.is_empty())
        })
    }
}

/// Whether a pooler shares sessions between connections. All connections of a process share this flag.
#[derive(Clone, Default)]
pub(super) struct PoolerFlag(Arc<AtomicBool>);

impl PoolerFlag {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// From now on this process prepares no statements.
    pub(super) fn set(&self) {
        if !self.0.swap(true, Ordering::Relaxed) {
            tracing::info!(
                "another connection has used this server session, as behind a pooler in transaction mode: \
                 statements are no longer prepared, but planned each time"
            );
        }
    }
}

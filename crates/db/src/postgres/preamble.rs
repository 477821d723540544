//! The message with which a transaction begins: its settings, its lock, and the check of its session.
//!
//! It is sent together with the first statement. When it fails the server runs nothing of what was sent behind it.

use super::token::{AdvisoryLock, Naming, SessionToken};
use crate::Durability;

/// A transaction of a client that says nothing for so long is taken back, and its locks with it: the
/// client's machine may have lost the network. Ours never wait between statements.
const SILENCE_MAX_MS: i64 = 10_000;
/// How long a statement may take: the server does not notice that its client is gone before it is over, and
/// keeps its locks so long. The longest of ours reads every row of a large database once.
const STATEMENT_MAX_MS: i64 = 600_000;
/// How long a statement waits for a lock that somebody else holds.
const LOCK_WAIT_MAX_MS: i64 = 10_000;

/// What changes rows finds them by their ids, or at the head of an index that is made for it. The planner
/// would sometimes rather read all rows of a state, by statistics from a time when they were few. So the values
/// change nothing, and one plan for all of them does, until the tables have grown: see [`super::sizes`].
const BY_INDEX: &str = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
    SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
    SET LOCAL plan_cache_mode = force_generic_plan";

/// What only reads is planned freely, for its values and for the tables as they are.
const AS_IT_IS: &str = "SET LOCAL plan_cache_mode = force_custom_plan";

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// One consistent snapshot.
    Read,
    /// Guarded updates, each seeing what was committed before it.
    Write,
}

/// Whether the server by itself answers a commit before it is on its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IsAsynchronous {
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// Every setting that holds for one transaction.
pub(super) struct Settings(String);

impl Settings {
    /// `is_asynchronous` says that the server by itself answers a commit before it is on its disk.
    pub(super) fn of(schema: &str, durability: Durability, is_asynchronous: IsAsynchronous) -> Settings {
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
        // `SET` costs the server less than `set_config` does.
        let statements: Vec<String> =
            settings.iter().map(|(name, value)| format!("SET LOCAL {name} = {value}")).collect();
        Settings(statements.join("; "))
    }

    /// The message with which a transaction begins. Where statements have names it fails unless the session has this token.
    pub(super) fn begin(
        &self,
        purpose: Purpose,
        naming: Naming,
        token: SessionToken,
        lock: AdvisoryLock,
    ) -> String {
        let Settings(settings) = self;
        let session = match naming {
            Naming::Named => token.check(),
            Naming::Unnamed => SessionToken::read(),
        };
        match purpose {
            Purpose::Read => {
                format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {settings}; {AS_IT_IS}; {session}")
            }
            // A standby refuses to notify, and so a transaction that would only read there what it is to judge by.
            Purpose::Write => format!(
                "BEGIN; {settings}; {BY_INDEX};
                 {session}; SELECT pg_advisory_xact_lock({}),
                        CASE WHEN pg_is_in_recovery() THEN pg_notify('standby', '') END",
                lock.0
            ),
        }
    }
}

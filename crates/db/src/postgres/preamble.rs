//! The preamble: the message that begins a transaction, with its settings, its lock, and the check of the session token.
//!
//! It is sent together with the first statement. If it fails, the server does not run that statement.

use super::token::{AdvisoryLock, Naming, SessionToken};
use crate::Durability;

/// The server rolls back a transaction that is idle for this long, and so releases its locks. The client may have lost the
/// network. Transactions of Windlass never wait between statements.
const IDLE_IN_TRANSACTION_MAX_MS: i64 = 10_000;
/// How long a statement may take. During a statement the server does not notice that its client is gone, and keeps its locks.
/// The longest statement of Windlass reads every row of a large database once.
const STATEMENT_MAX_MS: i64 = 600_000;
/// How long a statement waits for a lock.
const LOCK_WAIT_MAX_MS: i64 = 10_000;

/// Planner settings of transactions that write. Their statements find rows by ids, or at the start of an index for that
/// purpose. With outdated statistics the planner might read all rows of a state instead. So only index scans are allowed, and
/// one generic plan is used for all values, until the tables have grown: see [`super::sizes`].
const WRITE_PLANNING: &str = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
    SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
    SET LOCAL plan_cache_mode = force_generic_plan";

/// Planner settings of transactions that only read: a plan for the values and the current statistics.
const READ_PLANNING: &str = "SET LOCAL plan_cache_mode = force_custom_plan";

/// Besides, for reads with a deadline. They find a few thousand rows by an index. Starting parallel workers takes longer than such a
/// read, and on a busy server much longer.
const NO_PARALLEL_WORKERS: &str = "SET LOCAL max_parallel_workers_per_gather = 0";

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// One consistent snapshot.
    Read,
    /// The same, until the deadline of this thread.
    ReadAtMost {
        /// What is left when it begins: the limit of its first statement.
        statement_max_ms: i64,
    },
    /// Guarded updates. Each statement sees what was committed before it.
    Write,
}

/// When the server answers a commit, by its own setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerCommits {
    /// Before the commit is on the disk.
    Asynchronous,
    /// After the commit is on the disk.
    Synchronous,
}

/// The statements for the settings of a transaction.
pub(super) struct TransactionSettings(String);

impl TransactionSettings {
    /// The settings for a schema and a durability. `server_commits` is the setting of the server.
    pub(super) fn of(
        schema: &str,
        durability: Durability,
        server_commits: ServerCommits,
    ) -> TransactionSettings {
        let mut settings = vec![
            // Temporary tables come last. The schema's name contains no quotes.
            ("search_path", format!("\"{schema}\", pg_temp")),
            // Compiling a claim takes a hundred times longer than running it.
            ("jit", "off".to_owned()),
            ("lock_timeout", LOCK_WAIT_MAX_MS.to_string()),
            ("statement_timeout", STATEMENT_MAX_MS.to_string()),
            // This process sends its own notifications. The trigger sends them only for rows of other programs.
            ("windlass.tells", "itself".to_owned()),
            ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION_MAX_MS.to_string()),
        ];
        match (durability, server_commits) {
            (Durability::Normal, _) => settings.push(("synchronous_commit", "off".to_owned())),
            (Durability::Full, ServerCommits::Asynchronous) => {
                settings.push(("synchronous_commit", "on".to_owned()))
            }
            // The server's own setting, by which it may also wait for standbys.
            (Durability::Full, ServerCommits::Synchronous) => {}
        }
        // `SET` is faster than `set_config`.
        let statements: Vec<String> =
            settings.iter().map(|(name, value)| format!("SET LOCAL {name} = {value}")).collect();
        TransactionSettings(statements.join("; "))
    }

    /// The message that begins a transaction. If statements have names, it fails in a session with another token.
    pub(super) fn begin(
        &self,
        purpose: Purpose,
        naming: Naming,
        token: SessionToken,
        lock: AdvisoryLock,
    ) -> String {
        let TransactionSettings(settings) = self;
        let session = match naming {
            Naming::Named => token.check(),
            Naming::Unnamed => SessionToken::read(),
        };
        match purpose {
            Purpose::Read => {
                format!(
                    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {settings}; {READ_PLANNING}; {session}"
                )
            }
            Purpose::ReadAtMost { statement_max_ms } => format!(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {settings};
                 SET LOCAL statement_timeout = {statement_max_ms}; {READ_PLANNING}; {NO_PARALLEL_WORKERS}; {session}"
            ),
            // On a standby pg_notify fails. Without it the transaction would fail only at its first change.
            Purpose::Write => format!(
                "BEGIN; {settings}; {WRITE_PLANNING};
                 {session}; SELECT pg_advisory_xact_lock({}),
                        CASE WHEN pg_is_in_recovery() THEN pg_notify('standby', '') END",
                lock.0
            ),
        }
    }
}

//! Finds out, over a new connection, whether a transaction was kept whose commit was not answered.
//!
//! The transaction must have ended first: its session may still run the commit, or the message may still be on its way. Each
//! transaction that writes holds an advisory lock of its own from its preamble to its end. So when this gets that lock, the
//! transaction has ended. A crash of the server ends the lock and the transaction.
//!
//! A transaction that was sent as a whole, with its commit, may not have begun yet, and then it holds no lock. Only its session
//! can run it, and the session holds a lock of its own: see [`super::token`].

use std::time::Duration;

use super::connection::PostgresConnection;
use super::preamble::Purpose;
use super::session::{BegunTransaction, Sessions, TransactionState};
use super::token::{AdvisoryLock, Naming};
use crate::error::{Error, Result};
use crate::{CommitOutcome, Connection, Recovery};

/// How long to try. The server may be restarting, or a standby may be taking over.
const RETRY_MAX_MS: i64 = 60_000;
const RETRY_PAUSE: Duration = Duration::from_millis(100);

const OPERATION: &str = "ask whether a commit was kept";

/// What a write does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    /// It was kept.
    Done,
    /// It was not kept: it runs again.
    RunAgain,
    /// It may have been kept, and a second run is harmless.
    Repeat,
    /// The outcome stays unknown.
    GiveUp,
}

/// Waits until a transaction has ended, and decides what its write does next.
pub(super) fn recover(
    sessions: &Sessions,
    name: &str,
    lock: AdvisoryLock,
    recovery: &mut Recovery,
) -> NextStep {
    tracing::debug!("{name}: the answer to the commit was lost");
    let began_ms = sessions.clock.monotonic_ms();
    while sessions.clock.monotonic_ms() - began_ms < RETRY_MAX_MS {
        let next = match recovery {
            Recovery::Report => return NextStep::GiveUp,
            Recovery::Repeat => ask(sessions, lock, &mut |_connection| Ok(NextStep::Repeat)),
            Recovery::Check(check) => ask(sessions, lock, &mut |connection| {
                Ok(match check(connection)? {
                    CommitOutcome::Kept => NextStep::Done,
                    CommitOutcome::NotKept => NextStep::RunAgain,
                })
            }),
        };
        match next {
            Ok(next) => return next,
            Err(error) => {
                tracing::debug!(%error, "{name}: it could not be read whether the commit was kept");
                std::thread::sleep(RETRY_PAUSE);
            }
        }
    }
    NextStep::GiveUp
}

/// Tries once, in a transaction that writes, because a standby may lack changes that were kept.
fn ask(
    sessions: &Sessions,
    lock: AdvisoryLock,
    decide: &mut dyn FnMut(&mut dyn Connection) -> Result<NextStep>,
) -> Result<NextStep> {
    let BegunTransaction { mut session, naming, .. } =
        sessions.begin(OPERATION, Purpose::Write, Naming::Unnamed)?;
    let mut connection = PostgresConnection::new(&mut session, naming, &sessions.statements);
    let waited = connection.execute("SELECT pg_advisory_xact_lock($1)", &[lock.0.into()]);
    let next = waited.and_then(|_rows| decide(&mut connection));
    let failure = connection.failure();
    let has_begun = sessions.end_preamble(&mut session, naming, TransactionState::Open);
    let is_ended = has_begun && session.client.batch_execute("ROLLBACK").is_ok();
    if failure.is_some() || !is_ended {
        session.discard();
        return next.and(Err(Error::internal(OPERATION, "the connection broke")));
    }
    next
}

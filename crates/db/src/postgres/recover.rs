//! Finding out, over a new connection, whether a transaction was kept whose commit was not answered.
//!
//! First the transaction must be over: its session may still be at the commit, or the message may still be on its way to
//! it. Each transaction that writes holds an advisory lock of its own from its first message to its end, so whoever gets
//! that lock knows that it is over. A crash of the server ends the lock with the transaction.
//!
//! A transaction that was sent as a whole, with its commit, may not have begun yet and hold no lock. Only its session can
//! run it, and the session holds a lock of its own: see [`super::token`].

use std::time::Duration;

use super::connection::PostgresConnection;
use super::preamble::Purpose;
use super::session::{Begun, Sessions, Transaction};
use super::token::{AdvisoryLock, Naming};
use crate::error::{Error, Result};
use crate::{Connection, Fate, Recovery};

/// How long the server is asked: it may be starting again, or another one may take its place.
const ASK_MAX_MS: i64 = 60_000;
const ASK_TICK: Duration = Duration::from_millis(100);

const ASK: &str = "ask whether a commit was kept";

/// What a write does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It was kept.
    Done,
    /// It was not kept: it runs again.
    RunAgain,
    /// It may have been kept, and a second run is harmless.
    Repeat,
    /// Nobody knows.
    GiveUp,
}

/// Waits until a transaction is over, and decides what its write does next.
pub(super) fn recover(sessions: &Sessions, name: &str, lock: AdvisoryLock, recovery: &mut Recovery) -> Next {
    tracing::debug!("{name}: the answer to the commit was lost");
    let began_ms = sessions.clock.monotonic_ms();
    while sessions.clock.monotonic_ms() - began_ms < ASK_MAX_MS {
        let next = match recovery {
            Recovery::Report => return Next::GiveUp,
            Recovery::Repeat => ask(sessions, lock, &mut |_connection| Ok(Next::Repeat)),
            Recovery::Prove(proof) => ask(sessions, lock, &mut |connection| {
                Ok(match proof(connection)? {
                    Fate::Kept => Next::Done,
                    Fate::NotKept => Next::RunAgain,
                })
            }),
        };
        match next {
            Ok(next) => return next,
            Err(error) => {
                tracing::debug!(%error, "{name}: whether it was kept is not known yet");
                std::thread::sleep(ASK_TICK);
            }
        }
    }
    Next::GiveUp
}

/// Asks once, in a transaction that may write: a standby could lack what was kept.
fn ask(
    sessions: &Sessions,
    lock: AdvisoryLock,
    question: &mut dyn FnMut(&mut dyn Connection) -> Result<Next>,
) -> Result<Next> {
    let Begun { mut session, naming, .. } = sessions.begin(ASK, Purpose::Write, Naming::Unnamed)?;
    let mut connection = PostgresConnection::new(&mut session, naming, &sessions.statements);
    let waited = connection.execute("SELECT pg_advisory_xact_lock($1)", &[lock.0.into()]);
    let next = waited.and_then(|_rows| question(&mut connection));
    let failure = connection.failure();
    let has_begun = sessions.end_preamble(&mut session, naming, Transaction::Open);
    let is_ended = has_begun && session.client.batch_execute("ROLLBACK").is_ok();
    if failure.is_some() || !is_ended {
        session.discard();
        return next.and(Err(Error::internal(ASK, "the connection broke")));
    }
    next
}

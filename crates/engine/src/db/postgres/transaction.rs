//! One transaction: begin, run the operation, commit; again when another one stood in its way; and finding
//! out what became of a commit whose answer was lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::beginning::Purpose;
use super::connection::PostgresConnection;
use super::error::{Failure, from_postgres};
use super::prepared::Naming;
use super::session::{Begun, Pooled, Sessions};
use crate::db::Connection;
use crate::error::{Error, Result, Unavailable};
use crate::signal::Hints;

/// How often a transaction is run that others stand in the way of, or whose connection breaks.
const RUNS_MAX: u32 = 12;
/// Waits between the runs: twice as long each time, and a share of it by chance.
const PAUSE_MIN_MS: f64 = 1.0;
const PAUSE_MAX_MS: f64 = 200.0;
/// How long the server is asked what became of a commit: it may be starting anew.
const FIND_OUT_MAX_MS: i64 = 60_000;
const FIND_OUT_TICK: Duration = Duration::from_millis(100);

/// What is run inside a transaction.
type Operation<'a> = dyn FnMut(&mut dyn Connection) -> Result<()> + 'a;

/// Why a run of a transaction came to nothing.
struct Broken {
    error: Error,
    /// Of the database; `None` when the operation itself refused.
    failure: Option<Failure>,
}

/// Runs an operation on one snapshot.
pub(super) fn read(sessions: &Sessions, operation: &mut Operation<'_>) -> Result<()> {
    const NAME: &str = "read from the database";
    repeat(sessions, NAME, |naming| run(sessions, NAME, Purpose::Read, naming, operation).map(|_hints| ()))
}

/// Runs an operation in a transaction; returns what it changed once that is durable.
pub(super) fn write(sessions: &Sessions, name: &'static str, operation: &mut Operation<'_>) -> Result<Hints> {
    repeat(sessions, name, |naming| run(sessions, name, Purpose::Write, naming, operation))
}

/// Runs a transaction again while that may help.
fn repeat<T>(
    sessions: &Sessions,
    name: &str,
    mut run: impl FnMut(Naming) -> std::result::Result<T, Broken>,
) -> Result<T> {
    let mut naming = Naming::Named;
    let mut pause_ms = PAUSE_MIN_MS;
    let mut runs = 0;
    loop {
        runs += 1;
        let Broken { error, failure } = match run(naming) {
            Ok(value) => return Ok(value),
            Err(broken) => broken,
        };
        match failure {
            Some(Failure::StatementLost | Failure::StatementOutdated) if naming == Naming::Named => {
                // Nobody stands in the way: at once, and what was wrong can't be so again.
                tracing::debug!(%error, runs, "{name}: once more, without prepared statements");
                naming = Naming::Unnamed;
                continue;
            }
            // Others of the pool may have ended too, and a new one has not.
            Some(Failure::Stale) if runs < RUNS_MAX => continue,
            Some(Failure::Collision | Failure::ConnectionLost) if runs < RUNS_MAX => {
                tracing::debug!(%error, runs, "{name}: once more");
            }
            Some(
                Failure::Collision
                | Failure::ConnectionLost
                | Failure::Stale
                | Failure::StatementLost
                | Failure::StatementOutdated
                | Failure::Standby
                | Failure::Alone
                | Failure::Refused,
            )
            | None => return Err(error),
        }
        let wait_ms = pause_ms * (0.5 + sessions.random.share());
        std::thread::sleep(Duration::from_secs_f64(wait_ms / 1_000.0));
        pause_ms = (pause_ms * 2.0).min(PAUSE_MAX_MS);
    }
}

fn run(
    sessions: &Sessions,
    name: &str,
    purpose: Purpose,
    naming: Naming,
    operation: &mut Operation<'_>,
) -> std::result::Result<Hints, Broken> {
    // Not connected is not broken: waiting for the server is the caller's to decide.
    let Begun { mut session, naming } =
        sessions.begin(name, purpose, naming).map_err(|error| Broken { error, failure: None })?;
    let mut connection = PostgresConnection::new(&mut session, naming, &sessions.statements);
    let result =
        catch_unwind(AssertUnwindSafe(|| operation(&mut connection).and_then(|()| connection.flush())));
    let (hints, failure) = (connection.hints(), connection.failure());
    let answer = sessions.answer(&mut session, naming);
    let error = match (result, failure) {
        (Ok(Ok(())), None) => {
            return match answer {
                Some(answer) => {
                    commit(sessions, session, name, answer.number)?;
                    Ok(hints)
                }
                None => Ok(hints),
            };
        }
        (_, Some(Failure::Alone)) if purpose == Purpose::Write => {
            Error::unavailable(name, Unavailable::CommitUnknown)
        }
        // The server has taken the transaction back, whatever the operation made of it.
        (Ok(Ok(())), Some(_)) => Error::internal(name, "an error of the database was passed over"),
        // People are told what was tried, not which statement it came to.
        (Ok(Err(Error::Unavailable { reason, .. })), _) => Error::unavailable(name, reason),
        (Ok(Err(error)), _) => error,
        (Err(_panic), _) => Error::internal(name, "the operation panicked"),
    };
    if answer.is_some() && session.client.batch_execute("ROLLBACK").is_err() {
        session.discard();
    }
    match failure {
        Some(Failure::StatementLost) => {
            sessions.meet_pooler();
            session.discard();
        }
        Some(Failure::StatementOutdated | Failure::Standby | Failure::Stale) => session.discard(),
        Some(Failure::Collision | Failure::ConnectionLost | Failure::Alone | Failure::Refused) | None => {}
    }
    Err(Broken { error, failure })
}

fn commit(
    sessions: &Sessions,
    mut session: Pooled,
    name: &str,
    number: Option<String>,
) -> std::result::Result<(), Broken> {
    let Err(error) = session.client.batch_execute("COMMIT") else { return Ok(()) };
    session.discard();
    drop(session);
    let failure = Failure::of(&error);
    let (Failure::ConnectionLost, Some(number)) = (failure, number) else {
        return Err(Broken { error: from_postgres(name, &error), failure: Some(failure) });
    };
    match find_out(sessions, name, &number) {
        Fate::Committed => Ok(()),
        Fate::Aborted => Err(Broken { error: from_postgres(name, &error), failure: Some(failure) }),
        Fate::Unknown => {
            Err(Broken { error: Error::unavailable(name, Unavailable::CommitUnknown), failure: None })
        }
    }
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Committed,
    Aborted,
    Unknown,
}

/// Asks the server, over a new connection, what became of a transaction. The old session may still be at
/// it, or hold it open until it notices that its client is gone: then it is asked again.
fn find_out(sessions: &Sessions, name: &str, number: &str) -> Fate {
    let began_ms = sessions.clock.monotonic_ms();
    tracing::debug!(number, "{name}: the answer to the commit was lost; asking what became of it");
    while sessions.clock.monotonic_ms() - began_ms < FIND_OUT_MAX_MS {
        match ask(sessions, number) {
            Ok(Some(fate)) => return fate,
            // It goes on, or nobody answers yet.
            Ok(None) | Err(_) => std::thread::sleep(FIND_OUT_TICK),
        }
    }
    Fate::Unknown
}

/// `None`: it is not over.
fn ask(sessions: &Sessions, number: &str) -> Result<Option<Fate>> {
    let operation = "ask what became of a commit";
    let mut session = sessions.connection(operation)?;
    let answer = session.client.query_typed(
        "SELECT pg_xact_status(CAST(CAST($1 AS TEXT) AS xid8))",
        &[(&number, postgres::types::Type::TEXT)],
    );
    let rows = match answer {
        Ok(rows) => rows,
        // A server that was made the primary meanwhile has never heard of it.
        Err(error) if error.code() == Some(&postgres::error::SqlState::INVALID_PARAMETER_VALUE) => {
            return Ok(Some(Fate::Aborted));
        }
        Err(error) => {
            session.discard();
            return Err(from_postgres(operation, &error));
        }
    };
    let status = rows.first().and_then(|row| row.try_get::<_, Option<&str>>(0).ok().flatten());
    Ok(match status {
        Some("committed") => Some(Fate::Committed),
        Some("aborted") => Some(Fate::Aborted),
        Some(_) => None,
        // So long ago that the server has forgotten it.
        None => Some(Fate::Unknown),
    })
}

//! One transaction: begin, run the operation, commit; again when another one stood in its way, or when its commit was
//! lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::client::Commit;
use super::connection::PostgresConnection;
use super::error::{Failure, from_postgres};
use super::preamble::Purpose;
use super::recover::{Next, recover};
use super::session::{Begun, Pooled, Sessions, Transaction};
use super::token::{AdvisoryLock, Naming};
use crate::error::{Error, Result, Unavailable};
use crate::{Connection, Recovery};
use windlass_system::wake_ups::WakeUps;

/// How often a transaction is run that others stand in the way of, or whose connection breaks.
const RUNS_MAX: u32 = 12;
/// Waits between the runs: twice as long each time, and a share of it by chance.
const PAUSE_MIN_MS: f64 = 1.0;
const PAUSE_MAX_MS: f64 = 200.0;

/// What is run inside a transaction.
type Operation<'a> = dyn FnMut(&mut dyn Connection) -> Result<()> + 'a;

/// Why a run of a transaction came to nothing.
struct Broken {
    error: Error,
    /// Of the database; `None` when the operation itself refused.
    failure: Option<Failure>,
    /// Its commit was not answered: it may have been kept.
    lost: Option<LostCommit>,
}

/// A transaction whose commit was not answered.
struct LostCommit {
    lock: AdvisoryLock,
    /// What it changed, if it was kept.
    wake_ups: WakeUps,
}

/// Runs an operation on one snapshot.
pub(super) fn read(sessions: &Sessions, operation: &mut Operation<'_>) -> Result<()> {
    const NAME: &str = "read from the database";
    repeat(sessions, NAME, |naming| run(sessions, NAME, Purpose::Read, naming, operation).map(|_hints| ()))
}

/// Runs an operation in a transaction; returns what it changed once that is durable. `recovery` decides what happens
/// when the answer to the commit is lost.
pub(super) fn write(
    sessions: &Sessions,
    name: &'static str,
    operation: &mut Operation<'_>,
    recovery: &mut Recovery,
) -> Result<WakeUps> {
    // What an earlier run changed that may have been kept, and is run again.
    let mut earlier = None;
    let written = repeat(sessions, name, |naming| {
        let mut broken = match run(sessions, name, Purpose::Write, naming, operation) {
            Ok(wake_ups) => return Ok(wake_ups),
            Err(broken) => broken,
        };
        let Some(LostCommit { lock, wake_ups }) = broken.lost.take() else { return Err(broken) };
        match recover(sessions, name, lock, recovery) {
            Next::Done => return Ok(wake_ups),
            Next::RunAgain => {}
            Next::Repeat => earlier = Some(earlier.unwrap_or(WakeUps::NONE) | wake_ups),
            Next::GiveUp => {
                broken.error = Error::unavailable(name, Unavailable::CommitUnknown);
                broken.failure = None;
            }
        }
        Err(broken)
    });
    match (written, earlier) {
        (Ok(wake_ups), earlier) => Ok(wake_ups | earlier.unwrap_or(WakeUps::NONE)),
        // The earlier run may have been kept, and there was no other one.
        (Err(Error::Unavailable { .. }), Some(_)) => {
            Err(Error::unavailable(name, Unavailable::CommitUnknown))
        }
        (Err(error), _) => Err(error),
    }
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
        let Broken { error, failure, .. } = match run(naming) {
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
) -> std::result::Result<WakeUps, Broken> {
    // Not connected is not broken: waiting for the server is the caller's to decide.
    let Begun { mut session, naming, lock } =
        sessions.begin(name, purpose, naming).map_err(|error| Broken { error, failure: None, lost: None })?;
    let mut connection = PostgresConnection::new(&mut session, naming, &sessions.statements);
    let result =
        catch_unwind(AssertUnwindSafe(|| operation(&mut connection).and_then(|()| connection.flush())));
    let (wake_ups, failure) = (connection.wake_ups(), connection.failure());
    let committed = connection.take_commit();
    let transaction = if committed.is_some() { Transaction::Committed } else { Transaction::Open };
    let has_begun = sessions.end_preamble(&mut session, naming, transaction);
    // What was sent as a whole may not have begun, and then does not hold the lock of its transaction.
    let lock = if committed.is_some() { session.lock() } else { lock };
    let lost_commit = || LostCommit { lock, wake_ups };
    let (error, lost) = match (result, failure) {
        (Ok(Ok(())), None) => {
            let answer = match committed {
                Some(Commit::Answered(answer)) => answer,
                None if has_begun => session.client.batch_execute("COMMIT"),
                None => Ok(()),
                Some(Commit::Unanswered) => {
                    session.discard();
                    let error = Error::unavailable(name, Unavailable::CommitUnknown);
                    return Err(Broken { error, failure: None, lost: None });
                }
            };
            return check_commit(session, name, answer, lost_commit).map(|()| wake_ups);
        }
        // Its last statement was not answered, and the commit neither.
        (Ok(Err(error)), Some(Failure::ConnectionLost | Failure::Stale)) if committed.is_some() => {
            (error, Some(lost_commit()))
        }
        // The operation failed after its commit.
        (_, None) if committed.is_some() => (Error::unavailable(name, Unavailable::CommitUnknown), None),
        (_, Some(Failure::Alone)) if purpose == Purpose::Write => {
            (Error::unavailable(name, Unavailable::CommitUnknown), None)
        }
        // The server has taken the transaction back, whatever the operation made of it.
        (Ok(Ok(())), Some(_)) => (Error::internal(name, "an error of the database was passed over"), None),
        // People are told what was tried, not which statement it came to.
        (Ok(Err(Error::Unavailable { reason, .. })), _) => (Error::unavailable(name, reason), None),
        (Ok(Err(error)), _) => (error, None),
        (Err(_panic), _) => (Error::internal(name, "the operation panicked"), None),
    };
    let is_ended = match committed {
        // A commit of what has failed takes it back.
        Some(Commit::Answered(answer)) => answer.is_ok(),
        Some(Commit::Unanswered) => false,
        None => !has_begun || session.client.batch_execute("ROLLBACK").is_ok(),
    };
    if !is_ended {
        session.discard();
    }
    match failure {
        Some(Failure::StatementLost) => {
            sessions.note_pooler();
            session.discard();
        }
        Some(Failure::StatementOutdated | Failure::Standby | Failure::Stale) => session.discard(),
        Some(Failure::Collision | Failure::ConnectionLost | Failure::Alone | Failure::Refused) | None => {}
    }
    Err(Broken { error, failure, lost })
}

/// Judges the answer to a commit. When it is lost, so that nobody knows whether the transaction was kept, the transaction
/// is named.
fn check_commit(
    mut session: Pooled,
    name: &str,
    answer: std::result::Result<(), postgres::Error>,
    lost_commit: impl FnOnce() -> LostCommit,
) -> std::result::Result<(), Broken> {
    let Err(error) = answer else { return Ok(()) };
    session.discard();
    let failure = Failure::of(&error);
    let lost = (failure == Failure::ConnectionLost).then(lost_commit);
    Err(Broken { error: from_postgres(name, &error), failure: Some(failure), lost })
}

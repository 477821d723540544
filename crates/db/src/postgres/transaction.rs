//! One transaction: begin, run the operation, commit. It is repeated after a conflict with another transaction, or when its
//! commit was lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::client::Commit;
use super::connection::PostgresConnection;
use super::error::{Failure, from_postgres};
use super::preamble::Purpose;
use super::recover::{NextStep, recover};
use super::session::{BegunTransaction, Pooled, Sessions, TransactionState};
use super::shared_read;
use super::token::{AdvisoryLock, Naming};
use crate::error::{Error, Result, Unavailable};
use crate::{Connection, ReadDeadline, Recovery};
use windlass_system::wake_ups::WakeUps;

/// How often a transaction is run if it conflicts with others or its connection breaks.
const RUNS_MAX: u32 = 12;
/// The pauses between the runs: they double each time, and vary at random.
const PAUSE_MIN_MS: f64 = 1.0;
const PAUSE_MAX_MS: f64 = 200.0;

/// The operation of a transaction.
type Operation<'a> = dyn FnMut(&mut dyn Connection) -> Result<()> + 'a;

/// A run of a transaction that failed, or whose outcome is unknown.
struct FailedRun {
    error: Error,
    /// What the error of the database means; `None` if the operation itself failed.
    failure: Option<Failure>,
    /// Set if the commit was not answered, so that the transaction may have been kept.
    lost: Option<LostCommit>,
}

/// A transaction whose commit was not answered.
struct LostCommit {
    lock: AdvisoryLock,
    /// The wake-ups for its changes, if it was kept.
    wake_ups: WakeUps,
}

/// Runs an operation on one snapshot.
pub(super) fn read(sessions: &Arc<Sessions>, operation: &mut Operation<'_>) -> Result<()> {
    const NAME: &str = "read from the database";
    retry(sessions, NAME, |naming| {
        let left_ms = ReadDeadline::of_this_thread().map(|deadline| deadline.left_ms()).transpose();
        let purpose = match left_ms.map_err(|error| FailedRun { error, failure: None, lost: None })? {
            Some(left_ms) => Purpose::ReadAtMost { statement_max_ms: left_ms },
            None => Purpose::Read,
        };
        run(sessions, NAME, purpose, naming, operation).map(|_wake_ups| ())
    })
}

/// Runs an operation in a transaction. When the transaction is durable, returns the wake-ups for its changes. `recovery` decides
/// what happens when the answer to the commit is lost.
pub(super) fn write(
    sessions: &Arc<Sessions>,
    name: &'static str,
    operation: &mut Operation<'_>,
    recovery: &mut Recovery,
) -> Result<WakeUps> {
    // The wake-ups of an earlier run that may have been kept, and was repeated.
    let mut earlier = None;
    let written = retry(sessions, name, |naming| {
        let mut failed_run = match run(sessions, name, Purpose::Write, naming, operation) {
            Ok(wake_ups) => return Ok(wake_ups),
            Err(failed_run) => failed_run,
        };
        let Some(LostCommit { lock, wake_ups }) = failed_run.lost.take() else { return Err(failed_run) };
        match recover(sessions, name, lock, recovery) {
            NextStep::Done => return Ok(wake_ups),
            NextStep::RunAgain => {}
            NextStep::Repeat => earlier = Some(earlier.unwrap_or(WakeUps::NONE) | wake_ups),
            NextStep::GiveUp => {
                failed_run.error = Error::unavailable(name, Unavailable::CommitUnknown);
                failed_run.failure = None;
            }
        }
        Err(failed_run)
    });
    match (written, earlier) {
        (Ok(wake_ups), earlier) => Ok(wake_ups | earlier.unwrap_or(WakeUps::NONE)),
        // The earlier run may have been kept, and no later run succeeded.
        (Err(Error::Unavailable { .. }), Some(_)) => {
            Err(Error::unavailable(name, Unavailable::CommitUnknown))
        }
        (Err(error), _) => Err(error),
    }
}

/// Repeats a transaction while that may help.
fn retry<T>(
    sessions: &Sessions,
    name: &str,
    mut run: impl FnMut(Naming) -> std::result::Result<T, FailedRun>,
) -> Result<T> {
    let mut naming = Naming::Named;
    let mut pause_ms = PAUSE_MIN_MS;
    let mut runs = 0;
    loop {
        runs += 1;
        let FailedRun { error, failure, .. } = match run(naming) {
            Ok(value) => return Ok(value),
            Err(failed_run) => failed_run,
        };
        match failure {
            Some(Failure::StatementLost | Failure::StatementOutdated) if naming == Naming::Named => {
                // Repeated at once, and at most once, because it then runs without names.
                tracing::debug!(%error, runs, "{name}: repeated without prepared statements");
                naming = Naming::Unnamed;
                continue;
            }
            // Other connections of the pool may have ended too. A new one has not.
            Some(Failure::Stale) if runs < RUNS_MAX => continue,
            Some(Failure::Collision | Failure::ConnectionLost) if runs < RUNS_MAX => {
                tracing::debug!(%error, runs, "{name}: repeated");
            }
            Some(
                Failure::Collision
                | Failure::ConnectionLost
                | Failure::Stale
                | Failure::StatementLost
                | Failure::StatementOutdated
                | Failure::Standby
                | Failure::NoTransaction
                | Failure::Refused,
            )
            | None => return Err(error),
        }
        let wait_ms = pause_ms * (0.5 + sessions.random.fraction());
        std::thread::sleep(Duration::from_secs_f64(wait_ms / 1_000.0));
        pause_ms = (pause_ms * 2.0).min(PAUSE_MAX_MS);
    }
}

/// Runs a transaction once.
fn run(
    sessions: &Arc<Sessions>,
    name: &str,
    purpose: Purpose,
    naming: Naming,
    operation: &mut Operation<'_>,
) -> std::result::Result<WakeUps, FailedRun> {
    // Without a connection nothing is repeated. The caller decides whether to wait for the server.
    let begun = match shared_read::take(sessions, purpose) {
        Some(shared) => Ok(shared),
        None => sessions.begin(name, purpose, naming),
    };
    let BegunTransaction { mut session, purpose, naming, lock } =
        begun.map_err(|error| FailedRun { error, failure: None, lost: None })?;
    let connection = PostgresConnection::new(&mut session, naming, &sessions.statements);
    let mut connection = connection.with_deadline(purpose);
    let result =
        catch_unwind(AssertUnwindSafe(|| operation(&mut connection).and_then(|()| connection.flush())));
    let (wake_ups, failure) = (connection.wake_ups(), connection.failure());
    let statement_max_ms = connection.statement_max_ms();
    let committed = connection.take_commit();
    if let (Ok(Ok(())), None, Some(statement_max_ms)) = (&result, &failure, statement_max_ms) {
        let purpose = Purpose::ReadAtMost { statement_max_ms };
        session = match shared_read::keep(sessions, BegunTransaction { session, purpose, naming, lock }) {
            None => return Ok(wake_ups),
            Some(BegunTransaction { session, .. }) => session,
        };
    }
    let transaction = if committed.is_some() { TransactionState::CommitSent } else { TransactionState::Open };
    let has_begun = sessions.end_preamble(&mut session, naming, transaction);
    // A transaction that was sent as a whole may not have begun, and then it does not hold its own lock.
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
                    return Err(FailedRun { error, failure: None, lost: None });
                }
            };
            return check_commit(session, name, answer, lost_commit).map(|()| wake_ups);
        }
        // Neither its last statement nor its commit was answered.
        (Ok(Err(error)), Some(Failure::ConnectionLost | Failure::Stale)) if committed.is_some() => {
            (error, Some(lost_commit()))
        }
        // The operation failed after its commit.
        (_, None) if committed.is_some() => (Error::unavailable(name, Unavailable::CommitUnknown), None),
        (_, Some(Failure::NoTransaction)) if purpose == Purpose::Write => {
            (Error::unavailable(name, Unavailable::CommitUnknown), None)
        }
        // The server has rolled the transaction back, and the operation ignored the error.
        (Ok(Ok(())), Some(_)) => (Error::internal(name, "an error of the database was ignored"), None),
        // The error names the operation, not the statement.
        (Ok(Err(Error::Unavailable { reason, .. })), _) => (Error::unavailable(name, reason), None),
        (Ok(Err(error)), _) => (error, None),
        (Err(_panic), _) => (Error::internal(name, "the operation panicked"), None),
    };
    end_failed_run(sessions, &mut session, committed, has_begun, failure);
    Err(FailedRun { error, failure, lost })
}

/// Rolls back a transaction that failed, and discards its connection if that can't be used again.
fn end_failed_run(
    sessions: &Sessions,
    session: &mut Pooled,
    committed: Option<Commit>,
    has_begun: bool,
    failure: Option<Failure>,
) {
    let is_ended = match committed {
        // The commit of a failed transaction rolls it back.
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
        Some(Failure::Collision | Failure::ConnectionLost | Failure::NoTransaction | Failure::Refused)
        | None => {}
    }
}

/// Checks the answer to a commit. If it was lost, the error has the transaction, whose outcome is unknown.
fn check_commit(
    mut session: Pooled,
    name: &str,
    answer: std::result::Result<(), postgres::Error>,
    lost_commit: impl FnOnce() -> LostCommit,
) -> std::result::Result<(), FailedRun> {
    let Err(error) = answer else { return Ok(()) };
    session.discard();
    let failure = Failure::of(&error);
    let lost = (failure == Failure::ConnectionLost).then(lost_commit);
    Err(FailedRun { error: from_postgres(name, &error), failure: Some(failure), lost })
}

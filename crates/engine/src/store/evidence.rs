//! Evidence: how a write finds out whether its transaction was kept, if the answer to its commit was lost.
//!
//! Only rows that this very transaction can have written count as evidence. Inserted jobs and runs are recognized by
//! the token in their rows; claims and finishes by the guarded columns of their jobs. All other writes insert a token
//! into `commit_tokens`.

use std::sync::{Arc, Mutex, PoisonError};

use crate::status::{JobStatus, WorkerStatus};
use windlass_db::error::{Error, Result};
use windlass_db::{CommitOutcome, Connection, OutcomeCheck, Recovery, Writers, first};

/// How long a token is kept: longer than any write takes to find out.
const KEPT_MS: i64 = 3_600_000;
/// How many old tokens one write deletes.
const DELETED_MAX: i64 = 100;

/// Where a write finds out whether its transaction was kept.
pub(super) enum Evidence<T> {
    /// In rows that it inserted or changed. The write's return value says which.
    Rows(RowCheck<T>),
    /// In rows that it made, from which it reads what it returned. For a write whose last statement is sent together with
    /// the commit: their answers are lost together.
    Reread(Reread<T>),
    /// In `commit_tokens`, where it inserts a row of its own. For rare writes, by people and by upkeep.
    Token,
    /// Nowhere: the write is repeated, because a second run is harmless and its result is correct.
    Repeat,
}

type RowCheck<T> = Box<dyn FnMut(&mut dyn Connection, &T) -> Result<CommitOutcome> + Send>;

/// `None`: it was not kept.
type Reread<T> = Box<dyn FnMut(&mut dyn Connection) -> Result<Option<T>> + Send>;

impl<T> Evidence<T> {
    /// In rows that it made, from which it reads what it returned.
    pub(super) fn reread(
        read: impl FnMut(&mut dyn Connection) -> Result<Option<T>> + Send + 'static,
    ) -> Evidence<T> {
        Evidence::Reread(Box::new(read))
    }

    /// Evidence in rows that the write inserted or changed.
    pub(super) fn rows(
        proof: impl FnMut(&mut dyn Connection, &T) -> Result<CommitOutcome> + Send + 'static,
    ) -> Evidence<T> {
        Evidence::Rows(Box::new(proof))
    }
}

/// The token of one write, and the time when it was made.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommitToken {
    pub(super) token: i64,
    pub(super) now_ms: i64,
}

impl CommitToken {
    /// Inserts the token in the caller's transaction, and deletes old ones. SQLite needs no token, because it never
    /// loses the answer to a commit.
    pub(super) fn insert(&self, connection: &mut dyn Connection) -> Result<()> {
        if connection.capabilities().writers == Writers::OneAtATime {
            return Ok(());
        }
        connection.execute_with_next(
            "INSERT INTO commit_tokens (committed_at, token) VALUES ($1, $2)",
            &[self.now_ms.into(), self.token.into()],
        )?;
        connection.execute_with_next(
            "DELETE FROM commit_tokens
             WHERE (committed_at, token) IN (SELECT committed_at, token FROM commit_tokens
                                             WHERE committed_at < $1 ORDER BY committed_at, token
                                             LIMIT $2 {lock})",
            &[(self.now_ms - KEPT_MS).into(), DELETED_MAX.into()],
        )
    }

    fn proof(self) -> OutcomeCheck {
        Box::new(move |connection| {
            let sql = "SELECT 1 FROM commit_tokens WHERE committed_at = $1 AND token = $2";
            let found =
                first(connection, sql, &[self.now_ms.into(), self.token.into()], |row| row.integer(0))?;
            Ok(kept_if(found.is_some()))
        })
    }
}

/// What to do if the answer to a commit was lost. `returned` is what the write's last run returned.
pub(super) fn recovery<T: Send + 'static>(
    evidence: Evidence<T>,
    token: Option<CommitToken>,
    returned: &Arc<Mutex<Option<T>>>,
) -> Recovery {
    match (evidence, token) {
        (Evidence::Rows(mut proof), _) => {
            let returned = Arc::clone(returned);
            Recovery::Check(Box::new(move |connection| {
                match &*returned.lock().unwrap_or_else(PoisonError::into_inner) {
                    Some(returned) => proof(connection, returned),
                    None => Ok(CommitOutcome::NotKept),
                }
            }))
        }
        (Evidence::Reread(mut read), _) => {
            let returned = Arc::clone(returned);
            Recovery::Check(Box::new(move |connection| {
                let found = read(connection)?;
                let fate = kept_if(found.is_some());
                *returned.lock().unwrap_or_else(PoisonError::into_inner) = found;
                Ok(fate)
            }))
        }
        (Evidence::Token, Some(token)) => Recovery::Check(token.proof()),
        (Evidence::Token, None) => Recovery::Report,
        (Evidence::Repeat, _) => Recovery::Repeat,
    }
}

fn kept_if(is_found: bool) -> CommitOutcome {
    if is_found { CommitOutcome::Kept } else { CommitOutcome::NotKept }
}

/// Finds out whether a transaction that inserted jobs was kept, by the id of one of its jobs. Any of the tokens
/// counts, because a trigger may have left some of the jobs out.
pub(super) fn job_was_inserted(
    connection: &mut dyn Connection,
    job_id: i64,
    tokens: &[i64],
) -> Result<CommitOutcome> {
    let found =
        first(connection, "SELECT token FROM jobs WHERE id = $1", &[job_id.into()], |row| row.integer(0))?;
    Ok(kept_if(found.is_some_and(|found| tokens.contains(&found))))
}

/// Jobs among which one is looked for whose id is not known: the newest ones.
const NEWEST_MAX: i64 = 1_000_000;
/// Instants of two processes differ by less.
const CLOCKS_DIFFER_MAX_MS: i64 = 3_600_000;

/// The id of the job with this token, made at this instant, if the transaction was kept that made it. No index leads to a
/// token: the job is looked for among the newest ones.
///
/// # Errors
/// The database's, and when more jobs were made since than are looked at.
pub(super) fn job_with_token(
    connection: &mut dyn Connection,
    token: i64,
    created_at_ms: i64,
) -> Result<Option<i64>> {
    let found = first(
        connection,
        "SELECT id FROM (SELECT id, token FROM jobs ORDER BY id DESC LIMIT $2) AS newest WHERE token = $1",
        &[token.into(), NEWEST_MAX.into()],
        |row| row.integer(0),
    )?;
    if found.is_some() {
        return Ok(found);
    }
    let oldest_ms = first(
        connection,
        "SELECT created_at FROM jobs ORDER BY id DESC LIMIT 1 OFFSET $1",
        &[(NEWEST_MAX - 1).into()],
        |row| row.integer(0),
    )?;
    match oldest_ms {
        Some(oldest_ms) if oldest_ms > created_at_ms - CLOCKS_DIFFER_MAX_MS => {
            let reason = format!("more than {NEWEST_MAX} jobs were made in the last hour");
            Err(Error::internal("look for a job by its token", reason))
        }
        Some(_) | None => Ok(None),
    }
}

/// Finds out whether a transaction that inserted a run was kept.
pub(super) fn run_was_inserted(
    connection: &mut dyn Connection,
    run_id: i64,
    token: i64,
) -> Result<CommitOutcome> {
    let found =
        first(connection, "SELECT token FROM runs WHERE id = $1", &[run_id.into()], |row| row.integer(0))?;
    Ok(kept_if(found == Some(token)))
}

/// An attempt that a transaction claimed or finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AttemptKey {
    pub(super) job_id: i64,
    pub(super) attempt: i64,
    pub(super) worker_id: i64,
}

/// What the tables say about an attempt's job now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AttemptRow {
    status: JobStatus,
    attempt: i64,
    worker_id: Option<i64>,
    /// The state of the attempt's worker.
    worker_status: Option<WorkerStatus>,
    /// The worker whose attempt of this number is recorded as unsuccessful.
    recorded_worker_id: Option<i64>,
}

fn read_attempt(connection: &mut dyn Connection, key: AttemptKey) -> Result<Option<AttemptRow>> {
    first(
        connection,
        "SELECT status, attempt, worker_id,
                (SELECT workers.status FROM workers WHERE workers.id = $2),
                (SELECT job_attempts.worker_id FROM job_attempts
                 WHERE job_attempts.job_id = $1 AND job_attempts.attempt = $3)
         FROM jobs WHERE id = $1",
        &[key.job_id.into(), key.worker_id.into(), key.attempt.into()],
        |row| {
            Ok(AttemptRow {
                status: row.parsed(0, JobStatus::parse)?,
                attempt: row.integer(1)?,
                worker_id: row.optional_integer(2)?,
                worker_status: row.optional_text(3)?.as_deref().and_then(WorkerStatus::parse),
                recorded_worker_id: row.optional_integer(4)?,
            })
        },
    )
}

/// Finds out whether a transaction that claimed an attempt was kept.
pub(super) fn attempt_claimed(connection: &mut dyn Connection, key: AttemptKey) -> Result<CommitOutcome> {
    Ok(kept_if(read_attempt(connection, key)?.is_some_and(|row| is_claimed(key, row))))
}

/// Finds out whether a transaction that finished an attempt was kept. `attempt_after` is the number that it wrote
/// into the job's row: one less if the claim was given back.
pub(super) fn attempt_ended(
    connection: &mut dyn Connection,
    key: AttemptKey,
    attempt_after: i64,
) -> Result<CommitOutcome> {
    Ok(kept_if(read_attempt(connection, key)?.is_some_and(|row| is_ended(key, attempt_after, row))))
}

/// The row proves the claim, because only this worker claims under its id, and it claims nothing else while it asks.
fn is_claimed(key: AttemptKey, row: AttemptRow) -> bool {
    row.status == JobStatus::Running && (row.attempt, row.worker_id) == (key.attempt, Some(key.worker_id))
}

/// Only the worker itself ends its attempts while it is alive. So the attempt has ended if the job's row has moved on
/// from it. If the row never reached the attempt, the claim itself was lost when another server took over.
fn is_ended(key: AttemptKey, attempt_after: i64, row: AttemptRow) -> bool {
    let is_alive = match row.worker_status {
        Some(WorkerStatus::Alive | WorkerStatus::Draining) => true,
        // If the worker is not alive, another process may have ended the attempt. The write runs again, and its
        // guards decide.
        Some(WorkerStatus::Stopped | WorkerStatus::Dead) | None => false,
    };
    let is_claimed_elsewhere =
        row.attempt == key.attempt && row.worker_id.is_some_and(|worker_id| worker_id != key.worker_id);
    let is_recorded_elsewhere = row.recorded_worker_id.is_some_and(|worker_id| worker_id != key.worker_id);
    is_alive
        && row.attempt >= attempt_after
        && !is_claimed(key, row)
        && !(is_claimed_elsewhere && attempt_after == key.attempt)
        && !is_recorded_elsewhere
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: AttemptKey = AttemptKey { job_id: 1, attempt: 3, worker_id: 7 };

    fn row(status: JobStatus, attempt: i64, worker_id: Option<i64>) -> AttemptRow {
        AttemptRow {
            status,
            attempt,
            worker_id,
            worker_status: Some(WorkerStatus::Alive),
            recorded_worker_id: None,
        }
    }

    #[test]
    fn a_claim_was_kept_if_its_job_is_running_under_it() {
        use JobStatus::{Pending, Running, Successful};
        let cases = [
            ("as written", row(Running, 3, Some(7)), true),
            ("never claimed", row(Pending, 2, None), false),
            ("the previous attempt", row(Running, 2, Some(7)), false),
            ("claimed by another worker", row(Running, 3, Some(8)), false),
            ("taken back", row(Pending, 3, Some(7)), false),
            ("finished", row(Successful, 3, Some(7)), false),
        ];
        for (what, row, expected) in cases {
            assert_eq!(is_claimed(KEY, row), expected, "{what}");
        }
    }

    #[test]
    fn a_finish_was_kept_if_the_job_has_moved_on() {
        use JobStatus::{Blocked, Pending, Running, Scheduled, Successful};
        let alive = row(Successful, 3, Some(7));
        let cases = [
            ("as written", 3, alive, true),
            ("waits for the next attempt", 3, row(Scheduled, 3, Some(7)), true),
            ("the next attempt runs here", 3, row(Running, 4, Some(7)), true),
            ("the next attempt runs elsewhere", 3, row(Running, 4, Some(8)), true),
            ("its run was retried", 3, row(Blocked, 3, None), true),
            ("still running", 3, row(Running, 3, Some(7)), false),
            ("its claim was lost", 3, row(Pending, 2, None), false),
            (
                "its claim was lost, and another worker claimed the attempt",
                3,
                row(Running, 3, Some(8)),
                false,
            ),
            (
                "its claim was lost, and another worker's attempt failed",
                3,
                AttemptRow { recorded_worker_id: Some(8), ..row(Running, 4, Some(9)) },
                false,
            ),
            (
                "its own attempt failed",
                3,
                AttemptRow { recorded_worker_id: Some(7), ..row(Running, 4, Some(9)) },
                true,
            ),
            ("given back", 2, row(Pending, 2, Some(7)), true),
            ("given back, and claimed by another worker", 2, row(Running, 3, Some(8)), true),
            ("not given back", 2, row(Running, 3, Some(7)), false),
            ("its worker is dead", 3, AttemptRow { worker_status: Some(WorkerStatus::Dead), ..alive }, false),
            ("its worker is unknown", 3, AttemptRow { worker_status: None, ..alive }, false),
        ];
        for (what, attempt_after, row, expected) in cases {
            assert_eq!(is_ended(KEY, attempt_after, row), expected, "{what}");
        }
    }
}

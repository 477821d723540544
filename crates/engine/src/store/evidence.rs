//! How a write is known to have been kept when the answer to its commit was lost.
//!
//! It is decided by rows that only this transaction can have written. What makes jobs or runs is known by the token in
//! their rows, claims and ends by the guards of their jobs. Writes without such a row leave one in `commit_tokens`.

use std::sync::{Arc, Mutex, PoisonError};

use crate::status::{JobStatus, WorkerStatus};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Fate, Proof, Recovery, Writers, first};

/// How long a token is kept: longer than anybody asks for it.
const KEPT_MS: i64 = 3_600_000;
/// Old tokens deleted by one write at most.
const DELETED_MAX: i64 = 100;

/// Where a write finds out whether it was kept.
pub(super) enum Evidence<T> {
    /// In rows that it made or changed; it knows them by what it returned.
    Rows(RowProof<T>),
    /// In rows that it made, from which it reads what it returned. For a write whose last statement is sent together with
    /// the commit: their answers are lost together.
    Reread(Reread<T>),
    /// In `commit_tokens`, where it leaves a row of its own: for what people and upkeep do now and then.
    Token,
    /// Nowhere. It runs again, because a second run is harmless and its answer is true.
    Repeat,
}

type RowProof<T> = Box<dyn FnMut(&mut dyn Connection, &T) -> Result<Fate> + Send>;

/// `None`: it was not kept.
type Reread<T> = Box<dyn FnMut(&mut dyn Connection) -> Result<Option<T>> + Send>;

impl<T> Evidence<T> {
    /// In rows that it made, from which it reads what it returned.
    pub(super) fn reread(
        read: impl FnMut(&mut dyn Connection) -> Result<Option<T>> + Send + 'static,
    ) -> Evidence<T> {
        Evidence::Reread(Box::new(read))
    }

    /// In rows that it made or changed.
    pub(super) fn rows(
        proof: impl FnMut(&mut dyn Connection, &T) -> Result<Fate> + Send + 'static,
    ) -> Evidence<T> {
        Evidence::Rows(Box::new(proof))
    }
}

/// The token of one write, and when it was made.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommitToken {
    pub(super) token: i64,
    pub(super) now_ms: i64,
}

impl CommitToken {
    /// Leaves the token inside the caller's transaction, and deletes old ones. One process that writes alone loses no
    /// answers.
    pub(super) fn leave(&self, connection: &mut dyn Connection) -> Result<()> {
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

    fn proof(self) -> Proof {
        Box::new(move |connection| {
            let sql = "SELECT 1 FROM commit_tokens WHERE committed_at = $1 AND token = $2";
            let found =
                first(connection, sql, &[self.now_ms.into(), self.token.into()], |row| row.integer(0))?;
            Ok(kept_if(found.is_some()))
        })
    }
}

/// What a write of the store does when the answer to its commit is lost. `returned` is what its last run returned.
pub(super) fn recovery<T: Send + 'static>(
    evidence: Evidence<T>,
    token: Option<CommitToken>,
    returned: &Arc<Mutex<Option<T>>>,
) -> Recovery {
    match (evidence, token) {
        (Evidence::Rows(mut proof), _) => {
            let returned = Arc::clone(returned);
            Recovery::Prove(Box::new(move |connection| {
                match &*returned.lock().unwrap_or_else(PoisonError::into_inner) {
                    Some(returned) => proof(connection, returned),
                    None => Ok(Fate::NotKept),
                }
            }))
        }
        (Evidence::Reread(mut read), _) => {
            let returned = Arc::clone(returned);
            Recovery::Prove(Box::new(move |connection| {
                let found = read(connection)?;
                let fate = kept_if(found.is_some());
                *returned.lock().unwrap_or_else(PoisonError::into_inner) = found;
                Ok(fate)
            }))
        }
        (Evidence::Token, Some(token)) => Recovery::Prove(token.proof()),
        (Evidence::Token, None) => Recovery::Report,
        (Evidence::Repeat, _) => Recovery::Repeat,
    }
}

fn kept_if(is_there: bool) -> Fate {
    if is_there { Fate::Kept } else { Fate::NotKept }
}

/// Whether the transaction was kept that made a job with this id and one of these tokens: a trigger may have left others
/// out.
pub(super) fn job_made(connection: &mut dyn Connection, job_id: i64, tokens: &[i64]) -> Result<Fate> {
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

/// Whether the transaction was kept that made a run with this id and token.
pub(super) fn run_made(connection: &mut dyn Connection, run_id: i64, token: i64) -> Result<Fate> {
    let found =
        first(connection, "SELECT token FROM runs WHERE id = $1", &[run_id.into()], |row| row.integer(0))?;
    Ok(kept_if(found == Some(token)))
}

/// An attempt that a transaction began or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AttemptKey {
    pub(super) job_id: i64,
    pub(super) attempt: i64,
    pub(super) worker_id: i64,
}

/// What the tables say of an attempt's job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Present {
    status: JobStatus,
    attempt: i64,
    worker_id: Option<i64>,
    /// The state of the worker that asks.
    asking: Option<WorkerStatus>,
    /// Whose attempt of that number did not succeed.
    recorded: Option<i64>,
}

fn present(connection: &mut dyn Connection, key: AttemptKey) -> Result<Option<Present>> {
    first(
        connection,
        "SELECT status, attempt, worker_id,
                (SELECT workers.status FROM workers WHERE workers.id = $2),
                (SELECT job_attempts.worker_id FROM job_attempts
                 WHERE job_attempts.job_id = $1 AND job_attempts.attempt = $3)
         FROM jobs WHERE id = $1",
        &[key.job_id.into(), key.worker_id.into(), key.attempt.into()],
        |row| {
            Ok(Present {
                status: row.parsed(0, JobStatus::parse)?,
                attempt: row.integer(1)?,
                worker_id: row.optional_integer(2)?,
                asking: row.optional_text(3)?.as_deref().and_then(WorkerStatus::parse),
                recorded: row.optional_integer(4)?,
            })
        },
    )
}

/// Whether the transaction was kept that claimed an attempt.
pub(super) fn attempt_claimed(connection: &mut dyn Connection, key: AttemptKey) -> Result<Fate> {
    Ok(kept_if(present(connection, key)?.is_some_and(|present| is_claimed(key, present))))
}

/// Whether the transaction was kept that ended an attempt; `attempt_after` is the number that it left in the row.
pub(super) fn attempt_ended(
    connection: &mut dyn Connection,
    key: AttemptKey,
    attempt_after: i64,
) -> Result<Fate> {
    Ok(kept_if(present(connection, key)?.is_some_and(|present| is_ended(key, attempt_after, present))))
}

/// Nobody else claims under a worker's id, and the worker claims nothing while it asks.
fn is_claimed(key: AttemptKey, present: Present) -> bool {
    present.status == JobStatus::Running
        && (present.attempt, present.worker_id) == (key.attempt, Some(key.worker_id))
}

/// While its worker is alive nobody but the worker ends an attempt. So it is over when the row has moved on from it. A
/// row that never got there was lost with its claim, by a server that took another's place.
fn is_ended(key: AttemptKey, attempt_after: i64, present: Present) -> bool {
    let is_alive = match present.asking {
        Some(WorkerStatus::Alive | WorkerStatus::Draining) => true,
        // What it did counts only if it was before that: a second run finds out by its guards.
        Some(WorkerStatus::Stopped | WorkerStatus::Dead) | None => false,
    };
    let is_anothers = present.attempt == key.attempt
        && present.worker_id.is_some_and(|worker_id| worker_id != key.worker_id);
    let is_recorded_of_another = present.recorded.is_some_and(|worker_id| worker_id != key.worker_id);
    is_alive
        && present.attempt >= attempt_after
        && !is_claimed(key, present)
        && !(is_anothers && attempt_after == key.attempt)
        && !is_recorded_of_another
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: AttemptKey = AttemptKey { job_id: 1, attempt: 3, worker_id: 7 };

    fn row(status: JobStatus, attempt: i64, worker_id: Option<i64>) -> Present {
        Present { status, attempt, worker_id, asking: Some(WorkerStatus::Alive), recorded: None }
    }

    #[test]
    fn a_claim_was_kept_where_the_job_runs_under_it() {
        use JobStatus::{Pending, Running, Successful};
        let cases = [
            ("as it was left", row(Running, 3, Some(7)), true),
            ("not begun", row(Pending, 2, None), false),
            ("the attempt before", row(Running, 2, Some(7)), false),
            ("of another worker", row(Running, 3, Some(8)), false),
            ("taken back", row(Pending, 3, Some(7)), false),
            ("over", row(Successful, 3, Some(7)), false),
        ];
        for (what, present, expected) in cases {
            assert_eq!(is_claimed(KEY, present), expected, "{what}");
        }
    }

    #[test]
    fn an_end_was_kept_where_the_job_has_moved_on_from_it() {
        use JobStatus::{Blocked, Pending, Running, Scheduled, Successful};
        let alive = row(Successful, 3, Some(7));
        let cases = [
            ("as it was left", 3, alive, true),
            ("waits for the next attempt", 3, row(Scheduled, 3, Some(7)), true),
            ("the next attempt runs here", 3, row(Running, 4, Some(7)), true),
            ("the next attempt runs elsewhere", 3, row(Running, 4, Some(8)), true),
            ("its run was given another life", 3, row(Blocked, 3, None), true),
            ("still runs", 3, row(Running, 3, Some(7)), false),
            ("its claim was lost", 3, row(Pending, 2, None), false),
            ("its claim was lost, and another has the attempt", 3, row(Running, 3, Some(8)), false),
            (
                "its claim was lost, and another's attempt failed",
                3,
                Present { recorded: Some(8), ..row(Running, 4, Some(9)) },
                false,
            ),
            ("its own attempt failed", 3, Present { recorded: Some(7), ..row(Running, 4, Some(9)) }, true),
            ("given back", 2, row(Pending, 2, Some(7)), true),
            ("given back, and claimed by another", 2, row(Running, 3, Some(8)), true),
            ("not given back", 2, row(Running, 3, Some(7)), false),
            ("its worker is dead", 3, Present { asking: Some(WorkerStatus::Dead), ..alive }, false),
            ("its worker is unknown", 3, Present { asking: None, ..alive }, false),
        ];
        for (what, attempt_after, present, expected) in cases {
            assert_eq!(is_ended(KEY, attempt_after, present), expected, "{what}");
        }
    }
}

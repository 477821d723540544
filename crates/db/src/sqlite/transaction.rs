//! One transaction of several operations that know nothing of each other.
//!
//! One that fails hurts no other. That seldom happens, so they are run without savepoints at first, which would cost
//! each of them two statements and a copy of each page that it changes. When one fails all is taken back and run
//! again, each in a savepoint of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::connection::SqliteConnection;
use super::error::from_sqlite;
use super::group_commit::Request;
use super::statements::Statements;
use crate::WriteOperation;
use crate::error::{Error, Result, Unavailable};
use windlass_system::clock::Clock;
use windlass_system::wake_ups::WakeUps;

/// After this time no operation joins a transaction any more: those done in it wait for its commit, and
/// so do other processes. One operation may take longer.
const GROUP_MAX_MS: i64 = 50;

/// What became of those that were run, the first ones of a group; and what they changed.
pub(super) struct Committed {
    pub(super) results: Vec<Result<()>>,
    pub(super) wake_ups: WakeUps,
}

/// What transactions are made with.
pub(super) struct Transactions<'t> {
    pub(super) connection: &'t rusqlite::Connection,
    pub(super) statements: &'t mut Statements,
    pub(super) clock: &'t Clock,
}

/// What an operation that fails takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Isolation {
    /// The whole transaction.
    Together,
    /// What it did itself.
    Savepoint,
}

impl Transactions<'_> {
    /// Commits the operations from the first on, as many as can be done in one group's time. The
    /// error is everybody's: nothing of it exists then.
    pub(super) fn commit(&mut self, group: &mut [Request<WriteOperation>]) -> Result<Committed> {
        match self.attempt(group, Isolation::Together)? {
            Ok(committed) => Ok(committed),
            // There is nothing else in it.
            Err(error) if group.len() == 1 => {
                Ok(Committed { results: vec![Err(error)], wake_ups: WakeUps::NONE })
            }
            Err(_one_of_several) => self.attempt(group, Isolation::Savepoint)?,
        }
    }

    /// The inner error is that of an operation for which all were taken back.
    fn attempt(
        &mut self,
        group: &mut [Request<WriteOperation>],
        isolation: Isolation,
    ) -> Result<Result<Committed>> {
        let Transactions { connection, statements, clock } = self;
        if !connection.is_autocommit() {
            // Taking an earlier transaction back has failed: until that is done none can begin.
            run(connection, "ROLLBACK")?;
        }
        run(connection, "BEGIN IMMEDIATE")?;
        let began_ms = clock.monotonic_ms();
        let mut session = SqliteConnection::new(connection, statements);
        let mut results = Vec::with_capacity(group.len());
        for Request { name, work, .. } in group.iter_mut() {
            if !results.is_empty() && clock.monotonic_ms() - began_ms >= GROUP_MAX_MS {
                break;
            }
            let result = run_operation(connection, &mut session, name, work, isolation)?;
            if let (Err(error), Isolation::Together) = (&result, isolation) {
                run(connection, "ROLLBACK")?;
                return Ok(Err(error.clone()));
            }
            results.push(result);
        }
        if let Err(error) = run(connection, "COMMIT") {
            let _ended = run(connection, "ROLLBACK");
            return Err(of_commit(error));
        }
        Ok(Ok(Committed { results, wake_ups: session.wake_ups() }))
    }
}

/// No connection sees a transaction whose commit failed. But when the disk failed, its end may be in the log already. The
/// next commit overwrites it there; a crash before that one brings it back.
fn of_commit(error: Error) -> Error {
    match error {
        Error::Unavailable { operation, reason: Unavailable::InputOutput(detail) } => {
            let detail = format!("{detail} during a commit: whether it was kept is not known");
            Error::unavailable(operation, Unavailable::InputOutput(detail))
        }
        error @ (Error::Unavailable { .. }
        | Error::NotFound { .. }
        | Error::Conflict { .. }
        | Error::Invalid { .. }
        | Error::Internal { .. }) => error,
    }
}

fn run(connection: &rusqlite::Connection, sql: &str) -> Result<usize> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute([]))
        .map_err(|error| from_sqlite("write to the database", &error))
}

/// Runs one operation of a transaction. The outer error is the transaction's: nothing of it exists then.
fn run_operation(
    connection: &rusqlite::Connection,
    session: &mut SqliteConnection<'_>,
    name: &'static str,
    operation: &mut WriteOperation,
    isolation: Isolation,
) -> Result<Result<()>> {
    if isolation == Isolation::Savepoint {
        run(connection, "SAVEPOINT operation")?;
    }
    let result = match catch_unwind(AssertUnwindSafe(|| operation(session))) {
        Ok(result) => result,
        Err(_panic) => Err(Error::internal(name, "the operation panicked")),
    };
    if connection.is_autocommit() {
        // SQLite took back the whole transaction (disk full, I/O error): nothing of it exists.
        return Err(result
            .err()
            .unwrap_or_else(|| Error::internal("write to the database", "the transaction ended by itself")));
    }
    let undone = match (&result, isolation) {
        (Ok(()), Isolation::Savepoint) => run(connection, "RELEASE operation"),
        (Err(_), Isolation::Savepoint) => {
            run(connection, "ROLLBACK TO operation").and_then(|_| run(connection, "RELEASE operation"))
        }
        (Ok(()) | Err(_), Isolation::Together) => Ok(0),
    };
    if let Err(error) = undone {
        let _ended = run(connection, "ROLLBACK");
        return Err(error);
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use super::of_commit;
    use crate::error::{Error, Unavailable};
    use crate::sqlite::writer::Writer;
    use windlass_system::wake_ups::WakeUpChannel;

    #[test]
    fn a_commit_that_the_disk_failed_may_have_been_kept_and_others_were_not() {
        let failed = Error::unavailable("write", Unavailable::InputOutput("disk I/O error".to_owned()));
        let said = of_commit(failed).to_string();
        assert!(said.ends_with("disk I/O error during a commit: whether it was kept is not known"), "{said}");
        let full = Error::unavailable("write", Unavailable::DiskFull);
        assert_eq!(of_commit(full.clone()), full, "its end was not written");
        let refused = Error::conflict("write", "FOREIGN KEY constraint failed");
        assert_eq!(of_commit(refused.clone()), refused);
    }

    #[test]
    fn a_transaction_that_could_not_be_taken_back_is_taken_back_later() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE kept (id INTEGER); BEGIN; INSERT INTO kept VALUES (1)")
            .unwrap();
        let writer = Writer::over(connection, Path::new("in memory"), &[], WakeUpChannel::default());
        let insert = Box::new(|connection: &mut dyn crate::Connection| {
            connection.execute("INSERT INTO kept VALUES (2)", &[])?;
            let rows = crate::one(connection, "SELECT count(*) FROM kept", &[], |row| row.integer(0))?;
            assert_eq!(rows, 1, "nothing is left of the other one");
            Ok(())
        });
        assert_eq!(writer.write("insert", insert), Ok(()));
    }
}

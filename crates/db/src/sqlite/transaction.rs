//! Runs several independent operations in one transaction.
//!
//! An operation that fails must not affect the others. That seldom happens, so the operations first run without savepoints. A
//! savepoint would cost each operation two statements and a copy of each page that it changes. If an operation fails, the
//! transaction is rolled back and all operations run again, each in a savepoint of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::connection::SqliteConnection;
use super::error::from_sqlite;
use super::group_commit::Request;
use super::statements::Statements;
use crate::WriteOperation;
use crate::error::{Error, Result, Unavailable};
use windlass_system::clock::Clock;
use windlass_system::wake_ups::WakeUps;

/// After this time no further operation is added to a transaction, because the finished ones and other processes wait for its
/// commit. A single operation may take longer.
const GROUP_MAX_MS: i64 = 50;

/// The results of the operations that were run, which are the first ones of the group, and their wake-ups.
pub(super) struct CommittedGroup {
    pub(super) results: Vec<Result<()>>,
    pub(super) wake_ups: WakeUps,
}

/// Runs the operations of a group in a transaction.
pub(super) struct GroupTransaction<'t> {
    pub(super) connection: &'t rusqlite::Connection,
    pub(super) statements: &'t mut Statements,
    pub(super) clock: &'t Clock,
}

/// What is rolled back if an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Isolation {
    /// The whole transaction.
    None,
    /// The changes of that operation.
    Savepoint,
}

impl GroupTransaction<'_> {
    /// Commits the first operations of the group, as many as fit into [`GROUP_MAX_MS`]. On an error nothing was committed.
    pub(super) fn commit(&mut self, group: &mut [Request<WriteOperation>]) -> Result<CommittedGroup> {
        match self.attempt(group, Isolation::None)? {
            Ok(committed) => Ok(committed),
            // No other operation was in the transaction.
            Err(error) if group.len() == 1 => {
                Ok(CommittedGroup { results: vec![Err(error)], wake_ups: WakeUps::NONE })
            }
            Err(_one_of_several) => self.attempt(group, Isolation::Savepoint)?,
        }
    }

    /// The inner error is that of an operation that failed, so that the whole transaction was rolled back.
    fn attempt(
        &mut self,
        group: &mut [Request<WriteOperation>],
        isolation: Isolation,
    ) -> Result<Result<CommittedGroup>> {
        let GroupTransaction { connection, statements, clock } = self;
        if !connection.is_autocommit() {
            // The rollback of an earlier transaction failed. It must succeed before another one can begin.
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
            if let (Err(error), Isolation::None) = (&result, isolation) {
                run(connection, "ROLLBACK")?;
                return Ok(Err(error.clone()));
            }
            results.push(result);
        }
        if let Err(error) = run(connection, "COMMIT") {
            let _ended = run(connection, "ROLLBACK");
            return Err(explain_failed_commit(error));
        }
        Ok(Ok(CommittedGroup { results, wake_ups: session.wake_ups() }))
    }
}

/// Adds to a disk error that the outcome is unknown. No connection sees a transaction whose commit failed. But after a disk
/// error its end may be in the log: the next commit overwrites it there, but a crash before that would restore it.
fn explain_failed_commit(error: Error) -> Error {
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

/// Runs one operation of a transaction. An outer error means that the whole transaction was rolled back.
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
        // SQLite rolled back the whole transaction, for example because the disk is full.
        return Err(result
            .err()
            .unwrap_or_else(|| Error::internal("write to the database", "the transaction ended by itself")));
    }
    let undone = match (&result, isolation) {
        (Ok(()), Isolation::Savepoint) => run(connection, "RELEASE operation"),
        (Err(_), Isolation::Savepoint) => {
            run(connection, "ROLLBACK TO operation").and_then(|_| run(connection, "RELEASE operation"))
        }
        (Ok(()) | Err(_), Isolation::None) => Ok(0),
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

    use super::explain_failed_commit;
    use crate::error::{Error, Unavailable};
    use crate::sqlite::writer::Writer;
    use windlass_system::wake_ups::WakeUpChannel;

    #[test]
    fn only_a_disk_error_during_a_commit_has_an_unknown_outcome() {
        let failed = Error::unavailable("write", Unavailable::InputOutput("disk I/O error".to_owned()));
        let said = explain_failed_commit(failed).to_string();
        assert!(said.ends_with("disk I/O error during a commit: whether it was kept is not known"), "{said}");
        let full = Error::unavailable("write", Unavailable::DiskFull);
        assert_eq!(explain_failed_commit(full.clone()), full, "the end of the transaction was not written");
        let refused = Error::conflict("write", "FOREIGN KEY constraint failed");
        assert_eq!(explain_failed_commit(refused.clone()), refused);
    }

    #[test]
    fn a_transaction_that_could_not_be_rolled_back_is_rolled_back_later() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE kept (id INTEGER); BEGIN; INSERT INTO kept VALUES (1)")
            .unwrap();
        let writer = Writer::new(connection, Path::new("in memory"), &[], WakeUpChannel::default());
        let insert = Box::new(|connection: &mut dyn crate::Connection| {
            connection.execute("INSERT INTO kept VALUES (2)", &[])?;
            let rows = crate::one(connection, "SELECT count(*) FROM kept", &[], |row| row.integer(0))?;
            assert_eq!(rows, 1, "the other transaction was rolled back");
            Ok(())
        });
        assert_eq!(writer.write("insert", insert), Ok(()));
    }
}

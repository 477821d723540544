//! The interface between a program and its database, SQLite or PostgreSQL. The program has one SQL text for each statement,
//! and the [`Dialect`] translates the differences. If a database runs other statements than the one that is written, the
//! statement has a type of its own: [`UpdateReturning`], [`Connection::insert_returning_ids`].
//!
//! Which SQL is where, as `crates/engine/tests/statements` checks:
//!
//! - The store has every statement about the program's tables. The migrations make the tables.
//! - This crate has the SQL about the database itself: its catalog, its settings, locks and sessions, its check, its backup,
//!   the table of migrations. It names no table of the program. What it must know about them is in [`Tables`].
//! - The fragments of [`Tables`] are parts of several statements. They are defined next to the statements that use them most.
//! - No other crate has SQL, except the references in `crates/bench/src/raw`.

mod capabilities;
mod dialect;
pub mod error;
mod migrate;
mod options;
mod pool;
#[cfg(feature = "postgres")]
pub mod postgres;
mod read_deadline;
mod recovery;
pub mod sqlite;
mod statement;
mod tables;
mod value;

pub use capabilities::{Capabilities, Writers};
pub use dialect::Dialect;
pub use error::{Error, Refusal, Result, Unavailable};
pub use options::{Durability, OpenMode};
pub use read_deadline::ReadDeadline;
pub use recovery::{CommitOutcome, OutcomeCheck, Recovery};
pub use statement::{Statement, UpdateReturning};
pub use tables::{Fragment, Migration, Tables};
pub use value::{Row, Value, all, all_updated, first, one};

use windlass_system::wake_ups::{WakeUpChannel, WakeUps};

/// A statement with its parameters, and the function that reads its rows.
pub struct Query<'q> {
    /// The statement.
    pub statement: Statement,
    /// `$1` is the first of them.
    pub parameters: &'q [Value<'q>],
    /// Reads each row.
    pub on_row: &'q mut dyn FnMut(&dyn Row) -> Result<()>,
}

/// A connection inside a transaction.
pub trait Connection {
    /// Runs a statement and hands each row to `on_row`. `$1` is the first of `parameters`.
    ///
    /// # Errors
    /// The database's error, or the first error of `on_row`.
    fn run(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        on_row: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()>;

    /// Runs SQL as it is written, including `RETURNING`.
    ///
    /// # Errors
    /// The database's error, or the first error of `on_row`.
    fn query(
        &mut self,
        sql: &'static str,
        parameters: &[Value<'_>],
        on_row: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        self.run(Statement::Plain(sql), parameters, on_row)
    }

    /// Updates rows and hands each of them to `on_row`, as it is after the update. This is one statement on PostgreSQL, and
    /// two on SQLite: see [`UpdateReturning`].
    ///
    /// # Errors
    /// The database's error, or the first error of `on_row`.
    fn update_returning(
        &mut self,
        update: &'static UpdateReturning,
        parameters: &[Value<'_>],
        on_row: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        self.run(Statement::UpdateReturning(update), parameters, on_row)
    }

    /// Runs `INSERT INTO table …`, written without `RETURNING`, and returns the ids of the new rows in their order.
    /// PostgreSQL runs it with `RETURNING id`. SQLite runs it as it is and counts the ids back from the last one, because
    /// ids of one statement follow each other there.
    ///
    /// # Errors
    /// The database's error. On SQLite also when a trigger inserts into the same table, so that ids do not follow each other.
    fn insert_returning_ids(&mut self, sql: &'static str, parameters: &[Value<'_>]) -> Result<Vec<i64>> {
        let mut ids = Vec::new();
        self.run(Statement::InsertReturningIds(sql), parameters, &mut |row| {
            ids.push(row.integer(0)?);
            Ok(())
        })?;
        // The ids grow in the order of the rows, but RETURNING promises no order.
        ids.sort_unstable();
        Ok(ids)
    }

    /// The same as [`Connection::insert_returning_ids`], and commits. It must be the last statement of its transaction, and
    /// the operation must not fail after it. On a server the statement and the commit cost one round trip. The ids can be lost
    /// together with the answer to the commit, so [`Recovery`] must not need them.
    ///
    /// # Errors
    /// As for [`Connection::insert_returning_ids`].
    fn insert_returning_ids_and_commit(
        &mut self,
        sql: &'static str,
        parameters: &[Value<'_>],
    ) -> Result<Vec<i64>> {
        self.insert_returning_ids(sql, parameters)
    }

    /// Runs statements that do not depend on each other's results, in this order. On a server they cost one round trip.
    ///
    /// # Errors
    /// As for [`Connection::run`], for the first statement that fails.
    fn query_all(&mut self, queries: &mut [Query<'_>]) -> Result<()> {
        for Query { statement, parameters, on_row } in queries {
            self.run(*statement, parameters, on_row)?;
        }
        Ok(())
    }

    /// Runs a statement whose result is not needed. On a server it is sent together with the next statement, which then
    /// also returns its error.
    ///
    /// # Errors
    /// Returns the database's error.
    fn execute_with_next(&mut self, sql: &'static str, parameters: &[Value<'_>]) -> Result<()> {
        self.execute(sql, parameters).map(|_rows| ())
    }

    /// Runs a statement and returns how many rows it changed.
    ///
    /// # Errors
    /// Returns the database's error.
    fn execute(&mut self, sql: &'static str, parameters: &[Value<'_>]) -> Result<u64>;

    /// Runs several statements without parameters, written in the database's own dialect.
    ///
    /// # Errors
    /// Returns the database's error.
    fn batch(&mut self, sql: &str) -> Result<()>;

    /// The SQL of this database.
    fn dialect(&self) -> Dialect;

    /// What the database can do.
    fn capabilities(&self) -> Capabilities {
        self.dialect().capabilities()
    }

    /// Adds wake-ups that are published when this transaction is committed.
    fn wake(&mut self, wake_ups: WakeUps);
}

/// One operation of a write transaction. It may be called several times, even after a call that succeeded: its changes were
/// rolled back, because another operation of the transaction failed or the transaction must be repeated. So it must not keep
/// anything from an earlier call.
pub type WriteOperation = Box<dyn FnMut(&mut dyn Connection) -> Result<()> + Send>;

/// A database that reads in snapshots and writes in transactions.
pub trait Database: Send + Sync {
    /// Runs `operation` on one consistent snapshot, until the [`ReadDeadline`] of this thread if it has one.
    ///
    /// # Errors
    /// The error of the database or of the operation.
    fn read(&self, operation: &mut dyn FnMut(&mut dyn Connection) -> Result<()>) -> Result<()>;

    /// Runs `operation`, whose reads on this thread belong together: those of a page. On a server, those with a [`ReadDeadline`]
    /// share a transaction and so a snapshot, until one fails. They must not wait for a change by others.
    fn read_together(&self, operation: &mut dyn FnMut()) {
        operation();
    }

    /// Runs `operation` in a transaction, possibly together with operations of other threads, and returns when the
    /// transaction is as durable as [`Durability`] promises. `name` describes the operation in errors. Another thread may run
    /// the operation. It must not call `write` on the same database, because that call would wait forever.
    ///
    /// `recovery` says what happens when the answer to the commit is lost.
    ///
    /// # Errors
    /// The error of the database or of the operation. Then nothing is kept, except that after
    /// [`crate::error::Unavailable::CommitUnknown`] the transaction may be kept.
    fn write(&self, name: &'static str, operation: WriteOperation, recovery: Recovery) -> Result<()>;

    /// The channel for wake-ups: for changes of this process, and for changes of other processes once [`Database::watch`]
    /// was called.
    fn wake_ups(&self) -> &WakeUpChannel;

    /// Starts to watch for changes of other processes.
    fn watch(&self);

    /// What the database can do.
    fn capabilities(&self) -> Capabilities;
}

/// The first words of a statement, which identify it in an error.
fn summary(sql: &str) -> &str {
    let end = sql.char_indices().map(|(index, _)| index).take_while(|index| *index <= 60).last().unwrap_or(0);
    sql[..end].split('\n').next().unwrap_or_default().trim_end()
}

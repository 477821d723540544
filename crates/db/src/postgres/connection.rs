//! [`Connection`] for PostgreSQL, inside a transaction.

use std::sync::Arc;

use postgres::types::{ToSql, Type};

use super::bound::{Bound, bind};
use super::client::{Client, Commit, StatementCall};
use super::error::{Failure, from_postgres};
use super::preamble::Purpose;
use super::prepared::Prepared;
use super::session::Session;
use super::statements::Statements;
use super::token::Naming;
use crate::error::{Error, Result};
use crate::value::unexpected;
use crate::{Connection, Dialect, Query, ReadDeadline, Row, Statement, Value, summary};
use windlass_system::wake_ups::WakeUps;

/// The most statements in the queue, which keeps them in memory with their values.
const QUEUED_MAX: usize = 16;
/// A limit of statements that is longer than what is left by this is set again.
const LIMIT_EXCESS_MAX_MS: i64 = 50;

/// A statement that is sent together with others.
struct QueuedStatement<'a> {
    statement: Statement,
    text: Arc<str>,
    bound: Vec<(Bound<'a>, Type)>,
}

/// The limit of each statement in a transaction with a deadline.
struct StatementLimit {
    deadline: ReadDeadline,
    /// The limit that the server has.
    statement_max_ms: i64,
}

/// Runs statements inside a transaction. The caller begins and ends the transaction.
pub(super) struct PostgresConnection<'a> {
    client: &'a mut Client,
    prepared: &'a mut Prepared,
    naming: Naming,
    statements: &'a Statements,
    /// When its reads must have ended, if they must.
    limit: Option<StatementLimit>,
    wake_ups: WakeUps,
    /// Statements that are sent together with the next one.
    queued: Vec<QueuedStatement<'static>>,
    /// The first error of the server or the network. After it the transaction can't go on.
    failure: Option<Failure>,
    /// What is known about the commit, if it was sent together with a statement.
    commit: Option<Commit>,
}

impl<'a> PostgresConnection<'a> {
    pub(super) fn new(session: &'a mut Session, naming: Naming, statements: &'a Statements) -> Self {
        let Session { client, prepared, .. } = session;
        PostgresConnection {
            client,
            prepared,
            naming,
            statements,
            limit: None,
            wake_ups: WakeUps::NONE,
            queued: Vec::new(),
            failure: None,
            commit: None,
        }
    }

    /// Keeps the deadline of this thread, if the transaction is one that began with it.
    pub(super) fn with_deadline(self, purpose: Purpose) -> Self {
        let limit = match purpose {
            Purpose::ReadAtMost { statement_max_ms } => {
                ReadDeadline::of_this_thread().map(|deadline| StatementLimit { deadline, statement_max_ms })
            }
            Purpose::Read | Purpose::Write => None,
        };
        PostgresConnection { limit, ..self }
    }

    /// The time that the server gives each statement now, for a transaction that keeps a deadline.
    pub(super) fn statement_max_ms(&self) -> Option<i64> {
        self.limit.as_ref().map(|limit| limit.statement_max_ms)
    }

    /// What is known about the commit, if it was sent together with a statement.
    pub(super) fn take_commit(&mut self) -> Option<Commit> {
        self.commit.take()
    }

    fn check_not_committed(&self, statement: Statement) -> Result<()> {
        match self.commit {
            Some(_) => Err(Error::internal(statement.summary(), "its transaction is committed already")),
            None => Ok(()),
        }
    }

    /// Gives the next statement no more time than is left until the deadline.
    fn keep_deadline(&mut self) -> Result<()> {
        let Some(StatementLimit { deadline, statement_max_ms }) = &mut self.limit else { return Ok(()) };
        let left_ms = deadline.left_ms()?;
        if statement_max_ms.saturating_sub(left_ms) <= LIMIT_EXCESS_MAX_MS {
            return Ok(());
        }
        *statement_max_ms = left_ms;
        let set = format!("SET LOCAL statement_timeout = {left_ms}");
        self.client.batch_execute(&set).map_err(|error| self.fail("limit the next statement", &error))
    }

    /// The wake-ups for what was changed so far.
    pub(super) fn wake_ups(&self) -> WakeUps {
        self.wake_ups
    }

    /// The error that ended the transaction, if there was one.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.failure
    }

    fn fail(&mut self, operation: &str, error: &postgres::Error) -> Error {
        let failure = if self.client.has_begun() {
            Failure::of(error)
        } else if self.client.is_without_transaction() {
            Failure::NoTransaction
        } else {
            Failure::of_preamble(error)
        };
        self.failure.get_or_insert(failure);
        from_postgres(operation, error)
    }

    /// The prepared statement, if statements have names in this transaction.
    fn prepare(
        &mut self,
        statement: Statement,
        text: &str,
        bound: &[(Bound<'_>, Type)],
    ) -> std::result::Result<Option<postgres::Statement>, postgres::Error> {
        match self.naming {
            Naming::Named => {
                let types: Vec<Type> = bound.iter().map(|(_value, kind)| kind.clone()).collect();
                self.prepared.statement(self.client, statement.key(), text, &types)
            }
            Naming::Unnamed => Ok(None),
        }
    }

    /// Sends the queued statements, for which there is no next statement.
    ///
    /// # Errors
    /// The server's error.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.queued.is_empty() { Ok(()) } else { self.query_all(&mut []) }
    }

    /// Prepares statements, if statements have names in this transaction.
    fn prepare_all<'w>(
        &mut self,
        batch: &'w [QueuedStatement<'w>],
    ) -> Result<Vec<StatementCall<'w, &'w Bound<'w>>>> {
        let mut calls = Vec::with_capacity(batch.len());
        for QueuedStatement { statement, text, bound } in batch {
            let prepared = self.prepare(*statement, text, bound);
            let prepared = prepared.map_err(|error| self.fail(&statement.summary(), &error))?;
            let bound: Vec<(&Bound<'_>, Type)> =
                bound.iter().map(|(value, kind)| (value, kind.clone())).collect();
            calls.push(StatementCall { text, statement: prepared, bound });
        }
        Ok(calls)
    }

    /// Sends statements together, and returns the rows of each.
    fn send_all(&mut self, batch: &[QueuedStatement<'_>]) -> Result<Vec<Vec<postgres::Row>>> {
        let calls = self.prepare_all(batch)?;
        self.client.send_all(calls).map_err(|failed| self.fail_at(batch, &failed))
    }

    fn fail_at(&mut self, batch: &[QueuedStatement<'_>], (index, error): &(usize, postgres::Error)) -> Error {
        let failed = batch.get(*index).map_or_else(String::new, |failed| failed.statement.summary());
        self.fail(&failed, error)
    }

    fn stream_rows(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        on_row: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> std::result::Result<(), RowsError> {
        let text = self.statements.text(statement);
        let bound = bind(&text, parameters);
        let statement = self.prepare(statement, &text, &bound).map_err(RowsError::Database)?;
        let mut rows =
            self.client.send(StatementCall { text: &text, statement, bound }).map_err(RowsError::Database)?;
        while let Some(row) = self.client.next(&mut rows).map_err(RowsError::Database)? {
            on_row(&PostgresRow { row: &row }).map_err(RowsError::Reader)?;
        }
        Ok(())
    }

    fn count(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
    ) -> std::result::Result<u64, postgres::Error> {
        let text = self.statements.text(statement);
        let bound = bind(&text, parameters);
        match self.prepare(statement, &text, &bound)? {
            Some(statement) => {
                let values: Vec<&(dyn ToSql + Sync)> =
                    bound.iter().map(|(value, _kind)| value as &(dyn ToSql + Sync)).collect();
                self.client.execute(&statement, &values)
            }
            None => {
                let typed: Vec<(&(dyn ToSql + Sync), Type)> =
                    bound.iter().map(|(value, kind)| (value as &(dyn ToSql + Sync), kind.clone())).collect();
                self.client.execute_typed(&text, &typed)
            }
        }
    }
}

/// Why the reading of rows ended early.
enum RowsError {
    Database(postgres::Error),
    Reader(Error),
}

impl Connection for PostgresConnection<'_> {
    fn run(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        on_row: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        self.check_not_committed(statement)?;
        self.keep_deadline()?;
        if !self.queued.is_empty() {
            return self.query_all(&mut [Query { statement, parameters, on_row }]);
        }
        match self.stream_rows(statement, parameters, on_row) {
            Ok(()) => Ok(()),
            Err(RowsError::Database(error)) => Err(self.fail(&statement.summary(), &error)),
            Err(RowsError::Reader(error)) => Err(error),
        }
    }

    fn insert_returning_ids_and_commit(
        &mut self,
        sql: &'static str,
        parameters: &[Value<'_>],
    ) -> Result<Vec<i64>> {
        let statement = Statement::InsertReturningIds(sql);
        self.check_not_committed(statement)?;
        if self.naming == Naming::Unnamed {
            // Behind a pooler a commit whose answer was lost could reach the session at any later time.
            return self.insert_returning_ids(sql, parameters);
        }
        let mut batch: Vec<QueuedStatement<'_>> = std::mem::take(&mut self.queued);
        let text = self.statements.text(statement);
        let bound = bind(&text, parameters);
        batch.push(QueuedStatement { statement, text, bound });
        let calls = self.prepare_all(&batch)?;
        let (answers, commit) = self.client.send_all_and_commit(calls);
        self.commit = commit;
        let answers = answers.map_err(|failed| self.fail_at(&batch, &failed))?;
        let inserted = answers.last().map_or(&[][..], Vec::as_slice);
        let mut ids = inserted
            .iter()
            .map(|row| (&PostgresRow { row } as &dyn Row).integer(0))
            .collect::<Result<Vec<i64>>>()?;
        ids.sort_unstable();
        Ok(ids)
    }

    fn query_all(&mut self, queries: &mut [Query<'_>]) -> Result<()> {
        if let Some(first) = queries.first() {
            self.check_not_committed(first.statement)?;
            self.keep_deadline()?;
        }
        let mut batch: Vec<QueuedStatement<'_>> = std::mem::take(&mut self.queued);
        let before = batch.len();
        for Query { statement, parameters, .. } in &*queries {
            let text = self.statements.text(*statement);
            let bound = bind(&text, parameters);
            batch.push(QueuedStatement { statement: *statement, text, bound });
        }
        let answers = self.send_all(&batch)?;
        for (query, rows) in queries.iter_mut().zip(answers.iter().skip(before)) {
            for row in rows {
                (query.on_row)(&PostgresRow { row })?;
            }
        }
        Ok(())
    }

    fn execute_with_next(&mut self, sql: &'static str, parameters: &[Value<'_>]) -> Result<()> {
        if self.queued.len() >= QUEUED_MAX {
            self.flush()?;
        }
        let statement = Statement::Plain(sql);
        let text = self.statements.text(statement);
        let bound = bind(&text, parameters).into_iter().map(|(value, kind)| (value.into_owned(), kind));
        self.queued.push(QueuedStatement { statement, bound: bound.collect(), text });
        Ok(())
    }

    fn execute(&mut self, sql: &'static str, parameters: &[Value<'_>]) -> Result<u64> {
        self.check_not_committed(Statement::Plain(sql))?;
        self.flush()?;
        self.count(Statement::Plain(sql), parameters).map_err(|error| self.fail(summary(sql), &error))
    }

    fn batch(&mut self, sql: &str) -> Result<()> {
        self.flush()?;
        self.client.batch_execute(sql).map_err(|error| self.fail(summary(sql), &error))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn wake(&mut self, wake_ups: WakeUps) {
        self.wake_ups = self.wake_ups | wake_ups;
    }
}

struct PostgresRow<'a> {
    row: &'a postgres::Row,
}

impl PostgresRow<'_> {
    fn get<'a, T: postgres::types::FromSql<'a>>(&'a self, column: usize) -> Result<T> {
        self.row
            .try_get(column)
            .map_err(|error| Error::internal(format!("read column {column}"), error.to_string()))
    }
}

impl Row for PostgresRow<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>> {
        let kind = self.row.columns().get(column).map(postgres::Column::type_);
        Ok(match kind {
            Some(&Type::INT8) => self.get::<Option<i64>>(column)?.into(),
            Some(&Type::INT4) => self.get::<Option<i32>>(column)?.map(i64::from).into(),
            Some(&Type::BOOL) => self.get::<Option<bool>>(column)?.map(i64::from).into(),
            Some(&Type::TEXT | &Type::VARCHAR | &Type::NAME) => self.get::<Option<&str>>(column)?.into(),
            Some(&Type::FLOAT8) => self.get::<Option<f64>>(column)?.map_or(Value::Null, Value::Real),
            Some(other) => return Err(unexpected(column, other.name())),
            None => return Err(unexpected(column, "no such column")),
        })
    }

    fn lossy_text(&self, column: usize) -> Result<Option<String>> {
        // The server stores only valid UTF-8.
        match self.value(column)? {
            Value::Null => Ok(None),
            Value::Text(text) => Ok(Some(text.to_owned())),
            Value::Integer(_) | Value::Real(_) | Value::Rows { .. } => Err(unexpected(column, "no text")),
        }
    }
}

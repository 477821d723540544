//! A SQLite connection inside a transaction, as the seam sees it.

use std::collections::HashMap;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, ToSql};

use super::error::from_sqlite;
use crate::db::dialect::FIRST_OF_ROWS;
use crate::db::value::unexpected;
use crate::db::{Connection, Dialect, Row, Value};
use crate::error::{Error, Result};
use crate::signal::Hints;

/// The names by which parameters are bound: SQLite numbers `$1` by first appearance, not by its digits.
const PARAMETER_NAMES: [&str; 32] = [
    "$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12", "$13", "$14", "$15", "$16",
    "$17", "$18", "$19", "$20", "$21", "$22", "$23", "$24", "$25", "$26", "$27", "$28", "$29", "$30", "$31",
    "$32",
];

/// A set of rows is bound in parts of these sizes, the last one to less than it has room for: a statement is
/// compiled once for each size that occurs.
const PART_SIZES: [usize; 5] = [1, 8, 32, 128, 512];

/// Translated statements of one connection, kept between transactions where it pays; by text and rows.
#[derive(Default)]
pub(super) struct Statements {
    translated: HashMap<(&'static str, usize), String>,
}

/// Runs statements inside a transaction that somebody else began and will end.
pub(super) struct SqliteConnection<'a> {
    raw: &'a rusqlite::Connection,
    statements: &'a mut Statements,
    hints: Hints,
}

/// A part of a set of rows, as the values of its rows.
#[derive(Debug, Clone, Copy)]
struct Part<'p> {
    values: &'p [Value<'p>],
    width: usize,
}

impl<'a> SqliteConnection<'a> {
    pub(super) fn new(raw: &'a rusqlite::Connection, statements: &'a mut Statements) -> Self {
        SqliteConnection { raw, statements, hints: Hints::NONE }
    }

    /// What the operations so far changed.
    pub(super) fn hints(&self) -> Hints {
        self.hints
    }

    /// Calls `run` with the statement and its parameters bound: once, or for each part of the rows.
    fn each_part(
        &mut self,
        sql: &'static str,
        parameters: &[Value<'_>],
        mut run: impl FnMut(&mut CachedStatement<'_>) -> Result<()>,
    ) -> Result<()> {
        let rows = parameters.iter().find_map(|parameter| match parameter {
            Value::Rows { values, width } => Some((*values, (*width).max(1))),
            Value::Null | Value::Integer(_) | Value::Real(_) | Value::Text(_) => None,
        });
        let Some((values, width)) = rows else {
            return run(&mut self.prepare(sql, 1, parameters, None)?);
        };
        let largest = PART_SIZES[PART_SIZES.len() - 1];
        for values in values.chunks(largest * width) {
            let count = values.len() / width;
            let room = PART_SIZES.into_iter().find(|size| *size >= count).unwrap_or(largest);
            run(&mut self.prepare(sql, room, parameters, Some(Part { values, width }))?)?;
        }
        Ok(())
    }

    fn prepare(
        &mut self,
        sql: &'static str,
        room: usize,
        parameters: &[Value<'_>],
        part: Option<Part<'_>>,
    ) -> Result<CachedStatement<'a>> {
        let translated = self
            .statements
            .translated
            .entry((sql, room))
            .or_insert_with(|| Dialect::Sqlite.translate_for(sql, room));
        let failed = |error: rusqlite::Error| from_sqlite(summary(sql), &error);
        let mut statement = self.raw.prepare_cached(translated).map_err(failed)?;
        for (name, value) in PARAMETER_NAMES.iter().zip(parameters) {
            let index = index_of(&statement, sql, name)?;
            statement.raw_bind_parameter(index, Bound { value: *value, part }).map_err(failed)?;
        }
        if let Some(Part { values, .. }) = part {
            let first = index_of(&statement, sql, FIRST_OF_ROWS)?;
            // What is not bound is NULL.
            for (offset, value) in values.iter().enumerate().filter(|(_offset, value)| **value != Value::Null)
            {
                statement
                    .raw_bind_parameter(first + offset, Bound { value: *value, part: None })
                    .map_err(failed)?;
            }
        }
        Ok(statement)
    }
}

fn index_of(statement: &CachedStatement<'_>, sql: &str, name: &str) -> Result<usize> {
    statement
        .parameter_index(name)
        .map_err(|error| from_sqlite(summary(sql), &error))?
        .ok_or_else(|| Error::internal(summary(sql), format!("it has no parameter {name}")))
}

impl Connection for SqliteConnection<'_> {
    fn query(
        &mut self,
        sql: &'static str,
        parameters: &[Value<'_>],
        on_row: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        self.each_part(sql, parameters, |statement| {
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next().map_err(|error| from_sqlite(summary(sql), &error))? {
                on_row(&SqliteRow { row })?;
            }
            Ok(())
        })
    }

    fn execute(&mut self, sql: &'static str, parameters: &[Value<'_>]) -> Result<u64> {
        let mut changed = 0;
        self.each_part(sql, parameters, |statement| {
            changed += statement.raw_execute().map_err(|error| from_sqlite(summary(sql), &error))?;
            Ok(())
        })?;
        Ok(changed as u64)
    }

    fn batch(&mut self, sql: &str) -> Result<()> {
        self.raw.execute_batch(sql).map_err(|error| from_sqlite(summary(sql), &error))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn hint(&mut self, hints: Hints) {
        self.hints = self.hints | hints;
    }
}

/// The first words of a statement, which say enough in an error.
fn summary(sql: &str) -> &str {
    let end = sql.char_indices().map(|(index, _)| index).take_while(|index| *index <= 60).last().unwrap_or(0);
    sql[..end].split('\n').next().unwrap_or_default().trim_end()
}

/// A value to be bound; in place of a set of rows stands how many the part has.
struct Bound<'a> {
    value: Value<'a>,
    part: Option<Part<'a>>,
}

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.value {
            Value::Null => ValueRef::Null,
            Value::Integer(value) => ValueRef::Integer(value),
            Value::Real(value) => ValueRef::Real(value),
            Value::Text(value) => ValueRef::Text(value.as_bytes()),
            Value::Rows { .. } => {
                let count = self.part.map_or(0, |part| part.values.len() / part.width);
                ValueRef::Integer(i64::try_from(count).unwrap_or(i64::MAX))
            }
        }))
    }
}

struct SqliteRow<'a> {
    row: &'a rusqlite::Row<'a>,
}

impl Row for SqliteRow<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>> {
        let value = self.row.get_ref(column).map_err(|error| from_sqlite("read a column", &error))?;
        match value {
            ValueRef::Null => Ok(Value::Null),
            ValueRef::Integer(value) => Ok(Value::Integer(value)),
            ValueRef::Real(value) => Ok(Value::Real(value)),
            ValueRef::Text(bytes) => std::str::from_utf8(bytes)
                .map(Value::Text)
                .map_err(|error| Error::internal(format!("read column {column}"), error.to_string())),
            ValueRef::Blob(_) => {
                Err(Error::internal(format!("read column {column}"), "a blob, where none is stored"))
            }
        }
    }

    fn lossy_text(&self, column: usize) -> Result<Option<String>> {
        let value = self.row.get_ref(column).map_err(|error| from_sqlite("read a column", &error))?;
        match value {
            ValueRef::Null => Ok(None),
            ValueRef::Text(bytes) => Ok(Some(String::from_utf8_lossy(bytes).into_owned())),
            ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => {
                Err(unexpected(column, "no text"))
            }
        }
    }
}

//! [`Connection`] for SQLite, inside a transaction.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, ToSql};

use super::error::from_sqlite;
use super::statements::Statements;
use crate::dialect::{FIRST_ROWS_PARAMETER, RowsLayout, constant_parameter};
use crate::error::{Error, Result};
use crate::statement::SqliteTexts;
use crate::value::unexpected;
use crate::{Connection, Dialect, Row, Statement, Value, summary};
use windlass_system::wake_ups::WakeUps;

/// The names by which parameters are bound. SQLite numbers parameters by first appearance, not by the digits of `$1`.
const PARAMETER_NAMES: [&str; 32] = [
    "$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9", "$10", "$11", "$12", "$13", "$14", "$15", "$16",
    "$17", "$18", "$19", "$20", "$21", "$22", "$23", "$24", "$25", "$26", "$27", "$28", "$29", "$30", "$31",
    "$32",
];

/// A set of rows is bound in chunks of these sizes, so that a statement is compiled only once for each size. The last chunk
/// may have fewer rows than its statement has parameters for.
const CHUNK_SIZES: [usize; 5] = [1, 8, 32, 128, 512];

/// Runs statements inside a transaction. The caller begins and ends the transaction.
pub(super) struct SqliteConnection<'a> {
    raw: &'a rusqlite::Connection,
    statements: &'a mut Statements,
    wake_ups: WakeUps,
}

/// For chunks of at least this many rows a separate statement is used in which each constant column is one parameter.
const CONSTANT_COLUMNS_ROWS_MIN: usize = 32;

/// A part of a set of rows, and the layout of its statement.
#[derive(Debug, Clone, Copy)]
struct RowsChunk<'p> {
    values: &'p [Value<'p>],
    width: usize,
    layout: RowsLayout,
}

impl<'p> RowsChunk<'p> {
    fn new(values: &'p [Value<'p>], width: usize) -> RowsChunk<'p> {
        let rows = values.len() / width;
        let largest = CHUNK_SIZES[CHUNK_SIZES.len() - 1];
        let layout_rows = CHUNK_SIZES.into_iter().find(|size| *size >= rows).unwrap_or(largest);
        let constant_columns =
            if rows >= CONSTANT_COLUMNS_ROWS_MIN { find_constant_columns(values, width) } else { 0 };
        RowsChunk { values, width, layout: RowsLayout { rows: layout_rows, constant_columns } }
    }
}

/// The columns that have the same value in all rows, one bit for each. Never the first column.
fn find_constant_columns(values: &[Value<'_>], width: usize) -> u64 {
    let (first, others) = values.split_at(width);
    // The first column is usually an id, which differs from row to row.
    (1..width.min(u64::BITS as usize))
        .filter(|column| others.chunks_exact(width).all(|row| row[*column] == first[*column]))
        .fold(0, |same, column| same | 1 << column)
}

impl<'a> SqliteConnection<'a> {
    pub(super) fn new(raw: &'a rusqlite::Connection, statements: &'a mut Statements) -> Self {
        SqliteConnection { raw, statements, wake_ups: WakeUps::NONE }
    }

    /// The wake-ups for what was changed so far.
    pub(super) fn wake_ups(&self) -> WakeUps {
        self.wake_ups
    }
}

/// One execution of a statement: its parameters, and the rows of one chunk.
#[derive(Clone, Copy)]
struct Call<'c> {
    raw: &'c rusqlite::Connection,
    statement: Statement,
    parameters: &'c [Value<'c>],
    chunk: Option<RowsChunk<'c>>,
}

impl<'c> Call<'c> {
    fn layout(self) -> RowsLayout {
        self.chunk.map_or(RowsLayout::rows(1), |chunk| chunk.layout)
    }

    fn explain(self, error: &rusqlite::Error) -> Error {
        from_sqlite(&self.statement.summary(), error)
    }

    /// Prepares a text of the statement, and binds its parameters.
    fn prepare(self, text: &str) -> Result<CachedStatement<'c>> {
        let failed = |error: rusqlite::Error| self.explain(&error);
        let mut statement = self.raw.prepare_cached(text).map_err(failed)?;
        for (name, value) in PARAMETER_NAMES.iter().zip(self.parameters) {
            // A text need not use every parameter of its statement. No text uses the number of a set of rows.
            if let Some(index) = statement.parameter_index(name).map_err(failed)? {
                statement.raw_bind_parameter(index, Bound(*value)).map_err(failed)?;
            }
        }
        if let Some(chunk) = self.chunk {
            self.bind_rows(&mut statement, chunk)?;
        }
        Ok(statement)
    }

    /// Binds the values of a chunk: constant columns once, the others for each row.
    fn bind_rows(self, statement: &mut CachedStatement<'_>, chunk: RowsChunk<'_>) -> Result<()> {
        let failed = |error: rusqlite::Error| self.explain(&error);
        let no_parameter = || Error::internal(self.statement.summary(), "it has no parameters for its rows");
        let index_of = |name: &str| statement.parameter_index(name).map_err(failed)?.ok_or_else(no_parameter);
        let RowsChunk { values, width, layout } = chunk;
        if values.iter().step_by(width).any(|first| *first == Value::Null) {
            return Err(Error::internal(self.statement.summary(), "a row of its set begins with NULL"));
        }
        let (same, differing): (Vec<usize>, Vec<usize>) =
            (0..width).partition(|column| layout.is_constant(*column));
        let shared: Vec<(usize, Value<'_>)> = same
            .into_iter()
            .map(|column| Ok((index_of(&constant_parameter(column))?, values[column])))
            .collect::<Result<_>>()?;
        let first = index_of(FIRST_ROWS_PARAMETER)?;
        let others = values.chunks_exact(width).flat_map(|row| differing.iter().map(|column| row[*column]));
        let others = others.enumerate().map(|(offset, value)| (first + offset, value));
        // A parameter that is not bound is NULL.
        for (index, value) in shared.into_iter().chain(others).filter(|(_index, value)| *value != Value::Null)
        {
            statement.raw_bind_parameter(index, Bound(value)).map_err(failed)?;
        }
        Ok(())
    }

    /// Hands each row to `on_row`. Returns the number of rows.
    fn query(self, text: &str, on_row: &mut dyn FnMut(&dyn Row) -> Result<()>) -> Result<usize> {
        let mut statement = self.prepare(text)?;
        let mut rows = statement.raw_query();
        let mut found = 0;
        while let Some(row) = rows.next().map_err(|error| self.explain(&error))? {
            on_row(&SqliteRow { row })?;
            found += 1;
        }
        Ok(found)
    }

    fn execute(self, text: &str) -> Result<usize> {
        self.prepare(text)?.raw_execute().map_err(|error| self.explain(&error))
    }

    /// Reads rows with their new values, and then updates them: see [`crate::UpdateReturning`].
    fn read_then_update(
        self,
        read: &str,
        update: &str,
        on_row: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        let found = self.query(read, on_row)?;
        let changed = if found > 0 { self.execute(update)? } else { 0 };
        if changed == found {
            return Ok(());
        }
        let reason = format!("{found} rows were found, and {changed} were changed");
        Err(Error::internal(self.statement.summary(), reason))
    }

    /// Inserts rows, whose ids follow each other.
    fn insert(self, text: &str, on_row: &mut dyn FnMut(&dyn Row) -> Result<()>) -> Result<()> {
        let changes_before = self.raw.total_changes();
        let inserted = self.execute(text)?;
        if inserted > 1 && self.raw.total_changes() - changes_before > inserted as u64 {
            self.check_triggers(text)?;
        }
        let inserted = i64::try_from(inserted).unwrap_or(i64::MAX);
        let last = self.raw.last_insert_rowid();
        (last - inserted + 1..=last).try_for_each(|id| on_row(&NewId(id)))
    }

    /// To be called when a trigger wrote rows during an insert. Returns an error if a trigger inserts into the same table,
    /// because then the ids of the new rows do not follow each other.
    fn check_triggers(self, insert: &str) -> Result<()> {
        let table = insert.split_whitespace().nth(2).unwrap_or_default();
        let triggers = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'";
        Call { parameters: &[], chunk: None, ..self }.query(triggers, &mut |row| {
            if !inserts_into(&row.lossy_text(1)?.unwrap_or_default(), table) {
                return Ok(());
            }
            let name = row.lossy_text(0)?.unwrap_or_default();
            let reason = format!(
                "the trigger `{name}` inserts into {table} too, so the ids of the inserted rows are not known: \
                 drop the trigger, or let it insert into another table"
            );
            Err(Error::invalid(self.statement.summary(), reason))
        })
        .map(|_triggers| ())
    }
}

/// Whether a trigger's text has an insert into a table.
fn inserts_into(trigger: &str, table: &str) -> bool {
    let words: Vec<&str> = trigger
        .split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty())
        .collect();
    words.windows(2).any(|pair| pair[0].eq_ignore_ascii_case("into") && pair[1].eq_ignore_ascii_case(table))
}

/// Splits the rows of a call into chunks. A call without rows is one `None`.
fn chunks<'p>(parameters: &'p [Value<'p>]) -> Vec<Option<RowsChunk<'p>>> {
    let rows = parameters.iter().find_map(|parameter| match parameter {
        Value::Rows { values, width } => Some((*values, (*width).max(1))),
        Value::Null | Value::Integer(_) | Value::Real(_) | Value::Text(_) => None,
    });
    let Some((values, width)) = rows else { return vec![None] };
    let largest = CHUNK_SIZES[CHUNK_SIZES.len() - 1];
    values.chunks(largest * width).map(|values| Some(RowsChunk::new(values, width))).collect()
}

impl Connection for SqliteConnection<'_> {
    fn run(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        on_row: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        for chunk in chunks(parameters) {
            let call = Call { raw: self.raw, statement, parameters, chunk };
            match self.statements.texts(statement, call.layout()) {
                SqliteTexts::Query(text) => call.query(text, on_row).map(|_found| ())?,
                SqliteTexts::ReadThenUpdate { read, update } => {
                    call.read_then_update(read, update, on_row)?
                }
                SqliteTexts::Insert(text) => call.insert(text, on_row)?,
            }
        }
        Ok(())
    }

    fn execute(&mut self, sql: &'static str, parameters: &[Value<'_>]) -> Result<u64> {
        let statement = Statement::Plain(sql);
        let mut changed = 0;
        for chunk in chunks(parameters) {
            let call = Call { raw: self.raw, statement, parameters, chunk };
            changed += match self.statements.texts(statement, call.layout()) {
                SqliteTexts::Query(text)
                | SqliteTexts::Insert(text)
                | SqliteTexts::ReadThenUpdate { update: text, .. } => call.execute(text)?,
            };
        }
        Ok(changed as u64)
    }

    fn batch(&mut self, sql: &str) -> Result<()> {
        self.raw.execute_batch(sql).map_err(|error| from_sqlite(summary(sql), &error))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn wake(&mut self, wake_ups: WakeUps) {
        self.wake_ups = self.wake_ups | wake_ups;
    }
}

/// A value that is bound to a parameter.
struct Bound<'a>(Value<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Integer(value) => ValueRef::Integer(value),
            Value::Real(value) => ValueRef::Real(value),
            Value::Text(value) => ValueRef::Text(value.as_bytes()),
            // Not bound itself: its values are bound one by one.
            Value::Rows { .. } => ValueRef::Null,
        }))
    }
}

/// A row with the id of an inserted row.
struct NewId(i64);

impl Row for NewId {
    fn value(&self, column: usize) -> Result<Value<'_>> {
        match column {
            0 => Ok(Value::Integer(self.0)),
            _ => Err(unexpected(column, "nothing: only the id of a new row is returned")),
        }
    }

    fn lossy_text(&self, column: usize) -> Result<Option<String>> {
        Err(unexpected(column, "no text"))
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

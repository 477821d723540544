//! The values of parameters and columns, and functions that read rows.

use crate::error::{Error, Result};
use crate::{Connection, UpdateReturning};

/// A value of a parameter or a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// A whole number; flags are 0 and 1.
    Integer(i64),
    /// A fraction.
    Real(f64),
    /// Text, including JSON.
    Text(&'a str),
    /// A set of rows for `{rows $1: …}`, only as a parameter. The first value of each row is never NULL.
    Rows {
        /// The values of all rows, one row after the other.
        values: &'a [Value<'a>],
        /// How many values a row has.
        width: usize,
    },
}

impl<'a> Value<'a> {
    /// A set of rows. A statement must treat each row separately, because SQLite may run it several times, for a part of the
    /// rows each time.
    #[must_use]
    pub fn rows<const WIDTH: usize>(rows: &'a [[Value<'a>; WIDTH]]) -> Value<'a> {
        Value::Rows { values: rows.as_flattened(), width: WIDTH }
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Integer(value)
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(value: Option<i64>) -> Self {
        value.map_or(Value::Null, Value::Integer)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Value::Text(value)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Value::Text(value)
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(value: Option<&'a str>) -> Self {
        value.map_or(Value::Null, Value::Text)
    }
}

impl<'a> From<&'a Option<String>> for Value<'a> {
    fn from(value: &'a Option<String>) -> Self {
        value.as_deref().map_or(Value::Null, Value::Text)
    }
}

/// A row of a result. Columns count from 0.
pub trait Row {
    /// The value of a column.
    ///
    /// # Errors
    /// When there is no such column or its type is none of [`Value`].
    fn value(&self, column: usize) -> Result<Value<'_>>;

    /// Text to show to people, or NULL. Bytes that are not UTF-8, which other programs may write, become U+FFFD. For text that
    /// decides something use [`Row::value`], which refuses such bytes.
    ///
    /// # Errors
    /// When there is no such column or it holds something else.
    fn lossy_text(&self, column: usize) -> Result<Option<String>>;
}

impl dyn Row + '_ {
    /// A whole number that is always there.
    ///
    /// # Errors
    /// When the column holds something else.
    pub fn integer(&self, column: usize) -> Result<i64> {
        self.optional_integer(column)?.ok_or_else(|| unexpected(column, "NULL"))
    }

    /// A whole number or NULL.
    ///
    /// # Errors
    /// When the column holds something else.
    pub fn optional_integer(&self, column: usize) -> Result<Option<i64>> {
        match self.value(column)? {
            Value::Null => Ok(None),
            Value::Integer(value) => Ok(Some(value)),
            Value::Real(_) => Err(unexpected(column, "a fraction")),
            Value::Text(_) => Err(unexpected(column, "text")),
            Value::Rows { .. } => Err(unexpected(column, "rows")),
        }
    }

    /// Text that is always there.
    ///
    /// # Errors
    /// When the column holds something else.
    pub fn text(&self, column: usize) -> Result<String> {
        self.optional_text(column)?.ok_or_else(|| unexpected(column, "NULL"))
    }

    /// Text or NULL.
    ///
    /// # Errors
    /// When the column holds something else.
    pub fn optional_text(&self, column: usize) -> Result<Option<String>> {
        match self.value(column)? {
            Value::Null => Ok(None),
            Value::Text(value) => Ok(Some(value.to_owned())),
            Value::Integer(_) | Value::Real(_) => Err(unexpected(column, "a number")),
            Value::Rows { .. } => Err(unexpected(column, "rows")),
        }
    }

    /// A text that `parse` converts. `None` from `parse` is an error.
    ///
    /// # Errors
    /// When the column holds something else.
    pub fn parsed<T>(&self, column: usize, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
        match self.value(column)? {
            Value::Text(value) => parse(value).ok_or_else(|| unexpected(column, value)),
            Value::Null | Value::Integer(_) | Value::Real(_) | Value::Rows { .. } => {
                Err(unexpected(column, "no text"))
            }
        }
    }
}

pub(super) fn unexpected(column: usize, found: &str) -> Error {
    Error::internal(format!("read column {column}"), format!("unexpected value: {found}"))
}

/// Reads every row.
///
/// # Errors
/// The database's or those of `read`.
pub fn all<T>(
    connection: &mut dyn Connection,
    sql: &'static str,
    parameters: &[Value<'_>],
    mut read: impl FnMut(&dyn Row) -> Result<T>,
) -> Result<Vec<T>> {
    let mut rows = Vec::new();
    connection.query(sql, parameters, &mut |row| {
        rows.push(read(row)?);
        Ok(())
    })?;
    Ok(rows)
}

/// Updates rows and reads each of them as it is after the update: see [`UpdateReturning`].
///
/// # Errors
/// The database's or those of `read`.
pub fn all_updated<T>(
    connection: &mut dyn Connection,
    update: &'static UpdateReturning,
    parameters: &[Value<'_>],
    mut read: impl FnMut(&dyn Row) -> Result<T>,
) -> Result<Vec<T>> {
    let mut rows = Vec::new();
    connection.update_returning(update, parameters, &mut |row| {
        rows.push(read(row)?);
        Ok(())
    })?;
    Ok(rows)
}

/// Reads the first row, if there is one.
///
/// # Errors
/// The database's or those of `read`.
pub fn first<T>(
    connection: &mut dyn Connection,
    sql: &'static str,
    parameters: &[Value<'_>],
    mut read: impl FnMut(&dyn Row) -> Result<T>,
) -> Result<Option<T>> {
    let mut found = None;
    connection.query(sql, parameters, &mut |row| {
        if found.is_none() {
            found = Some(read(row)?);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Reads the row that a statement always returns.
///
/// # Errors
/// The database's, those of `read`, or that there was no row.
pub fn one<T>(
    connection: &mut dyn Connection,
    sql: &'static str,
    parameters: &[Value<'_>],
    read: impl FnMut(&dyn Row) -> Result<T>,
) -> Result<T> {
    first(connection, sql, parameters, read)?
        .ok_or_else(|| Error::internal("read one row", format!("no row from: {sql}")))
}

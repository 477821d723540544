//! A row of a result. Each value is a text, on both databases, and is converted when the test reads it.

use crate::sql::{Result, SqlError};

/// A row of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    columns: Vec<(String, Option<String>)>,
}

impl Row {
    pub(crate) fn new(columns: Vec<(String, Option<String>)>) -> Row {
        Row { columns }
    }

    /// The value of a column, by its name or by its number from 0.
    ///
    /// # Errors
    /// When there is no such column, or its value has another type.
    pub fn get<C: Column, T: Field>(&self, column: C) -> Result<T> {
        let (name, value) = column
            .find(&self.columns)
            .ok_or_else(|| SqlError::new(format!("no column {column:?} in {:?}", self.columns)))?;
        T::from_field(value.as_deref()).ok_or_else(|| {
            SqlError::new(format!("column {name} is {value:?} and no {}", std::any::type_name::<T>()))
        })
    }
}

/// A name or a number of a column.
pub trait Column: std::fmt::Debug {
    /// Finds the column among all columns of a row.
    fn find<'a>(&self, columns: &'a [(String, Option<String>)]) -> Option<&'a (String, Option<String>)>;
}

impl Column for usize {
    fn find<'a>(&self, columns: &'a [(String, Option<String>)]) -> Option<&'a (String, Option<String>)> {
        columns.get(*self)
    }
}

impl Column for &str {
    fn find<'a>(&self, columns: &'a [(String, Option<String>)]) -> Option<&'a (String, Option<String>)> {
        columns.iter().find(|(name, _)| name == self)
    }
}

/// A type to which a value can be converted.
pub trait Field: Sized {
    /// Converts a text, or NULL.
    fn from_field(text: Option<&str>) -> Option<Self>;
}

impl Field for i64 {
    fn from_field(text: Option<&str>) -> Option<i64> {
        text?.parse().ok()
    }
}

impl Field for String {
    fn from_field(text: Option<&str>) -> Option<String> {
        text.map(str::to_owned)
    }
}

impl Field for bool {
    fn from_field(text: Option<&str>) -> Option<bool> {
        // PostgreSQL has booleans, SQLite has numbers.
        match text? {
            "t" | "1" => Some(true),
            "f" | "0" => Some(false),
            _neither => None,
        }
    }
}

impl<T: Field> Field for Option<T> {
    fn from_field(text: Option<&str>) -> Option<Option<T>> {
        match text {
            None => Some(None),
            Some(_) => T::from_field(text).map(Some),
        }
    }
}

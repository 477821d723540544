//! Plain SQL on both databases, as another program would send it.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use postgres::SimpleQueryMessage;
use rusqlite::OpenFlags;
use rusqlite::types::ValueRef;
use windlass_test_server::Schema;

use crate::row::{Field, Row};

/// How long a statement waits for locks.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a connection may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It can only read.
    Read,
    /// It can write too.
    Write,
}

/// The message of the database about a statement that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError(String);

impl SqlError {
    pub(crate) fn new(text: String) -> SqlError {
        SqlError(text)
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for SqlError {}

impl From<rusqlite::Error> for SqlError {
    fn from(error: rusqlite::Error) -> SqlError {
        SqlError(error.to_string())
    }
}

impl From<postgres::Error> for SqlError {
    fn from(error: postgres::Error) -> SqlError {
        SqlError(error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string))
    }
}

/// The result of a statement, or the message of the database.
pub type Result<T> = std::result::Result<T, SqlError>;

/// A connection.
pub struct Sql {
    connection: Connection,
}

enum Connection {
    File(rusqlite::Connection),
    Schema(RefCell<postgres::Client>),
}

impl fmt::Debug for Sql {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sql").finish_non_exhaustive()
    }
}

impl Sql {
    pub(crate) fn open_file(path: &Path, access: Access) -> Sql {
        let flags = match access {
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        let connection = rusqlite::Connection::open_with_flags(path, flags)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        connection.busy_timeout(PATIENCE).expect("a timeout can be set");
        Sql { connection: Connection::File(connection) }
    }

    pub(crate) fn open_schema(schema: &Schema, access: Access) -> Sql {
        let mut client = schema.client();
        let is_reader = match access {
            Access::Read => "on",
            Access::Write => "off",
        };
        let settings = format!(
            "SET default_transaction_read_only = {is_reader}; SET lock_timeout = {}",
            PATIENCE.as_millis()
        );
        client.batch_execute(&settings).unwrap_or_else(|error| panic!("{settings}: {error}"));
        Sql { connection: Connection::Schema(RefCell::new(client)) }
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match &self.connection {
            Connection::File(_) => false,
            Connection::Schema(client) => client.borrow().is_closed(),
        }
    }

    /// Every row, converted by `make`.
    ///
    /// # Panics
    /// When the statement or `make` fails.
    pub fn rows<T>(&self, sql: &str, make: impl FnMut(&Row) -> Result<T>) -> Vec<T> {
        let made = self.query(sql).and_then(|rows| rows.iter().map(make).collect());
        made.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The first column of the first row.
    ///
    /// # Panics
    /// When the statement fails, or there is no such value.
    pub fn value<T: Field>(&self, sql: &str) -> T {
        let value = self.query(sql).and_then(|rows| {
            rows.first().ok_or_else(|| SqlError::new("no row".to_owned())).and_then(|row| row.get(0))
        });
        value.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Every row.
    ///
    /// # Errors
    /// When the statement fails.
    pub fn query(&self, sql: &str) -> Result<Vec<Row>> {
        match &self.connection {
            Connection::File(connection) => query_file(connection, sql),
            Connection::Schema(client) => query_schema(&mut client.borrow_mut(), sql),
        }
    }

    /// Runs statements.
    ///
    /// # Panics
    /// When one is refused.
    pub fn execute(&self, sql: &str) {
        self.try_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Runs statements.
    ///
    /// # Errors
    /// When one is refused.
    pub fn try_execute(&self, sql: &str) -> Result<()> {
        match &self.connection {
            Connection::File(connection) => connection.execute_batch(sql)?,
            Connection::Schema(client) => client.borrow_mut().batch_execute(sql)?,
        }
        Ok(())
    }

    /// Runs the statements for this kind of database.
    ///
    /// # Panics
    /// When one fails.
    pub fn execute_either(&self, sqlite: &str, postgres: &str) {
        match &self.connection {
            Connection::File(_) => self.execute(sqlite),
            Connection::Schema(_) => self.execute(postgres),
        }
    }

    /// Whether there is a table or a view of this name.
    #[must_use]
    pub fn has_table(&self, name: &str) -> bool {
        let sql = match &self.connection {
            Connection::File(_) => format!("SELECT count(*) FROM sqlite_master WHERE name = '{name}'"),
            Connection::Schema(_) => format!(
                "SELECT count(*) FROM information_schema.tables
                 WHERE table_schema = current_schema() AND table_name = '{name}'"
            ),
        };
        self.value::<i64>(&sql) == 1
    }
}

fn query_file(connection: &rusqlite::Connection, sql: &str) -> Result<Vec<Row>> {
    let mut statement = connection.prepare(sql)?;
    let names: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    let mut found = statement.query([])?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let columns = names.iter().enumerate().map(|(index, name)| {
            let text = match row.get_ref(index)? {
                ValueRef::Null => None,
                ValueRef::Integer(value) => Some(value.to_string()),
                ValueRef::Real(value) => Some(value.to_string()),
                ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
                ValueRef::Blob(_) => return Err(SqlError::new(format!("column {name} holds bytes"))),
            };
            Ok((name.clone(), text))
        });
        rows.push(Row::new(columns.collect::<Result<_>>()?));
    }
    Ok(rows)
}

fn query_schema(client: &mut postgres::Client, sql: &str) -> Result<Vec<Row>> {
    let messages = client.simple_query(sql)?;
    let mut rows = Vec::new();
    for message in &messages {
        if let SimpleQueryMessage::Row(row) = message {
            let columns = row.columns().iter().enumerate();
            let columns =
                columns.map(|(index, column)| (column.name().to_owned(), row.get(index).map(str::to_owned)));
            rows.push(Row::new(columns.collect()));
        }
    }
    Ok(rows)
}

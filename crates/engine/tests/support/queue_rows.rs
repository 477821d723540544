//! A SQLite database for one test, with the smallest rows there are: queues.

use std::path::Path;

use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_db::{Database, Value, WriteOperation, all};
use windlass_engine::{Error, TABLES};

/// Opens a file, or creates it.
pub fn open(path: &Path) -> Result<SqliteDatabase, Error> {
    SqliteDatabase::open(path, &TABLES, &SqliteOptions::default())
}

/// Inserts a queue.
pub fn insert(name: &'static str) -> WriteOperation {
    Box::new(move |connection| {
        connection.execute("INSERT INTO queues (name) VALUES ($1)", &[Value::Text(name)]).map(|_inserted| ())
    })
}

/// The names of all queues.
pub fn queues(database: &SqliteDatabase) -> Vec<String> {
    let mut names = Vec::new();
    database
        .read(&mut |connection| {
            names = all(connection, "SELECT name FROM queues ORDER BY name", &[], |row| row.text(0))?;
            Ok(())
        })
        .unwrap();
    names
}

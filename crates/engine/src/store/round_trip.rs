//! Reading with several statements in one round trip to the server.

use windlass_db::error::Result;
use windlass_db::{Connection, Query, Row, Statement, Value};

/// A statement and its parameters.
pub(in crate::store) type Asked<'v> = (&'static str, Vec<Value<'v>>);

/// The rows of each statement, in the order of the statements.
pub(in crate::store) fn rows_of_each<T>(
    connection: &mut dyn Connection,
    asked: &[Asked<'_>],
    read: impl Fn(&dyn Row) -> Result<T>,
) -> Result<Vec<Vec<T>>> {
    let mut rows: Vec<Vec<T>> = asked.iter().map(|_| Vec::new()).collect();
    let read = &read;
    let mut readers: Vec<_> = rows
        .iter_mut()
        .map(|rows| {
            move |row: &dyn Row| {
                rows.push(read(row)?);
                Ok(())
            }
        })
        .collect();
    let mut questions: Vec<Query<'_>> = asked
        .iter()
        .zip(&mut readers)
        .map(|((sql, parameters), on_row)| Query { statement: Statement::Plain(sql), parameters, on_row })
        .collect();
    connection.query_all(&mut questions)?;
    drop(questions);
    drop(readers);
    Ok(rows)
}

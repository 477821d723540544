//! Reading with several statements in one round trip to the server.

use windlass_db::error::Result;
use windlass_db::{Connection, Row, Statement, Value};

/// A statement and its parameters.
pub(in crate::store) type PlainQuery<'v> = (&'static str, Vec<Value<'v>>);

/// The rows of each statement, in the order of the statements.
pub(in crate::store) fn rows_of_each<T>(
    connection: &mut dyn Connection,
    queries: &[PlainQuery<'_>],
    read: impl Fn(&dyn Row) -> Result<T>,
) -> Result<Vec<Vec<T>>> {
    let mut rows: Vec<Vec<T>> = queries.iter().map(|_| Vec::new()).collect();
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
    let mut all: Vec<windlass_db::Query<'_>> = queries
        .iter()
        .zip(&mut readers)
        .map(|((sql, parameters), on_row)| windlass_db::Query {
            statement: Statement::Plain(sql),
            parameters,
            on_row,
        })
        .collect();
    connection.query_all(&mut all)?;
    drop(all);
    drop(readers);
    Ok(rows)
}

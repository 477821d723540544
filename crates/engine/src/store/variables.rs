//! Variables: values that are kept between runs, in one space for all workflows. People set them, and jobs with
//! `set_variables` do so in the transaction that ends them.
//!
//! If several transactions set a variable, the last one wins, in the order in which the database commits them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use crate::set_variables::{SetVariable, check_size};
use crate::status::JobStatus;
use crate::store::Variables;
use crate::store::evidence::Evidence;
use crate::store::finish::Finish;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Row, Value, all, first, one};
use windlass_workflow::{check_variable_name, limits};

/// The most variables that one call lists.
pub const VARIABLES_LISTED_MAX: i64 = 500;

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value, as JSON.
    pub value: String,
    /// When it was set last, in milliseconds since the Unix epoch.
    pub changed_at: i64,
    /// The run whose job has set it; `None` if somebody else did. The run may be deleted by now.
    pub run_id: Option<i64>,
}

impl Variables<'_> {
    /// Sets a variable. `value` is JSON. Attempts and decisions that begin after this returns read it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name is not allowed, the value is no JSON or too large, or there are too many variables;
    /// and the database's.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        let invalid = |reason: String| Error::invalid("set a variable", reason);
        check_variable_name(name).map_err(invalid)?;
        check_size(value).map_err(invalid)?;
        serde_json::from_str::<serde::de::IgnoredAny>(value)
            .map_err(|error| invalid(format!("the value is no JSON: {error}")))?;
        let now_ms = self.store.clock.now_ms();
        let set = SetVariable { name: name.to_owned(), value: value.to_owned() };
        self.store.write("set a variable", Evidence::Token, move |connection| {
            if let Some(reason) = refused(connection, [set.name.as_str()])? {
                return Err(Error::invalid("set a variable", reason));
            }
            upsert(connection, &[[(&set.name).into(), (&set.value).into(), Value::Null]], now_ms)
        })
    }

    /// A variable, if it is set.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn get(&self, name: &str) -> Result<Option<Variable>> {
        self.store.read(|connection| read_one(connection, name))
    }

    /// The variables by name, at most [`VARIABLES_LISTED_MAX`]. `after` is the last name of the list before.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn list(&self, after: Option<&str>) -> Result<Vec<Variable>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT name, value, changed_at, run_id FROM variables WHERE name > CAST($1 AS TEXT)
                 ORDER BY name LIMIT $2",
                &[after.unwrap_or_default().into(), VARIABLES_LISTED_MAX.into()],
                read,
            )
        })
    }

    /// Deletes a variable. Returns whether it was set.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn delete(&self, name: &str) -> Result<bool> {
        let name = name.to_owned();
        self.store.write("delete a variable", Evidence::Token, move |connection| {
            let sql = "DELETE FROM variables WHERE name = CAST($1 AS TEXT)";
            Ok(connection.execute(sql, &[(&name).into()])? == 1)
        })
    }

    /// The values of those of these variables that are set.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn values(&self, names: &BTreeSet<String>) -> Result<Map<String, Json>> {
        match names.is_empty() {
            true => Ok(Map::new()),
            false => self.store.read(|connection| read_variables(connection, names)),
        }
    }

    /// Why a job can't set these variables, if there are too many.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn refused(&self, variables: &[SetVariable]) -> Result<Option<String>> {
        match variables.is_empty() {
            true => Ok(None),
            false => self.store.read(|connection| refused(connection, names_of(variables))),
        }
    }
}

pub(super) fn names_of(variables: &[SetVariable]) -> impl Iterator<Item = &str> {
    variables.iter().map(|variable| variable.name.as_str())
}

fn read(row: &dyn Row) -> Result<Variable> {
    Ok(Variable {
        name: row.text(0)?,
        value: as_json(row.lossy_text(1)?.unwrap_or_default()),
        changed_at: row.integer(2)?,
        run_id: row.optional_integer(3)?,
    })
}

/// Another program may have written a text that is no JSON. It is taken as a text.
fn as_json(value: String) -> String {
    match serde_json::from_str::<serde::de::IgnoredAny>(&value) {
        Ok(_valid) => value,
        Err(_no_json) => Json::String(value).to_string(),
    }
}

/// Reads the values of those of these variables that are set.
pub(super) fn read_variables(
    connection: &mut dyn Connection,
    names: &BTreeSet<String>,
) -> Result<Map<String, Json>> {
    let mut values = Map::new();
    for name in names {
        let Some(Variable { value, .. }) = read_one(connection, name)? else { continue };
        values.insert(name.clone(), serde_json::from_str(&value).unwrap_or(Json::String(value)));
    }
    Ok(values)
}

fn read_one(connection: &mut dyn Connection, name: &str) -> Result<Option<Variable>> {
    let sql = "SELECT name, value, changed_at, run_id FROM variables WHERE name = CAST($1 AS TEXT)";
    first(connection, sql, &[name.into()], read)
}

/// Why these variables can't be set, if there are too many. Transactions that write side by side may exceed the limit by
/// what they set.
pub(super) fn refused<'n>(
    connection: &mut dyn Connection,
    names: impl IntoIterator<Item = &'n str>,
) -> Result<Option<String>> {
    let count = one(connection, "SELECT count(*) FROM variables", &[], |row| row.integer(0))?;
    if count < limits::VARIABLES {
        return Ok(None);
    }
    let names: BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
    let known = read_variables(connection, &names)?;
    Ok(names.iter().find(|name| !known.contains_key(*name)).map(|name| {
        format!(
            "there are {count} variables, and the limit is {}: `{name}` would be a new one; delete others with \
             `windlass variable delete NAME`",
            limits::VARIABLES
        )
    }))
}

/// Writes the variables of the jobs that succeeded. Other jobs need no statement for this.
pub(super) fn write(connection: &mut dyn Connection, finishes: &[&Finish], now_ms: i64) -> Result<()> {
    let is_successful = |finish: &&&Finish| finish.transition.status == JobStatus::Successful;
    let set = || {
        let successful = finishes.iter().filter(is_successful);
        successful.flat_map(|finish| finish.variables.iter().map(move |set| (*finish, set)))
    };
    if set().next().is_none() {
        return Ok(());
    }
    // Of two jobs in one transaction the later one wins. The order of names is the order of locks.
    let last: BTreeMap<&str, (&Finish, &SetVariable)> =
        set().map(|(finish, set)| (set.name.as_str(), (finish, set))).collect();
    let rows: Vec<[Value<'_>; 3]> = last
        .values()
        .map(|(finish, set)| [(&set.name).into(), (&set.value).into(), finish.run_id.into()])
        .collect();
    upsert(connection, &rows, now_ms)
}

fn upsert(connection: &mut dyn Connection, rows: &[[Value<'_>; 3]], now_ms: i64) -> Result<()> {
    connection.execute(
        "INSERT INTO variables (name, value, run_id, changed_at)
         SELECT name, value, run_id, $2 FROM {rows $1: name text, value text, run_id integer} AS news
         WHERE true ORDER BY name
         ON CONFLICT (name) DO UPDATE
         SET value = excluded.value, run_id = excluded.run_id, changed_at = excluded.changed_at",
        &[Value::rows(rows), now_ms.into()],
    )?;
    Ok(())
}

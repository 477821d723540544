//! What a change is made to, and how that was before the change.

use std::fmt;

use crate::store::finish::locks::lock_runs_of;
use crate::values::instant_text;
use serde_json::{Map, Value as Json, json};
use windlass_db::error::Result;
use windlass_db::{Connection, first};

/// A value that has more bytes is not copied into the audit.
const VALUE_BYTES_MAX: usize = 500;

/// What a change is made to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A run.
    Run(i64),
    /// A job.
    Job(i64),
    /// A queue, by its name.
    Queue(String),
    /// A schedule.
    Schedule {
        /// Its id.
        id: i64,
        /// Its workflow and its name.
        key: String,
    },
    /// A registered workflow, by its name.
    Workflow(String),
    /// A variable, by its name.
    Variable(String),
    /// A valid token, by its name.
    Token(String),
    /// Something that is made by the change, or that has no single row.
    Text(String),
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Run(id) => write!(formatter, "run {id}"),
            Subject::Job(id) => write!(formatter, "job {id}"),
            Subject::Queue(name) => write!(formatter, "queue {name}"),
            Subject::Schedule { id: _, key } => write!(formatter, "schedule {key}"),
            Subject::Workflow(name) => write!(formatter, "workflow {name}"),
            Subject::Variable(name) => write!(formatter, "variable {name}"),
            Subject::Token(name) => write!(formatter, "the token {name}"),
            Subject::Text(text) => formatter.write_str(text),
        }
    }
}

impl From<String> for Subject {
    fn from(text: String) -> Subject {
        Subject::Text(text)
    }
}

impl From<&str> for Subject {
    fn from(text: &str) -> Subject {
        Subject::Text(text.to_owned())
    }
}

/// How the subject is now, as a JSON object without nulls; `None` if it has no row. Locks the row that the change locks first
/// too, so that no other transaction changes it between the two.
pub(super) fn read(connection: &mut dyn Connection, subject: &Subject) -> Result<Option<String>> {
    let found = match subject {
        Subject::Run(id) => run(connection, *id)?,
        Subject::Job(id) => job(connection, *id)?,
        Subject::Queue(name) => queue(connection, name)?,
        Subject::Schedule { id, key: _ } => schedule(connection, *id)?,
        Subject::Workflow(name) => workflow(connection, name)?,
        Subject::Variable(name) => variable(connection, name)?,
        Subject::Token(name) => token(connection, name)?,
        Subject::Text(_) => None,
    };
    Ok(found.map(without_nulls))
}

fn without_nulls(found: Json) -> String {
    let Json::Object(fields) = found else { return found.to_string() };
    let kept: Map<String, Json> = fields.into_iter().filter(|(_name, value)| !value.is_null()).collect();
    Json::Object(kept).to_string()
}

fn run(connection: &mut dyn Connection, run_id: i64) -> Result<Option<Json>> {
    let sql = "SELECT status, stop_reason, definition FROM runs WHERE id = $1 {wait}";
    first(connection, sql, &[run_id.into()], |row| {
        let (status, stop_reason) = (row.lossy_text(0)?, row.lossy_text(1)?);
        Ok(json!({ "status": status, "stop_reason": stop_reason, "definition": row.integer(2)? }))
    })
}

fn job(connection: &mut dyn Connection, job_id: i64) -> Result<Option<Json>> {
    lock_runs_of(connection, &[job_id])?;
    let sql = "SELECT status, waits_for, queue, priority, execute_after FROM jobs WHERE id = $1 {wait}";
    first(connection, sql, &[job_id.into()], |row| {
        Ok(json!({
            "status": row.lossy_text(0)?,
            "waits_for": row.lossy_text(1)?,
            "queue": row.lossy_text(2)?,
            "priority": row.integer(3)?,
            "execute_after": row.optional_integer(4)?.and_then(instant_text),
        }))
    })
}

fn queue(connection: &mut dyn Connection, name: &str) -> Result<Option<Json>> {
    let sql =
        "SELECT paused_at, max_running, rate_jobs, rate_interval_ms, fifo FROM queues WHERE name = $1 {wait}";
    first(connection, sql, &[name.into()], |row| {
        Ok(json!({
            "paused": row.optional_integer(0)?.is_some(),
            "max_running": row.optional_integer(1)?,
            "rate_jobs": row.optional_integer(2)?,
            "rate_interval_ms": row.optional_integer(3)?,
            "fifo": row.optional_integer(4)?.is_some_and(|fifo| fifo != 0),
        }))
    })
}

fn schedule(connection: &mut dyn Connection, schedule_id: i64) -> Result<Option<Json>> {
    let sql = "SELECT paused_at, removed_at FROM schedules WHERE id = $1 {wait}";
    first(connection, sql, &[schedule_id.into()], |row| {
        let (paused_at, removed_at) = (row.optional_integer(0)?, row.optional_integer(1)?);
        Ok(json!({ "paused": paused_at.is_some(), "removed": removed_at.is_some() }))
    })
}

/// Does not lock: registering locks the content of the workflow before its name.
fn workflow(connection: &mut dyn Connection, name: &str) -> Result<Option<Json>> {
    let sql = "SELECT version, paused_at FROM registrations WHERE name = $1";
    first(connection, sql, &[name.into()], |row| {
        Ok(json!({ "version": row.integer(0)?, "paused": row.optional_integer(1)?.is_some() }))
    })
}

fn variable(connection: &mut dyn Connection, name: &str) -> Result<Option<Json>> {
    let sql = "SELECT value FROM variables WHERE name = CAST($1 AS TEXT) {wait}";
    first(connection, sql, &[name.into()], |row| {
        let value = row.lossy_text(0)?.unwrap_or_default();
        Ok(match serde_json::from_str::<Json>(&value) {
            Ok(read) if value.len() <= VALUE_BYTES_MAX => json!({ "value": read }),
            Ok(_) | Err(_) => json!({ "value_bytes": value.len() }),
        })
    })
}

fn token(connection: &mut dyn Connection, name: &str) -> Result<Option<Json>> {
    let sql = "SELECT role, expires_at FROM tokens WHERE name = $1 AND revoked_at IS NULL {wait}";
    first(connection, sql, &[name.into()], |row| {
        let expires_at = row.optional_integer(1)?.and_then(instant_text);
        Ok(json!({ "role": row.lossy_text(0)?, "expires_at": expires_at }))
    })
}

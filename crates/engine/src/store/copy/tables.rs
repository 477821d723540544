//! The copied tables with their columns, and the statements that read and write their rows.

use serde_json::Value as Json;

use windlass_db::error::Result;
use windlass_db::{Connection, Row, Value, all};

/// Rows in one statement. The statements contain this number too.
pub(super) const CHUNK: usize = 1_000;

/// A table to copy.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [(&'static str, Kind)],
    /// How many of the first columns form the key, by which rows are read in order.
    key: usize,
    count: &'static str,
    select: &'static str,
    insert: &'static str,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "as the columns' types are written in the statements")]
pub(super) enum Kind {
    integer,
    text,
}

/// Builds a table from its name, its key (number of columns, condition, order), and all its columns.
macro_rules! table {
    ($name:literal, $key:literal: $condition:literal, $order:literal,
     $first:ident $first_kind:ident $(, $column:ident $kind:ident)* $(,)?) => {
        Table {
            name: $name,
            columns: &[(stringify!($first), Kind::$first_kind) $(, (stringify!($column), Kind::$kind))*],
            key: $key,
            count: concat!("SELECT count(*) FROM ", $name),
            select: concat!(
                "SELECT ", stringify!($first) $(, ", ", stringify!($column))*,
                " FROM ", $name, " WHERE ", $condition, " ORDER BY ", $order, " LIMIT 1000"
            ),
            insert: concat!(
                "INSERT INTO ", $name, " (", stringify!($first) $(, ", ", stringify!($column))*,
                ") SELECT ", stringify!($first) $(, ", ", stringify!($column))*,
                " FROM {rows $1: ", stringify!($first), " ", stringify!($first_kind)
                $(, ", ", stringify!($column), " ", stringify!($kind))*, "} AS news"
            ),
        }
    };
}

/// All tables, with referenced tables first. A test compares them with the schema.
pub(super) const COPIED_TABLES: &[Table] = &[
    table!("workflows", 1: "id > $1", "id", id integer, name text, hash text, tags text, definition text,
        created_at integer, secret_variables text),
    table!("schedules", 1: "id > $1", "id", id integer, workflow text, name text, definition text,
        paused_at integer, next_at integer, created_at integer, updated_at integer, origin text,
        decided_until integer, removed_at integer),
    table!("registrations", 1: "name > CAST($1 AS TEXT)", "name", name text, version integer,
        workflow_id integer, file text, dir text, paused_at integer, created_at integer,
        updated_at integer),
    table!("registration_versions", 2: "(name, version) > (CAST($1 AS TEXT), $2)", "name, version",
        name text, version integer, workflow_id integer, file text, applied_at integer),
    table!("occurrences", 2: "(schedule_id, scheduled_for) > ($1, $2)", "schedule_id, scheduled_for",
        schedule_id integer, scheduled_for integer, status text, source text, at_once integer,
        start_after integer, reason text, created_at integer, updated_at integer),
    table!("runs", 1: "id > $1", "id", id integer, workflow_id integer, workflow text, status text,
        stop_reason text, params text, env text, dir text, run_key text, schedule_id integer,
        scheduled_for integer, total_jobs integer, unfinished_jobs integer, failed_jobs integer,
        timeout_ms integer, deadline_at integer, created_at integer, started_at integer,
        finished_at integer, ran_before_ms integer, updated_at integer, source text, started_by text,
        token integer, has_handlers integer, phase integer,
        first_event_id integer, outcome text, parent_job_id integer, parent_attempt integer, root_run_id integer,
        call_open integer, definition integer, concurrency_key text, concurrency_limit integer, on_full text,
        waits_for text, traceparent text),
    table!("run_definitions", 2: "(run_id, number) > ($1, $2)", "run_id, number", run_id integer, number integer,
        workflow_id integer, verb text, pinned_at integer, file text, path text, file_hash text, only_jobs text,
        with_upstream integer),
    table!("run_tags", 2: "(tag, run_id) > (CAST($1 AS TEXT), $2)", "tag, run_id", tag text, run_id integer),
    table!("workspaces", 1: "run_id > $1", "run_id", run_id integer, keep text, state text),
    table!("workers", 1: "id > $1", "id", id integer, host text, pid integer, process text, status text,
        queues text, run_ids text, kinds text, threads integer, lease_ms integer, heartbeats integer,
        heartbeat_at integer, started_at integer, stopped_at integer, capabilities text, code_version integer,
        shortage text),
    table!("queues", 1: "name > CAST($1 AS TEXT)", "name", name text, paused_at integer,
        created_at integer, max_running integer, rate_jobs integer, rate_interval_ms integer,
        fifo integer, turn_job_id integer),
    table!("queue_starts", 2: "(queue, expires_at) > (CAST($1 AS TEXT), $2)", "queue, expires_at",
        queue text, expires_at integer, jobs integer),
    table!("jobs", 1: "id > $1", "id", id integer, run_id integer, name text, kind text, queue text, status text,
        priority integer, execute_after integer, payload text, attempt integer, max_attempts integer,
        failures integer, interruptions integer, max_interruptions integer, on_interrupt text, allow_failure integer,
        blocked_by integer, created_at integer, updated_at integer, cancel_at_once integer, requires text,
        code_version integer, on_full text, token integer, upstream_failed integer, phase integer, definition integer,
        worker_id integer, ready_at integer, started_at integer, finished_at integer, output text, exit_code integer, retry text,
        last_error text, timeout_ms integer, unique_key text, concurrency_key text, concurrency_limit integer,
        root_run_id integer, join_rule text, control text, handles text, delay_ms integer,
        cancel_requested_at integer, waits_for text, group_id integer, item text,
        decided_at integer, deadline_at integer, event text, wait_ends_at integer, max_parallel integer),
    table!("events", 1: "id > $1", "id", id integer, name text, event_key text, payload text, event_id text,
        received_at integer, dispatched_at integer, depth integer),
    table!("event_counter", 1: "id > $1", "id", id integer, last integer),
    table!("triggers", 2: "(workflow, name) > (CAST($1 AS TEXT), CAST($2 AS TEXT))", "workflow, name", workflow text,
        name text, definition text, event_name text, after_event_id integer, created_at integer, failed_at integer,
        failed_source text, last_error text),
    table!("run_ends", 2: "(finished_at, run_id) > ($1, $2)", "finished_at, run_id", finished_at integer, run_id integer,
        workflow text, status text),
    table!("triggered_runs", 1: "run_id > $1", "run_id", run_id integer, trigger_name text, started_by text,
        depth integer),
    table!("notification_targets", 2: "(name, worker_id) > (CAST($1 AS TEXT), $2)", "name, worker_id", name text,
        worker_id integer, updated_at integer),
    table!("notification_filters",
        4: "(target, worker_id, sort, value) > (CAST($1 AS TEXT), $2, CAST($3 AS TEXT), CAST($4 AS TEXT))",
        "target, worker_id, sort, value", target text, worker_id integer, sort text, value text),
    table!("notifications", 1: "id > $1", "id", id integer, target text, event text, subject_id integer, subject text,
        happened_at integer, status text, attempt integer, next_at integer, last_error text, token integer,
        created_at integer, finished_at integer),
    table!("variables", 1: "name > CAST($1 AS TEXT)", "name", name text, value text, run_id integer, changed_at integer),
    table!("clock_steps", 1: "number > $1", "number", number integer, at integer, by_ms integer),
    table!("job_dependencies", 2: "(parent_id, child_id) > ($1, $2)", "parent_id, child_id",
        parent_id integer, child_id integer),
    table!("job_attempts", 2: "(job_id, attempt) > ($1, $2)", "job_id, attempt", job_id integer,
        attempt integer, worker_id integer, outcome text, error text, ready_at integer, started_at integer,
        finished_at integer, retried_at integer),
    table!("job_logs", 3: "(job_id, attempt, line) > ($1, $2, $3)", "job_id, attempt, line",
        job_id integer, attempt integer, line integer, at integer, stream text, text text),
    table!("artifacts", 2: "(job_id, path) > ($1, CAST($2 AS TEXT))", "job_id, path", job_id integer,
        path text, hash text, bytes integer),
    table!("tokens", 1: "id > $1", "id", id integer, name text, hash text, role text, created_at integer,
        expires_at integer, revoked_at integer),
    table!("sessions", 1: "id > $1", "id", id integer, hash text, kind text, name text, role text, token_id integer,
        created_at integer, expires_at integer),
    table!("audit", 1: "id > $1", "id", id integer, at integer, caller text, address text, action text, subject text,
        before text, result text),
    table!("idempotency_keys", 1: "id > $1", "id", id integer, caller text, request_key text, request text,
        results text, status integer, answer text, created_at integer),
];

impl Table {
    pub(super) fn count(&self, connection: &mut dyn Connection) -> Result<i64> {
        windlass_db::one(connection, self.count, &[], |row| row.integer(0))
    }

    /// The key that comes before the first row.
    pub(super) fn before_first(&self) -> Vec<Json> {
        self.columns[..self.key]
            .iter()
            .map(|(_name, kind)| match kind {
                Kind::integer => Json::from(i64::MIN),
                Kind::text => Json::from(""),
            })
            .collect()
    }

    /// Returns the key of a row.
    pub(super) fn key_of(&self, row: &[Json]) -> Vec<Json> {
        row[..self.key].to_vec()
    }

    /// Reads the next rows after a key, at most [`CHUNK`].
    pub(super) fn rows_after(&self, connection: &mut dyn Connection, key: &[Json]) -> Result<Vec<Vec<Json>>> {
        let parameters: Vec<Value<'_>> = key.iter().map(value_of).collect();
        all(connection, self.select, &parameters, |row| self.read(row))
    }

    fn read(&self, row: &dyn Row) -> Result<Vec<Json>> {
        self.columns
            .iter()
            .enumerate()
            .map(|(index, (_name, kind))| {
                Ok(match kind {
                    Kind::integer => Json::from(row.optional_integer(index)?),
                    Kind::text => Json::from(row.lossy_text(index)?),
                })
            })
            .collect()
    }

    pub(super) fn write(&self, connection: &mut dyn Connection, rows: &[Vec<Json>]) -> Result<u64> {
        let values: Vec<Value<'_>> = rows.iter().flatten().map(value_of).collect();
        connection.execute(self.insert, &[Value::Rows { values: &values, width: self.columns.len() }])
    }
}

/// Converts JSON into a parameter: a text, an integer, or NULL.
fn value_of(json: &Json) -> Value<'_> {
    match json.as_str() {
        Some(text) => Value::Text(text),
        None => json.as_i64().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_reads_a_chunk() {
        for table in COPIED_TABLES {
            assert!(table.select.ends_with(&format!(" LIMIT {CHUNK}")), "{}", table.select);
        }
    }
}

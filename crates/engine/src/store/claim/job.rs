//! A claimed job.

use crate::attempt_end::EndConditions;
use crate::store::evidence::AttemptKey;
use crate::store::jobs::label;
use crate::trace::RowKey;
use crate::transition::{Backoff, RetryState};
use crate::values::Item;
use std::sync::Arc;
use windlass_db::error::Result;
use windlass_db::{Row, Value};
use windlass_workflow::OnInterrupt;

/// A job that a worker owns.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedJob {
    /// Its id.
    pub id: i64,
    /// When it was made, in milliseconds since the Unix epoch.
    pub created_at: i64,
    /// Tells the job from other jobs that were made in the same millisecond.
    pub token: i64,
    /// The phase of its run in which it runs: above 0 for a handler.
    pub phase: i64,
    /// The number of the definition of its run with which it runs.
    pub definition: i64,
    /// Its item, if it belongs to a job with `for_each`.
    pub item: Option<Item>,
    /// Its run; `None` for a job that was enqueued alone.
    pub run_id: Option<i64>,
    /// Its queue.
    pub queue: String,
    /// When it became claimable, in milliseconds since the Unix epoch.
    pub ready_at: i64,
    /// Its name in the run.
    pub name: Option<String>,
    /// The kind, which selects the handler.
    pub kind: String,
    /// The handler's input, as JSON.
    pub payload: String,
    /// How long this attempt may take, in milliseconds.
    pub timeout_ms: Option<i64>,
    /// The name of its workflow, if this job is the first of its run to start.
    pub started_run: Option<String>,
    /// The job waits in the worker's memory although a more urgent job was left, because that one must not wait in memory.
    pub has_overtaken: bool,
    /// What decides about the next attempt when this one ends.
    pub retry_state: RetryState,
    /// The conditions that are asked at the end of this attempt.
    pub conditions: Option<Arc<EndConditions>>,
}

/// Reads an item from a column: its place and its value. The error is about the row.
pub(in crate::store) fn read_item(row: &dyn Row, column: usize) -> std::result::Result<Option<Item>, String> {
    let unreadable =
        || "the row can't be read: its item is not a JSON list of its place and its value".to_owned();
    let json = row.optional_text(column).map_err(|_no_text| unreadable())?;
    let Some(json) = json else { return Ok(None) };
    let (index, value) = serde_json::from_str(&json).map_err(|_no_json| unreadable())?;
    Ok(Some(Item { index, value }))
}

/// The place and the value of an item, as they are in the column. `None` if another program has written something else.
pub(in crate::store) fn parts_of_item(item: &str) -> Option<(i64, &str)> {
    let (index, value) = item.strip_prefix('[')?.strip_suffix(']')?.split_once(',')?;
    Some((index.parse().ok()?, value))
}

/// Reads [`RetryState`] from consecutive columns: attempt, failures, max_attempts, interruptions,
/// max_interruptions, on_interrupt, retry.
pub(in crate::store) fn read_retry_state(row: &dyn Row, from: usize) -> Result<RetryState> {
    let backoff = match row.value(from + 6) {
        Ok(Value::Text(json)) => serde_json::from_str(json).unwrap_or_default(),
        // Another program may have written the row. An unreadable backoff means the default, not a stuck job.
        Ok(Value::Null | Value::Integer(_) | Value::Real(_) | Value::Rows { .. }) | Err(_) => {
            Backoff::default()
        }
    };
    Ok(RetryState {
        attempt: row.integer(from)?,
        failures: row.integer(from + 1)?,
        max_attempts: row.integer(from + 2)?,
        interruptions: row.integer(from + 3)?,
        max_interruptions: row.integer(from + 4)?,
        on_interrupt: row.parsed(from + 5, |text| match text {
            "rerun" => Some(OnInterrupt::Rerun),
            "fail" => Some(OnInterrupt::Fail),
            _ => None,
        })?,
        backoff,
    })
}

/// Reads the conditions from the column `retry`, or what is wrong with it.
pub(in crate::store) fn read_conditions(
    row: &dyn Row,
    column: usize,
) -> std::result::Result<Option<Arc<EndConditions>>, String> {
    match row.value(column) {
        Ok(Value::Text(json)) => Ok(EndConditions::parse(json)?.map(Arc::new)),
        Ok(Value::Null | Value::Integer(_) | Value::Real(_) | Value::Rows { .. }) | Err(_) => Ok(None),
    }
}

impl ClaimedJob {
    /// The key of the attempt that the worker claimed.
    pub(in crate::store) fn key(&self, worker_id: i64) -> AttemptKey {
        AttemptKey { job_id: self.id, attempt: self.retry_state.attempt, worker_id }
    }

    /// The same text for all attempts of this job, and for no other job of any database.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        format!("{}-{}", self.created_at, self.token)
    }

    /// What identifies the job's row among those of all databases.
    #[must_use]
    pub fn row_key(&self) -> RowKey {
        RowKey { created_at: self.created_at, token: self.token }
    }

    /// The job's name for people: `3/fetch` or `j42`.
    #[must_use]
    pub fn label(&self) -> String {
        label(self.id, self.run_id, self.name.as_deref())
    }
}

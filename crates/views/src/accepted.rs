//! What was accepted besides runs, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

/// A job that stands alone, after it was enqueued.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Enqueued")]
pub struct EnqueuedView {
    /// The number of the job.
    pub job_id: i64,
}

/// An event after it was received.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Signal")]
pub struct SignalView {
    /// The name of the event.
    pub event: String,
    /// Its number.
    pub event_number: i64,
    /// The sender's id for it.
    pub event_id: Option<String>,
    /// False if an event with this id was received before.
    pub created: bool,
}

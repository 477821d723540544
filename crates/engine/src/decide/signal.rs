//! A job that sends an event: what it sends.

use serde_json::Value as Json;
use windlass_workflow::kinds::signal::Signal;

/// An event that a job sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentEvent {
    /// Its name.
    pub name: String,
    /// Its key; empty for none.
    pub key: String,
    /// Its payload, as JSON.
    pub payload: String,
}

impl SentEvent {
    /// The output of the job: what it has sent.
    #[must_use]
    pub fn output(&self) -> String {
        let payload = serde_json::from_str(&self.payload).unwrap_or(Json::Null);
        let key = if self.key.is_empty() { Json::Null } else { Json::from(self.key.as_str()) };
        serde_json::json!({ "event": self.name, "key": key, "payload": payload }).to_string()
    }
}

/// What a job sends, with the values that its templates read.
///
/// # Errors
/// A template has no value, or its value is too long. The message is for people.
pub fn decide_signal(signal: &Signal, values: &Json) -> Result<SentEvent, String> {
    let (key, payload) = (signal.rendered_key(values)?, signal.rendered_payload(values)?);
    Ok(SentEvent { name: signal.event.clone(), key, payload })
}

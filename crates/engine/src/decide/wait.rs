//! A job that waits for an event or for a person: when its wait begins, and what ends it.

use serde_json::Value as Json;
use windlass_workflow::duration;
use windlass_workflow::kinds::approval::Approval;
use windlass_workflow::kinds::wait_for::{OnTimeout, WaitFor};

use super::{Decision, EndWithoutAttempt};
use crate::status::{JobStatus, WaitsFor};
use crate::values::instant_text;

/// What a job waits for, as its row says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// An event, or a person.
    pub waits_for: WaitsFor,
    /// The name of the event.
    pub event_name: Option<String>,
    /// The key of the event; empty for none.
    pub event_key: Option<String>,
    /// When the wait ends without what it waits for.
    pub deadline_at: Option<i64>,
    /// A new payload: the question that a person is asked.
    pub payload: Option<String>,
}

/// An event that ends a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedEvent {
    /// Its key; empty for none.
    pub key: String,
    /// Its payload, as JSON.
    pub payload: String,
    /// When it was received.
    pub received_at: i64,
}

impl MatchedEvent {
    /// The output of a job that waited for the event.
    fn output(&self) -> String {
        let MatchedEvent { key, payload, received_at } = self;
        let payload = serde_json::from_str(payload).unwrap_or_else(|_| Json::from(payload.as_str()));
        let key = if key.is_empty() { Json::Null } else { Json::from(key.as_str()) };
        serde_json::json!({ "key": key, "payload": payload, "received_at": instant_text(*received_at) })
            .to_string()
    }
}

/// Decides about a job that waits for an event: `wait` is what it waits for, and `found` the first event that fits.
#[must_use]
pub fn decide_wait_for(
    wait_for: &WaitFor,
    wait: Wait,
    found: Option<&MatchedEvent>,
    now_ms: i64,
) -> Decision {
    if let Some(event) = found {
        return Decision::Done { output: Some(event.output()) };
    }
    let key = wait.event_key.as_deref().filter(|key| !key.is_empty());
    let key = key.map(|key| format!(" with the key `{key}`")).unwrap_or_default();
    let missing = format!("no event `{}`{key} came", wait_for.event);
    unless_too_late(wait, wait_for.timeout_ms, wait_for.on_timeout, &missing, now_ms)
}

/// The column `jobs.event` of a job that waits for an event: its name, a slash, and its key. No name has a slash.
#[must_use]
pub fn event_column(name: &str, key: &str) -> String {
    format!("{name}/{key}")
}

/// The name and the key of an event from the column `jobs.event`. The key is empty if it has none.
#[must_use]
pub fn parts_of_event(event: &str) -> (&str, &str) {
    event.split_once('/').unwrap_or((event, ""))
}

/// Decides about a job that waits for a person.
#[must_use]
pub fn decide_approval(approval: &Approval, wait: Wait, now_ms: i64) -> Decision {
    unless_too_late(wait, approval.timeout_ms, approval.on_timeout, "nobody approved or rejected it", now_ms)
}

fn unless_too_late(
    wait: Wait,
    timeout_ms: Option<i64>,
    on_timeout: OnTimeout,
    missing: &str,
    now_ms: i64,
) -> Decision {
    if wait.deadline_at.is_none_or(|deadline_at| deadline_at > now_ms) {
        return Decision::Wait(wait);
    }
    let within = timeout_ms.map(|timeout_ms| format!(" within {}", duration::to_text(timeout_ms)));
    let reason = format!("{missing}{}", within.unwrap_or_default());
    Decision::End(match on_timeout {
        OnTimeout::Fail => EndWithoutAttempt::failed(reason),
        OnTimeout::Skip => EndWithoutAttempt {
            status: JobStatus::Skipped,
            upstream_failed: false,
            reason: format!("skipped: {reason}"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(deadline_at: Option<i64>) -> Wait {
        let (event_name, event_key) = (Some("paid".to_owned()), Some("7".to_owned()));
        Wait { waits_for: WaitsFor::Event, event_name, event_key, deadline_at, payload: None }
    }

    #[test]
    fn an_event_ends_a_wait_and_so_does_its_timeout() {
        let rule = |on_timeout| WaitFor {
            event: "paid".to_owned(),
            key: Some("7".to_owned()),
            timeout_ms: Some(60_000),
            on_timeout,
        };
        let fail = rule(OnTimeout::Fail);
        assert_eq!(decide_wait_for(&fail, wait(None), None, 9), Decision::Wait(wait(None)));
        assert_eq!(decide_wait_for(&fail, wait(Some(10)), None, 9), Decision::Wait(wait(Some(10))));
        let event = MatchedEvent { key: "7".to_owned(), payload: "{\"a\":1}".to_owned(), received_at: 0 };
        let Decision::Done { output: Some(output) } = decide_wait_for(&fail, wait(Some(8)), Some(&event), 9)
        else {
            unreachable!("an event that came ends the wait, even a late one")
        };
        assert_eq!(
            output,
            "{\"key\":\"7\",\"payload\":{\"a\":1},\"received_at\":\"1970-01-01T00:00:00.000Z\"}"
        );
        let reason = "no event `paid` with the key `7` came within 1m";
        let late = decide_wait_for(&fail, wait(Some(9)), None, 9);
        assert_eq!(late, Decision::End(EndWithoutAttempt::failed(reason.to_owned())));
        let Decision::End(skipped) = decide_wait_for(&rule(OnTimeout::Skip), wait(Some(9)), None, 9) else {
            unreachable!("it is over")
        };
        assert_eq!((skipped.status, skipped.upstream_failed), (JobStatus::Skipped, false));
    }
}

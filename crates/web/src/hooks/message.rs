//! What a message says about itself, and whether its signature fits. Pure.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};
use windlass_engine::signature::{SignedMessage, SigningKey, is_signed, is_signed_by_github};

use super::{Hook, HookForm};
use crate::call::Call;
use crate::problem::Problem;

/// The field of a payload that says which event of GitHub it is.
const GITHUB_EVENT_FIELD: &str = "github_event";
/// The longest name of an event of GitHub.
const GITHUB_EVENT_BYTES: usize = 50;
/// How much the time of a message may differ from ours, in both directions.
const TOLERANCE_S: i64 = 5 * 60;

/// What became of the check of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Checked {
    /// It was signed by the sender of the hook. The id is the same in all deliveries of the message.
    Signed { id: String },
    /// It was signed, but not now.
    Late,
    /// No signature fits.
    Unsigned,
}

/// Checks a message.
pub(super) fn check(hook: &Hook, call: &Call, now_ms: i64) -> Checked {
    match hook.form {
        HookForm::Standard => standard(&hook.keys, call, now_ms),
        HookForm::Github => github(hook, call),
    }
}

/// The same work as [`check`], for a name that no hook has.
pub(super) fn check_for_nobody(call: &Call, now_ms: i64) {
    let _never_believed = standard(&[SigningKey::of_nobody()], call, now_ms);
}

fn standard(keys: &[SigningKey], call: &Call, now_ms: i64) -> Checked {
    let header = |name: &str| call.header(name).unwrap_or_default();
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let message = SignedMessage { id, timestamp, body: &call.body };
    if !is_signed(keys, message, header("webhook-signature")) || id.is_empty() {
        return Checked::Unsigned;
    }
    match is_now(timestamp, now_ms) {
        true => Checked::Signed { id: id.to_owned() },
        false => Checked::Late,
    }
}

fn is_now(timestamp: &str, now_ms: i64) -> bool {
    let digits = !timestamp.is_empty() && timestamp.bytes().all(|byte| byte.is_ascii_digit());
    let sent_at_s: Option<i64> = if digits { timestamp.parse().ok() } else { None };
    sent_at_s.is_some_and(|sent_at_s| (now_ms / 1_000 - sent_at_s).abs() <= TOLERANCE_S)
}

/// GitHub signs neither a time nor an id, so the signed bytes themselves are the id.
fn github(hook: &Hook, call: &Call) -> Checked {
    let signature = call.header("x-hub-signature-256").unwrap_or_default();
    if !is_signed_by_github(&hook.keys, &call.body, signature) {
        return Checked::Unsigned;
    }
    let hash: String = Sha256::digest(&call.body).iter().map(|byte| format!("{byte:02x}")).collect();
    Checked::Signed { id: format!("github:{}:{hash}", hook.name) }
}

/// The payload of the event of a message: its body. That of GitHub gets the sort of its event, which only a header says.
pub(super) fn payload(hook: &Hook, call: &Call) -> Result<String, Problem> {
    let body = std::str::from_utf8(&call.body)
        .map_err(|_error| Problem::invalid("the body is not UTF-8", "send JSON"))?;
    match (hook.form, call.header("x-github-event")) {
        (HookForm::Github, Some(event)) if is_github_event(event) => Ok(with_github_event(body, event)),
        (HookForm::Github | HookForm::Standard, _) => Ok(body.to_owned()),
    }
}

fn is_github_event(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=GITHUB_EVENT_BYTES).contains(&name.len()) && name.bytes().all(allowed)
}

/// The body with one more field in front, its other bytes as they were sent. What is no object stays as it is. If the body has
/// such a field, that one is signed and counts.
fn with_github_event(body: &str, event: &str) -> String {
    let Ok(fields) = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(body) else {
        return body.to_owned();
    };
    let rest = body.trim_start().strip_prefix('{');
    match rest.filter(|_| !fields.contains_key(GITHUB_EVENT_FIELD)) {
        None => body.to_owned(),
        Some(rest) => {
            let separator = if fields.is_empty() { "" } else { "," };
            format!("{{\"{GITHUB_EVENT_FIELD}\":\"{event}\"{separator}{rest}")
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_event_of_github_becomes_a_field() {
        for (body, expected) in [
            (r#"{"ref": 1e2}"#, r#"{"github_event":"push","ref": 1e2}"#),
            (" {} ", r#"{"github_event":"push"} "#),
            ("[1]", "[1]"),
            ("ref=1", "ref=1"),
            (r#"{"github_event": "own"}"#, r#"{"github_event": "own"}"#),
        ] {
            assert_eq!(with_github_event(body, "push"), expected);
        }
        assert!(is_github_event("pull_request_review") && is_github_event("push"));
        for name in ["", "Push", "a\"b", "a b", "x".repeat(51).as_str()] {
            assert!(!is_github_event(name), "{name}");
        }
    }

    #[test]
    fn a_time_may_differ_by_five_minutes_in_both_directions() {
        let now_ms = 1_614_265_330_999;
        for timestamp in ["1614265330", "1614265030", "1614265630"] {
            assert!(is_now(timestamp, now_ms), "{timestamp}");
        }
        for timestamp in [
            "1614265029",
            "1614265631",
            "",
            "-1614265330",
            "+1614265330",
            "1614265330.5",
            "0",
            "99999999999999999999",
        ] {
            assert!(!is_now(timestamp, now_ms), "{timestamp}");
        }
    }
}

//! The payload of the kind `http`: what the worker is told to do.

use serde::{Deserialize, Serialize};

use super::{Http, KIND, check};
use crate::kinds::Summary;

/// What the worker is told to do, for a job of a workflow and for a job that was enqueued alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payload {
    /// The request.
    pub http: Http,
    /// The names of the jobs whose values the templates read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<String>,
}

impl Payload {
    /// Reads and checks a payload.
    ///
    /// # Errors
    /// What is wrong with the payload, for people.
    pub fn parse(json: &str) -> Result<Payload, String> {
        let refuse = |reason: String| format!("the payload of kind `{}` {reason}", KIND.name);
        let payload: Payload =
            serde_json::from_str(json).map_err(|error| refuse(format!("cannot be read: {error}")))?;
        check::request(&payload.http)
            .map_err(|(field, reason)| refuse(format!("is wrong: `{field}`: {reason}")))?;
        Ok(payload)
    }
}

pub(super) fn check(payload: &str) -> Result<(), String> {
    Payload::parse(payload).map(|_payload| ())
}

pub(super) fn summarize(payload: &str) -> Option<Summary> {
    Payload::parse(payload).ok().map(|payload| payload.http.summary())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::kinds::Action;

    #[test]
    fn a_payload_is_a_request() {
        let payload = Payload::parse(r#"{"http":{"url":"https://example.com"}}"#).unwrap();
        assert_eq!(payload.http, Http::get("https://example.com"));
        for (wrong, reason) in [
            ("{}", "missing field `http`"),
            (r#"{"http":{}}"#, "missing field `url`"),
            (r#"{"http":{"url":"ftp://x"}}"#, "`url`: "),
            (r#"{"http":{"url":"http://x","verb":"GET"}}"#, "unknown field `verb`"),
            (r#"{"http":{"url":"http://x","body":{"text":"a"}}}"#, "a GET request has no body"),
        ] {
            let message = Payload::parse(wrong).unwrap_err();
            assert!(
                message.starts_with("the payload of kind `http` ") && message.contains(reason),
                "{message}"
            );
        }
    }

    #[test]
    fn the_payload_of_an_action_can_be_parsed() {
        let action = Action::from(Http::get("http://127.0.0.1/{{ params.x }}"));
        let payload = Payload::parse(&action.payload(&["fetch"])).unwrap();
        assert_eq!((Action::from(payload.http), payload.uses), (action.clone(), vec!["fetch".to_owned()]));
        assert_eq!(action.summary().text.to_string(), "GET http://127.0.0.1/{{ params.x }}");
    }
}

//! A request as handlers see it: the caller, and the parts that the door has read and checked.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::task::AbortHandle;
use windlass_engine::Store;
use windlass_engine::store::{Caller, Change, CredentialKind, Subject};
use windlass_engine::trace::TraceParent;

use crate::hooks::Hooks;
use crate::metrics::Metrics;
use crate::options::Definitions;
use crate::pages::runs::Picture;
use crate::pages::url::{self, encode};
use crate::problem::Problem;
use crate::route::{QueryParameter, ValueSort};
use crate::sentences::Sentences;

/// The body of a change that needs no more than its address.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoFields {}

/// A request whose caller may make it.
pub(crate) struct Call {
    /// Who asks. `None` only on routes for everybody.
    pub(crate) caller: Option<Caller>,
    /// What the caller has shown: the sort and the hash of its secret.
    pub(crate) shown: Option<(CredentialKind, String)>,
    /// The task of the connection.
    pub(crate) connection: Option<AbortHandle>,
    /// Where the request came from.
    pub(crate) address: IpAddr,
    /// The variable parts of the path, decoded.
    pub(crate) path: Vec<(String, String)>,
    /// The path and the query as they were sent, without the base path.
    pub(crate) target: String,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// The path below which everything is.
    pub(crate) base_path: String,
    /// Whether callers may send commands.
    pub(crate) definitions: Definitions,
    /// Texts for people, which the program has that made the server.
    pub(crate) sentences: Sentences,
    /// What the addresses below `/hooks` take.
    pub(crate) hooks: Hooks,
    /// What was measured and read for monitors.
    pub(crate) metrics: Arc<Metrics>,
    /// The picture of the last 24 hours.
    pub(crate) picture: Arc<Picture>,
    /// The token that forms of this session must send.
    pub(crate) form_token: Option<String>,
    /// The name of the cookie of sessions.
    pub(crate) cookie: String,
    /// Whether the browser uses TLS.
    pub(crate) is_secure: bool,
}

impl Call {
    /// A variable part of the path.
    pub(crate) fn part(&self, name: &str) -> &str {
        self.path.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
    }

    /// A variable part of the path that is the number of a row.
    pub(crate) fn id(&self, name: &str) -> Result<i64, Problem> {
        let text = self.part(name);
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let id = if digits { text.parse().ok() } else { None };
        id.ok_or_else(|| {
            Problem::not_found(
                format!("`{}` is no number of a {name}", text.escape_debug()),
                "use a number from a list",
            )
        })
    }

    /// The name of the caller, for the audit and for approvals.
    pub(crate) fn caller_name(&self) -> String {
        self.caller.as_ref().map_or_else(|| "nobody".to_owned(), |caller| caller.name.clone())
    }

    /// A header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body as JSON. Unknown fields are refused by the type. An empty body is an empty object.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        if self.body.is_empty() {
            return read_json(b"{}");
        }
        self.check_json_type()?;
        read_json(&self.body)
    }

    /// Refuses a body with fields.
    pub(crate) fn no_fields(&self) -> Result<(), Problem> {
        self.json::<NoFields>().map(drop)
    }

    /// Refuses a body that does not say that it is JSON.
    pub(crate) fn check_json_type(&self) -> Result<(), Problem> {
        let content_type = self.header("content-type").unwrap_or_default();
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        match essence.eq_ignore_ascii_case("application/json") {
            true => Ok(()),
            false => Err(Problem::media_type("application/json")),
        }
    }

    /// The fields of a form.
    pub(crate) fn form(&self) -> Result<Query, Problem> {
        let content_type = self.header("content-type").unwrap_or_default();
        if !content_type.starts_with("application/x-www-form-urlencoded") {
            return Err(Problem::media_type("application/x-www-form-urlencoded"));
        }
        Query::parse(&String::from_utf8_lossy(&self.body))
    }

    /// A cookie for the pages of this server. `Lax` sends it with links of other sites, such as those in alerts, but not with
    /// their forms.
    pub(crate) fn new_cookie(&self, name: &str, value: &str, seconds: i64) -> String {
        let path = if self.base_path.is_empty() { "/" } else { &self.base_path };
        format!("{name}={value}; Path={path}; Max-Age={seconds}; SameSite=Lax")
    }

    /// The caller's place in a trace. The standard says that an invalid header, or more than one, is ignored.
    fn traceparent(&self) -> Option<TraceParent> {
        let mut values = self.headers.get_all("traceparent").iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().ok().and_then(TraceParent::parse),
            (None, _) | (Some(_), Some(_)) => None,
        }
    }

    /// The store whose changes are recorded with this caller. `subject` is what is changed.
    pub(crate) fn recorded(&self, store: &Store, subject: impl Into<Subject>) -> Store {
        store.recorded(Change {
            caller: self.caller_name(),
            address: Some(self.address.to_string()),
            subject: subject.into(),
            traceparent: self.traceparent(),
        })
    }
}

/// The value of a cookie as it was sent. An empty one is none.
pub(crate) fn cookie_of(headers: &HeaderMap, name: &str) -> Option<String> {
    let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, value)| *known == name && !value.is_empty()).map(|(_, value)| value.to_owned())
}

fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let invalid = |error: String| {
        Problem::invalid(
            format!("the body can't be read: {error}"),
            "see /api/v1/openapi.json for the fields",
        )
    };
    // Serde would take a list for an object, its items for the fields.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(invalid("it is no object".to_owned()));
    }
    // Straight into the type, which refuses a field that is there twice. A program on the way might have checked the other one.
    serde_json::from_slice(bytes).map_err(|error| invalid(error.to_string()))
}

/// The most parameters of a query or fields of a form.
const PAIRS_MAX: usize = 1_000;

/// The names and values of a query or of a form, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) pairs: Vec<(String, String)>,
}

impl Query {
    pub(crate) fn parse(text: &str) -> Result<Query, Problem> {
        let invalid =
            |reason: String| Problem::invalid(reason, "send fewer values, as UTF-8 without zero bytes");
        Ok(Query { pairs: url::decoded_pairs(text, PAIRS_MAX).map_err(invalid)? })
    }

    /// Leaves out the known parameters that are empty. A browser sends empty fields of a form too.
    pub(crate) fn without_empty(mut self, known: &[QueryParameter]) -> Query {
        self.pairs.retain(|(name, value)| !value.is_empty() || !known.iter().any(|known| known.name == name));
        self
    }

    /// Refuses a parameter that the route does not know, one that is there twice, and a value of another sort.
    pub(crate) fn check(self, known: &[QueryParameter]) -> Result<Query, Problem> {
        for (index, (name, value)) in self.pairs.iter().enumerate() {
            let Some(parameter) = known.iter().find(|known| known.name == name) else {
                let names: Vec<&str> = known.iter().map(|known| known.name).collect();
                let next_step = match names.is_empty() {
                    true => "this address takes no query parameters".to_owned(),
                    false => format!("it takes: {}", names.join(", ")),
                };
                return Err(Problem::invalid(
                    format!("the query parameter `{}` is unknown", name.escape_debug()),
                    next_step,
                ));
            };
            if self.pairs[..index].iter().any(|(before, _)| before == name) {
                let next_step = "write it once; several values are separated by commas";
                return Err(Problem::invalid(
                    format!("the query parameter `{name}` is there twice"),
                    next_step,
                ));
            }
            check_value(parameter, value)?;
        }
        Ok(self)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let pair = self.pairs.iter().find(|(known, value)| known == name && !value.is_empty());
        pair.map(|(_, value)| value.as_str())
    }

    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(|text| text.parse().ok())
    }

    /// An instant in milliseconds.
    pub(crate) fn instant_ms(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(instant_ms)
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }

    /// The values of a parameter, which are separated by commas.
    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        self.text(name).map(|text| text.split(',').map(str::trim).collect()).unwrap_or_default()
    }

    /// The query with another value of a parameter, as text.
    pub(crate) fn with(&self, name: &str, value: &str) -> String {
        let kept = self.pairs.iter().filter(|(known, _)| known != name);
        let pairs = kept.map(|(name, value)| (name.as_str(), value.as_str())).chain([(name, value)]);
        pairs.map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect::<Vec<_>>().join("&")
    }
}

fn check_value(parameter: &QueryParameter, value: &str) -> Result<(), Problem> {
    let (is_valid, expected) = match parameter.value {
        ValueSort::Text => (true, String::new()),
        ValueSort::Integer { least, most } => (
            value.parse().is_ok_and(|number: i64| (least..=most).contains(&number)),
            format!("a number from {least} to {most}"),
        ),
        ValueSort::Instant => {
            (instant_ms(value).is_some(), "an instant such as 2026-11-20T09:00:00Z".to_owned())
        }
        ValueSort::Boolean => (matches!(value, "true" | "false"), "`true` or `false`".to_owned()),
    };
    if is_valid {
        return Ok(());
    }
    let name = parameter.name;
    Err(Problem::invalid(
        format!("`{}` is no value of the query parameter `{name}`", value.escape_debug()),
        format!("write {expected}"),
    ))
}

fn instant_ms(text: &str) -> Option<i64> {
    chrono::DateTime::parse_from_rfc3339(text).ok().map(|instant| instant.timestamp_millis())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const KNOWN: &[QueryParameter] = &[
        QueryParameter { name: "limit", about: "", value: ValueSort::Integer { least: 1, most: 9 } },
        QueryParameter { name: "name", about: "", value: ValueSort::Text },
        QueryParameter { name: "since", about: "", value: ValueSort::Instant },
    ];

    fn checked(text: &str) -> Result<Query, Problem> {
        Query::parse(text)?.check(KNOWN)
    }

    #[test]
    fn values_are_decoded() {
        let query = checked("name=a%20b%2Fc+d&limit=3&since=1970-01-01T00:00:01Z").unwrap();
        assert_eq!(query.text("name"), Some("a b/c d"));
        assert_eq!(query.integer("limit"), Some(3));
        assert_eq!(query.instant_ms("since"), Some(1_000));
        assert_eq!(query.with("limit", "4"), "name=a%20b%2Fc%20d&since=1970-01-01T00%3A00%3A01Z&limit=4");
    }

    #[test]
    fn what_is_unknown_or_invalid_is_refused() {
        for text in
            ["other=1", "limit=0", "limit=x", "since=today", "name=a&name=b", "name=%ff", "name=%00", "=1"]
        {
            assert!(checked(text).is_err(), "{text}");
        }
        assert!(checked("limit=").is_err() && checked("since=").is_err());
        let empty = Query::parse("limit=&name=").unwrap().without_empty(KNOWN);
        assert_eq!(empty, Query::default(), "empty fields of a form");
    }
}

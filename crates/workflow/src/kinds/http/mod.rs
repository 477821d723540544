//! The kind `http`: a job that is one HTTP request.

mod check;
mod keys;
mod payload;
mod read;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Action, ActionKey, Kind, Summary, SummaryText, each_text};
use crate::field::{KnownNames, WorkflowError};
use crate::secrets::JobSecret;
use crate::support::Support;
use crate::template;
pub use check::{check_basic, check_header, check_url};
pub(crate) use keys::{AUTH, HTTP};
pub use payload::Payload;

pub(super) const KIND: Kind = Kind {
    name: "http",
    action_keys: &[ActionKey { key: keys::ACTION, holds: "a request" }],
    other_keys: &[],
    read: read::read,
    check_payload: payload::check,
    summarize_payload: payload::summarize,
};

/// How long a request may take if the file does not say it.
pub const DEFAULT_TIMEOUT_MS: i64 = 30_000;
/// The largest body of an answer that becomes an output, in bytes, and the default of `max_bytes`.
pub const OUTPUT_BODY_BYTES: i64 = 1024 * 1024;
/// The largest body of an answer that is saved in a file, in bytes, and the default of `max_bytes` beside `save`.
pub const SAVED_BODY_BYTES: i64 = 16 * 1024 * 1024 * 1024;

/// A request. All texts may be templates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// The method.
    #[serde(default)]
    pub method: Method,
    /// The address: `http://` or `https://`, a host, and a path.
    pub url: String,
    /// Names and values that are added to the query of the address.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// Headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<RequestBody>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// How long the request may take in all, in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: i64,
    /// The largest body of the answer, in bytes. Nothing means the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<i64>,
    /// Whether redirects are followed.
    #[serde(default = "default_follow")]
    pub follow: bool,
    /// The file for the body of the answer, relative to the folder of the workflow file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub save: Option<String>,
}

fn default_timeout_ms() -> i64 {
    DEFAULT_TIMEOUT_MS
}

fn default_follow() -> bool {
    true
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Reads.
    #[default]
    Get,
    /// Reads the headers only.
    Head,
    /// Sends.
    Post,
    /// Replaces.
    Put,
    /// Changes a part.
    Patch,
    /// Deletes.
    Delete,
    /// Asks what is allowed.
    Options,
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 7] = [
        Method::Get,
        Method::Head,
        Method::Post,
        Method::Put,
        Method::Patch,
        Method::Delete,
        Method::Options,
    ];

    /// The method as a request has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
            Method::Options => "OPTIONS",
        }
    }

    /// Whether a request with this method may have a body.
    #[must_use]
    pub fn may_have_body(self) -> bool {
        match self {
            Method::Get | Method::Head => false,
            Method::Post | Method::Put | Method::Patch | Method::Delete | Method::Options => true,
        }
    }
}

/// What a request sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestBody {
    /// A JSON value. Texts in it may be templates. A text that is one template keeps the type of its value.
    Json(Json),
    /// A text as it is.
    Text(String),
    /// Names and values, as a form of a web page sends them.
    Form(BTreeMap<String, String>),
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// A token.
    Bearer(String),
    /// A user and a password, with a colon between them.
    Basic(String),
}

impl Http {
    /// A GET request.
    #[must_use]
    pub fn get(url: impl Into<String>) -> Http {
        Http {
            method: Method::Get,
            url: url.into(),
            query: BTreeMap::new(),
            headers: BTreeMap::new(),
            body: None,
            auth: None,
            timeout_ms: DEFAULT_TIMEOUT_MS,
            max_bytes: None,
            follow: true,
            save: None,
        }
    }

    /// The largest body of the answer, in bytes.
    #[must_use]
    pub fn body_limit(&self) -> i64 {
        let default = if self.save.is_some() { SAVED_BODY_BYTES } else { OUTPUT_BODY_BYTES };
        self.max_bytes.unwrap_or(default)
    }

    pub(super) fn payload(&self, uses: &[&str], secrets: &[JobSecret]) -> String {
        let uses = uses.iter().map(|name| (*name).to_owned()).collect();
        let payload = Payload { http: self.clone(), uses, secrets: secrets.to_vec() };
        serde_json::to_string(&payload).expect("a payload has only string keys")
    }

    pub(super) fn summary(&self) -> Summary {
        let words = vec![self.method.name().to_owned(), self.url.clone()];
        Summary { label: "request", text: SummaryText::Words(words) }
    }

    pub(super) fn features(&self) -> Vec<(&'static str, Support, bool)> {
        Vec::new()
    }

    pub(super) fn secrets_read(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.for_each_template(|text, _field| names.extend(template::secrets_read(text)));
        names
    }

    pub(super) fn check(&self, names: &KnownNames<'_>) -> Result<Vec<usize>, WorkflowError> {
        check::model(self, names)
    }

    /// Calls `see` with each text that may be a template, and the name of its field.
    fn for_each_template(&self, mut see: impl FnMut(&str, &str)) {
        see(&self.url, "url");
        for (field, table) in [("query", &self.query), ("headers", &self.headers)] {
            table.values().for_each(|value| see(value, field));
        }
        match &self.body {
            Some(RequestBody::Json(json)) => each_text(json, &mut |text| see(text, "json")),
            Some(RequestBody::Text(text)) => see(text, "body"),
            Some(RequestBody::Form(form)) => form.values().for_each(|value| see(value, "form")),
            None => {}
        }
        match &self.auth {
            Some(Auth::Bearer(text) | Auth::Basic(text)) => see(text, "auth"),
            None => {}
        }
        if let Some(save) = &self.save {
            see(save, "save");
        }
    }
}

impl From<Http> for Action {
    fn from(http: Http) -> Action {
        Action::Http(Box::new(http))
    }
}

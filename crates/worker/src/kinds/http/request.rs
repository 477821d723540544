//! Makes the request from a payload: fills in templates and encodes the body.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value as Json};
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use windlass_engine::trace::TraceParent;
use windlass_engine::transition::Outcome;
use windlass_workflow::kinds::http::{Auth, Http, Method, RequestBody, check_basic, check_header};

use super::redirect::parse;
use crate::handler::failed_for_good;
use crate::kinds::values::SecretValues;

/// The largest body of a request, in bytes.
const BODY_MAX_BYTES: usize = 16 * 1024 * 1024;

/// What stands in a query as it is.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A request, ready to be sent.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) uri: Uri,
    /// What is meant for the origin of the address only.
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
}

/// What tells this request from others.
pub(super) struct Keys {
    pub(super) idempotency_key: String,
    /// The place of the attempt in the trace of its run.
    pub(super) traceparent: Option<TraceParent>,
}

/// Fills in the templates. Errors name the key and no value, because values may be secret.
pub(super) fn build(http: &Http, values: &SecretValues<'_>, keys: &Keys) -> Result<Request, Outcome> {
    let uri = address(http, values)?;
    let mut headers = HeaderMap::new();
    let body = http.body.as_ref().map(|body| encode(body, values, &mut headers)).transpose()?;
    if http.method != Method::Get {
        add(&mut headers, IDEMPOTENCY_KEY, "Idempotency-Key", &keys.idempotency_key)?;
    }
    if let Some(traceparent) = keys.traceparent {
        add(&mut headers, TRACEPARENT, "traceparent", &traceparent.to_string())?;
    }
    if let Some(auth) = &http.auth {
        let value = authorization(auth, values)?;
        add(&mut headers, header::AUTHORIZATION, "auth", &value)?;
    }
    for (name, value) in &http.headers {
        let field = format!("http.headers.{name}");
        let value = values.render(value, || field.clone())?;
        let known =
            HeaderName::from_bytes(name.as_bytes()).map_err(|error| wrong(&field, &error.to_string()))?;
        check_header(name, &value).map_err(|reason| wrong(&field, &reason))?;
        add(&mut headers, known, &field, &value)?;
    }
    Ok(Request { method: http.method, uri, headers, body })
}

fn address(http: &Http, values: &SecretValues<'_>) -> Result<Uri, Outcome> {
    let mut url = values.render(&http.url, || "http.url".to_owned())?.trim().to_owned();
    if !http.query.is_empty() {
        let query = encode_pairs(&http.query, "query", values)?;
        let separator = match url.split_once('?') {
            None => "?",
            Some((_, "")) => "",
            Some(_) => "&",
        };
        let (before, fragment) = url.split_once('#').unwrap_or((&url, ""));
        let _not_sent = fragment;
        url = format!("{before}{separator}{query}");
    }
    parse(&url).map_err(|reason| wrong("http.url", &reason))
}

fn authorization(auth: &Auth, values: &SecretValues<'_>) -> Result<String, Outcome> {
    match auth {
        Auth::Bearer(token) => {
            let token = values.render(token, || "http.auth.bearer".to_owned())?;
            Ok(format!("Bearer {}", token.trim()))
        }
        Auth::Basic(text) => {
            let text = values.render(text, || "http.auth.basic".to_owned())?;
            check_basic(&text).map_err(|reason| wrong("http.auth.basic", &reason))?;
            Ok(format!("Basic {}", STANDARD.encode(text)))
        }
    }
}

/// The bytes of the body. Its type is added to the headers, which those of the file replace.
fn encode(
    body: &RequestBody,
    values: &SecretValues<'_>,
    headers: &mut HeaderMap,
) -> Result<Vec<u8>, Outcome> {
    let (bytes, content_type) = match body {
        RequestBody::Json(json) => {
            let mut left = BODY_MAX_BYTES;
            let json = render_json(json, values, &mut left)?;
            (json.to_string().into_bytes(), "application/json")
        }
        RequestBody::Text(text) => {
            let text = values.render(text, || "http.body".to_owned())?;
            (text.into_bytes(), "text/plain; charset=utf-8")
        }
        RequestBody::Form(form) => {
            (encode_pairs(form, "form", values)?.into_bytes(), "application/x-www-form-urlencoded")
        }
    };
    if bytes.len() > BODY_MAX_BYTES {
        return Err(too_large());
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    Ok(bytes)
}

/// Fills in the templates of a JSON value. `left` is how many bytes its texts may still have.
fn render_json(json: &Json, values: &SecretValues<'_>, left: &mut usize) -> Result<Json, Outcome> {
    Ok(match json {
        Json::String(text) => {
            let value = values.render_json(text, || "http.json".to_owned())?;
            let size = value.as_str().map_or_else(|| value.to_string().len(), str::len);
            *left = left.checked_sub(size).ok_or_else(too_large)?;
            value
        }
        Json::Array(items) => items
            .iter()
            .map(|item| render_json(item, values, left))
            .collect::<Result<Vec<Json>, Outcome>>()?
            .into(),
        Json::Object(fields) => {
            let mut object = Map::new();
            for (name, value) in fields {
                object.insert(name.clone(), render_json(value, values, left)?);
            }
            Json::Object(object)
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => json.clone(),
    })
}

/// Names and values as in a query.
fn encode_pairs(
    pairs: &BTreeMap<String, String>,
    field: &str,
    values: &SecretValues<'_>,
) -> Result<String, Outcome> {
    let mut encoded = Vec::with_capacity(pairs.len());
    for (name, value) in pairs {
        let value = values.render(value, || format!("http.{field}.{name}"))?;
        encoded.push(format!("{}={}", utf8_percent_encode(name, QUERY), utf8_percent_encode(&value, QUERY)));
    }
    Ok(encoded.join("&"))
}

fn add(headers: &mut HeaderMap, name: HeaderName, field: &str, value: &str) -> Result<(), Outcome> {
    let mut value = HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_error| wrong(field, "the value of a header is one line without control characters"))?;
    // It is not shown where a request is printed for debugging.
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

fn wrong(field: &str, reason: &str) -> Outcome {
    failed_for_good(format!("`{field}`: {reason}"))
}

fn too_large() -> Outcome {
    failed_for_good(format!("the body of the request is larger than {} MiB", BODY_MAX_BYTES / (1024 * 1024)))
}

//! The keys of `http` and of its `auth`.

use crate::expression::Place;
use crate::key::{Key, Table, ValueType};

/// `http` of a job.
pub(super) const ACTION: Key =
    Key::new("http", &[ValueType::Table(Table::Http), ValueType::Text], "an HTTP request")
        .template(Place::Environment)
        .elsewhere(&["request", "httprequest", "curl", "webhook", "fetch"]);

pub(super) const METHOD: Key = Key::new("method", &[ValueType::Word], "the method")
    .words(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
    .default("`POST` with a body, else `GET`")
    .elsewhere(&["verb"]);
pub(super) const URL: Key = Key::new("url", &[ValueType::Text], "the address, with `http://` or `https://`")
    .template(Place::Environment)
    .elsewhere(&["uri", "address", "endpoint", "href"]);
pub(super) const QUERY: Key =
    Key::new("query", &[ValueType::Values], "names and values for the query of the address")
        .template(Place::Environment)
        .elsewhere(&["params", "parameters", "queryparams", "querystring"]);
pub(super) const HEADERS: Key = Key::new("headers", &[ValueType::Values], "headers of the request")
    .template(Place::Environment)
    .elsewhere(&["header"]);
pub(super) const JSON: Key = Key::new("json", &[ValueType::Json], "a JSON value as the body")
    .template(Place::Environment)
    .elsewhere(&["jsonbody"]);
pub(super) const BODY: Key = Key::new("body", &[ValueType::Text], "a text as the body")
    .template(Place::Environment)
    .elsewhere(&["data", "content", "payload"]);
pub(super) const FORM: Key =
    Key::new("form", &[ValueType::Values], "names and values as the body, as a web form sends them")
        .template(Place::Environment)
        .elsewhere(&["formdata", "formdatas"]);
pub(super) const TIMEOUT: Key =
    Key::new("timeout", &[ValueType::Duration], "how long the request may take in all")
        .default("30s")
        .elsewhere(&["timeoutsec", "readtimeout", "connecttimeout"]);
pub(super) const MAX_BYTES: Key =
    Key::new("max_bytes", &[ValueType::Integer], "the largest body of the answer, in bytes")
        .default("1048576 (1 MiB), and 17179869184 (16 GiB) with `save`")
        .elsewhere(&["maxsize", "maxcontentlength", "limit"]);
pub(super) const FOLLOW: Key =
    Key::new("follow", &[ValueType::Boolean], "whether redirects are followed, at most 5")
        .default("true")
        .elsewhere(&["followredirects", "followredirect", "redirects"]);
pub(super) const SAVE: Key = Key::new("save", &[ValueType::Text], "the file for the body of the answer")
    .template(Place::Command)
    .elsewhere(&["output", "outputfile", "file", "dest", "saveas"]);

/// The keys of `http`.
pub(crate) const HTTP: &[Key] = &[
    METHOD,
    URL,
    QUERY,
    HEADERS,
    JSON,
    BODY,
    FORM,
    Key::new("auth", &[ValueType::Table(Table::Auth)], "who asks")
        .elsewhere(&["authentication", "authorization"]),
    TIMEOUT,
    MAX_BYTES,
    FOLLOW,
    SAVE,
];

pub(super) const BEARER: Key = Key::new("bearer", &[ValueType::Text], "a token")
    .template(Place::Environment)
    .elsewhere(&["token", "bearertoken", "oauth"]);
pub(super) const BASIC: Key =
    Key::new("basic", &[ValueType::Text], "a user and a password, as in \"user:password\"")
        .template(Place::Environment)
        .elsewhere(&["user", "username", "password"]);

/// The keys of `auth`.
pub(crate) const AUTH: &[Key] = &[BEARER, BASIC];

//! The checks of a request: those of its texts without templates when a file is read, and those of rendered texts
//! before it is sent.

use super::{Auth, Http, OUTPUT_BODY_BYTES, RequestBody, SAVED_BODY_BYTES};
use crate::expression::Place;
use crate::field::{self, KnownNames, WorkflowError};
use crate::limits;
use crate::template::is_template;

/// Headers that follow from the rest of the request.
const SET_BY_CLIENT: [&str; 5] = ["connection", "content-length", "transfer-encoding", "expect", "upgrade"];

/// Checks an address that has no template.
///
/// # Errors
/// What is wrong, without the address, which may have a secret.
pub fn check_url(url: &str) -> Result<(), String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Err("an address begins with http:// or https://".to_owned());
    };
    if rest.is_empty() || rest.starts_with(['/', '?', '#', ':']) {
        return Err("the address names no host".to_owned());
    }
    if url.contains(|character: char| character.is_whitespace() || character.is_control()) {
        return Err("an address has no spaces; write a space as %20, or use `query`".to_owned());
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Err("a user and a password do not stand in the address; use `auth`".to_owned());
    }
    Ok(())
}

/// Checks a header. The value has no template.
///
/// # Errors
/// What is wrong, without the value, which may be secret.
pub fn check_header(name: &str, value: &str) -> Result<(), String> {
    check_header_name(name)?;
    if value.contains(|character: char| character.is_control() && character != '\t') {
        return Err("the value of a header is one line without control characters".to_owned());
    }
    Ok(())
}

/// Checks the name of a header.
pub(super) fn check_header_name(name: &str) -> Result<(), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || name.len() > limits::NAME_CHARS || !name.bytes().all(is_token) {
        return Err("the name of a header has only letters, digits and -".to_owned());
    }
    match SET_BY_CLIENT.iter().find(|own| name.eq_ignore_ascii_case(own)) {
        Some(own) => Err(format!("Windlass sets the header `{own}`")),
        None => Ok(()),
    }
}

/// Checks a user and a password that have no template.
///
/// # Errors
/// What is wrong, without the text.
pub fn check_basic(text: &str) -> Result<(), String> {
    match text.contains(':') {
        true => Ok(()),
        false => {
            Err("`basic` needs a colon between the user and the password, as in \"user:password\"".to_owned())
        }
    }
}

/// Checks a request. The error is the name of the field and what is wrong.
pub(super) fn request(http: &Http) -> Result<(), (String, String)> {
    let at = |field: &str| {
        let field = field.to_owned();
        move |reason| (field, reason)
    };
    if !is_template(&http.url) {
        check_url(&http.url).map_err(at("url"))?;
    }
    for (name, value) in &http.headers {
        let field = format!("headers[{name:?}]");
        check_header_name(name).map_err(at(&field))?;
        if !is_template(value) {
            check_header(name, value).map_err(at(&field))?;
        }
        if http.auth.is_some() && name.eq_ignore_ascii_case("authorization") {
            return Err((field, "`auth` sets this header; remove one of them".to_owned()));
        }
    }
    if let Some(Auth::Basic(text)) = &http.auth
        && !is_template(text)
    {
        check_basic(text).map_err(at("auth.basic"))?;
    }
    if http.body.is_some() && !http.method.may_have_body() {
        let reason = format!("a {} request has no body; write method = \"POST\"", http.method.name());
        return Err(("method".to_owned(), reason));
    }
    let largest = if http.save.is_some() { SAVED_BODY_BYTES } else { OUTPUT_BODY_BYTES };
    if !(1..=largest).contains(&http.body_limit()) {
        let reason = format!("it is {}, and must be 1 to {largest}", http.body_limit());
        return Err(("max_bytes".to_owned(), reason));
    }
    if !(1..=limits::DURATION_MS).contains(&http.timeout_ms) {
        return Err(("timeout_ms".to_owned(), "it is out of range".to_owned()));
    }
    Ok(())
}

/// Checks a request that a program made. Returns the jobs that its templates read, as indices.
pub(super) fn model(http: &Http, names: &KnownNames<'_>) -> Result<Vec<usize>, WorkflowError> {
    request(http).map_err(|(field, reason)| WorkflowError { field: format!("action.{field}"), reason })?;
    let tables = [Some(&http.query), Some(&http.headers), form(http)];
    for (table, field) in tables.into_iter().zip(["query", "headers", "form"]) {
        let entries = table.map_or(0, |table| table.len());
        field::within(entries, limits::ENV_ENTRIES, &format!("action.{field}"))?;
    }
    let mut read = Ok(Vec::new());
    http.for_each_template(|text, key| {
        let field = format!("action.{key}");
        let place = if key == "save" { Place::Command } else { Place::Environment };
        if let Ok(jobs) = &mut read {
            let found =
                field::plain(text, &field).and_then(|()| field::outputs_read(text, &field, names, place));
            match found {
                Ok(found) => jobs.extend(found),
                Err(error) => read = Err(error),
            }
        }
    });
    read
}

fn form(http: &Http) -> Option<&std::collections::BTreeMap<String, String>> {
    match &http.body {
        Some(RequestBody::Form(form)) => Some(form),
        Some(RequestBody::Json(_) | RequestBody::Text(_)) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host_and_no_password() {
        for right in ["http://a", "https://example.com:8443/x?y=1#z", "http://[::1]:80/", "http://10.0.0.1"] {
            assert_eq!(check_url(right), Ok(()), "{right}");
        }
        for (wrong, reason) in [
            ("example.com", "begins with"),
            ("ftp://a", "begins with"),
            ("http://", "no host"),
            ("http:///x", "no host"),
            ("http://:80", "no host"),
            ("http://a/b c", "no spaces"),
            ("http://a/\r\nX: y", "no spaces"),
            ("http://user:secret@a/", "use `auth`"),
        ] {
            let message = check_url(wrong).expect_err(wrong);
            assert!(message.contains(reason) && !message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn a_header_is_one_line_and_none_of_those_that_the_client_sets() {
        assert_eq!(check_header("X-Api-Key", "a b\tc"), Ok(()));
        for (name, value) in
            [("", ""), ("a b", ""), ("a:", ""), ("A", "x\r\nB: y"), ("A", "\0"), ("Content-Length", "1")]
        {
            assert!(check_header(name, value).is_err(), "{name} {value}");
        }
    }
}

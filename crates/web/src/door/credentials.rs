//! What a request shows: a token in a header, or the cookie of a session.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use subtle::ConstantTimeEq;
use windlass_engine::store::{CredentialKind, secret_hash};

use crate::call::cookie_of;
use crate::options::WebOptions;
use crate::problem::Problem;

/// A secret that a request shows.
#[derive(Clone)]
pub(super) enum Credentials {
    Token(String),
    Session(String),
}

impl Credentials {
    /// The token of `Authorization`, otherwise the cookie. A request with a header is never taken for that of a session.
    pub(super) fn read(headers: &HeaderMap, cookie_name: &str) -> Result<Credentials, Problem> {
        let mut authorizations = headers.get_all(AUTHORIZATION).iter();
        match (authorizations.next(), authorizations.next()) {
            (None, _) => {}
            (Some(value), None) => {
                let value = value.to_str().unwrap_or_default();
                let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
                let token = token.trim();
                if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
                    return Err(Problem::unauthorized("the header Authorization has no bearer token"));
                }
                return Ok(Credentials::Token(token.to_owned()));
            }
            (Some(_), Some(_)) => return Err(Problem::unauthorized("there are two headers Authorization")),
        }
        match cookie_of(headers, cookie_name) {
            Some(secret) => Ok(Credentials::Session(secret)),
            None => Err(Problem::unauthorized("the request names no caller")),
        }
    }

    pub(super) fn hash(&self) -> String {
        match self {
            Credentials::Token(secret) | Credentials::Session(secret) => secret_hash(secret),
        }
    }

    pub(super) fn kind(&self) -> CredentialKind {
        match self {
            Credentials::Token(_) => CredentialKind::Token,
            Credentials::Session(_) => CredentialKind::Session,
        }
    }
}

/// The name of the cookie. It has the port, because browsers send the cookies of one name of a host to all its ports. With
/// TLS it has a prefix, with which a browser takes it from this host only: neither another name of the domain nor a page
/// without TLS can set it.
pub(crate) fn cookie_name(options: &WebOptions) -> String {
    let prefix = match (options.is_secure(), options.base_path.is_empty()) {
        (true, true) => "__Host-",
        (true, false) => "__Secure-",
        (false, _) => "",
    };
    format!("{prefix}windlass_{}", options.listen.socket().port())
}

/// The token of the forms of a session. It comes from the secret of the session, so that no table needs it, and the secret
/// can't be found from it.
pub(super) fn form_token(session_secret: &str) -> String {
    secret_hash(&format!("form of {session_secret}"))
}

/// Compares two secrets. The time does not tell where they differ.
pub(super) fn are_equal(left: &str, right: &str) -> bool {
    left.as_bytes().ct_eq(right.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn read(pairs: &[(&'static str, &str)]) -> String {
        match Credentials::read(&headers(pairs), "windlass_1") {
            Ok(Credentials::Token(token)) => format!("token {token}"),
            Ok(Credentials::Session(secret)) => format!("session {secret}"),
            Err(problem) => problem.status.to_string(),
        }
    }

    #[test]
    fn a_header_comes_before_a_cookie() {
        assert_eq!(read(&[("authorization", "Bearer x")]), "token x");
        assert_eq!(read(&[("authorization", "bearer  x"), ("cookie", "windlass_1=y")]), "token x");
        assert_eq!(read(&[("cookie", "a=b; windlass_1=y; c=d")]), "session y");
        assert_eq!(read(&[("authorization", "Basic x"), ("cookie", "windlass_1=y")]), "401 Unauthorized");
        assert_eq!(read(&[("authorization", "Bearer x"), ("authorization", "Bearer y")]), "401 Unauthorized");
        assert_eq!(read(&[("cookie", "windlass_2=y")]), "401 Unauthorized");
        assert_eq!(read(&[]), "401 Unauthorized");
    }

    #[test]
    fn the_token_of_forms_is_not_the_secret_or_its_hash() {
        let token = form_token("secret");
        assert!(token != "secret" && token != secret_hash("secret") && token == form_token("secret"));
        assert!(are_equal(&token, &form_token("secret")) && !are_equal(&token, &form_token("other")));
    }
}

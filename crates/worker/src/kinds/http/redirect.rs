//! Where a redirect leads, and what of the request may go there. Pure.

use ureq::http::Uri;
use windlass_workflow::kinds::http::Method;

/// How many redirects are followed.
pub(super) const REDIRECTS_MAX: usize = 5;

/// The method and whether the body is sent again, after a redirect with this status. `None` if it is no redirect.
pub(super) fn next_method(status: u16, method: Method) -> Option<(Method, Resend)> {
    match (status, method) {
        (301..=303, Method::Head) | (303, Method::Get) => Some((method, Resend::Nothing)),
        (303, _) | (301 | 302, Method::Post) => Some((Method::Get, Resend::Nothing)),
        (301 | 302 | 307 | 308, _) => Some((method, Resend::Body)),
        _ => None,
    }
}

/// Whether the next request has the body of the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resend {
    Body,
    Nothing,
}

/// Whether two addresses have the same scheme, host and port. What is meant for one origin must not go to another.
pub(super) fn is_same_origin(one: &Uri, other: &Uri) -> bool {
    origin(one) == origin(other)
}

fn origin(uri: &Uri) -> (String, String, Option<u16>) {
    let scheme = uri.scheme_str().unwrap_or_default().to_ascii_lowercase();
    let default_port = match scheme.as_str() {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    };
    (scheme, uri.host().unwrap_or_default().to_ascii_lowercase(), uri.port_u16().or(default_port))
}

/// The address that a `Location` header names.
pub(super) fn target(base: &Uri, location: &str) -> Result<Uri, String> {
    let location = location.split('#').next().unwrap_or_default().trim();
    let scheme = base.scheme_str().unwrap_or("http");
    let authority = base.authority().map_or("", |authority| authority.as_str());
    let has_scheme = location.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    let text = if has_scheme {
        location.to_owned()
    } else if let Some(rest) = location.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else if location.starts_with('?') {
        format!("{scheme}://{authority}{}{location}", base.path())
    } else {
        let (path, query) = match location.split_once('?') {
            Some((path, query)) => (path, format!("?{query}")),
            None => (location, String::new()),
        };
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        let path = match path {
            "" => base.path().to_owned(),
            path if path.starts_with('/') => without_dots(path),
            path => without_dots(&format!("{folder}/{path}")),
        };
        format!("{scheme}://{authority}{path}{query}")
    };
    parse(&text)
}

/// Removes `.` and `..` from a path.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut ends_with_folder = false;
    for part in path.trim_start_matches('/').split('/') {
        ends_with_folder = matches!(part, "." | "..");
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let end = if ends_with_folder && !parts.is_empty() { "/" } else { "" };
    format!("/{}{end}", parts.join("/"))
}

/// Parses an address. Letters beyond ASCII in its path and query are encoded.
pub(super) fn parse(url: &str) -> Result<Uri, String> {
    windlass_workflow::kinds::http::check_url(url)?;
    let url = url.split('#').next().unwrap_or_default();
    let encoded = percent_encoding::utf8_percent_encode(url, percent_encoding::CONTROLS).to_string();
    let uri: Uri = encoded.parse().map_err(|error| format!("it is no address: {error}"))?;
    let host = uri.host().unwrap_or_default();
    if host.is_empty() {
        return Err("the address names no host".to_owned());
    }
    if host.contains('%') {
        return Err("the host has letters beyond a to z; write its name in punycode (xn--…)".to_owned());
    }
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_after_a_redirect() {
        use Method::{Delete, Get, Head, Post, Put};
        for (status, method, next) in [
            (301, Get, Some((Get, Resend::Body))),
            (302, Post, Some((Get, Resend::Nothing))),
            (303, Put, Some((Get, Resend::Nothing))),
            (303, Head, Some((Head, Resend::Nothing))),
            (307, Post, Some((Post, Resend::Body))),
            (308, Put, Some((Put, Resend::Body))),
            (301, Delete, Some((Delete, Resend::Body))),
            (300, Get, None),
            (304, Get, None),
            (200, Get, None),
        ] {
            assert_eq!(next_method(status, method), next, "{status} {method:?}");
        }
    }

    #[test]
    fn a_location_is_read_from_the_place_of_the_request() {
        let base = parse("http://a.example:8080/x/y?q=1").expect("an address");
        for (location, expected) in [
            ("https://b.example/z", "https://b.example/z"),
            ("//b.example/z", "http://b.example/z"),
            ("/z?r=2#part", "http://a.example:8080/z?r=2"),
            ("z", "http://a.example:8080/x/z"),
            ("../z/./w", "http://a.example:8080/z/w"),
            ("../../../z/..", "http://a.example:8080/"),
            ("?r=2", "http://a.example:8080/x/y?r=2"),
            ("", "http://a.example:8080/x/y"),
            ("/ä", "http://a.example:8080/%C3%A4"),
        ] {
            assert_eq!(
                target(&base, location).map(|uri| uri.to_string()),
                Ok(expected.to_owned()),
                "{location}"
            );
        }
        for wrong in ["ftp://b/", "javascript:alert(1)", "http://", "http://user:pw@b/", "/a b"] {
            assert!(target(&base, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |one: &str, other: &str| {
            is_same_origin(&parse(one).expect("an address"), &parse(other).expect("an address"))
        };
        assert!(same("http://A.example/x", "http://a.example:80/y"));
        assert!(!same("http://a.example/", "https://a.example/"));
        assert!(!same("http://a.example/", "http://a.example:81/"));
        assert!(!same("http://a.example/", "http://b.example/"));
    }
}

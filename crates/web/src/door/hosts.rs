//! The names under which the server answers. A page of another site whose name is made to lead here, has another name in
//! `Host`.

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Uri};

/// The names of this machine for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The names that are allowed, in lower case.
pub(crate) struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    pub(crate) fn new(configured: &[String]) -> Hosts {
        let names = LOOPBACK.into_iter().map(str::to_owned);
        Hosts { names: names.chain(configured.iter().map(|name| name.to_ascii_lowercase())).collect() }
    }

    /// The name for which the request is, if it is none of ours. A request can name it twice: in `Host`, and as proxies do it
    /// in its address.
    pub(crate) fn unknown(&self, headers: &HeaderMap, address: &Uri) -> Option<String> {
        let named = [Some(host_of(headers)), address.authority().map(|authority| authority.as_str())];
        named.into_iter().flatten().find(|host| !self.allows(host)).map(str::to_owned)
    }

    /// A name without a port stands for every port.
    fn allows(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        self.names.iter().any(|name| *name == host || *name == without_port(&host))
    }
}

/// The value of `Host`, if there is exactly one.
pub(crate) fn host_of(headers: &HeaderMap) -> &str {
    let mut values = headers.get_all(HOST).iter();
    match (values.next().and_then(|value| value.to_str().ok()), values.next()) {
        (Some(host), None) => host,
        (_, _) => "",
    }
}

fn without_port(host: &str) -> &str {
    let end = if host.starts_with('[') { host.find(']').map(|end| end + 1) } else { host.find(':') };
    let (name, rest) = host.split_at(end.unwrap_or(host.len()));
    let is_port = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port_number);
    if is_port { name } else { host }
}

fn is_port_number(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a request comes from a page of this server. `Origin` must name the host of the request. For a form of a page with
/// the policy `no-referrer`, browsers send the origin `null`, and say in a header that no page can set where the form was.
pub(crate) fn is_from_own_page(headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(ORIGIN).iter();
    let (Some(origin), None) = (origins.next().and_then(|origin| origin.to_str().ok()), origins.next())
    else {
        return false;
    };
    if origin == "null" {
        let mut sites = headers.get_all("sec-fetch-site").iter();
        return sites.next().is_some_and(|site| site == "same-origin") && sites.next().is_none();
    }
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    host.is_some_and(|host| !host.is_empty() && host.eq_ignore_ascii_case(host_of(headers)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use axum::http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn allows(hosts: &Hosts, headers: &HeaderMap) -> bool {
        hosts.unknown(headers, &Uri::from_static("/runs")).is_none()
    }

    #[test]
    fn only_listed_names_are_answered() {
        let hosts = Hosts::new(&["jobs.example".to_owned(), "exact.example:8443".to_owned()]);
        for host in [
            "localhost",
            "localhost:9463",
            "127.0.0.1:9463",
            "[::1]:9463",
            "Jobs.Example:443",
            "exact.example:8443",
        ] {
            assert!(allows(&hosts, &headers(&[("host", host)])), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:9463",
            "exact.example",
            "",
            "[::1]x",
            "localhost:9463@evil.example",
            "localhost:",
            "0.0.0.0",
            "[::1",
            "localhost:123456",
        ] {
            assert!(!allows(&hosts, &headers(&[("host", host)])), "{host}");
        }
        assert!(!allows(&hosts, &HeaderMap::new()));
        assert!(!allows(&hosts, &headers(&[("host", "localhost"), ("host", "localhost")])));
        let whole = |address| hosts.unknown(&headers(&[("host", "localhost")]), &Uri::from_static(address));
        assert_eq!(whole("http://localhost:9463/runs"), None);
        assert_eq!(whole("http://evil.example/runs"), Some("evil.example".to_owned()));
    }

    #[test]
    fn an_origin_must_be_the_own_one() {
        let own = |origin| headers(&[("host", "localhost:9463"), ("origin", origin)]);
        assert!(is_from_own_page(&own("http://localhost:9463")));
        assert!(is_from_own_page(&own("https://LOCALHOST:9463")));
        for origin in [
            "null",
            "http://localhost",
            "http://localhost:80",
            "http://evil.example",
            "localhost:9463",
            "http://",
        ] {
            assert!(!is_from_own_page(&own(origin)), "{origin}");
        }
        assert!(!is_from_own_page(&headers(&[("host", "localhost:9463")])), "no origin");
        let hidden =
            |site| headers(&[("host", "localhost:9463"), ("origin", "null"), ("sec-fetch-site", site)]);
        assert!(is_from_own_page(&hidden("same-origin")));
        for site in ["same-site", "cross-site", "none", ""] {
            assert!(!is_from_own_page(&hidden(site)), "{site}");
        }
    }
}

//! Sends a request, follows redirects, and gives the answer whose body is still to be read.

use std::io;
use std::sync::{Arc, OnceLock};

use ureq::http::{HeaderMap, Request as HttpRequest, Response, StatusCode, Uri, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::transport::{Connector, RustlsConnector};
use ureq::{Agent, Body};
use windlass_system::shortage::is_shortage;

use super::connection::{Direct, REFUSED};
use super::lookup::Lookup;
use super::patience::{Over, Patience};
use super::redirect::{REDIRECTS_MAX, Resend, is_same_origin, next_method, target};
use super::request::Request;
use crate::handler::LinkLocal;

/// The largest head of an answer, in bytes.
const HEAD_MAX_BYTES: usize = 64 * 1024;
/// The value of `User-Agent` unless the job has one.
const USER_AGENT: &str = concat!("windlass/", env!("CARGO_PKG_VERSION"));

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The request must end.
    Over(Over),
    /// The system refused a file or a thread before anything was sent.
    Shortage(io::Error),
    /// It would happen again.
    Final(String),
    /// It may pass.
    Passing(String),
}

/// The answer to the last of the requests.
pub(super) struct Answer {
    /// The method and the host, for people. It has no path and no query, which may be secret.
    pub(super) what: String,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
}

/// Sends requests, and notes each in a log.
pub(super) struct Exchange<'a> {
    pub(super) log: &'a dyn Fn(&str),
    pub(super) patience: Patience,
    pub(super) link_local: LinkLocal,
}

impl Exchange<'_> {
    /// Sends the request, and again to where redirects lead if `follow` says so.
    pub(super) fn run(&self, mut request: Request, follow: bool) -> Result<Answer, (String, NoAnswer)> {
        for redirects in 0.. {
            let what = what(&request);
            let response = match self.send(&request) {
                Ok(response) => response,
                Err(no_answer) => {
                    (self.log)(&format!("{what}: {}", text(&no_answer)));
                    return Err((what, no_answer));
                }
            };
            let next = if follow { next(&request, &response) } else { Ok(None) };
            match next {
                Ok(None) => {
                    let (parts, body) = response.into_parts();
                    return Ok(Answer { what, status: parts.status, headers: parts.headers, body });
                }
                Ok(Some(next)) if redirects < REDIRECTS_MAX => {
                    let to = host(&next.uri);
                    (self.log)(&format!("{what}: status {}, redirected to {to}", response.status().as_u16()));
                    request = next;
                }
                Ok(Some(_)) => {
                    let reason = format!("more than {REDIRECTS_MAX} redirects");
                    return Err((what, NoAnswer::Final(reason)));
                }
                Err(reason) => return Err((what, NoAnswer::Final(reason))),
            }
        }
        unreachable!("the loop ends after {REDIRECTS_MAX} redirects")
    }

    fn send(&self, request: &Request) -> Result<Response<Body>, NoAnswer> {
        let connector =
            ().chain(Direct { patience: self.patience.clone(), link_local: self.link_local })
                .chain(RustlsConnector::default());
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .max_idle_connections(0)
            .max_response_header_size(HEAD_MAX_BYTES)
            .user_agent(USER_AGENT)
            .tls_config(tls(&request.uri))
            .build();
        let agent = Agent::with_parts(config, connector, Lookup { patience: self.patience.clone() });
        let mut message = HttpRequest::builder().method(request.method.name()).uri(request.uri.clone());
        if let Some(headers) = message.headers_mut() {
            headers.extend(request.headers.clone());
        }
        let sent = match &request.body {
            Some(body) => agent.run(message.body(body).map_err(|error| NoAnswer::Final(error.to_string()))?),
            None if request.method.may_have_body() => {
                agent.run(message.body(&[][..]).map_err(|error| NoAnswer::Final(error.to_string()))?)
            }
            None => agent.run(message.body(()).map_err(|error| NoAnswer::Final(error.to_string()))?),
        };
        sent.map_err(|error| self.explain(error, &request.uri))
    }

    /// Why there is no answer. The text has no part of the request but its host.
    fn explain(&self, error: ureq::Error, uri: &Uri) -> NoAnswer {
        if let Some(over) = self.patience.over() {
            return NoAnswer::Over(over);
        }
        #[allow(clippy::wildcard_enum_match_arm, reason = "the enum is the library's and open")]
        match error {
            ureq::Error::Io(error) if is_shortage(&error) => NoAnswer::Shortage(error),
            ureq::Error::Io(error)
                if error.kind() == io::ErrorKind::PermissionDenied
                    && error.to_string().ends_with(REFUSED) =>
            {
                NoAnswer::Final(error.to_string())
            }
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
                NoAnswer::Passing("could not connect: no answer".to_owned())
            }
            ureq::Error::Io(error) => NoAnswer::Passing(format!("no answer: {error}")),
            ureq::Error::HostNotFound => {
                NoAnswer::Passing(format!("the host {} was not found", uri.host().unwrap_or_default()))
            }
            ureq::Error::LargeResponseHeader(..) => NoAnswer::Final(format!(
                "the head of the answer is larger than {} KiB",
                HEAD_MAX_BYTES / 1024
            )),
            other => NoAnswer::Passing(format!("no valid answer: {other}")),
        }
    }
}

/// The request that follows an answer, if the answer is a redirect.
fn next(request: &Request, response: &Response<Body>) -> Result<Option<Request>, String> {
    let Some((method, resend)) = next_method(response.status().as_u16(), request.method) else {
        return Ok(None);
    };
    let Some(location) = response.headers().get(header::LOCATION) else { return Ok(None) };
    let location = String::from_utf8_lossy(location.as_bytes());
    let uri = target(&request.uri, &location)
        .map_err(|reason| format!("redirected to a wrong address: {reason}"))?;
    let body = match resend {
        Resend::Body => request.body.clone(),
        Resend::Nothing => None,
    };
    let mut headers = request.headers.clone();
    if body.is_none() {
        headers.remove(header::CONTENT_TYPE);
    }
    if is_same_origin(&request.uri, &uri) {
        return Ok(Some(Request { method, uri, headers, body }));
    }
    // Anything that the file says may be secret, and was meant for the first origin.
    if body.is_some() {
        let to = host(&uri);
        return Err(format!(
            "redirected to {to}: a body is not sent to another origin; write that address as `url`"
        ));
    }
    Ok(Some(Request { method, uri, headers: HeaderMap::new(), body: None }))
}

/// The method and the host.
pub(super) fn what(request: &Request) -> String {
    format!("{} {}", request.method.name(), host(&request.uri))
}

fn host(uri: &Uri) -> String {
    uri.authority().map_or_else(String::new, |authority| authority.as_str().to_owned())
}

/// What is trusted. Requests without TLS need nothing.
fn tls(uri: &Uri) -> TlsConfig {
    let builder = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()));
    if uri.scheme_str() == Some("https") { builder.root_certs(roots()).build() } else { builder.build() }
}

/// The certificates that this machine trusts, read once.
fn roots() -> RootCerts {
    static ROOTS: OnceLock<RootCerts> = OnceLock::new();
    let read = || {
        let native = rustls_native_certs::load_native_certs();
        let certificates: Vec<Certificate<'static>> =
            native.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
        if certificates.is_empty() {
            tracing::warn!("this machine trusts no certificates: requests with https:// will fail");
        }
        RootCerts::new_with_certs(&certificates)
    };
    ROOTS.get_or_init(read).clone()
}

pub(super) fn text(no_answer: &NoAnswer) -> String {
    match no_answer {
        NoAnswer::Over(Over::Stopped) => "ended, because the attempt was asked to stop".to_owned(),
        NoAnswer::Over(Over::TimedOut) => "no whole answer in time".to_owned(),
        NoAnswer::Shortage(error) => error.to_string(),
        NoAnswer::Final(reason) | NoAnswer::Passing(reason) => reason.clone(),
    }
}

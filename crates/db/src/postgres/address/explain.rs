//! Explains why connecting failed, because the client's own messages only name the place in the protocol.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use postgres::error::SqlState;
use rustls::CertificateError;

use super::PostgresAddress;
use super::hosts::Server;
use super::tls::Trust;
use crate::error::{Refusal, Unavailable};

impl PostgresAddress {
    /// Explains an error of connecting to this address.
    #[must_use]
    pub fn explain(&self, error: &postgres::Error) -> Unavailable {
        if let Some(server) = error.as_db_error() {
            return self.explain_server_error(server);
        }
        if is_other_protocol(error) {
            let why = "the program that answers there does not speak PostgreSQL's protocol";
            return Unavailable::Unreachable(format!("{}: {why}", self.servers()));
        }
        if let Some(tls) = cause::<rustls::Error>(error) {
            return self.explain_tls(tls);
        }
        if let Some(input_output) = cause::<io::Error>(error) {
            return self.explain_network(input_output);
        }
        let detail = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        // The client has no codes for its own errors.
        match detail.as_str() {
            "password missing" => refused(
                Refusal::NoPassword,
                format!("the server asks for the password of `{}`, and none is given", self.user()),
            ),
            "server does not support TLS" => {
                refused(Refusal::Encryption, format!("{} does not offer encryption", self.servers()))
            }
            "unsupported authentication method" | "unsupported SASL mechanism" => {
                let detail = "the server asks for an authentication method that Windlass does not support";
                refused(Refusal::Login, detail.to_owned())
            }
            "server did not use channel binding" => {
                let detail = "the server does not bind the login to the encryption (channel_binding=require)";
                refused(Refusal::Encryption, detail.to_owned())
            }
            _ if error.is_closed() => {
                Unavailable::Unreachable(format!("{} closed the connection", self.servers()))
            }
            _ => Unavailable::Unreachable(format!("{}: {detail}", self.servers())),
        }
    }

    fn explain_server_error(&self, server: &postgres::error::DbError) -> Unavailable {
        let detail = match server.detail() {
            Some(detail) => format!("{} ({detail})", server.message()),
            None => server.message().to_owned(),
        };
        match *server.code() {
            SqlState::INVALID_PASSWORD => refused(Refusal::Password, detail),
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION => refused(Refusal::Login, detail),
            SqlState::INVALID_CATALOG_NAME => refused(Refusal::NoDatabase, detail),
            SqlState::INSUFFICIENT_PRIVILEGE => Unavailable::Forbidden(detail),
            SqlState::TOO_MANY_CONNECTIONS => {
                Unavailable::NoConnectionFree(format!("{}: {detail}", self.servers()))
            }
            SqlState::QUERY_CANCELED => Unavailable::Cancelled(detail),
            ref code if code.code().starts_with("53") => Unavailable::Exhausted(detail),
            // The server is starting or stopping.
            ref code if ["08", "57"].iter().any(|class| code.code().starts_with(class)) => {
                Unavailable::Unreachable(format!("{}: {detail}", self.servers()))
            }
            _ => Unavailable::CannotOpen(detail),
        }
    }

    /// Explains that a server accepts the connection and does not answer.
    pub(in super::super) fn silent(&self, waited: Duration) -> Unavailable {
        let seconds = waited.as_secs();
        Unavailable::Unreachable(format!(
            "{}: a program accepts the connection there and has not answered for {seconds} s; see whether the server \
             hangs, or give it more time with `connect_timeout`",
            self.servers()
        ))
    }

    fn explain_network(&self, error: &io::Error) -> Unavailable {
        let text = error.to_string();
        let is_of_client = error.raw_os_error().is_none();
        if is_of_client && text == "database does not allow writes" {
            return Unavailable::Standby;
        }
        let words = SHORT_MESSAGES.iter().find(|(kind, _)| *kind == error.kind()).map(|(_, words)| *words);
        let why = match (words, text.strip_prefix("failed to lookup address information: ")) {
            (Some(words), _) => words.to_owned(),
            (None, Some(why)) => format!("the host is not known ({why})"),
            (None, None) => text,
        };
        Unavailable::Unreachable(format!("{}: {why}", self.servers()))
    }

    fn explain_tls(&self, error: &rustls::Error) -> Unavailable {
        let roots = match &self.trust {
            Trust::Any => "an authority".to_owned(),
            Trust::File(file) => format!("an authority in {}", file.display()),
            Trust::System => "an authority that this system trusts".to_owned(),
        };
        let servers = self.servers();
        if let rustls::Error::InvalidCertificate(reason) = error {
            let detail =
                format!("the certificate of {servers} {}", describe_certificate_error(reason, &roots));
            return refused(Refusal::Certificate, detail);
        }
        if let rustls::Error::AlertReceived(alert) = error {
            return refused(Refusal::Certificate, format!("{servers} ended the encryption: {alert:?}"));
        }
        refused(Refusal::Encryption, format!("encryption with {servers} failed: {error}"))
    }

    /// The servers as part of a message.
    fn servers(&self) -> String {
        let servers: Vec<String> = self.servers.iter().map(Server::to_string).collect();
        match servers.as_slice() {
            [one] => one.clone(),
            several => format!("the last of {}", several.join(", ")),
        }
    }
}

/// Whether the answer was not in PostgreSQL's protocol.
fn is_other_protocol(error: &postgres::Error) -> bool {
    if let Some(tls) = cause::<rustls::Error>(error) {
        return matches!(tls, rustls::Error::InvalidMessage(_));
    }
    match error.to_string().as_str() {
        "error parsing response from server" | "unexpected message from server" => true,
        // An error of the client, not of the system, and not an early end of the connection.
        "error communicating with the server" => cause::<io::Error>(error).is_some_and(|error| {
            error.raw_os_error().is_none() && error.kind() != io::ErrorKind::UnexpectedEof
        }),
        _ => false,
    }
}

/// Short messages for errors of the system.
const SHORT_MESSAGES: [(io::ErrorKind, &str); 6] = [
    (io::ErrorKind::ConnectionRefused, "connection refused"),
    (io::ErrorKind::TimedOut, "no answer in time"),
    (io::ErrorKind::NotFound, "there is no socket"),
    (io::ErrorKind::PermissionDenied, "permission denied"),
    (io::ErrorKind::UnexpectedEof, "the connection was closed before it was made"),
    (io::ErrorKind::ConnectionReset, "the connection was closed before it was made"),
];

/// Describes what is wrong with a certificate that `roots` should have signed.
fn describe_certificate_error(reason: &CertificateError, roots: &str) -> String {
    use CertificateError as Reason;
    if matches!(reason, Reason::UnknownIssuer | Reason::BadSignature) {
        return format!("is not signed by {roots}");
    }
    if matches!(reason, Reason::Expired | Reason::ExpiredContext { .. }) {
        return "has expired".to_owned();
    }
    if matches!(reason, Reason::NotValidYet | Reason::NotValidYetContext { .. }) {
        return "is not valid yet, by this machine's clock".to_owned();
    }
    if matches!(reason, Reason::Revoked) {
        return "was revoked".to_owned();
    }
    if matches!(reason, Reason::UnknownRevocationStatus) {
        return "is of an authority that is not in the revocation lists".to_owned();
    }
    if matches!(reason, Reason::InvalidPurpose | Reason::InvalidPurposeContext { .. }) {
        return "is not made for servers".to_owned();
    }
    if let Reason::NotValidForNameContext { expected, presented } = reason {
        return describe_wrong_name(&expected.to_str(), presented);
    }
    let text = match reason.to_string() {
        version if version.contains("UnsupportedCertVersion") => {
            return "is of X.509 version 1, which has no subjectAltName: it must be made again".to_owned();
        }
        signer if signer.contains("CaUsedAsEndEntity") => {
            return "is an authority's own, and not the one that is trusted".to_owned();
        }
        other => other,
    };
    format!("can't be used: {text}")
}

fn refused(refusal: Refusal, detail: String) -> Unavailable {
    Unavailable::Refused { refusal, detail }
}

/// Describes the names of a certificate that does not have the expected name.
fn describe_wrong_name(expected: &str, presented: &[String]) -> String {
    let names: Vec<&str> = presented.iter().map(|name| without_type(name)).collect();
    match names.is_empty() {
        true => format!(
            "is not made for {expected}: it has no subjectAltName, and a name in its subject does not count"
        ),
        false => format!("is made for {}, and not for {expected}", names.join(", ")),
    }
}

/// `db.example` of `DnsName("db.example")`.
fn without_type(name: &str) -> &str {
    name.split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .map_or(name, |name| name.trim_matches('"'))
}

/// The first cause of this type. An error of input or output may carry it inside.
fn cause<'e, E: std::error::Error + 'static>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<io::Error>().and_then(|error| error.get_ref());
        let inside = inner.and_then(|inner| inner.downcast_ref::<E>());
        if let Some(found) = error.downcast_ref::<E>().or(inside) {
            return Some(found);
        }
        next = error.source();
    }
    None
}

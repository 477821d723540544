//! The encryption of connections, and how the server's certificate is checked: `sslmode` and the parameters for it.
//!
//! | `sslmode`     | encrypted                   | the server's certificate                                |
//! | ------------- | --------------------------- | ------------------------------------------------------- |
//! | `disable`     | never                       |                                                         |
//! | `allow`       | as `prefer`                 | as `prefer`                                             |
//! | `prefer`      | when the server offers it   | its chain, if `sslrootcert` is given; else not checked |
//! | `require`     | always                      | its chain, if there is a root certificate; else not checked |
//! | `verify-ca`   | always                      | its chain                                               |
//! | `verify-full` | always                      | its chain, and that it is made for the host             |
//!
//! This is libpq's table, with four differences, each of which is safer. `allow` does not first try without encryption. A
//! connection that failed with encryption is never tried without it. A file that is named must exist. And `verify-full` without
//! any root certificate trusts the system's certificates, where libpq reports an error.

mod certificates;
mod verifier;

use std::path::PathBuf;
use std::sync::Arc;

use postgres::config::SslMode;
use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::sign::SingleCertAndKey;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::settings::{Environment, Settings};
use super::{AddressError, files};
use verifier::{NameCheck, Unverified, Verified};

/// The value of `sslrootcert` that means the system's certificates.
const SYSTEM: &str = "system";
/// The user's own file of root certificates, which all clients of PostgreSQL use.
const HOME_ROOTS: &str = ".postgresql/root.crt";

/// How connections are encrypted.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) connector: MakeRustlsConnect,
    pub(super) ssl_mode: SslMode,
    pub(super) trust: Trust,
}

/// Which certificates of servers are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    /// Any certificate. An attacker who can answer instead of the server is not detected.
    Any,
    /// Those that a root certificate of this file has signed.
    File(PathBuf),
    /// Those that a root certificate of the system has signed.
    System,
}

/// The values of `sslmode`. `allow` is the same as `prefer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SslModeParameter {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

const MODES: &[(&str, SslModeParameter)] = &[
    ("disable", SslModeParameter::Disable),
    ("allow", SslModeParameter::Prefer),
    ("prefer", SslModeParameter::Prefer),
    ("require", SslModeParameter::Require),
    ("verify-ca", SslModeParameter::VerifyCa),
    ("verify-full", SslModeParameter::VerifyFull),
];

/// Converts the parameters, and reads the files of certificates.
pub(super) fn tls(settings: &Settings, environment: Environment<'_>) -> Result<Tls, AddressError> {
    let mode = mode(settings)?;
    let home_roots = files::in_home(environment, HOME_ROOTS).filter(|file| file.exists());
    let (trust, name_check) = trust(mode, settings.text("sslrootcert"), home_roots)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let connector = match mode {
        // This connector is never used, so no file is read for it.
        SslModeParameter::Disable => {
            client(&provider, settings, verifier(&Trust::Any, name_check, &provider, settings, environment)?)?
                .with_no_client_auth()
        }
        SslModeParameter::Prefer
        | SslModeParameter::Require
        | SslModeParameter::VerifyCa
        | SslModeParameter::VerifyFull => {
            let verifier = verifier(&trust, name_check, &provider, settings, environment)?;
            let client = client(&provider, settings, verifier)?;
            match certificates::client_certificate(settings, environment, &provider)? {
                None => client.with_no_client_auth(),
                Some(own) => client.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own))),
            }
        }
    };
    let ssl_mode = match mode {
        SslModeParameter::Disable => SslMode::Disable,
        SslModeParameter::Prefer => SslMode::Prefer,
        SslModeParameter::Require | SslModeParameter::VerifyCa | SslModeParameter::VerifyFull => {
            SslMode::Require
        }
    };
    Ok(Tls { connector: MakeRustlsConnect::new(connector), ssl_mode, trust })
}

/// Reads `sslmode`. With the system's certificates it must be `verify-full`, because anybody can get a certificate of some
/// authority for another name.
fn mode(settings: &Settings) -> Result<SslModeParameter, AddressError> {
    let given = settings.choice("sslmode", MODES)?;
    let is_system = settings.text("sslrootcert") == Some(SYSTEM);
    match given {
        None if is_system => Ok(SslModeParameter::VerifyFull),
        None => Ok(SslModeParameter::Prefer),
        Some(SslModeParameter::VerifyFull) => Ok(SslModeParameter::VerifyFull),
        Some(
            SslModeParameter::Disable
            | SslModeParameter::Prefer
            | SslModeParameter::Require
            | SslModeParameter::VerifyCa,
        ) if is_system => {
            Err(settings.invalid_value("sslmode", "with sslrootcert=system it must be verify-full"))
        }
        Some(mode) => Ok(mode),
    }
}

/// Which certificates are trusted, and whether the name is checked. `given` is the value of `sslrootcert`, and `home_roots` the
/// user's own file if it exists.
fn trust(
    mode: SslModeParameter,
    given: Option<&str>,
    home_roots: Option<PathBuf>,
) -> Result<(Trust, NameCheck), AddressError> {
    let given = given.map(|given| match given {
        SYSTEM => Trust::System,
        file => Trust::File(PathBuf::from(file)),
    });
    let given_or_home = given.clone().or(home_roots.map(Trust::File));
    match mode {
        SslModeParameter::Disable => Ok((Trust::Any, NameCheck::No)),
        SslModeParameter::Prefer => Ok((given.unwrap_or(Trust::Any), NameCheck::No)),
        SslModeParameter::Require => Ok((given_or_home.unwrap_or(Trust::Any), NameCheck::No)),
        SslModeParameter::VerifyCa => match given_or_home {
            Some(trust) => Ok((trust, NameCheck::No)),
            None => Err(AddressError::new(
                "sslmode=verify-ca needs a root certificate",
                "give the authority's certificate with sslrootcert=FILE, or use sslmode=verify-full",
            )),
        },
        SslModeParameter::VerifyFull => Ok((given_or_home.unwrap_or(Trust::System), NameCheck::Yes)),
    }
}

type ConfigBuilder = rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>;

fn client(
    provider: &Arc<CryptoProvider>,
    settings: &Settings,
    verifier: Arc<dyn ServerCertVerifier>,
) -> Result<ConfigBuilder, AddressError> {
    const BOTH: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];
    const NEWEST: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13];
    let words = [("", BOTH), ("TLSv1", BOTH), ("TLSv1.1", BOTH), ("TLSv1.2", BOTH), ("TLSv1.3", NEWEST)];
    let versions = settings.choice("ssl_min_protocol_version", &words)?.unwrap_or(BOTH);
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(versions)
        .map_err(|error| AddressError::new(format!("TLS can't be set up: {error}"), "use sslmode=disable"))?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier))
}

fn verifier(
    trust: &Trust,
    name_check: NameCheck,
    provider: &Arc<CryptoProvider>,
    settings: &Settings,
    environment: Environment<'_>,
) -> Result<Arc<dyn ServerCertVerifier>, AddressError> {
    let roots = match trust {
        Trust::Any => return Ok(Arc::new(Unverified::new(provider))),
        Trust::File(file) => certificates::roots_of_file(file)?,
        Trust::System => certificates::roots_of_system(environment)?,
    };
    let revoked = certificates::revocation_lists(settings, environment, trust)?;
    Ok(Arc::new(Verified::new(roots, revoked, provider, name_check)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn settings(given: &[(&str, &str)]) -> Settings {
        let mut settings = Settings::new();
        for (name, text) in given {
            settings.replace(name, (*text).to_owned()).unwrap();
        }
        settings
    }

    #[test]
    fn the_mode_is_as_in_libpq() {
        type Given<'g> = &'g [(&'g str, &'g str)];
        let cases: &[(Given<'_>, Result<SslModeParameter, &str>)] = &[
            (&[], Ok(SslModeParameter::Prefer)),
            (&[("sslmode", "disable")], Ok(SslModeParameter::Disable)),
            (&[("sslmode", "allow")], Ok(SslModeParameter::Prefer)),
            (&[("sslmode", "require")], Ok(SslModeParameter::Require)),
            (&[("sslmode", "verify-ca")], Ok(SslModeParameter::VerifyCa)),
            (&[("sslmode", "verify-full")], Ok(SslModeParameter::VerifyFull)),
            (&[("sslrootcert", "system")], Ok(SslModeParameter::VerifyFull)),
            (&[("sslrootcert", "/ca.crt")], Ok(SslModeParameter::Prefer)),
            (&[("sslmode", "require"), ("sslrootcert", "system")], Err("it must be verify-full")),
            (&[("sslmode", "verify-full"), ("sslrootcert", "system")], Ok(SslModeParameter::VerifyFull)),
            (&[("sslmode", "verify_full")], Err("give one of disable, allow, prefer, require, verify-ca, ")),
            (&[("sslmode", "")], Err("can't be ``")),
        ];
        for (given, expected) in cases {
            match (mode(&settings(given)), expected) {
                (Ok(mode), Ok(expected)) => assert_eq!(mode, *expected, "{given:?}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{given:?}: {error}"),
                (found, expected) => panic!("{given:?}: {found:?} and not {expected:?}"),
            }
        }
    }

    #[test]
    fn the_checks_of_a_certificate_follow_from_the_mode_and_the_roots() {
        let home = || Some(PathBuf::from("/home"));
        let file = |name: &str| Trust::File(PathBuf::from(name));
        let cases = [
            (SslModeParameter::Disable, Some("/f"), home(), Trust::Any, NameCheck::No),
            (SslModeParameter::Prefer, None, None, Trust::Any, NameCheck::No),
            (SslModeParameter::Prefer, None, home(), Trust::Any, NameCheck::No),
            (SslModeParameter::Prefer, Some("/f"), None, file("/f"), NameCheck::No),
            (SslModeParameter::Require, None, None, Trust::Any, NameCheck::No),
            (SslModeParameter::Require, None, home(), file("/home"), NameCheck::No),
            (SslModeParameter::Require, Some("/f"), home(), file("/f"), NameCheck::No),
            (SslModeParameter::VerifyCa, None, home(), file("/home"), NameCheck::No),
            (SslModeParameter::VerifyCa, Some("/f"), home(), file("/f"), NameCheck::No),
            (SslModeParameter::VerifyFull, None, None, Trust::System, NameCheck::Yes),
            (SslModeParameter::VerifyFull, None, home(), file("/home"), NameCheck::Yes),
            (SslModeParameter::VerifyFull, Some("/f"), home(), file("/f"), NameCheck::Yes),
            (SslModeParameter::VerifyFull, Some("system"), home(), Trust::System, NameCheck::Yes),
        ];
        for (mode, given, home_roots, expected, name_check) in cases {
            let found = trust(mode, given, home_roots.clone()).unwrap();
            assert_eq!(found, (expected, name_check), "{mode:?} {given:?} {home_roots:?}");
        }
        let error = trust(SslModeParameter::VerifyCa, None, None).unwrap_err();
        assert!(error.next_step().contains("sslrootcert=FILE"), "{error}");
    }

    #[test]
    fn the_minimum_version_of_tls_must_be_a_known_version() {
        for (text, is_known) in [("TLSv1.2", true), ("TLSv1.3", true), ("TLSv1", true), ("1.3", false)] {
            let given = settings(&[("ssl_min_protocol_version", text)]);
            assert_eq!(tls(&given, &|_| None).is_ok(), is_known, "{text}");
        }
    }

    #[test]
    fn a_named_file_must_exist_and_have_a_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty");
        std::fs::write(&empty, "nothing").unwrap();
        let missing = folder.path().join("missing").display().to_string();
        let empty = empty.display().to_string();
        let cases = [
            ("sslrootcert", missing.as_str(), "can't be read"),
            ("sslrootcert", empty.as_str(), "has no certificate"),
            ("sslcert", missing.as_str(), "can't be read"),
            ("sslcert", empty.as_str(), "has no certificate"),
        ];
        for (name, file, expected) in cases {
            let given = settings(&[("sslmode", "require"), (name, file)]);
            let Err(error) = tls(&given, &|_| None) else { panic!("{name}={file} was taken") };
            assert!(error.message().contains(expected), "{name}={file}: {error}");
            let unused = settings(&[("sslmode", "disable"), (name, file)]);
            assert!(tls(&unused, &|_| None).is_ok(), "without encryption no file is read");
        }
    }
}

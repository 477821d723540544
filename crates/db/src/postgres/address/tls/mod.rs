//! How the connection is encrypted, and what the server must prove: `sslmode` and what belongs to it.
//!
//! | `sslmode`     | encrypted                   | the server's certificate                                |
//! | ------------- | --------------------------- | ------------------------------------------------------- |
//! | `disable`     | never                       |                                                         |
//! | `allow`       | as `prefer`                 | as `prefer`                                             |
//! | `prefer`      | when the server offers it   | its chain, if `sslrootcert` is given; else not looked at |
//! | `require`     | always                      | its chain, if there is a root certificate; else not looked at |
//! | `verify-ca`   | always                      | its chain                                               |
//! | `verify-full` | always                      | its chain, and that it is made for the host             |
//!
//! This is libpq's table, with four differences, each on the safe side. `allow` does not try without
//! encryption first. What was begun encrypted is never tried again without. A file that is named must be
//! there. And `verify-full` without any root certificate trusts the system's, where libpq gives up.

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

use super::settings::{Settings, Variable};
use super::{AddressError, files};
use verifier::{NameCheck, Unverified, Verified};

/// The value of `sslrootcert` that means the system's certificates.
const SYSTEM: &str = "system";
/// Where a user keeps the certificates that all programs on PostgreSQL trust.
const HOME_ROOTS: &str = ".postgresql/root.crt";

/// How connections are encrypted.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) connector: MakeRustlsConnect,
    pub(super) ssl_mode: SslMode,
    pub(super) trust: Trust,
}

/// Which certificates of servers are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    /// Any: the connection is only hidden from those who can't answer in the server's stead.
    Any,
    /// Those that are signed as this file says.
    File(PathBuf),
    /// Those that the system believes.
    System,
}

/// `sslmode`, with `allow` being `prefer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

const MODES: &[(&str, Mode)] = &[
    ("disable", Mode::Disable),
    ("allow", Mode::Prefer),
    ("prefer", Mode::Prefer),
    ("require", Mode::Require),
    ("verify-ca", Mode::VerifyCa),
    ("verify-full", Mode::VerifyFull),
];

/// How to encrypt, as the parameters say. Reads the files of certificates.
pub(super) fn tls(settings: &Settings, variable: Variable<'_>) -> Result<Tls, AddressError> {
    let mode = mode(settings)?;
    let home_roots = files::at_home(variable, HOME_ROOTS).filter(|file| file.exists());
    let (trust, name_check) = trust(mode, settings.text("sslrootcert"), home_roots)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let connector = match mode {
        // Never used, and no file is needed for it.
        Mode::Disable => {
            client(&provider, settings, verifier(&Trust::Any, name_check, &provider, settings, variable)?)?
                .with_no_client_auth()
        }
        Mode::Prefer | Mode::Require | Mode::VerifyCa | Mode::VerifyFull => {
            let verifier = verifier(&trust, name_check, &provider, settings, variable)?;
            let client = client(&provider, settings, verifier)?;
            match certificates::own(settings, variable, &provider)? {
                None => client.with_no_client_auth(),
                Some(own) => client.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own))),
            }
        }
    };
    let ssl_mode = match mode {
        Mode::Disable => SslMode::Disable,
        Mode::Prefer => SslMode::Prefer,
        Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
    };
    Ok(Tls { connector: MakeRustlsConnect::new(connector), ssl_mode, trust })
}

/// `sslmode`. With the system's certificates nothing weaker than `verify-full` says anything: anybody gets
/// a certificate from some authority.
fn mode(settings: &Settings) -> Result<Mode, AddressError> {
    let given = settings.word("sslmode", MODES)?;
    let is_system = settings.text("sslrootcert") == Some(SYSTEM);
    match given {
        None if is_system => Ok(Mode::VerifyFull),
        None => Ok(Mode::Prefer),
        Some(Mode::VerifyFull) => Ok(Mode::VerifyFull),
        Some(Mode::Disable | Mode::Prefer | Mode::Require | Mode::VerifyCa) if is_system => {
            Err(settings.wrong("sslmode", "with sslrootcert=system it must be verify-full"))
        }
        Some(mode) => Ok(mode),
    }
}

/// What a certificate must show, by the mode, what `sslrootcert` says, and the user's own file if there is one.
fn trust(
    mode: Mode,
    given: Option<&str>,
    home_roots: Option<PathBuf>,
) -> Result<(Trust, NameCheck), AddressError> {
    let given = given.map(|given| match given {
        SYSTEM => Trust::System,
        file => Trust::File(PathBuf::from(file)),
    });
    let given_or_home = given.clone().or(home_roots.map(Trust::File));
    match mode {
        Mode::Disable => Ok((Trust::Any, NameCheck::No)),
        Mode::Prefer => Ok((given.unwrap_or(Trust::Any), NameCheck::No)),
        Mode::Require => Ok((given_or_home.unwrap_or(Trust::Any), NameCheck::No)),
        Mode::VerifyCa => match given_or_home {
            Some(trust) => Ok((trust, NameCheck::No)),
            None => Err(AddressError::new(
                "sslmode=verify-ca needs to know whom to trust",
                "give the authority's certificate with sslrootcert=FILE, or use sslmode=verify-full",
            )),
        },
        Mode::VerifyFull => Ok((given_or_home.unwrap_or(Trust::System), NameCheck::Yes)),
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
    let versions = settings.word("ssl_min_protocol_version", &words)?.unwrap_or(BOTH);
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
    variable: Variable<'_>,
) -> Result<Arc<dyn ServerCertVerifier>, AddressError> {
    let roots = match trust {
        Trust::Any => return Ok(Arc::new(Unverified::new(provider))),
        Trust::File(file) => certificates::roots_of_file(file)?,
        Trust::System => certificates::roots_of_system(variable)?,
    };
    let revoked = certificates::revoked(settings, variable, trust)?;
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
        let cases: &[(Given<'_>, Result<Mode, &str>)] = &[
            (&[], Ok(Mode::Prefer)),
            (&[("sslmode", "disable")], Ok(Mode::Disable)),
            (&[("sslmode", "allow")], Ok(Mode::Prefer)),
            (&[("sslmode", "require")], Ok(Mode::Require)),
            (&[("sslmode", "verify-ca")], Ok(Mode::VerifyCa)),
            (&[("sslmode", "verify-full")], Ok(Mode::VerifyFull)),
            (&[("sslrootcert", "system")], Ok(Mode::VerifyFull)),
            (&[("sslrootcert", "/ca.crt")], Ok(Mode::Prefer)),
            (&[("sslmode", "require"), ("sslrootcert", "system")], Err("it must be verify-full")),
            (&[("sslmode", "verify-full"), ("sslrootcert", "system")], Ok(Mode::VerifyFull)),
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
    fn what_the_server_must_prove_follows_from_the_mode_and_the_roots() {
        let home = || Some(PathBuf::from("/home"));
        let file = |name: &str| Trust::File(PathBuf::from(name));
        let cases = [
            (Mode::Disable, Some("/f"), home(), Trust::Any, NameCheck::No),
            (Mode::Prefer, None, None, Trust::Any, NameCheck::No),
            (Mode::Prefer, None, home(), Trust::Any, NameCheck::No),
            (Mode::Prefer, Some("/f"), None, file("/f"), NameCheck::No),
            (Mode::Require, None, None, Trust::Any, NameCheck::No),
            (Mode::Require, None, home(), file("/home"), NameCheck::No),
            (Mode::Require, Some("/f"), home(), file("/f"), NameCheck::No),
            (Mode::VerifyCa, None, home(), file("/home"), NameCheck::No),
            (Mode::VerifyCa, Some("/f"), home(), file("/f"), NameCheck::No),
            (Mode::VerifyFull, None, None, Trust::System, NameCheck::Yes),
            (Mode::VerifyFull, None, home(), file("/home"), NameCheck::Yes),
            (Mode::VerifyFull, Some("/f"), home(), file("/f"), NameCheck::Yes),
            (Mode::VerifyFull, Some("system"), home(), Trust::System, NameCheck::Yes),
        ];
        for (mode, given, home_roots, expected, name_check) in cases {
            let found = trust(mode, given, home_roots.clone()).unwrap();
            assert_eq!(found, (expected, name_check), "{mode:?} {given:?} {home_roots:?}");
        }
        let error = trust(Mode::VerifyCa, None, None).unwrap_err();
        assert!(error.next_step().contains("sslrootcert=FILE"), "{error}");
    }

    #[test]
    fn the_oldest_version_of_tls_is_one_that_there_is() {
        for (text, is_known) in [("TLSv1.2", true), ("TLSv1.3", true), ("TLSv1", true), ("1.3", false)] {
            let given = settings(&[("ssl_min_protocol_version", text)]);
            assert_eq!(tls(&given, &|_| None).is_ok(), is_known, "{text}");
        }
    }

    #[test]
    fn a_named_file_must_be_there_and_hold_what_it_should() {
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

//! Reads certificates and keys from files and from the system.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, RootCertStore};

use super::super::settings::{Environment, Settings};
use super::super::{AddressError, files};
use super::Trust;

const HOME_CERTIFICATE: &str = ".postgresql/postgresql.crt";
const HOME_KEY: &str = ".postgresql/postgresql.key";
const HOME_REVOCATION_LIST: &str = ".postgresql/root.crl";

/// The root certificates in a file.
pub(super) fn roots_of_file(file: &Path) -> Result<Vec<CertificateDer<'static>>, AddressError> {
    let roots = items::<CertificateDer<'static>>(file, "sslrootcert", "certificate")?;
    let mut store = RootCertStore::empty();
    for root in &roots {
        store.add(root.clone()).map_err(|error| {
            let message = format!("a root certificate of {} can't be used: {error}", file.display());
            AddressError::new(message, "take it out of the file")
        })?;
    }
    Ok(roots)
}

/// The root certificates that the system trusts, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
pub(super) fn roots_of_system(
    environment: Environment<'_>,
) -> Result<Vec<CertificateDer<'static>>, AddressError> {
    let file = environment("SSL_CERT_FILE").map(PathBuf::from);
    let folder = environment("SSL_CERT_DIR").map(PathBuf::from);
    let found = match (&file, &folder) {
        (None, None) => rustls_native_certs::load_native_certs(),
        (file, folder) => rustls_native_certs::load_certs_from_paths(file.as_deref(), folder.as_deref()),
    };
    for error in &found.errors {
        tracing::debug!(%error, "a certificate of the system is not used");
    }
    match found.certs.is_empty() {
        false => Ok(found.certs),
        true => Err(AddressError::new(
            "this system has no root certificates",
            "install its package ca-certificates, or give the authority's with sslrootcert=FILE",
        )),
    }
}

/// The revocation lists in the file `sslcrl`, or in the user's own file if the roots are a file too.
pub(super) fn revocation_lists(
    settings: &Settings,
    environment: Environment<'_>,
    trust: &Trust,
) -> Result<Vec<CertificateRevocationListDer<'static>>, AddressError> {
    let in_home = match trust {
        Trust::File(_) => files::in_home(environment, HOME_REVOCATION_LIST).filter(|file| file.exists()),
        Trust::Any | Trust::System => None,
    };
    match settings.text("sslcrl").map(PathBuf::from).or(in_home) {
        Some(file) => items(&file, "sslcrl", "revocation list"),
        None => Ok(Vec::new()),
    }
}

/// The client's own certificate and key: `sslcert` and `sslkey`, or the files in the user's home folder.
pub(super) fn client_certificate(
    settings: &Settings,
    environment: Environment<'_>,
    provider: &CryptoProvider,
) -> Result<Option<CertifiedKey>, AddressError> {
    let in_home = files::in_home(environment, HOME_CERTIFICATE).filter(|file| file.exists());
    let Some(file) = settings.text("sslcert").map(PathBuf::from).or(in_home) else { return Ok(None) };
    let chain = items(&file, "sslcert", "certificate")?;
    let key_file =
        settings.text("sslkey").map(PathBuf::from).or_else(|| files::in_home(environment, HOME_KEY));
    let Some(key_file) = key_file else {
        let message = format!("the certificate {} has no key", file.display());
        return Err(AddressError::new(message, "give it with sslkey=FILE"));
    };
    let unusable = |error: rustls::Error| {
        let message =
            format!("{} is no key for the certificate {}: {error}", key_file.display(), file.display());
        AddressError::new(message, "correct `sslcert` and `sslkey`")
    };
    let key = provider.key_provider.load_private_key(private_key(&key_file)?).map_err(unusable)?;
    let own = CertifiedKey::new(chain, key);
    match own.keys_match() {
        // This library can't read some certificates, such as X.509 version 1, but the server may accept them.
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown) | Error::InvalidCertificate(_)) => {
            Ok(Some(own))
        }
        Err(error) => Err(unusable(error)),
    }
}

/// Reads a key from a file that other users may not read.
fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, AddressError> {
    let shown = file.display();
    let unreadable = |why: String| {
        let message = format!("the key {shown} can't be read: {why}");
        AddressError::new(message, "correct `sslkey`, or make the file readable")
    };
    let metadata = std::fs::metadata(file).map_err(|error| unreadable(error.to_string()))?;
    if !metadata.is_file() {
        return Err(unreadable("it is not a plain file".to_owned()));
    }
    if is_open_to_others(metadata.uid(), metadata.mode()) {
        let message = format!("the key {shown} may be read by others");
        return Err(AddressError::new(message, format!("`chmod 600 {shown}` helps")));
    }
    let text = files::read(file).map_err(unreadable)?;
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| {
        let why = match text.contains("ENCRYPTED") {
            true => "it is encrypted, and Windlass can't decrypt it",
            false => "it has no key in PEM format",
        };
        unreadable(why.to_owned())
    })
}

/// The same rule as in libpq: a key of root may be readable by its group, any other key only by its owner.
fn is_open_to_others(owner: u32, mode: u32) -> bool {
    let forbidden = if owner == 0 { 0o037 } else { 0o077 };
    mode & forbidden != 0
}

/// All items of one kind in a PEM file, at least one.
fn items<T: PemObject>(file: &Path, parameter: &str, noun: &str) -> Result<Vec<T>, AddressError> {
    let shown = file.display();
    let wrong = |why: String| AddressError::new(why, format!("correct `{parameter}`"));
    let text = files::read(file)
        .map_err(|why| wrong(format!("the file {shown} of `{parameter}` can't be read: {why}")))?;
    let items: Vec<T> = T::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(format!("the file {shown} of `{parameter}` is damaged: {error}")))?;
    match items.is_empty() {
        true => Err(wrong(format!("the file {shown} of `{parameter}` has no {noun} in PEM format"))),
        false => Ok(items),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_must_not_be_readable_by_others() {
        let cases = [
            (0, 0o100_600, false),
            (0, 0o100_640, false),
            (0, 0o100_660, true),
            (0, 0o100_644, true),
            (1000, 0o100_600, false),
            (1000, 0o100_400, false),
            (1000, 0o100_640, true),
            (1000, 0o100_604, true),
        ];
        for (owner, mode, expected) in cases {
            assert_eq!(is_open_to_others(owner, mode), expected, "{owner} {mode:o}");
        }
    }
}

//! TLS of the server itself: a certificate and its key, which are replaced while it runs.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use windlass_system::files::{Links, open_regular, read_at_most};

/// The largest file with a certificate or a key.
const FILE_MAX_BYTES: u64 = 1024 * 1024;

/// The files of a certificate, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server, followed by those that signed it.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// A certificate and its key, which fit each other.
#[derive(Clone)]
pub struct TlsIdentity(Arc<ServerConfig>);

impl TlsIdentity {
    /// Reads the files.
    ///
    /// # Errors
    /// Which file can't be used, and why.
    pub fn load(files: &TlsFiles) -> Result<TlsIdentity, String> {
        let certificate = read(&files.certificate)?;
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| refused(&files.certificate, error))?;
        if chain.is_empty() {
            return Err(refused(&files.certificate, "it has no certificate in PEM"));
        }
        let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?)
            .map_err(|_error| refused(&files.key, "it has no key in PEM"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| {
                refused(&files.certificate, format!("it can't be used with its key: {error}"))
            })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsIdentity(Arc::new(config)))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    open_regular(path, Links::Follow)
        .and_then(|file| read_at_most(file, FILE_MAX_BYTES))
        .map_err(|error| refused(path, error))
}

fn refused(path: &Path, reason: impl Display) -> String {
    format!("the file {} can't be used: {reason}", path.display())
}

/// The certificate that new connections get.
#[derive(Clone)]
pub(crate) struct CurrentIdentity(Arc<Mutex<TlsIdentity>>);

impl CurrentIdentity {
    pub(crate) fn new(identity: TlsIdentity) -> CurrentIdentity {
        CurrentIdentity(Arc::new(Mutex::new(identity)))
    }

    pub(crate) fn replace(&self, identity: TlsIdentity) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = identity;
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner).0))
    }
}

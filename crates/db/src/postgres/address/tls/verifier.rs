//! Checks the certificate of a server. webpki checks the chain of signatures; this module only omits checks, as `sslmode`
//! requires.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::AddressError;

/// Whether the certificate must be made for the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameCheck {
    /// Yes: `verify-full`.
    Yes,
    /// No: `verify-ca`, and `require` with a root certificate.
    No,
}

/// Checks nothing. The connection is encrypted, but the server is not authenticated.
///
/// This is what `prefer`, and `require` without a root certificate, mean in libpq. The signature of the handshake is not checked
/// either: it would only prove that the sender of the certificate has its key, and any certificate is accepted. So
/// certificates that webpki can't read are accepted too.
#[derive(Debug)]
pub(super) struct Unverified {
    schemes: Vec<SignatureScheme>,
}

impl Unverified {
    pub(super) fn new(provider: &CryptoProvider) -> Unverified {
        Unverified { schemes: provider.signature_verification_algorithms.supported_schemes() }
    }
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

/// Checks the chain of signatures up to a root certificate, the time, the revocation lists, and perhaps the name.
#[derive(Debug)]
pub(super) struct Verified {
    webpki: Arc<WebPkiServerVerifier>,
    roots: Vec<CertificateDer<'static>>,
    name_check: NameCheck,
}

impl Verified {
    pub(super) fn new(
        roots: Vec<CertificateDer<'static>>,
        revoked: Vec<CertificateRevocationListDer<'static>>,
        provider: &Arc<CryptoProvider>,
        name_check: NameCheck,
    ) -> Result<Verified, AddressError> {
        let mut store = RootCertStore::empty();
        // Certificates of a file were checked before. The system may have some that can't be parsed.
        store.add_parsable_certificates(roots.iter().cloned());
        let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
            .with_crls(revoked)
            .build()
            .map_err(|error| {
                let message = format!("the root certificates or revocation lists can't be used: {error}");
                AddressError::new(message, "correct `sslrootcert` or `sslcrl`")
            })?;
        Ok(Verified { webpki, roots, name_check })
    }

    /// Whether the certificate is itself one of the roots: a self-signed certificate that is given as the root. webpki refuses
    /// it because it is an authority's certificate (`CaUsedAsEndEntity`), but only after it has checked the time; a test
    /// checks that order.
    fn is_pinned(&self, certificate: &CertificateDer<'_>, error: &CertificateError) -> bool {
        let is_signer =
            matches!(error, CertificateError::Other(other) if other.to_string() == "CaUsedAsEndEntity");
        is_signer && self.roots.iter().any(|root| root == certificate)
    }
}

impl ServerCertVerifier for Verified {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let error = match self.webpki.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        ) {
            Ok(verified) => return Ok(verified),
            Err(error) => error,
        };
        let Error::InvalidCertificate(reason) = &error else { return Err(error) };
        // The name is checked last, so this error means that the rest is correct.
        let is_wrong_name = matches!(
            reason,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        );
        match self.name_check {
            NameCheck::No if is_wrong_name || self.is_pinned(end_entity, reason) => {
                Ok(ServerCertVerified::assertion())
            }
            NameCheck::Yes if self.is_pinned(end_entity, reason) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            NameCheck::Yes | NameCheck::No => Err(error),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use rustls::pki_types::pem::PemObject;

    use super::*;

    /// Signed by itself, may sign others, made for `localhost` and 127.0.0.1, good from 2026 to 2126.
    const SELF_SIGNED: &str = "-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUGYTcz6hFkLDB3Eql4hCyw6Nl3GcwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTAzNDYzM1oYDzIxMjYxMDI4
MDM0NjMzWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATuMMp/E0VCmGda7Teezb1GshoX6SJv3XxvXvsf29sEmecHq7OhMXgI
xZlkyHsu9zb5Mem5WCO0W7tmD6bhn2xGo28wbTAdBgNVHQ4EFgQUtANCng1F5qN0
708S3cJCCr9y+2wwHwYDVR0jBBgwFoAUtANCng1F5qN0708S3cJCCr9y+2wwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIgUE+1HQcoKyZZqu5orIRHJiHydewMA22TOdgHaMTO6OkCIQC3
x+QgJmrcUcdr2h/SK8G4fp1vsMsYsaVADMf+WoIKlw==
-----END CERTIFICATE-----
";

    /// Whether a certificate passes for a host in a year, with the self-signed one as the root.
    fn passes(
        certificate: &CertificateDer<'_>,
        host: &'static str,
        year: u64,
        name_check: NameCheck,
    ) -> bool {
        let root = CertificateDer::from_pem_slice(SELF_SIGNED.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verified::new(vec![root], Vec::new(), &provider, name_check).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs((year - 1970) * 31_556_952));
        let host = ServerName::try_from(host).unwrap();
        verifier.verify_server_cert(certificate, &[], &host, &[], now).is_ok()
    }

    #[test]
    fn a_self_signed_root_is_accepted_during_its_validity_and_for_its_names() {
        let certificate = CertificateDer::from_pem_slice(SELF_SIGNED.as_bytes()).unwrap();
        let cases = [
            ("localhost", 2030, NameCheck::Yes, true),
            ("127.0.0.1", 2030, NameCheck::Yes, true),
            ("db.example", 2030, NameCheck::Yes, false),
            ("db.example", 2030, NameCheck::No, true),
            ("localhost", 2020, NameCheck::Yes, false),
            ("localhost", 2020, NameCheck::No, false),
            ("localhost", 2130, NameCheck::Yes, false),
            ("localhost", 2130, NameCheck::No, false),
        ];
        for (host, year, name_check, expected) in cases {
            let found = passes(&certificate, host, year, name_check);
            assert_eq!(found, expected, "{host} {year} {name_check:?}");
        }
    }

    #[test]
    fn a_certificate_that_differs_in_one_byte_is_not_the_root() {
        let mut bytes = CertificateDer::from_pem_slice(SELF_SIGNED.as_bytes()).unwrap().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        let other = CertificateDer::from(bytes);
        for name_check in [NameCheck::Yes, NameCheck::No] {
            assert!(!passes(&other, "localhost", 2030, name_check));
        }
    }
}

//! Certificates, made by openssl as described in PostgreSQL's documentation.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A folder of certificates with two authorities.
pub(crate) struct Certificates {
    folder: TempDir,
}

impl Certificates {
    pub(crate) fn new() -> Certificates {
        let certificates = Certificates { folder: TempDir::new().unwrap() };
        for authority in ["authority", "stranger"] {
            certificates.sign_itself(authority, &format!("/CN={authority}"), &[]);
        }
        certificates
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn openssl(&self, arguments: &[&str]) {
        let output = Command::new("openssl")
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("openssl is needed: install Debian's package openssl ({error})"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {}: {said}", arguments.join(" "));
    }

    /// Makes a self-signed certificate.
    pub(crate) fn sign_itself(&self, name: &str, subject: &str, extensions: &[&str]) {
        let (key, certificate) = (format!("{name}.key"), format!("{name}.crt"));
        let mut arguments = vec!["req", "-x509", "-days", "30", "-subj", subject, "-out", &certificate];
        arguments.extend([
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-keyout",
            &key,
        ]);
        for extension in extensions {
            arguments.extend(["-addext", extension]);
        }
        self.openssl(&arguments);
    }

    /// Makes a certificate that the authority has signed.
    pub(crate) fn sign(&self, name: &str, subject: &str, extension: Option<&str>) {
        let (key, request) = (format!("{name}.key"), format!("{name}.csr"));
        let mut arguments = vec!["req", "-subj", subject, "-out", &request];
        arguments.extend([
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-keyout",
            &key,
        ]);
        self.openssl(&arguments);
        let (certificate, extensions) = (format!("{name}.crt"), format!("{name}.ext"));
        let mut arguments = vec!["x509", "-req", "-days", "30", "-in", &request, "-out", &certificate];
        arguments.extend(["-CA", "authority.crt", "-CAkey", "authority.key", "-CAcreateserial"]);
        if let Some(extension) = extension {
            fs::write(self.path(&extensions), format!("{extension}\n")).unwrap();
            arguments.extend(["-extfile", &extensions]);
        }
        self.openssl(&arguments);
    }
}

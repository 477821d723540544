//! Connections to a server with certificates: what each `sslmode` accepts, what it refuses, and with which error.
#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used, missing_docs)]

mod certificates;
mod server;

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use windlass_db::postgres::PostgresAddress;
use windlass_engine::{Refusal, Unavailable};

use certificates::Certificates;
use server::Server;

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn each_sslmode_checks_what_it_should() {
    let certificates = Certificates::new();
    certificates.sign("server", "/CN=server", Some("subjectAltName = DNS:localhost, IP:127.0.0.1"));
    let server = Server::new(&certificates);
    let (right, wrong) =
        (shown(&certificates.path("authority.crt")), shown(&certificates.path("stranger.crt")));
    let elsewhere = "host=db.example&hostaddr=127.0.0.1";
    // Whether the connection is encrypted.
    assert_eq!(server.connect("user=encrypted", &[]), Ok(true), "prefer is the default");
    assert_eq!(server.connect("user=encrypted&sslmode=allow", &[]), Ok(true));
    assert_eq!(server.connect("user=plain&sslmode=disable", &[]), Ok(false));
    server.refuses("user=encrypted&sslmode=disable", Refusal::Login, "no encryption");
    server.refuses("user=plain&sslmode=prefer", Refusal::Login, "SSL encryption");
    // The server's certificate is not checked.
    server.accepts("user=encrypted&sslmode=require");
    server.accepts(&format!("user=encrypted&sslmode=require&{elsewhere}"));
    // The signature is checked, but not the name.
    for mode in ["prefer", "require", "verify-ca"] {
        server.accepts(&format!("user=encrypted&sslmode={mode}&sslrootcert={right}"));
        server.accepts(&format!("user=encrypted&sslmode={mode}&sslrootcert={right}&{elsewhere}"));
        for host in ["host=localhost&hostaddr=127.0.0.1", elsewhere] {
            let parameters = format!("user=encrypted&sslmode={mode}&sslrootcert={wrong}&{host}");
            server.refuses(&parameters, Refusal::Certificate, &format!("signed by an authority in {wrong}"));
        }
    }
    // The signature and the name are checked.
    server.accepts(&format!("user=encrypted&sslmode=verify-full&sslrootcert={right}"));
    server.accepts(&format!("user=encrypted&sslmode=verify-full&sslrootcert={right}&host=127.0.0.1"));
    server.refuses(
        &format!("user=encrypted&sslmode=verify-full&sslrootcert={right}&{elsewhere}"),
        Refusal::Certificate,
        "is made for localhost, 127.0.0.1, and not for db.example",
    );
    server.refuses(
        &format!("user=encrypted&sslmode=verify-full&sslrootcert={wrong}"),
        Refusal::Certificate,
        &format!("is not signed by an authority in {wrong}"),
    );
    let system = [("SSL_CERT_FILE", right.as_str())];
    for parameters in ["user=encrypted&sslmode=verify-full", "user=encrypted&sslrootcert=system"] {
        assert_eq!(server.connect(parameters, &system), Ok(true), "{parameters}");
        let stranger = [("SSL_CERT_FILE", wrong.as_str())];
        let refused = server.connect(parameters, &stranger).unwrap_err().to_string();
        assert!(refused.contains("an authority that this system trusts"), "{refused}");
    }
    // A login by password is bound to the encrypted connection.
    let login = "user=with_password&password=right&channel_binding=require";
    server.accepts(&format!("{login}&sslmode=verify-full&sslrootcert={right}"));
    server.refuses(&format!("{login}&sslmode=disable"), Refusal::Encryption, "does not bind the login");
    server.refuses("user=with_password&password=wrong", Refusal::Password, "password authentication failed");
    server.refuses("user=with_password", Refusal::NoPassword, "asks for the password of `with_password`");
}

#[test]
fn certificates_in_the_home_folder_are_used() {
    let certificates = Certificates::new();
    certificates.sign("server", "/CN=server", Some("subjectAltName = DNS:localhost"));
    certificates.sign("me", "/CN=with_certificate", None);
    certificates.sign("named", "/CN=with_certificate", Some("subjectAltName = DNS:me"));
    let server = Server::new(&certificates);
    let home = TempDir::new().unwrap();
    let home_variable = shown(home.path());
    let at_home = [("HOME", home_variable.as_str())];
    let connect = |parameters: &str| server.connect(parameters, &at_home);
    let folder = home.path().join(".postgresql");
    fs::create_dir(&folder).unwrap();
    let (certificate, key) = (shown(&certificates.path("named.crt")), shown(&certificates.path("named.key")));
    // The client's own certificate, named in the address or found at home. The latter may be of version 1.
    let refused = connect("user=with_certificate").unwrap_err();
    assert!(matches!(refused, Unavailable::Refused { refusal: Refusal::Login, .. }), "{refused}");
    assert_eq!(connect(&format!("user=with_certificate&sslcert={certificate}&sslkey={key}")), Ok(true));
    fs::copy(certificates.path("me.crt"), folder.join("postgresql.crt")).unwrap();
    fs::copy(certificates.path("me.key"), folder.join("postgresql.key")).unwrap();
    assert_eq!(connect("user=with_certificate"), Ok(true));
    let other = shown(&certificates.path("server.key"));
    let url = format!("postgres://h?sslcert={certificate}&sslkey={other}");
    let error = PostgresAddress::parse(&url, &|_| None).unwrap_err();
    assert!(error.message().contains("is no key for the certificate"), "{error}");
    // The root certificates.
    fs::copy(certificates.path("stranger.crt"), folder.join("root.crt")).unwrap();
    for mode in ["require", "verify-ca", "verify-full"] {
        let refused = connect(&format!("user=encrypted&sslmode={mode}")).unwrap_err();
        assert!(refused.to_string().contains("root.crt"), "{refused}");
    }
    assert_eq!(connect("user=encrypted&sslmode=prefer"), Ok(true), "prefer guarantees nothing anyway");
    fs::copy(certificates.path("authority.crt"), folder.join("root.crt")).unwrap();
    for mode in ["require", "verify-ca", "verify-full"] {
        assert_eq!(connect(&format!("user=encrypted&sslmode={mode}")), Ok(true), "{mode}");
    }
    // The list of revoked certificates.
    fs::write(certificates.path("index.txt"), "").unwrap();
    fs::write(certificates.path("number.txt"), "01\n").unwrap();
    let configuration = "[ca]\ndefault_ca = own\n[own]\ndatabase = index.txt\ndefault_md = sha256\n\
                         default_crl_days = 30\ncrlnumber = number.txt\ncrl_extensions = extensions\n\
                         [extensions]\nauthorityKeyIdentifier = keyid\n";
    fs::write(certificates.path("ca.cnf"), configuration).unwrap();
    let authority = ["-config", "ca.cnf", "-cert", "authority.crt", "-keyfile", "authority.key"];
    certificates.openssl(&[&["ca", "-gencrl", "-out", "none.crl"], &authority[..]].concat());
    certificates.openssl(&[&["ca", "-revoke", "server.crt"], &authority[..]].concat());
    certificates.openssl(&[&["ca", "-gencrl", "-out", "server.crl"], &authority[..]].concat());
    fs::copy(certificates.path("none.crl"), folder.join("root.crl")).unwrap();
    assert_eq!(connect("user=encrypted&sslmode=verify-full"), Ok(true));
    fs::copy(certificates.path("server.crl"), folder.join("root.crl")).unwrap();
    let refused = connect("user=encrypted&sslmode=verify-full").unwrap_err();
    assert!(refused.to_string().contains("was revoked"), "{refused}");
}

#[test]
fn a_self_signed_certificate_can_be_the_root() {
    let certificates = Certificates::new();
    certificates.sign_itself("server", "/CN=localhost", &["subjectAltName = DNS:localhost"]);
    certificates.sign_itself("nameless", "/CN=localhost", &[]);
    certificates.sign("oldest", "/CN=localhost", None);
    let server = Server::new(&certificates);
    let mode = |mode: &str, root: &str| {
        format!("user=encrypted&sslmode={mode}&sslrootcert={}", shown(&certificates.path(root)))
    };
    server.accepts(&mode("verify-full", "server.crt"));
    server.accepts(&mode("verify-ca", "server.crt"));
    server.refuses(&mode("verify-ca", "nameless.crt"), Refusal::Certificate, "");
    server.present(&certificates, "nameless", "");
    server.accepts(&mode("verify-ca", "nameless.crt"));
    server.refuses(&mode("verify-full", "nameless.crt"), Refusal::Certificate, "subjectAltName");
    // A certificate without extensions is of version 1, which is accepted if nothing is checked.
    server.present(&certificates, "oldest", "");
    server.accepts("user=encrypted&sslmode=require");
    server.refuses(&mode("verify-full", "authority.crt"), Refusal::Certificate, "subjectAltName");
}

#[test]
fn a_server_without_encryption_is_refused_if_encryption_is_required() {
    let server = Server::without_encryption();
    assert_eq!(server.connect("user=postgres", &[]), Ok(false));
    server.refuses("user=postgres&sslmode=require", Refusal::Encryption, "does not offer encryption");
    let socket = format!("user=postgres&sslmode=require&host={}", shown(server.socket_folder()));
    assert_eq!(server.connect(&socket, &[]), Ok(false), "sslmode does not apply to a socket");
    server.refuses("user=postgres&dbname=none", Refusal::NoDatabase, "\"none\" does not exist");
    server.refuses("user=nobody", Refusal::Login, "\"nobody\" does not exist");
}

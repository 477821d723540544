//! Promise: the web server speaks TLS itself with a certificate of its configuration, reads a new one on SIGHUP, and keeps
//! the former one if the new one can't be used. Clients that begin and say nothing keep nobody out.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use windlass_tests::{Engine, Sandbox, eventually};

/// Makes a certificate of its own with a name, and its key.
fn certificate(sandbox: &Sandbox, name: &str, common_name: &str) {
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", &format!("/CN={common_name}"), "-addext", "subjectAltName=IP:127.0.0.1"])
        .arg("-keyout")
        .arg(sandbox.path(&format!("{name}.key")))
        .arg("-out")
        .arg(sandbox.path(&format!("{name}.crt")))
        .output()
        .expect("openssl is there");
    assert!(made.status.success(), "{made:?}");
}

fn copy(sandbox: &Sandbox, from: &str, to: &str) {
    std::fs::copy(sandbox.path(from), sandbox.path(to)).expect("a file is copied");
}

fn serve(sandbox: &Sandbox) -> (Engine, String) {
    let mut service = sandbox.spawn(&["serve"]);
    let address = eventually("the service", || {
        let told = service.stderr_so_far();
        assert!(service.is_running(), "it ended: {told}");
        told.split("page: https://").nth(1).and_then(|rest| rest.split('/').next()).map(str::to_owned)
    });
    (service, address)
}

const GET: &str = "
import http.client, ssl, sys
address, authority, path = sys.argv[1:]
connection = http.client.HTTPSConnection(address, context=ssl.create_default_context(cafile=authority), timeout=60)
connection.request('GET', path)
answer = connection.getresponse()
subject = dict(part[0] for part in connection.sock.getpeercert()['subject']) if connection.sock else {}
print(answer.status, subject.get('commonName', ''))
";

/// What a client of Python gets that trusts one certificate: the status, or why it refuses.
fn get(address: &str, trusted: &Path, path: &str) -> String {
    let asked = Command::new("python3")
        .args(["-c", GET, address])
        .arg(trusted)
        .arg(path)
        .output()
        .expect("python3 is there");
    let text = if asked.status.success() { asked.stdout } else { asked.stderr };
    let text = String::from_utf8_lossy(&text).into_owned();
    text.trim().lines().last().unwrap_or_default().to_owned()
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    certificate(&sandbox, "first", "first");
    certificate(&sandbox, "second", "second");
    for kind in ["crt", "key"] {
        copy(&sandbox, &format!("first.{kind}"), &format!("web.{kind}"));
    }
    sandbox
        .write("windlass.toml", "[web]\nlisten = '127.0.0.1:0'\ntls_cert = 'web.crt'\ntls_key = 'web.key'\n");
    sandbox
}

#[test]
fn a_certificate_is_replaced_while_the_service_runs() {
    let sandbox = sandbox();
    let (service, address) = serve(&sandbox);
    let (first, second) = (sandbox.path("first.crt"), sandbox.path("second.crt"));
    assert!(get(&address, &first, "/healthz").starts_with("200"));
    assert!(get(&address, &second, "/healthz").contains("CERTIFICATE_VERIFY_FAILED"));
    // A key that does not fit.
    copy(&sandbox, "second.crt", "web.crt");
    service.signal(Signal::HUP);
    eventually("the refusal", || {
        service.stderr_so_far().contains("the former certificate of the web server stays").then_some(())
    });
    assert!(get(&address, &first, "/healthz").starts_with("200"), "{}", get(&address, &first, "/healthz"));
    copy(&sandbox, "second.key", "web.key");
    service.signal(Signal::HUP);
    eventually("the new certificate", || {
        service.stderr_so_far().contains("the certificate of the web server was read again").then_some(())
    });
    assert!(get(&address, &second, "/healthz").starts_with("200"));
    assert!(get(&address, &first, "/healthz").contains("CERTIFICATE_VERIFY_FAILED"));
}

#[test]
fn clients_that_never_agree_on_keys_keep_nobody_out() {
    let sandbox = sandbox();
    let (mut service, address) = serve(&sandbox);
    let silent: Vec<TcpStream> =
        (0..600).map(|_client| TcpStream::connect(&address).expect("the service accepts")).collect();
    assert!(get(&address, &sandbox.path("first.crt"), "/healthz").starts_with("200"));
    // They do not delay the end either.
    service.signal(Signal::TERM);
    service.wait().exited(0);
    drop(silent);
}

#[test]
fn another_address_needs_a_certificate() {
    let sandbox = sandbox();
    let check = |web: &str| {
        sandbox.write("windlass.toml", format!("[web]\n{web}"));
        sandbox.run(&["serve", "--check"])
    };
    check("listen = '0.0.0.0:9463'\n").exited(2);
    check("listen = '0.0.0.0:9463'\ntls_cert = 'web.crt'\ntls_key = 'web.key'\n").exited(0);
    let alone = check("tls_cert = 'web.crt'\n").exited(2);
    assert!(alone.stderr.contains("need each other"), "{alone:?}");
    sandbox.write(
        "windlass.toml",
        "[web]\nlisten = '127.0.0.1:0'\ntls_cert = 'web.crt'\ntls_key = 'second.key'\n",
    );
    let refused = sandbox.run(&["serve"]).exited(2);
    assert!(refused.stderr.contains("can't be used with its key"), "{refused:?}");
}

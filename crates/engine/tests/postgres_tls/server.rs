//! A server with encryption, and connections to it.

use std::path::Path;
use std::time::{Duration, Instant};

use windlass_db::postgres::PostgresAddress;
use windlass_engine::{Refusal, Unavailable};
use windlass_test_server::PrivateServer;

use crate::certificates::Certificates;

/// Who may connect, and how. The superuser prepares everything through the socket.
const HBA: &str = "\
local all postgres trust
hostssl all with_certificate 127.0.0.1/32 cert
hostssl all encrypted 127.0.0.1/32 trust
hostnossl all plain 127.0.0.1/32 trust
host all with_password 127.0.0.1/32 scram-sha-256
";

const PREPARATION: &str = "
CREATE ROLE with_certificate LOGIN;
CREATE ROLE encrypted LOGIN;
CREATE ROLE plain LOGIN;
CREATE ROLE with_password LOGIN PASSWORD 'right';
ALTER SYSTEM SET ssl_ca_file = 'authority.crt';
ALTER SYSTEM SET ssl = on;
";

/// A server of a test.
pub(crate) struct Server {
    server: PrivateServer,
}

impl Server {
    /// Starts a server without encryption.
    pub(crate) fn without_encryption() -> Server {
        Server { server: PrivateServer::new(&[]) }
    }

    /// Starts a server that encrypts with the certificate `server`.
    pub(crate) fn new(certificates: &Certificates) -> Server {
        let server = Server::without_encryption();
        server.write("authority.crt", &certificates.text("authority.crt"));
        server.present(certificates, "server", PREPARATION);
        server.write("pg_hba.conf", HBA);
        // From here on the superuser can connect only through the socket.
        server.reload(|client| {
            let lines: i64 = client.query_one("SELECT count(*) FROM pg_hba_file_rules", &[]).unwrap().get(0);
            lines == 5 && server.connect("user=encrypted&sslmode=require", &[]).is_ok()
        });
        server
    }

    /// Uses another certificate from now on.
    pub(crate) fn present(&self, certificates: &Certificates, name: &str, sql: &str) {
        let (certificate, key) = (format!("{name}.crt"), format!("{name}.key"));
        self.write(&certificate, &certificates.text(&certificate));
        self.write(&key, &certificates.text(&key));
        for sql in sql.split_inclusive(';').map(str::trim).filter(|sql| !sql.is_empty()) {
            self.superuser().batch_execute(sql).unwrap();
        }
        for (setting, file) in [("ssl_cert_file", &certificate), ("ssl_key_file", &key)] {
            self.superuser().batch_execute(&format!("ALTER SYSTEM SET {setting} = '{file}'")).unwrap();
        }
        self.reload(|client| {
            let shown: String = client.query_one("SHOW ssl_cert_file", &[]).unwrap().get(0);
            shown == certificate
        });
    }

    pub(crate) fn socket_folder(&self) -> &Path {
        self.server.socket_folder()
    }

    /// Writes a file into the server's folder, as the server's user.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        let copy = format!(
            "COPY (SELECT unnest(string_to_array('{}', '|'))) TO PROGRAM 'umask 077; cat > {name}'",
            lines.join("|")
        );
        self.superuser().batch_execute(&copy).unwrap();
    }

    pub(crate) fn superuser(&self) -> postgres::Client {
        let mut config = postgres::Config::new();
        config.host_path(self.server.socket_folder()).port(self.server.port()).user("postgres");
        config.connect(postgres::NoTls).unwrap()
    }

    /// Makes the server reload its settings, and waits until new connections have them.
    pub(crate) fn reload(&self, mut is_done: impl FnMut(&mut postgres::Client) -> bool) {
        let began = Instant::now();
        self.superuser().batch_execute("SELECT pg_reload_conf()").unwrap();
        while !is_done(&mut self.superuser()) {
            assert!(began.elapsed() < Duration::from_secs(30), "the server does not take its new settings");
            std::thread::yield_now();
        }
    }

    pub(crate) fn address(&self, parameters: &str, variables: &[(&str, &str)]) -> PostgresAddress {
        let url = format!("postgres:///postgres?port={}&{parameters}", self.server.port());
        let url = match parameters.contains("host") {
            true => url,
            false => format!("{url}&host=localhost&hostaddr=127.0.0.1"),
        };
        let variable = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, text)| (*text).to_owned())
        };
        PostgresAddress::parse(&url, &variable).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    /// Returns whether a connection was encrypted, or why it failed.
    pub(crate) fn connect(&self, parameters: &str, variables: &[(&str, &str)]) -> Result<bool, Unavailable> {
        let address = self.address(parameters, variables);
        let mut client = address.config().connect(address.tls()).map_err(|error| address.explain(&error))?;
        let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        Ok(client.query_one(sql, &[]).unwrap().get(0))
    }

    #[track_caller]
    pub(crate) fn refuses(&self, parameters: &str, expected: Refusal, part: &str) {
        match self.connect(parameters, &[]) {
            Err(Unavailable::Refused { refusal, detail }) => {
                assert_eq!(refusal, expected, "{parameters}: {detail}");
                assert!(detail.contains(part), "{parameters}: {detail}");
            }
            other => panic!("{parameters}: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn accepts(&self, parameters: &str) {
        assert_eq!(self.connect(parameters, &[]), Ok(true), "{parameters}");
    }
}

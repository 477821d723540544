//! PgBouncer in transaction mode in front of a server, for one test.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::binaries::{make_folder_for_server, server_program};

/// How long the pooler may take to start.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A pooler that ends with the test.
#[derive(Debug)]
pub struct Pooler {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Pooler {
    /// Starts a pooler for the server on a port. It has few connections to the server, so clients often change sessions.
    ///
    /// # Panics
    /// When it does not start; the message says what to install.
    #[must_use]
    pub fn before(server_port: u16) -> Pooler {
        let folder = tempfile::Builder::new().prefix("windlass-test-pooler-").tempdir().expect("a folder");
        let own = folder.path().join("pooler");
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("a folder of one's own");
        make_folder_for_server(&own);
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("it listens").port();
        drop(listener);
        let settings = own.join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={server_port} user=postgres\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = transaction\ndefault_pool_size = 3\nmax_client_conn = 200\n"
        );
        fs::write(&settings, text).expect("a file in a folder of one's own");
        let child = server_program("pgbouncer", "/usr/sbin/pgbouncer", "pgbouncer")
            .arg(&settings)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("pgbouncer cannot be started: {error}"));
        let pooler = Pooler { child, port, _folder: folder };
        let deadline = Instant::now() + TIMEOUT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "pgbouncer does not listen after {TIMEOUT:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        pooler
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

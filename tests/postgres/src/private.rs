//! A server for one test, which the test may stop, pause and break.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use postgres::{Client, NoTls};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::cluster::{Cluster, StopMode, url};
use crate::{guardian, processes};

/// How long the guardian waits after the test process has ended.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A server that ends with the test, whether that succeeds, panics or is killed.
#[derive(Debug)]
pub struct PrivateServer {
    cluster: Cluster,
    port: u16,
    /// Locked as long as this process lives.
    _users: File,
    /// Removed last.
    _folder: TempDir,
}

impl PrivateServer {
    /// Starts a server. `settings` are settings of `postgresql.conf`, and replace those of all test servers.
    ///
    /// # Panics
    /// When it does not start; the message says why, and what to install.
    #[must_use]
    pub fn new(settings: &[(&str, &str)]) -> PrivateServer {
        let folder = tempfile::Builder::new().prefix("windlass-test-postgres-").tempdir();
        let folder = folder.expect("a temporary folder");
        // The server may be another user.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("a folder of one's own");
        let users = guardian::open(&folder.path().join(guardian::USERS));
        users.lock_shared().expect("a file can be locked");
        let cluster = Cluster::in_folder(&folder.path().join("server"));
        guardian::ensure(folder.path(), &cluster, TIMEOUT);
        cluster.create(settings);
        let port = cluster.start_anywhere();
        PrivateServer { cluster, port, _users: users, _folder: folder }
    }

    /// Its address, as its superuser, without a schema. It stays the same when the server is started again.
    #[must_use]
    pub fn url(&self) -> String {
        url(self.port)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its Unix socket.
    #[must_use]
    pub fn socket_folder(&self) -> &Path {
        self.cluster.folder()
    }

    /// The text of its log.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.cluster.log()).unwrap_or_default()).into_owned()
    }

    /// A connection to it.
    ///
    /// # Panics
    /// When it cannot be reached.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::connect(&self.url(), NoTls).unwrap_or_else(|error| panic!("{}: {error}", self.url()))
    }

    /// Ends its connections and stops it, as an administrator does.
    pub fn stop_fast(&self) {
        self.cluster.stop(StopMode::Fast);
    }

    /// Stops it like a crash. Committed data is there after the next start.
    pub fn stop_immediate(&self) {
        self.cluster.stop(StopMode::Immediate);
    }

    /// Starts it again on the same port, and waits until it accepts connections.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(&self) {
        if let Err(said) = self.cluster.try_start(self.port) {
            panic!("the PostgreSQL server does not start again: {said}");
        }
    }

    /// Stops all its processes with SIGSTOP. It answers no client, and no connection ends.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on after [`PrivateServer::pause`].
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(running) = processes::running(&self.cluster.data()) {
            processes::signal_all(running.pid, signal);
        }
    }

    /// Ends every other connection, as an administrator does. Returns their number.
    ///
    /// # Panics
    /// When the server cannot be reached.
    pub fn kill_backends(&self) -> i64 {
        let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let row = self.client().query_one(sql, &[]).unwrap_or_else(|error| panic!("{error}"));
        row.get(0)
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        self.cluster.stop(StopMode::Immediate);
    }
}

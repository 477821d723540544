//! The server that all test processes of a user and of a clone of the repository share.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use rustix::process::geteuid;

use crate::cluster::{Cluster, url};
use crate::guardian;

/// The variable with the URL of a running server, which is used instead of starting one.
pub const SERVER_VARIABLE: &str = "WINDLASS_TEST_POSTGRES";

/// The file that is locked while a process finds or starts the server.
const START: &str = "start";

/// The variable with the number of seconds for which the server stays after the last test process has ended, because the
/// next process may follow soon.
pub const LINGER_VARIABLE: &str = "WINDLASS_TEST_POSTGRES_LINGER";

/// The default of [`LINGER_VARIABLE`].
const LINGER: Duration = Duration::from_secs(10);

/// A server that runs at least as long as this process.
///
/// Test processes coordinate by locks on files in one folder. Each takes a shared lock on `users`, which it keeps, and then the
/// lock on `start`. So the first process starts the server and a guardian, and the others find both. The guardian stops the
/// server while it holds an exclusive lock on `users`. The kernel releases the locks of a killed process, so no process must end
/// cleanly.
#[derive(Debug)]
pub struct SharedServer {
    url: String,
    /// Locked as long as this process lives.
    _users: Option<File>,
}

impl SharedServer {
    /// Returns the server, and starts it if it does not run.
    ///
    /// # Panics
    /// When no server can be started; the message says why, and what to install.
    #[must_use]
    pub fn get() -> &'static SharedServer {
        static SERVER: OnceLock<SharedServer> = OnceLock::new();
        SERVER.get_or_init(|| match env::var(SERVER_VARIABLE) {
            Ok(url) => SharedServer { url, _users: None },
            Err(_not_set) => join(),
        })
    }

    /// Its address, as a superuser, without a schema.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

fn join() -> SharedServer {
    let base = folder();
    let users = guardian::open(&base.join(guardian::USERS));
    // Waits while the guardian stops an unused server.
    users.lock_shared().expect("a file can be locked");
    users.set_modified(SystemTime::now()).expect("a file of one's own can be stamped");
    let start = guardian::open(&base.join(START));
    start.lock().expect("a file can be locked");
    let cluster = Cluster::in_folder(&base.join("server"));
    let found = cluster.answering();
    if found.is_none() {
        cluster.remove();
    }
    // Before the server, so that the server is always stopped.
    guardian::ensure(&base, &cluster, linger());
    let port = found.unwrap_or_else(|| {
        cluster.create(&[]);
        cluster.start_anywhere()
    });
    SharedServer { url: url(port), _users: Some(users) }
}

fn linger() -> Duration {
    let seconds = env::var(LINGER_VARIABLE).ok();
    seconds.map_or(LINGER, |seconds| {
        let seconds = seconds.parse();
        Duration::from_secs(seconds.unwrap_or_else(|_| panic!("{LINGER_VARIABLE} must be whole seconds")))
    })
}

/// The folder with the lock files and the server.
fn folder() -> PathBuf {
    let mut repository = DefaultHasher::new();
    env!("CARGO_MANIFEST_DIR").hash(&mut repository);
    let user = geteuid().as_raw();
    let name = format!("windlass-test-postgres-{user}-{:016x}", repository.finish());
    let path = env::temp_dir().join(name);
    match DirBuilder::new().mode(0o755).create(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => panic!("{}: {error}", path.display()),
    }
    let owner = fs::symlink_metadata(&path).map(|metadata| metadata.uid());
    assert!(owner.as_ref().is_ok_and(|owner| *owner == user), "{} is not ours: {owner:?}", path.display());
    path
}

//! The server that all test processes of a machine's user share, for one clone of the repository.

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

/// The variable that names a running server, as a URL; it is then used instead of one of the tests' own.
pub const SERVER_VARIABLE: &str = "WINDLASS_TEST_POSTGRES";

/// The file whose lock is held while the server is looked for or started.
const START: &str = "start";

/// The variable that says how many seconds the server stays after the last test process has gone: the next
/// one may be on its way.
pub const LINGER_VARIABLE: &str = "WINDLASS_TEST_POSTGRES_LINGER";

/// What it is where nobody says.
const LINGER: Duration = Duration::from_secs(10);

/// A server that is there while this process lives.
///
/// Test processes find each other by the locks of files in one folder. Each takes, in this order, a shared
/// lock on `users`, which it keeps, and the lock on `start`, which makes the first of them start the server
/// and a guardian, and the others find both. The guardian stops the server under an exclusive lock on
/// `users`. The kernel gives up the locks of who is killed, so nothing depends on a clean end.
#[derive(Debug)]
pub struct SharedServer {
    url: String,
    /// Locked as long as this process lives.
    _users: Option<File>,
}

impl SharedServer {
    /// The server, which is started if nobody did yet.
    ///
    /// # Panics
    /// When there can be none; the message says why, and what to install.
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
    // Waits while the guardian stops a server that nobody needed.
    users.lock_shared().expect("a file can be locked");
    users.set_modified(SystemTime::now()).expect("a file of one's own can be stamped");
    let start = guardian::open(&base.join(START));
    start.lock().expect("a file can be locked");
    let cluster = Cluster::in_folder(&base.join("server"));
    let found = cluster.answering();
    if found.is_none() {
        cluster.remove();
    }
    // First, so that whatever begins now has an end.
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

/// The folder in which test processes find each other.
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

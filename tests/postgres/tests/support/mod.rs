//! Processes that use a server, each with the folder for temporary files that a test gives it.
#![allow(clippy::unwrap_used, dead_code, missing_docs, unreachable_pub)]

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(90);

/// A process that needs a server until it is told to end.
pub struct Holder {
    child: Child,
    pub url: String,
}

impl Holder {
    /// Starts it and waits until it has a server.
    pub fn start(which: &str, temporary: &Path) -> Holder {
        Holder::spawn(which, temporary).wait()
    }

    /// Starts it.
    pub fn spawn(which: &str, temporary: &Path) -> Starting {
        Holder::spawn_with(which, temporary, &[])
    }

    /// Starts it with these folders of programs before all others.
    pub fn spawn_with(which: &str, temporary: &Path, programs: &[&Path]) -> Starting {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = programs.iter().map(|folder| folder.to_path_buf()).chain(std::env::split_paths(&path));
        let child = Command::new(env!("CARGO_BIN_EXE_windlass-test-server"))
            .arg(which)
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env("TMPDIR", temporary)
            .env_remove(windlass_test_server::SERVER_VARIABLE)
            .env(windlass_test_server::LINGER_VARIABLE, "3")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Starting { child }
    }

    pub fn port(&self) -> u16 {
        let end = self.url.rsplit(':').next().unwrap();
        end.split('/').next().unwrap().parse().unwrap()
    }

    pub fn kill_9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it.
    pub fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// A process that may not have a server yet.
pub struct Starting {
    child: Child,
}

impl Starting {
    pub fn wait(mut self) -> Holder {
        let mut url = String::new();
        BufReader::new(self.child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("postgres://"), "it has no server; it said {url:?}");
        Holder { child: self.child, url: url.trim().to_owned() }
    }
}

/// Lets the server's user enter a folder.
pub fn open_to_the_server(folder: &Path) {
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
}

/// Whether no server has data in a folder of this folder.
pub fn is_without_data(temporary: &Path) -> bool {
    fs::read_dir(temporary).unwrap().flatten().all(|base| !base.path().join("server").exists())
}

pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < TIMEOUT, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

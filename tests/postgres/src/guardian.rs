//! Starts the guardian: the process that stops a server when no test process needs it any more.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::binaries::program;
use crate::cluster::{Cluster, StopMode};

const SCRIPT: &str = include_str!("guardian.sh");

/// The file on which every process that needs the server holds a shared lock.
pub(crate) const USERS: &str = "users";

/// The file that the guardian keeps locked.
const GUARDIAN: &str = "guardian";

/// How many seconds a server may take to stop before it is killed.
const STOP_TIMEOUT_S: &str = "20";

/// Starts the guardian of a server, unless there is one. The caller must hold a lock on [`USERS`].
///
/// The guardian has its own session and is not a child of the caller, because the caller may be killed with all its children.
///
/// # Panics
/// When it cannot be started.
pub(crate) fn ensure(base: &Path, server: &Cluster, patience: Duration) {
    let lock = open(&base.join(GUARDIAN));
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return,
        Err(TryLockError::Error(error)) => panic!("a file cannot be locked: {error}"),
    }
    let stop = stop_command(server);
    let status = Command::new("setsid")
        .args(["--fork", "sh", "-c", "eval \"$SCRIPT\"", "guardian"])
        .args([base, server.folder()])
        .arg(patience.as_secs().to_string())
        .arg(stop.get_program())
        .args(stop.get_args())
        .env_clear()
        .env("SCRIPT", SCRIPT)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::from(lock))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.as_ref().is_ok_and(|status| status.success()), "no guardian of a server: {status:?}");
}

fn stop_command(server: &Cluster) -> Command {
    let mut command = program("pg_ctl");
    command.args(["stop", "--wait", "--timeout", STOP_TIMEOUT_S, "--mode", StopMode::Immediate.as_str()]);
    command.arg("--pgdata").arg(server.data());
    command
}

/// Opens a lock file.
///
/// # Panics
/// When it cannot be opened.
pub(crate) fn open(path: &Path) -> File {
    let opened = File::options().read(true).write(true).create(true).truncate(false).open(path);
    opened.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

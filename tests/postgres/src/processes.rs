//! The processes of a server: the one that pg_ctl started, and its children.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// A running server, read from the file `postmaster.pid` in its data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunningServer {
    /// Its first process.
    pub(crate) pid: Pid,
    /// The port on which it listens.
    pub(crate) port: u16,
}

/// The server of a data folder, if its first process exists. The file of a killed server is ignored, even if another process
/// has the same id now.
pub(crate) fn running(data: &Path) -> Option<RunningServer> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let lines: Vec<&str> = text.lines().collect();
    let pid: i32 = lines.first()?.trim().parse().ok()?;
    let port = lines.get(3)?.trim().parse().ok()?;
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let is_ours = command_line.split(|byte| *byte == 0).any(|word| Path::new(as_path(word)) == data);
    if !is_ours {
        return None;
    }
    Some(RunningServer { pid: Pid::from_raw(pid)?, port })
}

fn as_path(word: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(word)
}

/// The processes that a process started and that are still its children.
pub(crate) fn children(parent: Pid) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

fn parent_of(pid: Pid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    Pid::from_raw(parent.trim().parse().ok()?)
}

/// Sends a signal to the server's first process and then to its children. A first process that is stopped can't start others.
pub(crate) fn signal_all(first: Pid, signal: Signal) {
    // Each fails only when it has ended meanwhile.
    let _ended = kill_process(first, signal);
    for child in children(first) {
        let _ended = kill_process(child, signal);
    }
}

//! The machine: free space on the disk, and the processes that have a file open.

use std::fs;
use std::path::{Path, PathBuf};

/// The largest number of processes to name.
const OPENERS_MAX: usize = 8;

/// The space on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Disk {
    pub(super) free_bytes: u64,
    pub(super) total_bytes: u64,
}

/// The disk of a file.
pub(super) fn disk(path: &Path) -> Option<Disk> {
    let statistics = rustix::fs::statvfs(path).ok()?;
    Some(Disk {
        free_bytes: statistics.f_bavail.saturating_mul(statistics.f_frsize),
        total_bytes: statistics.f_blocks.saturating_mul(statistics.f_frsize),
    })
}

/// The other processes that have a file open and that this user may see: (id, name).
pub(super) fn openers(path: &Path) -> Vec<(i32, String)> {
    let Ok(path) = fs::canonicalize(path) else { return Vec::new() };
    let this = i32::try_from(std::process::id()).unwrap_or_default();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .filter(|(pid, process)| *pid != this && has_open(process, &path))
        .map(|(pid, process)| (pid, name(&process)))
        .take(OPENERS_MAX)
        .collect()
}

fn has_open(process: &Path, path: &PathBuf) -> bool {
    let Ok(files) = fs::read_dir(process.join("fd")) else { return false };
    files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == *path))
}

fn name(process: &Path) -> String {
    fs::read_to_string(process.join("comm")).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_process_that_has_a_file_open_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(openers(file.path()).is_empty(), "this process is left out");
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .stdin(fs::File::open(file.path()).unwrap())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let found = openers(file.path());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found.first().map(|(found, _name)| *found), Some(pid));
    }

    #[test]
    fn a_disk_has_free_space() {
        let disk = disk(Path::new("/")).unwrap();
        assert!(disk.free_bytes <= disk.total_bytes && disk.total_bytes > 0);
    }
}

//! A copy of a database for a reader who may not write beside it.
//!
//! SQLite reads a database in WAL mode through its files `-wal` and `-shm`. While a process has the database open, they are
//! there, and whoever may read them reads the rows. Without them SQLite makes them, which needs the right to write to the
//! folder. Then no process has the database open, so its file is complete, and a copy of it can be read. (The flag
//! `immutable=1` would read the file itself, also while another process begins to write to it.)
//!
//! This process has no connection to the file when it copies it, so no lock of SQLite is dropped.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A larger file is not copied.
const BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// How often the copy is made again because another process wrote meanwhile.
const TRIES_MAX: u32 = 3;

/// A copy that is removed with this value.
pub(super) struct UnusedCopy {
    _folder: TempDir,
    pub(super) path: PathBuf,
}

/// Copies a database that no process has open; nothing if one has, or if it is too large.
pub(super) fn make(path: &Path) -> io::Result<Option<UnusedCopy>> {
    for _try in 0..TRIES_MAX {
        let Some(before) = unused_state(path)? else { return Ok(None) };
        if before.bytes > BYTES_MAX {
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        let copy = folder.path().join("copy.db");
        fs::copy(path, &copy)?;
        fs::set_permissions(&copy, Permissions::from_mode(0o600))?;
        if unused_state(path)? == Some(before) {
            return Ok(Some(UnusedCopy { _folder: folder, path: copy }));
        }
    }
    Ok(None)
}

/// What changes when a process writes to the file.
#[derive(Debug, PartialEq, Eq)]
struct FileState {
    bytes: u64,
    inode: u64,
    modified: (i64, i64),
}

/// The state of the file, if no process has the database open.
fn unused_state(path: &Path) -> io::Result<Option<FileState>> {
    let path = path.canonicalize()?;
    let is_there = |suffix: &str| {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        PathBuf::from(name).exists()
    };
    if ["-wal", "-shm", "-journal"].into_iter().any(is_there) {
        return Ok(None);
    }
    let metadata = fs::metadata(&path)?;
    Ok(Some(FileState {
        bytes: metadata.len(),
        inode: metadata.ino(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_a_file_without_a_log_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.db");
        fs::write(&path, "rows").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
        let copy = make(&path).unwrap().unwrap();
        assert_eq!(fs::read_to_string(&copy.path).unwrap(), "rows");
        let path_of_copy = copy.path.clone();
        drop(copy);
        assert!(!path_of_copy.exists());
        fs::write(folder.path().join("w.db-wal"), "").unwrap();
        assert!(make(&path).unwrap().is_none());
    }
}

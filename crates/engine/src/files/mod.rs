//! The folder for files of runs: their workspaces, and the contents of their artifacts. Which of these are there is in the
//! tables; this module only acts on files.
//!
//! ```text
//! runs/7/         the workspace of run 7
//! artifacts/ab/…  contents, by their SHA-256
//! new/            contents that are being written
//! leaving/        contents that no row named, until that is known for sure
//! removed/        what was renamed to be removed
//! ```
//!
//! What is removed is renamed first, so that no run sees a part of it. A process that dies in the middle leaves the rest in
//! `removed`, and the next one goes on.

mod contents;
mod copying;
mod removal;
mod workspaces;

pub(crate) use contents::Named;
pub use contents::{Content, PlaceError};

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder for files of runs. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFiles {
    root: Arc<Path>,
    /// The SQLite file beside it. No other code may open it: that would drop the locks of SQLite.
    database: Option<Arc<Path>>,
}

impl RunFiles {
    /// The folder at an absolute path. It is made with the first file.
    #[must_use]
    pub fn at(root: PathBuf) -> RunFiles {
        RunFiles { root: root.into(), database: None }
    }

    /// The folder of a SQLite database: `windlass.db.files` beside `windlass.db`.
    #[must_use]
    pub fn beside(database: &Path) -> RunFiles {
        let mut name = database.as_os_str().to_owned();
        name.push(".files");
        let path = PathBuf::from(name);
        let files = RunFiles::at(std::path::absolute(&path).unwrap_or(path));
        RunFiles { database: Some(database.into()), ..files }
    }

    /// Whether a path without links is one of the files of the database, or is in the folder for files and not in a workspace.
    #[must_use]
    pub fn is_own(&self, path: &Path) -> bool {
        let is_of_database = |database: &Path| {
            let rest = path.as_os_str().as_bytes().strip_prefix(database.as_os_str().as_bytes());
            let parts: [&[u8]; 5] = [b"", b"-wal", b"-shm", b"-journal", b".files"];
            rest.is_some_and(|rest| parts.contains(&rest))
        };
        // Jobs may use the workspaces there.
        let is_beside_workspaces = path.starts_with(&self.root) && !path.starts_with(self.part("runs"));
        is_beside_workspaces || self.database.as_deref().is_some_and(is_of_database)
    }

    /// The path.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether there is a file or was one.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.root.is_dir()
    }

    fn part(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

/// Makes a folder, and those above it, for this user alone.
fn make_folder(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

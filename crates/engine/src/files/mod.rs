//! The folder for files of runs: their workspaces. Which of these are there is in the tables; this module only acts on
//! files.
//!
//! ```text
//! runs/7/      the workspace of run 7
//! removed/     what was renamed to be removed
//! ```
//!
//! What is removed is renamed first, so that no run sees a part of it. A process that dies in the middle leaves the rest in
//! `removed`, and the next one goes on.

mod copying;
mod removal;
mod workspaces;

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder for files of runs. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFiles {
    root: Arc<Path>,
}

impl RunFiles {
    /// The folder at an absolute path. It is made with the first file.
    #[must_use]
    pub fn at(root: PathBuf) -> RunFiles {
        RunFiles { root: root.into() }
    }

    /// The folder of a SQLite database: `windlass.db.files` beside `windlass.db`.
    #[must_use]
    pub fn beside(database: &Path) -> RunFiles {
        let mut name = database.as_os_str().to_owned();
        name.push(".files");
        let path = PathBuf::from(name);
        RunFiles::at(std::path::absolute(&path).unwrap_or(path))
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

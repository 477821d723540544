//! A private folder of one worker for the files that jobs write their output to.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The folder, made when the first job needs it and removed with the worker.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    folder: OnceLock<PathBuf>,
}

impl Scratch {
    /// The folder.
    ///
    /// # Errors
    /// When it can't be made.
    pub(super) fn folder(&self) -> std::io::Result<&Path> {
        if let Some(folder) = self.folder.get() {
            // Whatever cleans temporary folders may have taken it meanwhile.
            if !folder.is_dir() {
                DirBuilder::new().mode(0o700).create(folder)?;
            }
            return Ok(folder);
        }
        let name = format!("windlass-{}", uuid::Uuid::now_v7().simple());
        let folder = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&folder)?;
        // Whoever came second takes its own away again.
        if let Err(folder) = self.folder.set(folder) {
            let _kept = std::fs::remove_dir(folder);
        }
        self.folder.get().map(PathBuf::as_path).ok_or_else(|| std::io::Error::other("no scratch folder"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.get() {
            let _left = std::fs::remove_dir_all(folder);
        }
    }
}

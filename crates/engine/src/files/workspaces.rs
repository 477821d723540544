//! The workspaces of runs.

use std::io;
use std::path::PathBuf;

use super::{RunFiles, make_folder};

/// Entries of a folder that are listed at a time.
const LISTED_MAX: usize = 10_000;

impl RunFiles {
    /// The path of a run's workspace, whether it is there or not.
    #[must_use]
    pub fn workspace(&self, run_id: i64) -> PathBuf {
        self.part("runs").join(run_id.to_string())
    }

    /// Makes the workspace of a run unless it is there.
    ///
    /// # Errors
    /// Those of the system.
    pub fn make_workspace(&self, run_id: i64) -> io::Result<PathBuf> {
        let path = self.workspace(run_id);
        make_folder(&path)?;
        Ok(path)
    }

    /// Puts the workspace of a run with the files to remove. It may be absent.
    ///
    /// # Errors
    /// Those of the system.
    pub fn discard_workspace(&self, run_id: i64) -> io::Result<()> {
        self.discard(&self.workspace(run_id), &format!("run-{run_id}"))
    }

    /// The runs that have a workspace here, up to a limit.
    ///
    /// # Errors
    /// Those of the system.
    pub fn workspaces(&self) -> io::Result<Vec<i64>> {
        let entries = match std::fs::read_dir(self.part("runs")) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut runs = Vec::new();
        for entry in entries.take(LISTED_MAX) {
            runs.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i64>().ok()));
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_discarded_workspace_is_empty_when_it_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let files = RunFiles::at(folder.path().join("files"));
        assert_eq!(files.workspaces().unwrap(), Vec::<i64>::new());
        for _run in 0..3 {
            let path = files.make_workspace(7).unwrap();
            assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
            std::fs::create_dir(path.join("sub")).unwrap();
            std::fs::write(path.join("sub/a"), "a").unwrap();
            assert_eq!(files.make_workspace(7).unwrap(), path, "it stays as it is");
            assert_eq!(files.workspaces().unwrap(), [7]);
            files.discard_workspace(7).unwrap();
            assert_eq!(files.workspaces().unwrap(), Vec::<i64>::new());
        }
        files.discard_workspace(7).unwrap();
    }
}

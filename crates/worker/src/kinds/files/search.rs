//! Finds the files that match patterns, below the folder of a job.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use windlass_engine::RunFiles;
use windlass_system::files::special_kind;
use windlass_workflow::files::FilePattern;
use windlass_workflow::limits;

/// How many lines about files that are left out are written.
const LINES_MAX: usize = 20;

/// What was found so far.
pub(super) struct Search<'a> {
    /// The folder without links.
    folder: PathBuf,
    files: &'a RunFiles,
    /// How many more files and folders may be looked at.
    left: usize,
    /// The files by their path below the folder, each with its path without links.
    found: BTreeMap<String, PathBuf>,
    left_out: Vec<String>,
}

impl<'a> Search<'a> {
    pub(super) fn below(folder: &Path, files: &'a RunFiles) -> io::Result<Search<'a>> {
        let folder = folder
            .canonicalize()
            .map_err(|error| io::Error::other(format!("the folder {}: {error}", folder.display())))?;
        let left = limits::ARTIFACT_SEARCH;
        Ok(Search { folder, files, left, found: BTreeMap::new(), left_out: Vec::new() })
    }

    /// Looks for the files that match. Returns how many there are.
    pub(super) fn find(&mut self, pattern: &FilePattern) -> Result<usize, String> {
        if pattern.is_literal() {
            let is_there = self.folder.join(pattern.text()).symlink_metadata().is_ok();
            return if is_there { self.add(pattern.text().to_owned()) } else { Ok(0) };
        }
        let mut matching = 0;
        let mut folders = vec![pattern.folder().to_owned()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(self.folder.join(&folder)) else { continue };
            for entry in entries.flatten() {
                self.left = self.left.checked_sub(1).ok_or_else(|| {
                    format!(
                        "there are more than {} files in the folders of `artifacts`",
                        limits::ARTIFACT_SEARCH
                    )
                })?;
                let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                match entry.file_type() {
                    // Links to folders are not followed.
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    Ok(_file) if pattern.matches(&path) => matching += self.add(path)?,
                    Ok(_) | Err(_) => {}
                }
            }
        }
        Ok(matching)
    }

    /// The files that were found.
    pub(super) fn found(self) -> BTreeMap<String, PathBuf> {
        self.found
    }

    /// Why files that match are not among them.
    pub(super) fn left_out(&mut self) -> Vec<String> {
        std::mem::take(&mut self.left_out)
    }

    /// Adds a file that matches, if it may be kept. Returns 1 or 0.
    fn add(&mut self, path: String) -> Result<usize, String> {
        if path.len() > limits::ARTIFACT_PATH_BYTES {
            return Err(format!(
                "the path of an artifact is longer than {} bytes",
                limits::ARTIFACT_PATH_BYTES
            ));
        }
        let real = match self.why_left_out(&path) {
            Ok(real) => real,
            Err(reason) => {
                if self.left_out.len() < LINES_MAX {
                    self.left_out.push(format!("{path} is not kept: {reason}"));
                }
                return Ok(0);
            }
        };
        self.found.insert(path, real);
        match self.found.len() > limits::ARTIFACTS {
            true => Err(format!("`artifacts` match more than {} files", limits::ARTIFACTS)),
            false => Ok(1),
        }
    }

    /// The path without links of a regular file below the folder. The files of the database are not even looked at.
    fn why_left_out(&self, path: &str) -> Result<PathBuf, String> {
        let real = self.folder.join(path).canonicalize().map_err(|error| error.to_string())?;
        if !real.starts_with(&self.folder) {
            return Err("it is a link that leads out of the folder".to_owned());
        }
        if self.files.is_own(&real) {
            return Err("it belongs to the database".to_owned());
        }
        let kind = real.symlink_metadata().map_err(|error| error.to_string())?.file_type();
        match special_kind(kind) {
            None => Ok(real),
            Some(kind) => Err(format!("it is {kind}")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_below_the_folder_are_found() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "x").unwrap();
        let folder = outside.path().join("job");
        fs::create_dir_all(folder.join("out/deep")).unwrap();
        for path in ["out/a.csv", "out/b.txt", "out/deep/c.csv", "w.db", "w.db-wal", "top.csv"] {
            fs::write(folder.join(path), "x").unwrap();
        }
        symlink(outside.path().join("secret"), folder.join("out/away.csv")).unwrap();
        symlink("a.csv", folder.join("out/near.csv")).unwrap();
        symlink("../w.db", folder.join("out/database.csv")).unwrap();
        symlink(outside.path(), folder.join("out/folder")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            folder.join("out/fifo.csv"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let files = RunFiles::beside(&folder.canonicalize().unwrap().join("w.db"));
        let find = |patterns: &[&str]| {
            let mut search = Search::below(&folder, &files).unwrap();
            for pattern in patterns {
                search.find(&FilePattern::parse(pattern).unwrap()).unwrap();
            }
            let left_out = search.left_out().len();
            (search.found().into_keys().collect::<Vec<_>>(), left_out)
        };
        assert_eq!(find(&["out/*.csv"]), (vec!["out/a.csv".to_owned(), "out/near.csv".to_owned()], 3));
        assert_eq!(find(&["**/c.csv", "top.csv", "none"]).0, ["out/deep/c.csv", "top.csv"]);
        assert_eq!(find(&["w.db*"]), (vec![], 2), "files of the database");
        assert_eq!(find(&["out/folder/secret"]), (vec![], 1));
        assert_eq!(find(&["out/folder/*"]).0, Vec::<String>::new(), "through a link");
        let workspace = files.make_workspace(1).unwrap();
        fs::write(workspace.join("kept"), "x").unwrap();
        assert_eq!(find(&["w.db.files/runs/*/kept"]).0, ["w.db.files/runs/1/kept"]);
    }
}

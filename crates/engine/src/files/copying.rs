//! Copying the files of runs for another database.

use std::fs;
use std::io;
use std::path::Path;

use super::{RunFiles, make_folder};

/// How deep folders are copied.
const DEPTH_MAX: usize = 128;

impl RunFiles {
    /// Copies all files of runs. What is there already is replaced, so a repetition is harmless.
    ///
    /// # Errors
    /// Those of the system, with the path.
    pub fn copy_to(&self, target: &RunFiles) -> io::Result<()> {
        copy_folder(&self.part("runs"), &target.part("runs"), 0)
    }
}

/// Copies a folder if it is there. Only folders, regular files and links are copied.
fn copy_folder(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(at(from, error)),
    };
    if depth > DEPTH_MAX {
        return Err(at(from, io::Error::other(format!("it is deeper than {DEPTH_MAX} folders"))));
    }
    make_folder(to).map_err(|error| at(to, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| at(from, error))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(|error| at(&path, error))?;
        let copied = if kind.is_dir() {
            copy_folder(&path, &target, depth + 1)
        } else if kind.is_symlink() {
            let _absent = fs::remove_file(&target);
            fs::read_link(&path).and_then(|link| std::os::unix::fs::symlink(link, &target))
        } else if kind.is_file() {
            fs::copy(&path, &target).map(|_bytes| ())
        } else {
            Ok(())
        };
        copied.map_err(|error| at(&path, error))?;
    }
    Ok(())
}

fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

//! Copying the files of runs for another database.

use std::fs;
use std::io;
use std::path::Path;

use super::{RunFiles, make_folder};

/// How deep folders are copied.
const DEPTH_MAX: usize = 128;

impl RunFiles {
    /// Copies the contents of artifacts that the target does not have.
    ///
    /// # Errors
    /// Those of the system, with the path.
    pub fn copy_contents_to(&self, target: &RunFiles) -> io::Result<()> {
        for folder in 0..=u8::MAX {
            let (from, to) = (self.contents_folder(folder), target.contents_folder(folder));
            let entries = match fs::read_dir(&from) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(at(&from, error)),
            };
            make_folder(&to).map_err(|error| at(&to, error))?;
            for entry in entries {
                let entry = entry.map_err(|error| at(&from, error))?;
                let place = to.join(entry.file_name());
                if !place.exists() {
                    copy_content(&entry.path(), &place).map_err(|error| at(&entry.path(), error))?;
                }
            }
        }
        Ok(())
    }

    fn contents_folder(&self, folder: u8) -> std::path::PathBuf {
        self.part("artifacts").join(format!("{folder:02x}"))
    }

    /// Copies all files of runs. What is there already is replaced, so a repetition is harmless.
    ///
    /// # Errors
    /// Those of the system, with the path.
    pub fn copy_to(&self, target: &RunFiles) -> io::Result<()> {
        self.copy_contents_to(target)?;
        copy_folder(&self.part("runs"), &target.part("runs"), 0)
    }
}

/// Copies a content beside its place and renames it, so that no part of it is ever in its place. It may be removed meanwhile.
fn copy_content(from: &Path, place: &Path) -> io::Result<()> {
    let beside = place.with_extension("part");
    match fs::copy(from, &beside) {
        Ok(_bytes) => {
            fs::File::open(&beside)?.sync_all()?;
            fs::rename(beside, place)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && !from.exists() => Ok(()),
        Err(error) => Err(error),
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

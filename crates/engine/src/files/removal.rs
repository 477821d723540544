//! Removing files: they are renamed first, and removed a limited number at a time.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use super::{RunFiles, make_folder};

/// How many files and folders one call removes.
const ENTRIES_MAX: usize = 10_000;
/// How deep folders are removed. Deeper ones stay, and the error says so.
const DEPTH_MAX: usize = 128;
/// How many removed things may have the same name.
const NAMESAKES_MAX: usize = 1_000;

impl RunFiles {
    /// Renames a file or a folder into the folder of what is to be removed. It may be absent.
    pub(super) fn discard(&self, path: &Path, name: &str) -> io::Result<()> {
        if path.symlink_metadata().is_err() {
            return Ok(());
        }
        let removed = self.part("removed");
        make_folder(&removed)?;
        for number in 0..NAMESAKES_MAX {
            let target = removed.join(format!("{name}.{number}"));
            if target.symlink_metadata().is_ok() {
                continue;
            }
            match fs::rename(path, target) {
                // Another process was faster, with this name or with the file.
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                renamed => return renamed,
            }
        }
        Err(io::Error::other(format!("{} has too many files named {name}", removed.display())))
    }

    /// Removes some of what is to be removed. Returns whether something may be left.
    ///
    /// # Errors
    /// The last one of the system. What can be removed is removed all the same.
    pub fn remove_discarded(&self) -> io::Result<bool> {
        let mut removal = Removal { left: ENTRIES_MAX, error: None };
        removal.empty(&self.part("removed"), 0);
        match removal.error {
            Some(error) => Err(error),
            None => Ok(removal.left == 0),
        }
    }
}

struct Removal {
    /// How many more entries may be removed.
    left: usize,
    error: Option<io::Error>,
}

impl Removal {
    /// Removes what is in a folder.
    fn empty(&mut self, folder: &Path, depth: usize) {
        if depth > DEPTH_MAX {
            self.error = Some(io::Error::other(format!("{} is too deep", folder.display())));
            return;
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.note(error),
        };
        for entry in entries {
            if self.left == 0 {
                return;
            }
            match entry {
                Ok(entry) => self.remove(&entry, depth),
                Err(error) => self.note(error),
            }
        }
    }

    fn remove(&mut self, entry: &DirEntry, depth: usize) {
        let path = entry.path();
        let removed = match entry.file_type() {
            Ok(kind) if kind.is_dir() => {
                self.empty(&path, depth + 1);
                if self.left == 0 {
                    return;
                }
                fs::remove_dir(&path)
            }
            Ok(_file) => fs::remove_file(&path),
            Err(error) => Err(error),
        };
        self.left = self.left.saturating_sub(1);
        if let Err(error) = removed {
            self.note(error);
        }
    }

    /// Another process may remove the same files.
    fn note(&mut self, error: io::Error) {
        if error.kind() != io::ErrorKind::NotFound {
            self.error = Some(error);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_was_discarded_is_removed_in_parts_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let files = RunFiles::at(folder.path().join("files"));
        assert!(!files.remove_discarded().unwrap(), "nothing was discarded");
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("a"), "a").unwrap();
        let workspace = files.make_workspace(1).unwrap();
        std::os::unix::fs::symlink(&outside, workspace.join("link")).unwrap();
        for number in 0..ENTRIES_MAX {
            fs::write(workspace.join(number.to_string()), "").unwrap();
        }
        files.discard_workspace(1).unwrap();
        assert!(files.remove_discarded().unwrap(), "more than one call removes");
        assert!(!files.remove_discarded().unwrap());
        assert_eq!(fs::read_dir(files.part("removed")).unwrap().count(), 0);
        assert!(outside.join("a").exists());
    }
}

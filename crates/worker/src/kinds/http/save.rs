//! The file for the body of an answer. It is written beside its place and renamed, so that the place never has a part of a
//! body.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::handler::Attempt;

/// Files of earlier attempts that are looked for, at most.
const EARLIER_ATTEMPTS_MAX: i64 = 1_000;

/// A file that is being written.
pub(super) struct SaveFile {
    pub(super) place: PathBuf,
    beside: PathBuf,
    pub(super) file: File,
}

impl SaveFile {
    /// Opens the file beside the place, after removing what earlier attempts left.
    pub(super) fn create(place: PathBuf, attempt: &Attempt) -> io::Result<SaveFile> {
        let last = attempt.number();
        for number in (last - EARLIER_ATTEMPTS_MAX).max(1)..last {
            let _absent = std::fs::remove_file(beside(&place, attempt, number));
        }
        let beside = beside(&place, attempt, last);
        let file = File::create(&beside)?;
        Ok(SaveFile { place, beside, file })
    }

    /// The path of the file while it is written.
    pub(super) fn beside(&self) -> &Path {
        &self.beside
    }

    /// Puts the file in its place.
    pub(super) fn keep(self) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.beside, &self.place)?;
        match self.place.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
            Some(_) | None => File::open(".")?.sync_all(),
        }
    }

    /// Removes the file.
    pub(super) fn discard(self) {
        let _absent = std::fs::remove_file(&self.beside);
    }
}

fn beside(place: &Path, attempt: &Attempt, number: i64) -> PathBuf {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    // Names have at most 255 bytes.
    let name: String = name.chars().take(50).collect();
    place.with_file_name(format!(".{name}.windlass-{}-{number}", attempt.idempotency_key()))
}

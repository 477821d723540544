//! The contents of artifacts, each under its hash.
//!
//! A content is placed before the row that names it is committed, so contents without rows are normal for a while. They are
//! removed in three steps, so that no content is lost that another process is about to name:
//!
//! 1. A content that no row names and that is older than a day is renamed into `leaving`.
//! 2. There it is looked at again: if a row names it by now, or if it is young, it goes back.
//! 3. Else it is removed.
//!
//! Whoever places a content puts a new file in its place, also if there is one. So step 2 sees either the new file, which is
//! young, or an old one, whose place the new one has taken or will take.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{RunFiles, make_folder};

/// Contents that no row names are kept for this long, in milliseconds: a day. A worker that waits for its database may be
/// about to name them.
const UNNAMED_MS: i64 = 24 * 3_600 * 1_000;
/// Bytes that are read at a time.
const CHUNK: usize = 256 * 1024;
/// Contents that are looked at in one call.
const LISTED_MAX: usize = 10_000;
/// The characters of a hash.
const HASH_CHARS: usize = 64;

/// A content that was placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Its SHA-256, in hexadecimal.
    pub hash: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Why a content was not placed.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// It is larger than allowed.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// The caller did not want to go on.
    #[error("it was stopped")]
    Stopped,
    /// The system could not read or write.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl RunFiles {
    /// Copies a content into its place, and returns when it is on the disk. `name` is different for everybody who writes at
    /// the same time.
    ///
    /// # Errors
    /// See [`PlaceError`].
    pub fn place(
        &self,
        content: &mut impl Read,
        name: &str,
        max_bytes: u64,
        may_go_on: &dyn Fn() -> bool,
    ) -> Result<Content, PlaceError> {
        let folder = self.part("new");
        make_folder(&folder)?;
        let path = folder.join(name);
        let placed = self.write_and_place(content, &path, max_bytes, may_go_on);
        if placed.is_err() {
            let _absent = fs::remove_file(&path);
        }
        placed
    }

    fn write_and_place(
        &self,
        content: &mut impl Read,
        path: &Path,
        max_bytes: u64,
        may_go_on: &dyn Fn() -> bool,
    ) -> Result<Content, PlaceError> {
        let mut file = File::create(path)?;
        let (mut hasher, mut bytes, mut chunk) = (Sha256::new(), 0_u64, vec![0; CHUNK]);
        loop {
            if !may_go_on() {
                return Err(PlaceError::Stopped);
            }
            let read = match content.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            bytes = bytes.saturating_add(read as u64);
            if bytes > max_bytes {
                return Err(PlaceError::TooLarge(max_bytes));
            }
            hasher.update(&chunk[..read]);
            file.write_all(&chunk[..read])?;
        }
        file.sync_all()?;
        let hash: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let place = self.content_path(&hash);
        if let Some(folder) = place.parent() {
            let is_new = !folder.is_dir();
            make_folder(folder)?;
            fs::rename(path, &place)?;
            File::open(folder)?.sync_all()?;
            if is_new {
                File::open(self.part("artifacts"))?.sync_all()?;
                File::open(self.root())?.sync_all()?;
            }
        }
        Ok(Content { hash, bytes })
    }

    /// Opens a content.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open_content(&self, hash: &str) -> io::Result<File> {
        let place = self.content_path(hash);
        // It may be looked at in `leaving` for a moment, and go back.
        let leaving = self.part("leaving").join(hash);
        File::open(&place).or_else(|_| File::open(leaving)).or_else(|_| File::open(place))
    }

    /// The size of a content; `None` if it is not there.
    ///
    /// # Errors
    /// Those of the system.
    pub fn content_bytes(&self, hash: &str) -> io::Result<Option<u64>> {
        match self.open_content(hash) {
            Ok(file) => Ok(Some(file.metadata()?.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The contents in one of the 256 folders that are older than a day at `now_ms`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn old_contents(&self, folder: u8, now_ms: i64) -> io::Result<Vec<String>> {
        let prefix = format!("{folder:02x}");
        let entries = list(&self.part("artifacts").join(&prefix))?;
        Ok(entries
            .into_iter()
            .map(|(name, path)| (format!("{prefix}{name}"), path))
            .filter(|(hash, path)| hash.len() == HASH_CHARS && is_old(path, now_ms))
            .map(|(hash, _path)| hash)
            .collect())
    }

    /// Step 1: takes a content from its place.
    ///
    /// # Errors
    /// Those of the system.
    pub fn take_away(&self, hash: &str) -> io::Result<()> {
        let leaving = self.part("leaving");
        make_folder(&leaving)?;
        ignore_absent(fs::rename(self.content_path(hash), leaving.join(hash)))
    }

    /// The contents that were taken from their places.
    ///
    /// # Errors
    /// Those of the system.
    pub fn leaving(&self) -> io::Result<Vec<String>> {
        Ok(list(&self.part("leaving"))?.into_iter().map(|(name, _path)| name).collect())
    }

    /// Steps 2 and 3: puts a content back if `is_named` says that a row names it or if it is young, and removes it otherwise.
    ///
    /// # Errors
    /// Those of the system.
    pub fn put_back_or_remove(&self, hash: &str, is_named: Named, now_ms: i64) -> io::Result<()> {
        let leaving = self.part("leaving").join(hash);
        if is_named == Named::Yes || !is_old(&leaving, now_ms) {
            // A file that was placed meanwhile stays.
            match fs::hard_link(&leaving, self.content_path(hash)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                linked => ignore_absent(linked)?,
            }
        }
        ignore_absent(fs::remove_file(leaving))
    }

    /// Removes what was left while a content was written, a day later.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove_unfinished(&self, now_ms: i64) -> io::Result<()> {
        for (_name, path) in list(&self.part("new"))? {
            if is_old(&path, now_ms) {
                ignore_absent(fs::remove_file(path))?;
            }
        }
        Ok(())
    }

    pub(super) fn content_path(&self, hash: &str) -> PathBuf {
        let (folder, name) = hash.split_at_checked(2).unwrap_or(("", hash));
        self.part("artifacts").join(folder).join(name)
    }
}

/// Whether a row names a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A row does.
    Yes,
    /// No row does.
    No,
}

/// The entries of a folder, which may be absent.
fn list(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut listed = Vec::new();
    for entry in entries.take(LISTED_MAX) {
        let entry = entry?;
        listed.extend(entry.file_name().into_string().ok().map(|name| (name, entry.path())));
    }
    Ok(listed)
}

/// Whether a file was written more than a day ago. An absent file is old.
fn is_old(path: &Path, now_ms: i64) -> bool {
    let written = path.metadata().and_then(|metadata| metadata.modified());
    let since = written.ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let written_ms = since.and_then(|since| i64::try_from(since.as_millis()).ok());
    written_ms.is_none_or(|written_ms| written_ms < now_ms.saturating_sub(UNNAMED_MS))
}

fn ignore_absent(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

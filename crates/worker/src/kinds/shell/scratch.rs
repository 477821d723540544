//! A private folder of one worker for the files that jobs write their output to.
//!
//! The worker keeps the folder open and locked for as long as it lives, which says two things to others. A folder
//! that nobody has locked was left by a process that is gone, and may be removed. And a process that has it open is
//! the worker itself, or a child of it before its `execve`: see `process::engine_id`.

use std::fs::{DirBuilder, File};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::fs::{FlockOperation, Mode, OFlags, StatVfs, StatVfsMountFlags, flock, statvfs};
use rustix::io::Errno;
use rustix::process::geteuid;

use windlass_system::process::engine_id::EngineId;

/// Somebody who clears up may take a new folder away before it is locked: so often another one is made.
const TRIES_MAX: usize = 5;
/// Entries of the folder for temporary files that are looked at for folders of dead workers.
const ENTRIES_MAX: usize = 100_000;

/// The folder, made when the first job needs it and removed with the worker.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    folder: OnceLock<Folder>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Open and locked.
    file: Mutex<File>,
}

impl Scratch {
    /// The folder.
    ///
    /// # Errors
    /// When it can't be made.
    pub(super) fn folder(&self) -> std::io::Result<&Path> {
        if let Some(folder) = self.folder.get() {
            // Whatever cleans temporary folders may have taken it meanwhile.
            match statvfs(&folder.path) {
                Ok(disk) => check_room(&disk, geteuid().is_root())?,
                Err(Errno::NOENT) => {
                    *folder.file.lock().unwrap_or_else(PoisonError::into_inner) = make(&folder.path)?;
                }
                Err(error) => return Err(error.into()),
            }
            return Ok(&folder.path);
        }
        let parent = std::env::temp_dir();
        remove_abandoned(&parent);
        let made = make_in(&parent)?;
        // Whoever came second takes its own away again.
        if let Err(second) = self.folder.set(made) {
            let _kept = std::fs::remove_dir(second.path);
        }
        self.folder.get().map(|folder| folder.path.as_path()).ok_or_else(|| Error::other("no scratch folder"))
    }
}

/// A job that can't write its output fails by that, although it is not its fault: so it does not start.
fn check_room(disk: &StatVfs, is_root: bool) -> Result<(), Errno> {
    // Some file systems do not count.
    let has_blocks = disk.f_blocks == 0 || if is_root { disk.f_bfree > 0 } else { disk.f_bavail > 0 };
    let has_files = disk.f_files == 0 || disk.f_ffree > 0;
    if disk.f_flag.contains(StatVfsMountFlags::RDONLY) {
        Err(Errno::ROFS)
    } else if has_blocks && has_files {
        Ok(())
    } else {
        Err(Errno::NOSPC)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(folder) = self.folder.get() {
            let _left = std::fs::remove_dir_all(&folder.path);
        }
    }
}

fn make_in(parent: &Path) -> std::io::Result<Folder> {
    let engine = EngineId::current();
    let mut tries = 0;
    loop {
        let path = parent.join(engine.folder_name(&uuid::Uuid::now_v7().simple().to_string()));
        match make(&path) {
            Ok(file) => return Ok(Folder { path, file: Mutex::new(file) }),
            Err(error) if error.kind() == ErrorKind::WouldBlock && tries < TRIES_MAX => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Makes the folder, and opens and locks it. The error is `WouldBlock` when somebody takes it away at this moment.
fn make(path: &Path) -> std::io::Result<File> {
    DirBuilder::new().mode(0o700).create(path)?;
    let taken = || Error::from(ErrorKind::WouldBlock);
    let file = open(path).map_err(|error| if error == Errno::NOENT { taken() } else { error.into() })?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(taken()),
        // Some file systems know no locks: nobody takes such a folder away.
        Err(_) => Ok(file),
        Ok(()) if is_at(&file, path) => Ok(file),
        Ok(()) => Err(taken()),
    }
}

fn open(path: &Path) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map(File::from)
}

/// The open folder still has this name.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(file), Ok(path)) => identity(file) == identity(path),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// Removes this user's folders of workers that are gone. What can't be removed stays.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.take(ENTRIES_MAX).flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| EngineId::of_folder(name).is_some());
        if is_ours && let Some(_locked) = lock_abandoned(&entry.path()) {
            let _left = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The folder, locked, when nobody else has it locked.
fn lock_abandoned(path: &Path) -> Option<File> {
    let file = open(path).ok()?;
    let is_own = file.metadata().ok()?.uid() == rustix::process::geteuid().as_raw();
    let is_free = is_own && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    (is_free && is_at(&file, path)).then_some(file)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn folders_of_workers_that_are_gone_are_removed_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let (living, gone) = (make_in(parent.path()).unwrap(), make_in(parent.path()).unwrap());
        std::fs::create_dir(gone.path.join("7-1")).unwrap();
        drop(gone.file);
        let foreign = ["windlass-of-somebody-else", "other"].map(|name| parent.path().join(name));
        for folder in &foreign {
            std::fs::create_dir(folder).unwrap();
        }
        let linked = tempfile::tempdir().unwrap();
        let link = parent.path().join(EngineId::current().folder_name("link"));
        std::os::unix::fs::symlink(linked.path(), &link).unwrap();
        remove_abandoned(parent.path());
        assert!(!gone.path.exists());
        assert!(living.path.exists() && foreign.iter().all(|folder| folder.exists()));
        assert!(linked.path().exists() && link.is_symlink(), "a link is not followed");
    }

    /// The id in the name says nothing here: it is this process's in both.
    #[test]
    fn a_new_folder_is_taken_away_by_nobody() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let makers: Vec<_> = (0..2)
                .map(|_maker| {
                    scope.spawn(|| (0..200).map(|_| make_in(parent.path()).unwrap()).collect::<Vec<_>>())
                })
                .collect();
            while !makers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                remove_abandoned(parent.path());
            }
            for maker in makers {
                assert!(maker.join().unwrap().iter().all(|folder| folder.path.is_dir()));
            }
        });
    }

    #[test]
    fn a_folder_that_was_removed_is_made_and_locked_again() {
        let scratch = Scratch::default();
        let path = scratch.folder().unwrap().to_owned();
        std::fs::remove_dir(&path).unwrap();
        assert_eq!(scratch.folder().unwrap(), path);
        assert!(path.is_dir() && lock_abandoned(&path).is_none());
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn a_disk_without_room_is_no_folder_for_output() {
        let disk = |blocks: u64, free: [u64; 3], f_flag| StatVfs {
            f_blocks: blocks,
            f_bfree: free[0],
            f_bavail: free[1],
            f_files: blocks,
            f_ffree: free[2],
            f_flag,
            ..statvfs("/proc").expect("it is mounted")
        };
        let none = StatVfsMountFlags::empty();
        for (what, disk, for_root, for_others) in [
            ("room", disk(9, [5, 5, 5], none), Ok(()), Ok(())),
            ("full", disk(9, [0, 0, 5], none), Err(Errno::NOSPC), Err(Errno::NOSPC)),
            ("the rest is reserved", disk(9, [5, 0, 5], none), Ok(()), Err(Errno::NOSPC)),
            ("no more files", disk(9, [5, 5, 0], none), Err(Errno::NOSPC), Err(Errno::NOSPC)),
            ("it does not count", disk(0, [0, 0, 0], none), Ok(()), Ok(())),
            ("read-only", disk(9, [5, 5, 5], StatVfsMountFlags::RDONLY), Err(Errno::ROFS), Err(Errno::ROFS)),
        ] {
            assert_eq!(check_room(&disk, true), for_root, "{what}");
            assert_eq!(check_room(&disk, false), for_others, "{what}");
        }
    }
}

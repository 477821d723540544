//! The private folder of a worker for the files that jobs write their output to.
//!
//! The worker keeps the folder open and locked as long as it lives. So a folder that nobody has locked was left by a
//! process that is gone, and may be removed. A process that has the folder open is the worker itself, or a child
//! of it before its `execve`: see `process::engine_id`.

use std::fs::{DirBuilder, File};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::fs::{FlockOperation, Mode, OFlags, StatVfs, StatVfsMountFlags, flock, statvfs};
use rustix::io::Errno;
use rustix::process::geteuid;

use windlass_system::process::engine_id::EngineId;

/// How often a new folder is made, because another process that cleans up may remove it before it is locked.
const TRIES_MAX: usize = 5;
/// Entries of the folder for temporary files that are searched for folders of dead workers, at most.
const ENTRIES_MAX: usize = 100_000;

/// The folder. It is made when the first job needs it, and removed with the worker.
#[derive(Debug, Default)]
pub(super) struct OutputFolder {
    folder: OnceLock<Folder>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Open and locked.
    file: Mutex<File>,
}

impl OutputFolder {
    /// The path of the folder.
    ///
    /// # Errors
    /// The system's, if the folder can't be made.
    pub(super) fn path(&self) -> std::io::Result<&Path> {
        if let Some(folder) = self.folder.get() {
            // A program that cleans temporary folders may have removed it.
            match statvfs(&folder.path) {
                Ok(disk) => check_space(&disk, geteuid().is_root())?,
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
        // If another thread was faster, its folder stays.
        if let Err(second) = self.folder.set(made) {
            let _left = std::fs::remove_dir(second.path);
        }
        self.folder.get().map(|folder| folder.path.as_path()).ok_or_else(|| Error::other("no output folder"))
    }
}

/// Refuses a disk without space. A job that can't write its output would fail, although the job is not wrong.
fn check_space(disk: &StatVfs, is_root: bool) -> Result<(), Errno> {
    // Some file systems do not count blocks or files.
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

impl Drop for OutputFolder {
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

/// Makes the folder, opens it and locks it. The error is `WouldBlock` if another process removes it at this moment.
fn make(path: &Path) -> std::io::Result<File> {
    DirBuilder::new().mode(0o700).create(path)?;
    let removed = || Error::from(ErrorKind::WouldBlock);
    let file = open(path).map_err(|error| if error == Errno::NOENT { removed() } else { error.into() })?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(removed()),
        // Some file systems have no locks. Nobody removes such a folder.
        Err(_) => Ok(file),
        Ok(()) if is_at(&file, path) => Ok(file),
        Ok(()) => Err(removed()),
    }
}

fn open(path: &Path) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map(File::from)
}

/// Whether the open folder still has this name.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(file), Ok(path)) => identity(file) == identity(path),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

/// Removes this user's folders of workers that are gone. A folder that can't be removed stays.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.take(ENTRIES_MAX).flatten() {
        let is_own =
            entry.file_name().to_str().is_some_and(|name| EngineId::from_folder_name(name).is_some());
        if is_own && let Some(_locked) = lock_abandoned(&entry.path()) {
            let _left = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Opens and locks the folder, if nobody else has it locked.
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
    fn only_folders_of_workers_that_are_gone_are_removed() {
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
        assert!(linked.path().exists() && link.is_symlink(), "links are not followed");
    }

    /// Both threads use the same id in the name: that of this process.
    #[test]
    fn a_new_folder_is_not_removed_while_another_thread_cleans_up() {
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
    fn a_removed_folder_is_made_and_locked_again() {
        let folder = OutputFolder::default();
        let path = folder.path().unwrap().to_owned();
        std::fs::remove_dir(&path).unwrap();
        assert_eq!(folder.path().unwrap(), path);
        assert!(path.is_dir() && lock_abandoned(&path).is_none());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_disk_without_space_is_refused() {
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
            ("space", disk(9, [5, 5, 5], none), Ok(()), Ok(())),
            ("full", disk(9, [0, 0, 5], none), Err(Errno::NOSPC), Err(Errno::NOSPC)),
            ("the rest is reserved", disk(9, [5, 0, 5], none), Ok(()), Err(Errno::NOSPC)),
            ("no more files", disk(9, [5, 5, 0], none), Err(Errno::NOSPC), Err(Errno::NOSPC)),
            ("it does not count", disk(0, [0, 0, 0], none), Ok(()), Ok(())),
            ("read-only", disk(9, [5, 5, 5], StatVfsMountFlags::RDONLY), Err(Errno::ROFS), Err(Errno::ROFS)),
        ] {
            assert_eq!(check_space(&disk, true), for_root, "{what}");
            assert_eq!(check_space(&disk, false), for_others, "{what}");
        }
    }
}

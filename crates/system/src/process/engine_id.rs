//! Which engine a process of a job comes from, as the name of that engine's temporary folder says it.
//!
//! Each engine has one folder for its jobs' output files. It keeps that folder open, with `O_CLOEXEC`. So a child
//! has it open too until it executes its program, and from then on has its path in its environment.

use std::fs;
use std::path::Path;

use rustix::io::Errno;

use super::{ProcessIdentity, pid_namespace};
use crate::shortage::shortage;

/// With what the names of the folders begin.
const PREFIX: &str = "windlass-";

/// One process of this machine and of this pid namespace, for good: an id alone is used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineId {
    pid: i64,
    /// The number of the pid namespace in which `pid` counts.
    namespace: String,
    /// When it started, in clock ticks since the boot.
    start: String,
}

impl EngineId {
    /// This process.
    pub fn current() -> EngineId {
        let ProcessIdentity { pid, process, .. } = ProcessIdentity::current();
        // A process that can't see itself has a folder all the same.
        EngineId::of(pid, &process).unwrap_or_else(|| EngineId {
            pid,
            namespace: "0".to_owned(),
            start: "0".to_owned(),
        })
    }

    /// The process of a worker's row, see [`ProcessIdentity`].
    pub fn of(pid: i64, process: &str) -> Option<EngineId> {
        let mut parts = process.splitn(3, '/');
        let (_boot, namespace, start) = (parts.next()?, parts.next()?, parts.next()?);
        let is_known = !start.is_empty() && !namespace.is_empty();
        is_known.then(|| EngineId { pid, namespace: number_of(namespace), start: start.to_owned() })
    }

    /// The name of a folder of this engine; `unique` tells several of them apart.
    pub fn folder_name(&self, unique: &str) -> String {
        format!("{PREFIX}{}-{}-{}-{unique}", self.pid, self.namespace, self.start)
    }

    /// From the name of a folder.
    pub fn of_folder(name: &str) -> Option<EngineId> {
        let mut parts = name.strip_prefix(PREFIX)?.splitn(4, '-');
        let (pid, namespace, start) = (parts.next()?, parts.next()?, parts.next()?);
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        parts.next().filter(|unique| !unique.is_empty())?;
        (is_number(namespace) && is_number(start)).then_some(())?;
        Some(EngineId { pid: pid.parse().ok()?, namespace: namespace.to_owned(), start: start.to_owned() })
    }

    /// Its process is not there any more. Only of one in this pid namespace.
    pub fn is_gone(&self) -> bool {
        match super::sight(self.pid) {
            super::Sight::Runs(start) => start.to_string() != self.start,
            super::Sight::Ended => true,
            super::Sight::Hidden => super::signal_nothing(self.pid) == Err(rustix::io::Errno::SRCH),
        }
    }
}

/// What the open files of a process say of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OpenFolder {
    /// It has the folder of an engine open, and is not that engine: it was started by it.
    Of(EngineId),
    None,
    /// This user may not look.
    Hidden,
}

/// Looks for the folder of an engine of this pid namespace among the open files of a process.
///
/// # Errors
/// When the system gives no file to look with.
pub(super) fn open_folder(pid: i32) -> Result<OpenFolder, Errno> {
    let files = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(files) => files,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Ok(OpenFolder::Hidden),
        Err(error) => return shortage(&error).map_or(Ok(OpenFolder::None), Err),
    };
    let namespace = number_of(&pid_namespace());
    let links = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    let mut engines = links.filter_map(|link| engine_of(&link));
    let engine = engines.find(|engine| engine.namespace == namespace && engine.pid != i64::from(pid));
    Ok(engine.map_or(OpenFolder::None, OpenFolder::Of))
}

/// The engine of an output file's path.
pub fn engine_of_output(path: &str) -> Option<(EngineId, &str)> {
    let path = Path::new(path);
    Some((engine_of(path.parent()?)?, path.file_name()?.to_str()?))
}

/// The kernel says "(deleted)" after the path of an open folder that was removed.
fn engine_of(folder: &Path) -> Option<EngineId> {
    EngineId::of_folder(folder.file_name()?.to_str()?)
}

/// `pid:[4026531836]` without what is around the number: as a part of a file's name.
fn number_of(namespace: &str) -> String {
    namespace.chars().filter(char::is_ascii_digit).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::own_pid;
    use super::*;

    #[test]
    fn the_name_of_a_folder_says_whose_it_is() {
        let own = EngineId::current();
        assert_eq!(own.pid, i64::from(own_pid()));
        let name = own.folder_name("a-b");
        assert_eq!(EngineId::of_folder(&name), Some(own.clone()));
        assert_eq!(engine_of_output(&format!("/tmp/{name}/7-1")), Some((own.clone(), "7-1")));
        assert_eq!(EngineId::of_folder(&format!("{name} (deleted)")), Some(own.clone()));
        assert!(!own.is_gone());
        assert!(EngineId { start: format!("{}0", own.start), ..own }.is_gone(), "its id was used again");
        for foreign in ["windlass-1-2-3", "windlass-1-2-3-", "windlass-x-2-3-4", "windlass-1--3-4", "1-2-3-4"]
        {
            assert_eq!(EngineId::of_folder(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_workers_row_names_the_same_engine() {
        let ProcessIdentity { pid, process, .. } = ProcessIdentity::current();
        assert_eq!(EngineId::of(pid, &process), Some(EngineId::current()));
        assert_eq!(EngineId::of(pid, "opaque"), None);
        assert_eq!(EngineId::of(pid, "boot/pid:[1]/"), None, "it could not see itself");
    }

    #[test]
    fn the_engine_itself_is_not_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(EngineId::current().folder_name("x"));
        fs::create_dir(&path).unwrap();
        let _open = fs::File::open(&path).unwrap();
        assert_eq!(open_folder(own_pid()), Ok(OpenFolder::None));
        let other = EngineId { pid: 1, ..EngineId::current() };
        let path = folder.path().join(other.folder_name("x"));
        fs::create_dir(&path).unwrap();
        let _open = fs::File::open(&path).unwrap();
        assert_eq!(open_folder(own_pid()), Ok(OpenFolder::Of(other)));
    }
}

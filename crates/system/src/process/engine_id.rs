//! The engine that started a job's process. It is recognized by the name of the engine's temporary folder.
//!
//! An engine is a process that executes jobs. Each engine has one folder for the output files of its jobs, and keeps that
//! folder open with `O_CLOEXEC`. So a child process has the folder open until it executes its program, and from then on
//! has the path of a file in the folder in its environment.

use std::fs;
use std::path::Path;

use rustix::io::Errno;

use super::{ProcessIdentity, pid_namespace};
use crate::shortage::shortage;

/// The prefix of the folders' names.
const PREFIX: &str = "windlass-";

/// Identifies an engine of this boot of the machine. The process id alone does not, because ids are used again.
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
        // A process that can't read its own entry in /proc has a folder too.
        EngineId::of(pid, &process).unwrap_or_else(|| EngineId {
            pid,
            namespace: "0".to_owned(),
            start: "0".to_owned(),
        })
    }

    /// The engine of a row of `workers`: see [`ProcessIdentity`].
    pub fn of(pid: i64, process: &str) -> Option<EngineId> {
        let mut parts = process.splitn(3, '/');
        let (_boot, namespace, start) = (parts.next()?, parts.next()?, parts.next()?);
        let is_known = !start.is_empty() && !namespace.is_empty();
        is_known.then(|| EngineId { pid, namespace: namespace_number(namespace), start: start.to_owned() })
    }

    /// The name of a folder of this engine. `unique` distinguishes several folders of one engine.
    pub fn folder_name(&self, unique: &str) -> String {
        format!("{PREFIX}{}-{}-{}-{unique}", self.pid, self.namespace, self.start)
    }

    /// Reads the engine from the name of its folder.
    pub fn from_folder_name(name: &str) -> Option<EngineId> {
        let mut parts = name.strip_prefix(PREFIX)?.splitn(4, '-');
        let (pid, namespace, start) = (parts.next()?, parts.next()?, parts.next()?);
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        parts.next().filter(|unique| !unique.is_empty())?;
        (is_number(namespace) && is_number(start)).then_some(())?;
        Some(EngineId { pid: pid.parse().ok()?, namespace: namespace.to_owned(), start: start.to_owned() })
    }

    /// Whether its process has ended. Only for an engine in this pid namespace.
    pub fn is_gone(&self) -> bool {
        match super::proc_state(self.pid) {
            super::ProcState::Running(start) => start.to_string() != self.start,
            super::ProcState::Ended => true,
            super::ProcState::NotShown => super::check_exists(self.pid) == Err(rustix::io::Errno::SRCH),
        }
    }
}

/// The engine's folder among the open files of a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OpenFolder {
    /// The process has the folder of another engine open, so that engine started it.
    Of(EngineId),
    None,
    /// This user may not see the open files.
    Hidden,
}

/// Searches the open files of a process for the folder of an engine of this pid namespace.
///
/// # Errors
/// When this process can't open another file.
pub(super) fn open_folder(pid: i32) -> Result<OpenFolder, Errno> {
    let files = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(files) => files,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Ok(OpenFolder::Hidden),
        Err(error) => return shortage(&error).map_or(Ok(OpenFolder::None), Err),
    };
    let namespace = namespace_number(&pid_namespace());
    let links = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    let mut engines = links.filter_map(|link| engine_of(&link));
    let engine = engines.find(|engine| engine.namespace == namespace && engine.pid != i64::from(pid));
    Ok(engine.map_or(OpenFolder::None, OpenFolder::Of))
}

/// The engine that an output file's path names, and the name of the file.
pub fn engine_of_output_file(path: &str) -> Option<(EngineId, &str)> {
    let path = Path::new(path);
    Some((engine_of(path.parent()?)?, path.file_name()?.to_str()?))
}

/// The engine that a folder's name names. The kernel adds " (deleted)" to the path of an open folder that was removed.
fn engine_of(folder: &Path) -> Option<EngineId> {
    EngineId::from_folder_name(folder.file_name()?.to_str()?)
}

/// The number in `pid:[4026531836]`, which can be part of a file's name.
fn namespace_number(namespace: &str) -> String {
    namespace.chars().filter(char::is_ascii_digit).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::own_pid;
    use super::*;

    #[test]
    fn the_name_of_a_folder_names_its_engine() {
        let own = EngineId::current();
        assert_eq!(own.pid, i64::from(own_pid()));
        let name = own.folder_name("a-b");
        assert_eq!(EngineId::from_folder_name(&name), Some(own.clone()));
        assert_eq!(engine_of_output_file(&format!("/tmp/{name}/7-1")), Some((own.clone(), "7-1")));
        assert_eq!(EngineId::from_folder_name(&format!("{name} (deleted)")), Some(own.clone()));
        assert!(!own.is_gone());
        assert!(EngineId { start: format!("{}0", own.start), ..own }.is_gone(), "its id was used again");
        for foreign in ["windlass-1-2-3", "windlass-1-2-3-", "windlass-x-2-3-4", "windlass-1--3-4", "1-2-3-4"]
        {
            assert_eq!(EngineId::from_folder_name(foreign), None, "{foreign}");
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
    fn an_engine_did_not_start_itself() {
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

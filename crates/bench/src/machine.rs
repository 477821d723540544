//! The machine and the database that are measured, as far as they affect the figures. Nothing identifies the machine.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::BenchError;
use crate::scratch::Scratch;

/// A machine and its database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Machine {
    /// The model of its processor.
    pub processor: String,
    /// The number of threads that run at the same time.
    pub cores: usize,
    /// The memory, in bytes.
    pub memory_bytes: u64,
    /// The version of Linux.
    pub kernel: String,
    /// The database, and its version.
    pub database: String,
    /// The file system of the database file; `None` for a server.
    pub file_system: Option<String>,
    /// Why a commit would not survive a power cut, if that is known.
    pub warning: Option<String>,
}

impl Machine {
    pub(crate) fn detect(scratch: &Scratch<'_>) -> Result<Machine, BenchError> {
        let database = scratch.new_database()?;
        // Opened by Windlass first, because its error messages are the best.
        drop(database.open(scratch.plan.durability)?);
        let (database, settings) = database.raw(scratch.plan.durability)?.describe()?;
        let file_system = scratch.folder_of_files().map(file_system).transpose()?;
        let is_volatile = file_system.as_deref().is_some_and(|name| ["tmpfs", "ramfs"].contains(&name));
        let warning = is_volatile.then(|| {
            "the files lie in memory: no commit measured here survives a power cut, whatever the durability; \
             name a database on a disk with --db"
                .to_owned()
        });
        Ok(Machine {
            processor: field("/proc/cpuinfo", "model name")
                .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_bytes: field("/proc/meminfo", "MemTotal").and_then(|text| kilobytes(&text)).unwrap_or(0),
            kernel: version(&rustix::system::uname().release().to_string_lossy()),
            database,
            file_system,
            warning: warning.or(settings),
        })
    }
}

/// The numbers of a version, without a suffix.
fn version(release: &str) -> String {
    release.chars().take_while(|character| character.is_ascii_digit() || *character == '.').collect()
}

/// The value of the first line `name : value` of a file in `/proc`.
pub(crate) fn field(file: impl AsRef<Path>, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let values = text.lines().filter_map(|line| line.split_once(':'));
    values.filter(|(found, _)| found.trim() == name).map(|(_, value)| value.trim().to_owned()).next()
}

/// The number of bytes in a text such as `2048 kB`.
pub(crate) fn kilobytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The name of a folder's file system.
fn file_system(folder: &Path) -> Result<String, BenchError> {
    let found = rustix::fs::statfs(folder)
        .map_err(|error| BenchError::machine("read the kind of the file system")(error.into()))?;
    #[allow(clippy::unnecessary_cast, reason = "its type differs from processor to processor")]
    let number = found.f_type as u64 & 0xffff_ffff;
    Ok(FILE_SYSTEMS
        .iter()
        .find(|(known, _)| *known == number)
        .map_or_else(|| format!("file system {number:#x}"), |(_, name)| (*name).to_owned()))
}

/// The numbers that the kernel gives to file systems, in `linux/magic.h`.
const FILE_SYSTEMS: [(u64, &str); 11] = [
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0x794c_7630, "overlay"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0x6969, "nfs"),
    (0x6573_5546, "fuse"),
    (0xca45_1a4e, "bcachefs"),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn numbers_of_the_kernel_are_read() {
        assert_eq!(kilobytes("2048 kB"), Some(2_097_152));
        assert_eq!(kilobytes("2048"), None);
        assert!(kilobytes(&field("/proc/meminfo", "MemTotal").unwrap()).unwrap() > 0);
        assert_eq!(field("/proc/meminfo", "Nothing"), None);
    }

    #[test]
    fn a_kernel_version_is_shown_without_its_suffix() {
        for (release, expected) in
            [("6.12.43+deb13-amd64", "6.12.43"), ("6.1.0", "6.1.0"), ("6.6-rc1", "6.6")]
        {
            assert_eq!(version(release), expected);
        }
    }

    #[test]
    fn a_file_system_in_memory_is_known() {
        assert_eq!(file_system(Path::new("/dev/shm")).unwrap(), "tmpfs");
        assert!(file_system(Path::new("/proc")).unwrap().starts_with("file system 0x"));
    }
}

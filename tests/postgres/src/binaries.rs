//! Finds PostgreSQL's programs, and starts them as a user other than root, because the server refuses to run as root.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{env, fs};

/// The programs that a server needs.
const PROGRAMS: [&str; 3] = ["initdb", "pg_ctl", "postgres"];

/// Debian's folder for them, which has a folder for each major version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The user of the server if the tests run as root.
const USER: &str = "postgres";

/// A command for one of PostgreSQL's programs, without the caller's environment.
///
/// # Panics
/// When it is not installed; the message says what to install.
pub(crate) fn program(name: &str) -> Command {
    as_server_user(&folder().join(name))
}

/// A command for a program of another package that refuses root too. It is searched in `PATH` and in Debian's folder.
///
/// # Panics
/// When it is not installed; the message says what to install.
pub(crate) fn server_program(name: &str, debian: &str, package: &str) -> Command {
    let mut folders: Vec<PathBuf> =
        env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    folders.extend(Path::new(debian).parent().map(Path::to_owned));
    let found = folders.into_iter().map(|folder| folder.join(name)).find(|path| path.exists());
    as_server_user(&found.unwrap_or_else(|| {
        panic!("{name} is not installed: install Debian's package `{package}` (scripts/setup does)")
    }))
}

fn as_server_user(path: &Path) -> Command {
    let mut command = match server_user() {
        None => Command::new(path),
        Some(user) => {
            let mut command = Command::new("setpriv");
            command.args([format!("--reuid={}", user.uid), format!("--regid={}", user.gid)]);
            command.arg("--init-groups").arg(path);
            command
        }
    };
    command.env_clear().env("LC_ALL", "C").env("TZ", "UTC");
    if let Some(path) = env::var_os("PATH") {
        command.env("PATH", path);
    }
    command.stdin(Stdio::null()).current_dir("/");
    command
}

/// Makes a folder that the server may write in.
///
/// # Panics
/// When it cannot be made.
pub(crate) fn make_folder_for_server(path: &Path) {
    fs::create_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if let Some(user) = server_user() {
        chown(path, Some(user.uid), Some(user.gid))
            .unwrap_or_else(|error| panic!("{} cannot be given to the user {USER}: {error}", path.display()));
    }
}

fn folder() -> &'static Path {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = FOLDER.get_or_init(|| first_with_all(candidates()));
    found.as_deref().unwrap_or_else(|missing| panic!("{missing}"))
}

/// The first folder that has all programs. The error says what to install.
fn first_with_all(folders: Vec<PathBuf>) -> Result<PathBuf, String> {
    folders.into_iter().find(|folder| has_all(folder)).ok_or_else(|| {
        format!(
            "PostgreSQL's server is not installed: install Debian's package `postgresql` (scripts/setup does), \
             or name a running server in {}",
            crate::SERVER_VARIABLE
        )
    })
}

fn candidates() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    folders.extend(newest_first(Path::new(DEBIAN)));
    let asked = Command::new("pg_config").arg("--bindir").stderr(Stdio::null()).output();
    if let Ok(answer) = asked {
        folders.push(PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim()));
    }
    folders
}

/// The folders with the programs of each version, the newest first.
fn newest_first(versions: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(versions).into_iter().flatten().flatten();
    let mut numbered: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    numbered.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    numbered.into_iter().map(|(_, folder)| folder).collect()
}

fn has_all(folder: &Path) -> bool {
    folder.is_absolute() && PROGRAMS.iter().all(|program| folder.join(program).exists())
}

#[derive(Clone, Copy)]
struct ServerUser {
    uid: u32,
    gid: u32,
}

/// The user of the server, if that is not the user of the tests.
fn server_user() -> Option<ServerUser> {
    static USER_IDS: OnceLock<Option<ServerUser>> = OnceLock::new();
    *USER_IDS.get_or_init(|| {
        rustix::process::geteuid()
            .is_root()
            .then(|| ServerUser { uid: id_of("--user"), gid: id_of("--group") })
    })
}

fn id_of(which: &str) -> u32 {
    let answer = Command::new("id").args([which, USER]).stderr(Stdio::null()).output();
    answer.ok().and_then(|answer| String::from_utf8_lossy(&answer.stdout).trim().parse().ok()).unwrap_or_else(
        || {
            panic!(
                "PostgreSQL's server refuses to run as root and there is no user `{USER}` to run it as: \
                 install Debian's package `postgresql`, which makes one, or run the tests as another user"
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_comes_first() {
        let versions = tempfile::tempdir().expect("a temporary folder");
        for version in ["9", "15", "14", "notes"] {
            fs::create_dir(versions.path().join(version)).expect("a folder");
        }
        let expected = ["15", "14", "9"].map(|version| versions.path().join(version).join("bin"));
        assert_eq!(newest_first(versions.path()), expected);
    }

    #[test]
    fn a_folder_must_have_all_programs() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for program in PROGRAMS {
            assert!(!has_all(folder.path()), "{program} is missing");
            fs::write(folder.path().join(program), "").expect("a file");
        }
        assert!(has_all(folder.path()));
    }

    #[test]
    fn the_error_says_what_to_install() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let missing = first_with_all(vec![folder.path().to_owned()]).expect_err("there is none");
        assert!(missing.contains("install Debian's package `postgresql`"), "{missing}");
        assert!(missing.contains(crate::SERVER_VARIABLE), "{missing}");
    }
}

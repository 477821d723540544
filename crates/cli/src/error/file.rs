//! Why a database in a file can't be used, in the words of the command line.

use std::path::Path;

use windlass::Unavailable;

use crate::cli::quoted;

/// What is wrong, and what to do.
pub(super) fn unavailable(
    reason: Unavailable,
    path: &Path,
    hint: impl Fn(&str) -> String,
) -> (String, String) {
    let database = path.display();
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.display().to_string(),
        Some(_) | None => ".".to_owned(),
    };
    match reason {
        Unavailable::Missing(missing) => (
            format!("there is no database at {}", missing.display()),
            "`windlass run FILE` makes one; --db PATH or WINDLASS_DB names another".to_owned(),
        ),
        Unavailable::NoTables(file) => (
            format!("nothing of windlass is in {file}"),
            "it was not touched; `windlass run FILE` makes its tables, --db PATH names another file"
                .to_owned(),
        ),
        Unavailable::CannotOpen(why) => (
            format!("the database {database} cannot be opened: {why}"),
            "name a file in a folder that exists and that you may write to, with --db PATH or WINDLASS_DB"
                .to_owned(),
        ),
        Unavailable::NotADatabase => (
            format!("{database} is not a SQLite database"),
            "it was not touched; name another file with --db PATH or WINDLASS_DB".to_owned(),
        ),
        Unavailable::HardLinked { path: _, names } => (
            format!(
                "{database} has {names} names (hard links), and commits made under one would be lost under another"
            ),
            format!(
                "it was not touched; `find / -xdev -samefile {}` shows its names: keep one, and remove the others",
                quoted(&database.to_string())
            ),
        ),
        Unavailable::Foreign { table } => (
            format!("{database} belongs to another program: windlass did not make its table `{table}`"),
            "it was not touched; name another file with --db PATH or WINDLASS_DB".to_owned(),
        ),
        Unavailable::NewerVersion { found, supported } => {
            super::newer_version(&database.to_string(), found, supported)
        }
        Unavailable::Locked => (
            format!("the database {database} is locked by another program"),
            format!("`fuser {database}` shows which one; let it finish, then try again"),
        ),
        Unavailable::DiskFull => (
            format!("the disk is full: {database} cannot grow"),
            format!(
                "make room (`df -h {folder}`), then `{}` carries on; what was accepted is kept",
                hint("resume")
            ),
        ),
        Unavailable::ReadOnly => (
            format!("the database {database} or its folder is read-only"),
            format!("`ls -ld {folder} {database}` shows who may write; or name another with --db PATH"),
        ),
        Unavailable::Corrupt(why) => (
            format!("the database {database} is damaged: {why}"),
            format!("`{}` tells more; keep a copy of the file, then restore a backup", hint("db check")),
        ),
        Unavailable::InputOutput(why) => (
            format!("the database {database} cannot be read or written: {why}"),
            "check the disk, then try again".to_owned(),
        ),
        Unavailable::OutOfResources(why) => super::out_of_resources(&why),
        Unavailable::Closed => super::closed(&database.to_string(), hint),
        // A file is reached, lets in, and is nobody's standby.
        Unavailable::Unreachable(_)
        | Unavailable::NoConnectionFree(_)
        | Unavailable::Exhausted(_)
        | Unavailable::Cancelled(_)
        | Unavailable::Incomplete(_)
        | Unavailable::Refused { .. }
        | Unavailable::Forbidden(_)
        | Unavailable::Standby
        | Unavailable::CommitUnknown => (
            format!("the database {database} cannot be used: {reason}"),
            "name another with --db PATH or WINDLASS_DB".to_owned(),
        ),
    }
}

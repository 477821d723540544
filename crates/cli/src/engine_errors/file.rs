//! Why a SQLite file cannot be used.

use std::path::Path;

use windlass_db::Unavailable;

use super::MessageAndHelp;
use crate::shell_words::quoted;

/// The message and the next step.
pub(super) fn unavailable(reason: Unavailable, path: &Path, hint: impl Fn(&str) -> String) -> MessageAndHelp {
    let database = path.display();
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.display().to_string(),
        Some(_) | None => ".".to_owned(),
    };
    match reason {
        Unavailable::Missing(missing) => (
            format!("there is no database at {}", missing.display()),
            "`windlass run FILE` creates it; --db PATH or WINDLASS_DB chooses another database".to_owned(),
        ),
        Unavailable::NoTables(file) => (
            format!("{file} has no tables of windlass"),
            "the file was not changed; `windlass run FILE` creates the tables, --db PATH chooses another file"
                .to_owned(),
        ),
        Unavailable::CannotOpen(why) => (
            format!("the database {database} cannot be opened: {why}"),
            "choose a file in an existing folder that you may write to, with --db PATH or WINDLASS_DB".to_owned(),
        ),
        Unavailable::NotADatabase => (
            format!("{database} is not a SQLite database"),
            "the file was not changed; choose another one with --db PATH or WINDLASS_DB".to_owned(),
        ),
        Unavailable::HardLinked { path: _, names } => (
            format!(
                "{database} has {names} names (hard links); commits made under one name would be lost under another"
            ),
            format!(
                "the file was not changed; `find / -xdev -samefile {}` lists its names: keep one and remove the others",
                quoted(&database.to_string())
            ),
        ),
        Unavailable::Foreign { table } => (
            format!("{database} belongs to another program: windlass did not make its table `{table}`"),
            "the file was not changed; choose another one with --db PATH or WINDLASS_DB".to_owned(),
        ),
        Unavailable::NewerVersion { found, supported } => {
            super::newer_version(&database.to_string(), found, supported)
        }
        Unavailable::Locked => (
            format!("the database {database} is locked by another program"),
            format!("`fuser {database}` shows which one; wait until it ends, then try again"),
        ),
        Unavailable::DiskFull => (
            format!("the disk is full: {database} cannot grow"),
            format!(
                "free some space (`df -h {folder}`), then `{}` continues; everything accepted is kept",
                hint("resume")
            ),
        ),
        Unavailable::ReadOnly => (
            format!("the database {database} or its folder is read-only"),
            format!(
                "`ls -ld {folder} {database}` shows who may write; `runs`, `inspect` and `logs` need only the right to read. \
                 --db PATH chooses another database"
            ),
        ),
        Unavailable::Corrupt(why) => (
            format!("the database {database} is damaged: {why}"),
            format!("`{}` shows the damage; keep a copy of the file, then restore a backup", hint("db check")),
        ),
        Unavailable::InputOutput(why) => (
            format!("the database {database} cannot be read or written: {why}"),
            "check the disk, then try again".to_owned(),
        ),
        Unavailable::OutOfResources(why) => super::out_of_resources(&why),
        Unavailable::Closed => super::closed(&database.to_string(), hint),
        // These reasons are only for servers.
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
            "choose another database with --db PATH or WINDLASS_DB".to_owned(),
        ),
    }
}

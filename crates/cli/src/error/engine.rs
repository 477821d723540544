//! The engine's errors in the words of the command line.

use std::path::Path;

use windlass::{Error, Unavailable};

use super::Failure;

impl Failure {
    /// What an error of the engine means for a person who works with the database at `path`. `hint`
    /// makes a command of a verb.
    pub(crate) fn from_engine(error: Error, path: &Path, hint: impl Fn(&str) -> String) -> Failure {
        match error {
            Error::NotFound { what } => Failure::NotFound {
                message: format!("{what} does not exist in {}", path.display()),
                help: format!("`{}` and `{}` list what there is", hint("runs"), hint("jobs")),
            },
            Error::Conflict { operation, reason } => Failure::Conflict {
                message: format!("cannot {operation}: {reason}"),
                help: format!("`{}` shows the present states", hint("runs")),
            },
            Error::Invalid { operation, reason } => Failure::Usage {
                message: format!("cannot {operation}: {reason}"),
                help: "correct the value and try again".to_owned(),
            },
            Error::Unavailable { reason, .. } => unavailable(reason, path, hint),
            Error::Internal { operation, detail } => Failure::Internal {
                message: format!("internal error: {operation}: {detail}"),
                help: format!(
                    "this is a defect of windlass; `{}` tells whether the database is sound",
                    hint("db check")
                ),
            },
        }
    }
}

fn unavailable(reason: Unavailable, path: &Path, hint: impl Fn(&str) -> String) -> Failure {
    let database = path.display();
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.display().to_string(),
        Some(_) | None => ".".to_owned(),
    };
    let (message, help) = match reason {
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
        Unavailable::Unreachable(why)
        | Unavailable::Refused { detail: why, .. }
        | Unavailable::Forbidden(why) => (
            format!("the database server cannot be used: {why}"),
            "name another with --db URL or WINDLASS_DB".to_owned(),
        ),
        Unavailable::Standby => (
            "the database server takes no writes: it is a standby".to_owned(),
            "name the primary with --db URL or WINDLASS_DB".to_owned(),
        ),
        Unavailable::CommitUnknown => (
            "the connection broke during a commit: whether it was kept is not known".to_owned(),
            format!("look with `{}` before you repeat it", hint("runs")),
        ),
        Unavailable::NotADatabase => (
            format!("{database} is not a SQLite database"),
            "it was not touched; name another file with --db PATH or WINDLASS_DB".to_owned(),
        ),
        Unavailable::Foreign { table } => (
            format!("{database} belongs to another program: windlass did not make its table `{table}`"),
            "it was not touched; name another file with --db PATH or WINDLASS_DB".to_owned(),
        ),
        Unavailable::NewerVersion { found, supported } => (
            format!(
                "{database} was made by a newer windlass: its tables have version {found}, and this program \
                 knows versions up to {supported}"
            ),
            format!("use a newer windlass than {}; nothing was changed", env!("CARGO_PKG_VERSION")),
        ),
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
        Unavailable::Closed => (
            format!("the database {database} was closed while it was needed"),
            format!("`{}` carries on what is unfinished", hint("resume")),
        ),
    };
    Failure::Database { message, help }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_reason_has_its_words_and_exit_code() {
        let unavailable = |reason| Error::unavailable("open", reason);
        let cases = [
            (Error::not_found("run 7"), 5, "run 7 does not exist in x/w.db"),
            (Error::conflict("retry run 7", "it is RUNNING"), 2, "cannot retry run 7: it is RUNNING"),
            (Error::invalid("enqueue", "no"), 2, "cannot enqueue: no"),
            (unavailable(Unavailable::NotADatabase), 6, "x/w.db is not a SQLite database"),
            (
                unavailable(Unavailable::NewerVersion { found: 9, supported: 1 }),
                6,
                "version 9, and this program knows versions up to 1",
            ),
            (unavailable(Unavailable::Locked), 6, "locked by another program"),
            (unavailable(Unavailable::DiskFull), 6, "the disk is full"),
            (unavailable(Unavailable::ReadOnly), 6, "read-only"),
            (unavailable(Unavailable::Corrupt("page 3".into())), 6, "damaged: page 3"),
            (Error::internal("claim", "odd"), 1, "internal error: claim: odd"),
        ];
        for (error, code, expected) in cases {
            let failure =
                Failure::from_engine(error.clone(), Path::new("x/w.db"), |verb| format!("windlass {verb}"));
            let (message, help) = failure.parts().unwrap();
            assert!(message.contains(expected), "{error:?}: {message}");
            assert!(!help.is_empty());
            assert_eq!(failure.exit_code(), code, "{error:?}");
        }
    }
}

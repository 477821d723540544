//! The errors of the engine as messages for a person at the command line.

mod file;
#[cfg(feature = "postgres")]
mod server;

use windlass_db::{Error, Unavailable};

use crate::arguments::DatabaseAddress;
use crate::error::Failure;

/// The failure for an error of the engine. `address` is the database, and `hint` makes a command from a verb.
pub(crate) fn failure(error: Error, address: &DatabaseAddress, hint: impl Fn(&str) -> String) -> Failure {
    match error {
        Error::NotFound { what } => Failure::NotFound {
            message: format!("{what} does not exist in {address}"),
            help: format!("`{}` lists the runs, `{}` lists the jobs", hint("runs"), hint("jobs")),
        },
        Error::Conflict { operation, reason } => Failure::Conflict {
            message: format!("cannot {operation}: {reason}"),
            help: format!("`{}` shows the current states", hint("runs")),
        },
        Error::Invalid { operation, reason } => Failure::Usage {
            message: format!("cannot {operation}: {reason}"),
            help: "correct the value and try again".to_owned(),
        },
        Error::Unavailable { reason, .. } => unavailable(reason, address, hint),
        Error::Internal { operation, detail } => Failure::Internal {
            message: format!("internal error: {operation}: {detail}"),
            help: format!(
                "this is a bug in windlass; please report it. `{}` checks the database",
                hint("db check")
            ),
        },
    }
}

/// A message and the next step.
type MessageAndHelp = (String, String);

fn unavailable(reason: Unavailable, address: &DatabaseAddress, hint: impl Fn(&str) -> String) -> Failure {
    let (message, help) = match address {
        DatabaseAddress::File(path) => file::unavailable(reason, path, hint),
        #[cfg(feature = "postgres")]
        DatabaseAddress::Server { address, for_libpq } => {
            server::unavailable(reason, address, for_libpq, hint)
        }
    };
    Failure::Database { message, help }
}

/// The tables of a database are newer than this program.
fn newer_version(database: &str, found: i64, supported: i64) -> MessageAndHelp {
    (
        format!(
            "{database} was made by a newer windlass: its tables have version {found}, and this program knows \
             versions up to {supported}"
        ),
        format!("use a newer windlass than {}; the database was not changed", env!("CARGO_PKG_VERSION")),
    )
}

fn out_of_resources(why: &str) -> MessageAndHelp {
    match Failure::no_resources(why).parts() {
        Some((message, help)) => (message.to_owned(), help.to_owned()),
        None => (why.to_owned(), String::new()),
    }
}

/// The engine of this process ended while a thread still needed it.
fn closed(database: &str, hint: impl Fn(&str) -> String) -> MessageAndHelp {
    (
        format!("the database {database} was closed while it was in use"),
        format!("`{}` continues unfinished runs", hint("resume")),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_error_has_a_message_and_an_exit_code() {
        let address = DatabaseAddress::File("x/w.db".into());
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
            (
                unavailable(Unavailable::OutOfResources("no thread".into())),
                6,
                "a resource that this process needs: no thread",
            ),
            (unavailable(Unavailable::Corrupt("page 3".into())), 6, "damaged: page 3"),
            (Error::internal("claim", "odd"), 1, "internal error: claim: odd"),
        ];
        for (error, code, expected) in cases {
            let failure = super::failure(error.clone(), &address, |verb| format!("windlass {verb}"));
            let (message, help) = failure.parts().unwrap();
            assert!(message.contains(expected), "{error:?}: {message}");
            assert!(!help.is_empty());
            assert_eq!(failure.exit_code(), code, "{error:?}");
        }
    }
}

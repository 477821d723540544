//! The engine's errors in the words of the command line.

use windlass::{Error, Unavailable};

#[cfg(feature = "postgres")]
use super::server;
use super::{Failure, file};
use crate::place::Place;

impl Failure {
    /// What an error of the engine means for a person who works with the database at `place`. `hint`
    /// makes a command of a verb.
    pub(crate) fn from_engine(error: Error, place: &Place, hint: impl Fn(&str) -> String) -> Failure {
        match error {
            Error::NotFound { what } => Failure::NotFound {
                message: format!("{what} does not exist in {place}"),
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
            Error::Unavailable { reason, .. } => unavailable(reason, place, hint),
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

/// Why a database can't be used. What a file and a server say in different words is in one file each.
fn unavailable(reason: Unavailable, place: &Place, hint: impl Fn(&str) -> String) -> Failure {
    let (message, help) = match place {
        Place::File(path) => file::unavailable(reason, path, hint),
        #[cfg(feature = "postgres")]
        Place::Server { address, for_libpq } => server::unavailable(reason, address, for_libpq, hint),
    };
    Failure::Database { message, help }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_reason_has_its_words_and_exit_code() {
        let place = Place::File("x/w.db".into());
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
                "lacks what it needs: no thread",
            ),
            (unavailable(Unavailable::Corrupt("page 3".into())), 6, "damaged: page 3"),
            (Error::internal("claim", "odd"), 1, "internal error: claim: odd"),
        ];
        for (error, code, expected) in cases {
            let failure = Failure::from_engine(error.clone(), &place, |verb| format!("windlass {verb}"));
            let (message, help) = failure.parts().unwrap();
            assert!(message.contains(expected), "{error:?}: {message}");
            assert!(!help.is_empty());
            assert_eq!(failure.exit_code(), code, "{error:?}");
        }
    }
}

//! PostgreSQL's error codes as the engine's errors.

use postgres::error::SqlState;

use crate::error::{Error, Refusal, Unavailable};

/// What an error means for the transaction that met it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// It stood in another one's way and was taken back: repeating it helps.
    Collision,
    /// The connection is gone, and with it everything that was not committed.
    ConnectionLost,
    /// The connection had ended before the transaction began, while nobody used it.
    Stale,
    /// This server takes no writes: another connection may lead to one that does.
    Standby,
    /// The session does not know a prepared statement, or knows another of its name: it is not the one that
    /// prepared it. Repeating it without names helps.
    StatementLost,
    /// A prepared statement returned other columns when it was prepared: the tables have changed. Repeating it
    /// without names helps.
    StatementOutdated,
    /// The transaction had not begun, and statements of it may have been run by themselves and kept. Repeating it might do
    /// them twice.
    Alone,
    /// Repeating it would give the same.
    Refused,
}

impl Failure {
    /// Of the message with which a transaction begins.
    pub(super) fn of_beginning(error: &postgres::Error) -> Failure {
        let failure = Failure::of(error);
        if failure == Failure::ConnectionLost {
            Failure::Stale
        } else if error.code() == Some(&SqlState::INVALID_TEXT_REPRESENTATION) {
            // The session has another mark: what is said of it is no boolean.
            Failure::StatementLost
        } else {
            failure
        }
    }

    pub(super) fn of(error: &postgres::Error) -> Failure {
        let Some(code) = error.code() else {
            // Not the server's word: the network's, or the client's own.
            return if error.is_closed() || is_input_output(error) {
                Failure::ConnectionLost
            } else {
                Failure::Refused
            };
        };
        match *code {
            SqlState::T_R_SERIALIZATION_FAILURE
            | SqlState::T_R_DEADLOCK_DETECTED
            // What a row refers to was deleted at the same moment, or is being deleted.
            | SqlState::FOREIGN_KEY_VIOLATION => Failure::Collision,
            SqlState::READ_ONLY_SQL_TRANSACTION => Failure::Standby,
            SqlState::INVALID_SQL_STATEMENT_NAME | SqlState::DUPLICATE_PSTATEMENT => {
                Failure::StatementLost
            }
            // "cached plan must not change result type".
            SqlState::FEATURE_NOT_SUPPORTED => Failure::StatementOutdated,
            ref code if means_lost(code) => Failure::ConnectionLost,
            _ => Failure::Refused,
        }
    }
}

fn is_input_output(error: &postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}

/// The server ended the session, or can't begin one.
fn means_lost(code: &SqlState) -> bool {
    // 08: connection; 57P: the operator intervened.
    code.code().starts_with("08") || code.code().starts_with("57P") || means_over_time(code)
}

/// A setting of the server says that the session or its transaction took too long.
fn means_over_time(code: &SqlState) -> bool {
    // 25P03: the transaction was idle; 25P04: it took too long as a whole; 57P05: the session was idle.
    ["25P03", "25P04", "57P05"].contains(&code.code())
}

/// Names what a caller can do about an error of PostgreSQL.
pub(super) fn from_postgres(operation: &str, error: &postgres::Error) -> Error {
    let Some(server) = error.as_db_error() else {
        let detail = chain(error);
        return match Failure::of(error) {
            Failure::ConnectionLost => Error::unavailable(operation, Unavailable::Unreachable(detail)),
            Failure::Collision
            | Failure::Stale
            | Failure::Standby
            | Failure::StatementLost
            | Failure::StatementOutdated
            | Failure::Alone
            | Failure::Refused => Error::internal(operation, detail),
        };
    };
    let detail = match server.detail() {
        Some(detail) => format!("{} ({detail})", server.message()),
        None => server.message().to_owned(),
    };
    let code = server.code();
    let reason = match *code {
        SqlState::READ_ONLY_SQL_TRANSACTION => Unavailable::Standby,
        SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::LOCK_NOT_AVAILABLE => Unavailable::Locked,
        SqlState::QUERY_CANCELED => Unavailable::Cancelled(detail),
        ref code if means_over_time(code) => Unavailable::Cancelled(detail),
        SqlState::DISK_FULL => Unavailable::DiskFull,
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => Unavailable::Corrupt(detail),
        SqlState::INSUFFICIENT_PRIVILEGE => Unavailable::Forbidden(detail),
        SqlState::UNDEFINED_TABLE
        | SqlState::UNDEFINED_COLUMN
        | SqlState::UNDEFINED_FUNCTION
        | SqlState::UNDEFINED_OBJECT
        | SqlState::INVALID_SCHEMA_NAME => Unavailable::Incomplete(detail),
        SqlState::TOO_MANY_CONNECTIONS => Unavailable::NoConnectionFree(detail),
        SqlState::INVALID_CATALOG_NAME => Unavailable::Refused { refusal: Refusal::NoDatabase, detail },
        SqlState::INVALID_PASSWORD => Unavailable::Refused { refusal: Refusal::Password, detail },
        ref code if means_lost(code) => Unavailable::Unreachable(detail),
        ref code => match &code.code()[..2] {
            // P0: a trigger or a function that somebody added refuses it.
            "23" | "P0" => return Error::conflict(operation, detail),
            // 54: longer than the server takes it, as a text in an index.
            "22" | "54" => return Error::invalid(operation, detail),
            "28" => Unavailable::Refused { refusal: Refusal::Login, detail },
            // No memory, configured limits.
            "53" => Unavailable::Exhausted(detail),
            "58" | "XX" => Unavailable::InputOutput(detail),
            _ => return Error::internal(operation, format!("{detail} ({})", code.code())),
        },
    };
    Error::unavailable(operation, reason)
}

/// An error with what caused it: the client's own text says only where it was.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

//! Converts errors of PostgreSQL into [`Error`].

use postgres::error::SqlState;

use crate::error::{Error, Refusal, Unavailable};

/// What an error means for its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// It conflicted with another transaction and was rolled back. Repeating it helps.
    Collision,
    /// The connection is lost, and with it everything that was not committed.
    ConnectionLost,
    /// The connection had ended in the pool, before the transaction began.
    Stale,
    /// This server is a standby. Another connection may reach the primary server.
    Standby,
    /// The session does not know a prepared statement, or knows another one of that name, because another session prepared
    /// it. Repeating the transaction without names helps.
    StatementLost,
    /// The tables have changed since a statement was prepared, so that it returns other columns. Repeating the transaction
    /// without names helps.
    StatementOutdated,
    /// The transaction had not begun, so its statements may have been run and kept one by one. Repeating it might run them
    /// twice.
    NoTransaction,
    /// Any other error. Repeating the transaction does not help.
    Refused,
}

impl Failure {
    /// What an error of the preamble means.
    pub(super) fn of_preamble(error: &postgres::Error) -> Failure {
        let failure = Failure::of(error);
        if failure == Failure::ConnectionLost {
            Failure::Stale
        } else if error.code() == Some(&SqlState::INVALID_TEXT_REPRESENTATION) {
            // The session has another token: its check casts a text to BOOLEAN.
            Failure::StatementLost
        } else {
            failure
        }
    }

    pub(super) fn of(error: &postgres::Error) -> Failure {
        let Some(code) = error.code() else {
            // Not an error of the server, but of the network or the client.
            return if error.is_closed() || is_input_output(error) {
                Failure::ConnectionLost
            } else {
                Failure::Refused
            };
        };
        match *code {
            SqlState::T_R_SERIALIZATION_FAILURE
            | SqlState::T_R_DEADLOCK_DETECTED
            // A row that is referred to was deleted at the same time.
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

/// Whether the server ended the session, or can't start one.
fn means_lost(code: &SqlState) -> bool {
    // 08: connection; 57P: the operator intervened.
    code.code().starts_with("08") || code.code().starts_with("57P") || means_over_time(code)
}

/// Whether the session or the transaction exceeded a time limit of the server.
fn means_over_time(code: &SqlState) -> bool {
    // 25P03: the transaction was idle; 25P04: it took too long as a whole; 57P05: the session was idle.
    ["25P03", "25P04", "57P05"].contains(&code.code())
}

/// Converts an error of PostgreSQL.
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
            | Failure::NoTransaction
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
            // P0: a trigger or a function that a user added refuses it.
            "23" | "P0" => return Error::conflict(operation, detail),
            // 54: too long for the server, for example a text in an index.
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

/// The message of an error and of all its causes, because the client's own message does not contain the cause.
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

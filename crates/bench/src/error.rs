//! The error of a measurement.

use std::io;

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A signal asked for its end.
    #[error("it was interrupted")]
    Interrupted,
    /// An error of Windlass.
    #[error(transparent)]
    Engine(#[from] windlass_db::Error),
    /// An error of SQLite in a raw reference.
    #[error("the raw reference: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// An error of PostgreSQL in a raw reference.
    #[cfg(feature = "postgres")]
    #[error("the raw reference: {}", message_of(.0))]
    Postgres(#[from] postgres::Error),
    /// An error of the operating system.
    #[error("{what}: {error}")]
    Machine {
        /// What was tried.
        what: String,
        /// The error.
        error: io::Error,
    },
    /// A child process or a thread of a measurement failed.
    #[error("a part of the measurement failed: {0}")]
    Child(String),
    /// A measurement took too long.
    #[error("{what} has not ended after {limit_s} seconds")]
    TooLong {
        /// What was waited for.
        what: String,
        /// How long it was waited for.
        limit_s: u64,
    },
}

impl BenchError {
    /// For `map_err`: an error of the operating system, with what was tried.
    pub(crate) fn machine(what: impl Into<String>) -> impl FnOnce(io::Error) -> BenchError {
        let what = what.into();
        move |error| BenchError::Machine { what, error }
    }
}

/// The server's message. The client's own message is only "db error".
#[cfg(feature = "postgres")]
fn message_of(error: &postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)
}

//! Why something could not be measured.

use std::io;

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The one who asked for it wants it to end.
    #[error("it was interrupted")]
    Interrupted,
    /// The engine's.
    #[error(transparent)]
    Engine(#[from] windlass_db::Error),
    /// SQLite's, in a raw reference.
    #[error("the raw reference: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL's, in a raw reference.
    #[cfg(feature = "postgres")]
    #[error("the raw reference: {}", said_by(.0))]
    Postgres(#[from] postgres::Error),
    /// The machine's.
    #[error("{what}: {error}")]
    Machine {
        /// What was tried.
        what: String,
        /// What came of it.
        error: io::Error,
    },
    /// A process that was started for a measurement.
    #[error("a process that measures: {0}")]
    Child(String),
    /// What was waited for did not come.
    #[error("{what} is not over after {limit_s} seconds")]
    TooLong {
        /// What was waited for.
        what: String,
        /// For how long, in seconds.
        limit_s: u64,
    },
}

impl BenchError {
    /// For `map_err`: says what was tried.
    pub(crate) fn machine(what: impl Into<String>) -> impl FnOnce(io::Error) -> BenchError {
        let what = what.into();
        move |error| BenchError::Machine { what, error }
    }
}

/// The client's own text says no more than "db error".
#[cfg(feature = "postgres")]
fn said_by(error: &postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string)
}

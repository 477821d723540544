//! The error of the store and its databases. Each variant tells the caller what it can do.

use std::path::PathBuf;

/// The result of an operation on the database.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, sorted by what a caller can do about it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// Something that the caller named does not exist.
    #[error("{what} does not exist")]
    NotFound {
        /// The thing and its id: `run 42`.
        what: String,
    },
    /// The state of the rows does not allow the operation, perhaps because another process changed them first.
    #[error("{operation}: {reason}")]
    Conflict {
        /// What was tried, with the id.
        operation: String,
        /// The state that does not allow it.
        reason: String,
    },
    /// The caller's values are wrong. Trying again does not help.
    #[error("{operation}: {reason}")]
    Invalid {
        /// What was tried.
        operation: String,
        /// What is wrong with the values.
        reason: String,
    },
    /// The database can't be used. [`Unavailable::is_temporary`] says whether waiting may help.
    #[error("{operation}: {reason}")]
    Unavailable {
        /// What was tried.
        operation: String,
        /// Why it can't be used.
        reason: Unavailable,
    },
    /// A defect of Windlass.
    #[error("{operation}: internal error: {detail}")]
    Internal {
        /// What was tried.
        operation: String,
        /// What was found.
        detail: String,
    },
}

impl Error {
    /// Whether this is [`Error::Conflict`].
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Error::Conflict { .. })
    }
}

/// Why a database can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The file does not exist, and this caller does not create it.
    #[error("there is no database at {}", .0.display())]
    Missing(PathBuf),
    /// The database has no tables of Windlass, and this caller does not create them.
    #[error("there are no tables of Windlass in {0}")]
    NoTables(String),
    /// The file can't be opened or created, or the server can't be used at all.
    #[error("the database can't be opened: {0}")]
    CannotOpen(String),
    /// The file is not a SQLite database.
    #[error("the file is not a SQLite database")]
    NotADatabase,
    /// The file has hard links. SQLite would keep a log for each of its names, and lose commits.
    #[error("{} has {names} names (hard links), and commits made under one would be lost under another", .path.display())]
    HardLinked {
        /// The name that it was opened by.
        path: PathBuf,
        /// How many it has.
        names: u64,
    },
    /// The file is a SQLite database of another program.
    #[error("the database has a table `{table}` that Windlass did not make")]
    Foreign {
        /// The name of that program's table.
        table: String,
    },
    /// The tables were made by a newer Windlass.
    #[error("its tables are of version {found}, and this program knows versions up to {supported}")]
    NewerVersion {
        /// The version of the tables.
        found: i64,
        /// The newest version this program knows.
        supported: i64,
    },
    /// Another process keeps it locked.
    #[error("another process keeps the database locked")]
    Locked,
    /// No space is left.
    #[error("the disk is full")]
    DiskFull,
    /// A table or a column of Windlass was removed.
    #[error("a part of Windlass's tables is missing: {0}")]
    Incomplete(String),
    /// The file or its folder can't be written.
    #[error("the database or its folder is read-only")]
    ReadOnly,
    /// The file is damaged.
    #[error("the database is damaged: {0}")]
    Corrupt(String),
    /// The system could not read or write.
    #[error("input or output failed: {0}")]
    InputOutput(String),
    /// There is no connection to the server: it is down or starting, or the network is interrupted.
    #[error("the database server can't be reached: {0}")]
    Unreachable(String),
    /// The server accepts no more connections, or all connections of this process are in use.
    #[error("no connection to the database server is free: {0}")]
    NoConnectionFree(String),
    /// The server has reached one of its limits, such as its memory.
    #[error("the database server is at a limit of its own: {0}")]
    Exhausted(String),
    /// The server ended a statement or a session, because of a time limit or on request of an administrator.
    #[error("the database server cancelled a statement: {0}")]
    Cancelled(String),
    /// The server answers, but refuses the connection, or the client does.
    #[error("the connection to the database server is refused: {detail}")]
    Refused {
        /// The reason, sorted by what a person can do about it.
        refusal: Refusal,
        /// The message of the server or of the client.
        detail: String,
    },
    /// The role lacks a privilege.
    #[error("the database role lacks a privilege: {0}")]
    Forbidden(String),
    /// The server is a standby.
    #[error("the database server takes no writes now")]
    Standby,
    /// The answer to a commit was lost, and it could not be found out whether the transaction was kept.
    #[error("the connection broke during a commit: whether it was kept is not known")]
    CommitUnknown,
    /// The engine of this process is shutting down.
    #[error("the database was closed")]
    Closed,
    /// This process can't get a thread, an open file or memory, or has no usable folder for temporary files.
    #[error("this process lacks what it needs: {0}")]
    OutOfResources(String),
}

/// Why there is no connection to a server that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The password is wrong, or the role does not exist. The server does not say which.
    Password,
    /// The server asks for a password, and none is given.
    NoPassword,
    /// The server does not allow this role to log in from here, or asks for an unsupported authentication method.
    Login,
    /// The server has no such database.
    NoDatabase,
    /// The certificate of the server or of the client was rejected.
    Certificate,
    /// The server and the client do not agree on encryption.
    Encryption,
}

impl Unavailable {
    /// Whether no process can work with the database, and waiting does not help: it is damaged, read-only, missing, or belongs
    /// to another program.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Unavailable::Missing(_)
            | Unavailable::NoTables(_)
            | Unavailable::NotADatabase
            | Unavailable::HardLinked { .. }
            | Unavailable::Foreign { .. }
            | Unavailable::NewerVersion { .. }
            | Unavailable::ReadOnly
            | Unavailable::Incomplete(_)
            | Unavailable::Corrupt(_) => true,
            // Another role may have the privilege, and not every operation needs it.
            Unavailable::Forbidden(_)
            | Unavailable::CannotOpen(_)
            | Unavailable::Refused { .. }
            | Unavailable::Closed
            | Unavailable::Locked
            | Unavailable::DiskFull
            | Unavailable::InputOutput(_)
            | Unavailable::Unreachable(_)
            | Unavailable::NoConnectionFree(_)
            | Unavailable::Exhausted(_)
            | Unavailable::Cancelled(_)
            | Unavailable::Standby
            | Unavailable::CommitUnknown
            | Unavailable::OutOfResources(_) => false,
        }
    }

    /// Whether waiting and trying again may help.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Unavailable::Locked
            | Unavailable::DiskFull
            | Unavailable::InputOutput(_)
            | Unavailable::Unreachable(_)
            | Unavailable::NoConnectionFree(_)
            | Unavailable::Exhausted(_)
            | Unavailable::Cancelled(_)
            | Unavailable::Standby
            | Unavailable::CommitUnknown
            | Unavailable::OutOfResources(_) => true,
            Unavailable::Missing(_)
            | Unavailable::NoTables(_)
            | Unavailable::CannotOpen(_)
            | Unavailable::Refused { .. }
            | Unavailable::Forbidden(_)
            | Unavailable::NotADatabase
            | Unavailable::HardLinked { .. }
            | Unavailable::Foreign { .. }
            | Unavailable::NewerVersion { .. }
            | Unavailable::ReadOnly
            | Unavailable::Incomplete(_)
            | Unavailable::Corrupt(_)
            | Unavailable::Closed => false,
        }
    }
}

impl Error {
    /// Something does not exist.
    pub fn not_found(what: impl Into<String>) -> Error {
        Error::NotFound { what: what.into() }
    }

    /// The state of the rows does not allow it.
    pub fn conflict(operation: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::Conflict { operation: operation.into(), reason: reason.into() }
    }

    /// The caller's values are wrong.
    pub fn invalid(operation: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::Invalid { operation: operation.into(), reason: reason.into() }
    }

    /// The database can't be used.
    pub fn unavailable(operation: impl Into<String>, reason: Unavailable) -> Error {
        Error::Unavailable { operation: operation.into(), reason }
    }

    /// A defect of Windlass.
    pub fn internal(operation: impl Into<String>, detail: impl Into<String>) -> Error {
        Error::Internal { operation: operation.into(), detail: detail.into() }
    }

    /// Whether no process can work with the database, and waiting does not help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        matches!(self, Error::Unavailable { reason, .. } if reason.is_permanent())
    }

    /// Waiting and trying again may help.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Error::Unavailable { reason, .. } => reason.is_temporary(),
            Error::NotFound { .. }
            | Error::Conflict { .. }
            | Error::Invalid { .. }
            | Error::Internal { .. } => false,
        }
    }
}

/// The error of an operation that needs a thread, when none can be started.
#[must_use]
pub fn no_thread(operation: &str, error: &std::io::Error) -> Error {
    let detail = format!("no thread can be started: {error}");
    Error::unavailable(operation, Unavailable::OutOfResources(detail))
}

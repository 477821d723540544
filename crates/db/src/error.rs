//! One error for the store and its databases, its variants named by what a caller can do about it.

use std::path::PathBuf;

/// The result of whatever touches the database.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, by what can be done about it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// What was asked for does not exist.
    #[error("{what} does not exist")]
    NotFound {
        /// The thing and its id: `run 42`.
        what: String,
    },
    /// Somebody else changed it first, or its state does not allow this.
    #[error("{operation}: {reason}")]
    Conflict {
        /// What was tried, with the id.
        operation: String,
        /// Which state stood against it.
        reason: String,
    },
    /// The caller's values are wrong: trying again does not help.
    #[error("{operation}: {reason}")]
    Invalid {
        /// What was tried.
        operation: String,
        /// What is wrong with the values.
        reason: String,
    },
    /// The database can't be used. [`Unavailable::is_passing`] says whether waiting may help.
    #[error("{operation}: {reason}")]
    Unavailable {
        /// What was tried.
        operation: String,
        /// Why it can't be used.
        reason: Unavailable,
    },
    /// The engine broke one of its own rules: a defect.
    #[error("{operation}: internal error: {detail}")]
    Internal {
        /// What was tried.
        operation: String,
        /// What was met.
        detail: String,
    },
}

impl Error {
    /// Somebody else changed it first, or its state does not allow what was tried.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Error::Conflict { .. })
    }
}

/// Why a database can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// No file is there, and this caller does not make one.
    #[error("there is no database at {}", .0.display())]
    Missing(PathBuf),
    /// The database has no tables of Windlass, and this caller does not make them.
    #[error("there are no tables of Windlass in {0}")]
    NoTables(String),
    /// The file can't be opened or made, or the server can't be used at all.
    #[error("the database can't be opened: {0}")]
    CannotOpen(String),
    /// The file is something else.
    #[error("the file is not a SQLite database")]
    NotADatabase,
    /// The file has hard links. Under each of its names SQLite would keep another log, and lose commits.
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
        /// The table that stands in the way.
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
    /// A table, or a part of one, that Windlass made is no longer there.
    #[error("a part of Windlass's tables is missing: {0}")]
    Incomplete(String),
    /// The file or its folder can't be written.
    #[error("the database or its folder is read-only")]
    ReadOnly,
    /// The file is damaged.
    #[error("the database is damaged: {0}")]
    Corrupt(String),
    /// The system refused to read or write.
    #[error("input or output failed: {0}")]
    InputOutput(String),
    /// No connection to the server: it is down, starts, or the network is cut.
    #[error("the database server can't be reached: {0}")]
    Unreachable(String),
    /// The server has no connection left for this process, or all that the process may have are in use.
    #[error("no connection to the database server is free: {0}")]
    NoConnectionFree(String),
    /// The server has no memory left, or is at another limit of its own.
    #[error("the database server is at a limit of its own: {0}")]
    Exhausted(String),
    /// The server ended a statement or a session: a time limit among its settings, or a person.
    #[error("the database server cancelled a statement: {0}")]
    Cancelled(String),
    /// The server is there, and there is no connection with it.
    #[error("the connection to the database server is refused: {detail}")]
    Refused {
        /// By what can be done about it.
        refusal: Refusal,
        /// What the server or the client says.
        detail: String,
    },
    /// The role may not do this.
    #[error("the database role lacks a right: {0}")]
    Forbidden(String),
    /// The server is a standby, or was made one.
    #[error("the database server takes no writes now")]
    Standby,
    /// The answer to a commit was lost, and the server could not be asked what became of it.
    #[error("the connection broke during a commit: whether it was kept is not known")]
    CommitUnknown,
    /// The engine of this process is shutting down.
    #[error("the database was closed")]
    Closed,
    /// This process gets no more threads, open files or memory, or has no usable folder for temporary files.
    #[error("this process lacks what it needs: {0}")]
    OutOfResources(String),
}

/// Why a server that can be reached is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The password is wrong, or the role is not there: the server does not say which.
    Password,
    /// It asks for a password, and there is none.
    NoPassword,
    /// It lets this role not in from here, or wants another proof than a password.
    Login,
    /// It has no such database.
    NoDatabase,
    /// Its certificate, or the client's, is not good enough.
    Certificate,
    /// The two do not agree on whether and how to encrypt.
    Encryption,
}

impl Unavailable {
    /// The database is damaged, read-only, gone, or another program's: nobody can work on it, and waiting does not help.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
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
            // What this role may not do, another may; and not everything needs it.
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

    /// Waiting and trying again may help.
    #[must_use]
    pub fn is_passing(&self) -> bool {
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

    /// A state stands against it.
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

    /// A defect of the engine.
    pub fn internal(operation: impl Into<String>, detail: impl Into<String>) -> Error {
        Error::Internal { operation: operation.into(), detail: detail.into() }
    }

    /// The database itself can't be worked on, whoever tries, and waiting does not help.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        matches!(self, Error::Unavailable { reason, .. } if reason.is_lasting())
    }

    /// Waiting and trying again may help.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Error::Unavailable { reason, .. } => reason.is_passing(),
            Error::NotFound { .. }
            | Error::Conflict { .. }
            | Error::Invalid { .. }
            | Error::Internal { .. } => false,
        }
    }
}

/// The error of an operation that needs a thread, when the system has none to give.
#[must_use]
pub fn no_thread(operation: &str, error: &std::io::Error) -> Error {
    let detail = format!("no thread can be started: {error}");
    Error::unavailable(operation, Unavailable::OutOfResources(detail))
}

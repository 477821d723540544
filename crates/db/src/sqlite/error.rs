//! Converts errors of SQLite into [`Error`].

use std::fs::File;

use rusqlite::ErrorCode;

use crate::error::{Error, Unavailable};
use windlass_system::shortage::is_shortage;

/// Converts an error that occurred after the database was opened. A file that can't be opened now could be opened before, so
/// waiting may help.
pub(super) fn after_opening(error: Error) -> Error {
    if let Error::Unavailable { operation, reason: Unavailable::CannotOpen(detail) } = error {
        return Error::unavailable(operation, Unavailable::InputOutput(detail));
    }
    error
}

/// Finds out whether this process can open more files, because SQLite does not say why it could not open one.
fn shortage() -> Option<std::io::Error> {
    File::open("/dev/null").err().filter(is_shortage)
}

/// Converts an error of SQLite.
pub(super) fn from_sqlite(operation: &str, error: &rusqlite::Error) -> Error {
    let rusqlite::Error::SqliteFailure(failure, detail) = error else {
        return Error::internal(operation, error.to_string());
    };
    let detail = detail.clone().unwrap_or_else(|| error.to_string());
    #[allow(clippy::wildcard_enum_match_arm, reason = "the enum is SQLite's and open")]
    let reason = match failure.code {
        // FileLockingProtocolFailed: other processes kept the lock of the WAL for too long.
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            Unavailable::Locked
        }
        ErrorCode::OperationInterrupted => Unavailable::Cancelled("it took longer than it may".to_owned()),
        ErrorCode::DiskFull => Unavailable::DiskFull,
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Unavailable::ReadOnly,
        ErrorCode::NotADatabase => Unavailable::NotADatabase,
        ErrorCode::DatabaseCorrupt => Unavailable::Corrupt(detail),
        // The shared memory file of the WAL could not grow.
        ErrorCode::SystemIoFailure if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => {
            Unavailable::DiskFull
        }
        ErrorCode::OutOfMemory => Unavailable::OutOfResources(detail),
        ErrorCode::SystemIoFailure | ErrorCode::CannotOpen => match (shortage(), failure.code) {
            (Some(lacking), _) => Unavailable::OutOfResources(format!("{detail}: {lacking}")),
            (None, ErrorCode::CannotOpen) => Unavailable::CannotOpen(detail),
            (None, _) => Unavailable::InputOutput(detail),
        },
        ErrorCode::ConstraintViolation => return Error::conflict(operation, detail),
        ErrorCode::TooBig => return Error::invalid(operation, detail),
        _ => return Error::internal(operation, detail),
    };
    Error::unavailable(operation, reason)
}

//! Files that a connection is described by, beside the address: read whole, with a limit.

use std::path::{Path, PathBuf};

use super::settings::Variable;
use windlass_system::files::{Links, ReadError, read_regular};

/// The longest of them.
const FILE_MAX_BYTES: u64 = 1024 * 1024;

/// The text of a regular file. Links are followed: the volumes of containers are made of them.
///
/// # Errors
/// The system's words, or that it is too long, no regular file, or no text.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let bytes = read_regular(path, Links::Follow, FILE_MAX_BYTES).map_err(|error| match error {
        ReadError::Io(error) => error.to_string(),
        error @ (ReadError::NotRegular(_) | ReadError::TooLarge { .. }) => format!("it {error}"),
    })?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// A file in the user's home, if there is a home.
pub(super) fn at_home(variable: Variable<'_>, path: &str) -> Option<PathBuf> {
    variable("HOME").filter(|home| !home.is_empty()).map(|home| Path::new(&home).join(path))
}

//! Reads files with parameters of a connection, up to a limit.

use std::path::{Path, PathBuf};

use super::settings::Environment;
use windlass_system::files::{Links, ReadError, read_regular};

/// The largest file that is read.
const FILE_MAX_BYTES: u64 = 1024 * 1024;

/// The text of a regular file. Links are followed, because volumes of containers consist of links.
///
/// # Errors
/// A message, when the file can't be read, is too large, not regular, or not UTF-8.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let bytes = read_regular(path, Links::Follow, FILE_MAX_BYTES).map_err(|error| match error {
        ReadError::Io(error) => error.to_string(),
        error @ (ReadError::NotRegular(_) | ReadError::TooLarge { .. }) => format!("it {error}"),
    })?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// The path of a file in the user's home folder, if there is one.
pub(super) fn in_home(environment: Environment<'_>, path: &str) -> Option<PathBuf> {
    environment("HOME").filter(|home| !home.is_empty()).map(|home| Path::new(&home).join(path))
}

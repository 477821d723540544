//! Files that a connection is described by, beside the address: read whole, with a limit.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::settings::Variable;

/// The longest of them.
const FILE_MAX_BYTES: u64 = 1024 * 1024;

/// The text of a file.
///
/// # Errors
/// The system's words, or that it is too long or no text.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(FILE_MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    match text.len() as u64 > FILE_MAX_BYTES {
        true => Err(format!("it is longer than {FILE_MAX_BYTES} bytes")),
        false => Ok(text),
    }
}

/// A file in the user's home, if there is a home.
pub(super) fn at_home(variable: Variable<'_>, path: &str) -> Option<PathBuf> {
    variable("HOME").filter(|home| !home.is_empty()).map(|home| Path::new(&home).join(path))
}

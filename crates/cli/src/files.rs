//! Reading files that a person names: bounded, and with a clear message when it cannot be done.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::Failure;

/// The bytes of a file, at most `limit_bytes` and one more, so that the caller can tell that there
/// is too much.
pub(crate) fn read(path: &Path, limit_bytes: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
    File::open(path)
        .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|error| Failure::unreadable(path, &error))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn no_more_than_the_limit_and_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345678").unwrap();
        assert_eq!(read(&path, 8).unwrap(), b"12345678");
        assert_eq!(read(&path, 3).unwrap(), b"1234");
    }

    #[test]
    fn missing_files_and_directories() {
        let folder = tempfile::tempdir().unwrap();
        let missing = read(&folder.path().join("missing"), 8).unwrap_err();
        assert!(format!("{missing:?}").contains("does not exist"), "{missing:?}");
        let directory = read(folder.path(), 8).unwrap_err();
        assert!(format!("{directory:?}").contains("is a directory"), "{directory:?}");
    }
}

//! Reads files up to a size limit.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use windlass_system::files::{Links, ReadError, open_regular};

use crate::error::Failure;

/// Where a path comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathOrigin {
    /// A person wrote it on the command line. It may be a pipe, as in `windlass run <(generate)`.
    Named,
    /// It was found in a folder, or it is a default. Anybody who can write to the folder may have put a pipe or a
    /// device there, so only a regular file is read.
    Found,
}

/// Reads at most `limit_bytes` and one more byte, so that the caller can tell that the file is too large.
pub(crate) fn read(path: &Path, limit_bytes: usize, origin: PathOrigin) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
    open(path, origin)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::unreadable(path, &error))?;
    Ok(bytes)
}

/// Opens a file for reading.
pub(crate) fn open(path: &Path, origin: PathOrigin) -> Result<File, Failure> {
    match origin {
        PathOrigin::Named => File::open(path).map_err(|error| Failure::unreadable(path, &error)),
        PathOrigin::Found => open_regular(path, Links::Follow).map_err(|error| match error {
            ReadError::Io(error) => Failure::unreadable(path, &error),
            error @ (ReadError::NotRegular(_) | ReadError::TooLarge { .. }) => Failure::File {
                message: format!("{} {error}", path.display()),
                help: "remove or rename it; only regular files are read here".to_owned(),
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn at_most_one_byte_more_than_the_limit_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345678").unwrap();
        assert_eq!(read(&path, 8, PathOrigin::Named).unwrap(), b"12345678");
        assert_eq!(read(&path, 3, PathOrigin::Found).unwrap(), b"1234");
    }

    #[test]
    fn a_missing_file_and_a_directory_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        for origin in [PathOrigin::Named, PathOrigin::Found] {
            let missing = read(&folder.path().join("missing"), 8, origin).unwrap_err();
            assert!(format!("{missing:?}").contains("does not exist"), "{missing:?}");
            let directory = read(folder.path(), 8, origin).unwrap_err();
            assert!(format!("{directory:?}").contains("is a directory"), "{directory:?}");
        }
    }

    #[test]
    fn a_device_is_read_only_where_a_person_named_it() {
        let device = Path::new("/dev/zero");
        assert_eq!(read(device, 3, PathOrigin::Named).unwrap(), [0; 4]);
        let refused = read(device, 3, PathOrigin::Found).unwrap_err();
        assert!(format!("{refused:?}").contains("is a device"), "{refused:?}");
    }
}

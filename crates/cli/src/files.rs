//! Reading files: bounded, and with a clear message when it cannot be done.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use windlass::files::{Links, ReadError, open_regular};

use crate::error::Failure;

/// Who chose a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A person wrote it on the command line. It may be a pipe on purpose, as in `windlass run <(generate)`.
    Named,
    /// It was found in a folder, or is looked for by default. Whoever can write there chose what it is: only a
    /// regular file is read.
    Found,
}

/// The bytes of a file, at most `limit_bytes` and one more, so that the caller can tell that there
/// is too much.
pub(crate) fn read(path: &Path, limit_bytes: usize, origin: Origin) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
    open(path, origin)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::unreadable(path, &error))?;
    Ok(bytes)
}

/// Opens a file for reading.
pub(crate) fn open(path: &Path, origin: Origin) -> Result<File, Failure> {
    match origin {
        Origin::Named => File::open(path).map_err(|error| Failure::unreadable(path, &error)),
        Origin::Found => open_regular(path, Links::Follow).map_err(|error| match error {
            ReadError::Io(error) => Failure::unreadable(path, &error),
            error @ (ReadError::NotRegular(_) | ReadError::TooLarge { .. }) => Failure::File {
                message: format!("{} {error}", path.display()),
                help: "remove it or give it another name; only regular files are read here".to_owned(),
            },
        }),
    }
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
        assert_eq!(read(&path, 8, Origin::Named).unwrap(), b"12345678");
        assert_eq!(read(&path, 3, Origin::Found).unwrap(), b"1234");
    }

    #[test]
    fn missing_files_and_directories() {
        let folder = tempfile::tempdir().unwrap();
        for origin in [Origin::Named, Origin::Found] {
            let missing = read(&folder.path().join("missing"), 8, origin).unwrap_err();
            assert!(format!("{missing:?}").contains("does not exist"), "{missing:?}");
            let directory = read(folder.path(), 8, origin).unwrap_err();
            assert!(format!("{directory:?}").contains("is a directory"), "{directory:?}");
        }
    }

    #[test]
    fn a_device_is_read_only_where_a_person_named_it() {
        let device = Path::new("/dev/zero");
        assert_eq!(read(device, 3, Origin::Named).unwrap(), [0; 4]);
        let refused = read(device, 3, Origin::Found).unwrap_err();
        assert!(format!("{refused:?}").contains("is a device"), "{refused:?}");
    }
}

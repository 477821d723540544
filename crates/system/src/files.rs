//! Reads files whose path is under the control of a job or of another user.
//!
//! Such a path may name anything. Opening a FIFO waits for a writer, and reading a device may never end. So the
//! file is opened without waiting, and only a regular file is read, up to a limit.

use std::fmt;
use std::fs::{File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Whether the last part of a path may be a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// The file that it points to is opened.
    Follow,
    /// It is refused as [`FileKind::SymbolicLink`].
    Refuse,
}

/// The kind of a file that is not a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A folder.
    Directory,
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
    /// A character or block device.
    Device,
    /// A symbolic link, where [`Links::Refuse`] forbids it.
    SymbolicLink,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Directory => "a directory",
            FileKind::Fifo => "a FIFO (named pipe)",
            FileKind::Socket => "a socket",
            FileKind::Device => "a device",
            FileKind::SymbolicLink => "a symbolic link",
        })
    }
}

/// Why a file was not read. The messages follow the file's name: `x.toml is a directory …`.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The path does not name a regular file.
    #[error("is {0}, not a regular file")]
    NotRegular(FileKind),
    /// The file has more bytes than allowed.
    #[error("is larger than {max_bytes} bytes")]
    TooLarge {
        /// The limit.
        max_bytes: u64,
    },
    /// The file can't be opened or read. See [`ReadError::is_absent`].
    #[error("can't be read: {0}")]
    Io(#[from] io::Error),
}

impl ReadError {
    /// Whether no file has this name.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, ReadError::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Opens a regular file for reading. Never waits for another process.
///
/// # Errors
/// When the path names no regular file, or the file can't be opened.
pub fn open_regular(path: &Path, links: Links) -> Result<File, ReadError> {
    let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    let opened = rustix::io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()));
    let file = File::from(opened.map_err(|error| explain(path, links, error))?);
    match special_kind(file.metadata()?.file_type()) {
        None => Ok(file),
        Some(kind) => Err(ReadError::NotRegular(kind)),
    }
}

/// Reads a whole regular file of at most `max_bytes`. Never waits for another process.
///
/// # Errors
/// As [`open_regular`], and when the file is larger or can't be read.
pub fn read_regular(path: &Path, links: Links, max_bytes: u64) -> Result<Vec<u8>, ReadError> {
    read_at_most(open_regular(path, links)?, max_bytes)
}

/// Reads the rest of an open file of at most `max_bytes`. The size in its metadata is not used, because the file may grow
/// meanwhile, and files in `/proc` report the size 0.
///
/// # Errors
/// When there are more bytes, or they can't be read.
pub fn read_at_most(file: impl Read, max_bytes: u64) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= max_bytes) {
        return Ok(bytes);
    }
    Err(ReadError::TooLarge { max_bytes })
}

/// Names the kind of a file that can't be opened: a socket, a device without a driver, or a link that must not be followed.
fn explain(path: &Path, links: Links, error: Errno) -> ReadError {
    if matches!(error, Errno::NXIO | Errno::NODEV | Errno::LOOP) {
        let metadata = match links {
            Links::Follow => path.metadata(),
            Links::Refuse => path.symlink_metadata(),
        };
        if let Some(kind) = metadata.ok().and_then(|metadata| special_kind(metadata.file_type())) {
            return ReadError::NotRegular(kind);
        }
    }
    ReadError::Io(error.into())
}

/// The kind of a file that is not regular; `None` for a regular file.
pub fn special_kind(file_type: FileType) -> Option<FileKind> {
    if file_type.is_file() {
        None
    } else if file_type.is_dir() {
        Some(FileKind::Directory)
    } else if file_type.is_symlink() {
        Some(FileKind::SymbolicLink)
    } else if file_type.is_fifo() {
        Some(FileKind::Fifo)
    } else if file_type.is_socket() {
        Some(FileKind::Socket)
    } else {
        Some(FileKind::Device)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn refused_as(path: &Path, links: Links) -> FileKind {
        match read_regular(path, links, 100) {
            Err(ReadError::NotRegular(kind)) => kind,
            other => panic!("{}: {other:?}", path.display()),
        }
    }

    /// Hangs if the FIFO is opened like a regular file.
    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (fifo, socket) = (folder.path().join("fifo"), folder.path().join("socket"));
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        for (path, kind) in [
            (fifo.as_path(), FileKind::Fifo),
            (socket.as_path(), FileKind::Socket),
            (folder.path(), FileKind::Directory),
            (Path::new("/dev/zero"), FileKind::Device),
        ] {
            assert_eq!(refused_as(path, Links::Refuse), kind);
            assert_eq!(refused_as(path, Links::Follow), kind);
            let link = folder.path().join("link");
            symlink(path, &link).unwrap();
            assert_eq!(refused_as(&link, Links::Refuse), FileKind::SymbolicLink);
            assert_eq!(refused_as(&link, Links::Follow), kind);
            std::fs::remove_file(link).unwrap();
        }
    }

    #[test]
    fn a_file_is_read_up_to_the_limit_and_through_a_link_if_links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "12345").unwrap();
        symlink(&file, &link).unwrap();
        assert_eq!(read_regular(&file, Links::Refuse, 5).unwrap(), b"12345");
        assert_eq!(read_regular(&link, Links::Follow, 5).unwrap(), b"12345");
        assert_eq!(refused_as(&link, Links::Refuse), FileKind::SymbolicLink);
        assert!(matches!(read_regular(&file, Links::Refuse, 4), Err(ReadError::TooLarge { max_bytes: 4 })));
        assert!(read_regular(&folder.path().join("none"), Links::Refuse, 5).unwrap_err().is_absent());
        let own_loop = folder.path().join("loop");
        symlink(&own_loop, &own_loop).unwrap();
        assert!(matches!(read_regular(&own_loop, Links::Follow, 5), Err(ReadError::Io(_))));
    }

    #[test]
    fn the_message_of_an_error_follows_the_name_of_the_file() {
        for (error, text) in [
            (ReadError::NotRegular(FileKind::Fifo), "is a FIFO (named pipe), not a regular file"),
            (ReadError::TooLarge { max_bytes: 7 }, "is larger than 7 bytes"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}

//! Errors that say that the system lacks something for a while: open files, processes, threads, or memory.

use std::io;

use rustix::io::Errno;

/// Whether an error means that this process, its user or the machine has run out of something. The same call may succeed
/// later.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    shortage(error).is_some()
}

/// The error code, if the error is a shortage.
#[must_use]
pub fn shortage(error: &io::Error) -> Option<Errno> {
    const SHORTAGES: [Errno; 5] = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::AGAIN];
    Errno::from_io_error(error).filter(|errno| SHORTAGES.contains(errno))
}

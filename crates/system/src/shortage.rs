//! What the operating system may refuse for a while: open files, processes and threads, memory.

use std::io;

use rustix::io::Errno;

/// Whether the operating system refused something that this process, its user or the machine has run out of. The same
/// call may succeed later.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    shortage(error).is_some()
}

/// What the operating system has run out of, if that is the error.
#[must_use]
pub fn shortage(error: &io::Error) -> Option<Errno> {
    const SHORTAGES: [Errno; 5] = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::AGAIN];
    Errno::from_io_error(error).filter(|errno| SHORTAGES.contains(errno))
}

//! Messages for people, on standard error. Data goes to standard output, through `output`.

use std::io::Write;

/// Writes a message and a newline. A write error is ignored: nobody could read a report of it.
pub(crate) fn note(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = writeln!(stderr, "{text}");
}

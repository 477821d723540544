//! Messages for people, on standard error. Data goes to standard output, through `output`.

use std::io::Write;
use std::sync::OnceLock;

use crate::text::{table, wrap};

/// How much is said. `--quiet` sets it once.
static TALK: OnceLock<Talk> = OnceLock::new();

/// How much is said on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Talk {
    /// Progress, notes, warnings and errors.
    All,
    /// Warnings and errors.
    ErrorsOnly,
    /// Nothing: what is written would get into the prompt of a shell.
    Nothing,
}

/// Decides how much is said from now on.
pub(crate) fn set_talk(talk: Talk) {
    let _first = TALK.set(talk);
}

/// How much is said.
pub(crate) fn talk() -> Talk {
    TALK.get().copied().unwrap_or(Talk::All)
}

/// Writes a message and a newline, unless only errors are wanted.
pub(crate) fn note(text: &str) {
    match talk() {
        Talk::All => warn(text),
        Talk::ErrorsOnly | Talk::Nothing => {}
    }
}

/// Writes a warning or an error, and a newline. A narrow terminal gets lines that are broken between words. A write error is
/// ignored: nobody could read a report of it.
pub(crate) fn warn(text: &str) {
    if talk() == Talk::Nothing {
        return;
    }
    let text = wrap::fit(text, table::stderr_width());
    let mut stderr = anstream::stderr().lock();
    let _ = writeln!(stderr, "{text}");
}

/// Writes a question without a newline.
pub(crate) fn ask(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = write!(stderr, "{text}").and_then(|()| stderr.flush());
}

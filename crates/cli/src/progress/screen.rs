//! Redraws the last lines of the terminal, and writes other lines above them.
//!
//! While a view is shown, everything for standard error goes through this module, also the log of other
//! threads. The cursor stays on the empty line below the view, so that an echoed `^C` and a killed process
//! leave the terminal in order.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anstream::adapter::strip_str;
use console::measure_text_width;

/// The lines that are shown now.
static SHOWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Whether standard output took no more: its reader has gone, or its disk is full.
static STDOUT_HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Where a line goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Stdout,
    Stderr,
}

/// Whole lines for one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) target: Target,
    pub(crate) text: String,
}

/// Replaces the lines that are shown.
pub(super) fn show(lines: Vec<String>) {
    let mut shown = shown();
    if *shown != lines {
        write(&format!("{}{}", erase(&shown, columns()), text(&lines)));
        *shown = lines;
    }
}

/// Writes whole lines above those that are shown.
pub(super) fn write_above(whole_lines: &str) {
    let shown = shown();
    let whole_lines = coloured(whole_lines);
    write(&format!("{}{whole_lines}{}", erase(&shown, columns()), text(&shown)));
}

/// Writes whole lines in their order, above the lines that are shown if they go to the terminal.
pub(super) fn write_chunks(chunks: &[Chunk]) {
    let shown = shown();
    let stdout_is_terminal = io::stdout().is_terminal();
    let moves_view = chunks.iter().any(|chunk| chunk.target == Target::Stderr || stdout_is_terminal);
    if moves_view {
        write(&erase(&shown, columns()));
    }
    for chunk in chunks {
        match chunk.target {
            Target::Stdout => write_stdout(&chunk.text),
            Target::Stderr => write(&coloured(&chunk.text)),
        }
    }
    if moves_view {
        write(&text(&shown));
    }
}

/// Writes output of jobs. If nobody reads it, or it can't be written, the run goes on.
fn write_stdout(text: &str) {
    if STDOUT_HAS_ENDED.load(Ordering::Relaxed) {
        return;
    }
    let mut stdout = anstream::stdout().lock();
    if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        STDOUT_HAS_ENDED.store(true, Ordering::Relaxed);
        if error.kind() != ErrorKind::BrokenPipe {
            write(&format!(
                "warning: standard output cannot be written: {error}; `windlass logs` shows what jobs write\n"
            ));
        }
    }
}

/// Standard error for the log.
pub(crate) fn stderr_beside_view() -> impl Write {
    BesideView
}

struct BesideView;

impl Write for BesideView {
    /// The log is written in whole lines.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write_above(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn shown() -> MutexGuard<'static, Vec<String>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes everything at once, so that nothing flickers. A write error is ignored: nobody could read a report.
fn write(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn columns() -> usize {
    usize::from(console::Term::stderr().size().1)
}

fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{}\n", coloured(line))).collect()
}

/// The codes that erase the lines. If the terminal became narrower, a line takes several rows.
fn erase(lines: &[String], columns: usize) -> String {
    let rows: usize = lines.iter().map(|line| measure_text_width(line).div_ceil(columns.max(1)).max(1)).sum();
    match rows {
        0 => String::new(),
        rows => format!("\x1b[{rows}A\r\x1b[J"),
    }
}

/// Removes colours if needed. Only the choice comes from `anstream`, which would also remove cursor movements.
fn coloured(text: &str) -> String {
    match anstream::AutoStream::choice(&io::stderr()) {
        anstream::ColorChoice::Never => strip_str(text).to_string(),
        anstream::ColorChoice::Auto | anstream::ColorChoice::Always | anstream::ColorChoice::AlwaysAnsi => {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_rows_are_erased_as_the_lines_take() {
        let lines = ["1234567890".to_owned(), "\u{1b}[31m12345\u{1b}[0m".to_owned(), String::new()];
        assert_eq!(erase(&[], 80), "");
        assert_eq!(erase(&lines, 80), "\x1b[3A\r\x1b[J");
        assert_eq!(erase(&lines, 10), "\x1b[3A\r\x1b[J");
        assert_eq!(erase(&lines, 4), "\x1b[6A\r\x1b[J");
    }
}

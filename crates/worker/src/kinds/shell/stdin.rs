//! The standard input of a process.
//!
//! It is a file in memory and not a pipe. So a process that reads nothing of it, or only a part, delays nobody, and no
//! value is written to a disk.

use std::fs::File;
use std::io::{Seek, Write};
use std::process::Stdio;

use rustix::fs::{MemfdFlags, memfd_create};

use super::refusal::{self, Refused};
use windlass_engine::transition::Outcome;

/// An input that is this text.
pub(super) fn with(text: &str) -> Result<Stdio, Outcome> {
    file_with(text)
        .map(Stdio::from)
        .map_err(|error| refusal::outcome(Refused::Files, "no file for its standard input", &error))
}

fn file_with(text: &str) -> std::io::Result<File> {
    let mut file = File::from(memfd_create("stdin", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_reads_the_text_from_its_beginning() {
        let text = "line\n".repeat(100_000);
        let input = with(&text).expect("a file");
        let read = Command::new("cat").stdin(input).output().expect("it runs");
        assert!(read.stdout == text.as_bytes());
    }
}

//! What the reaper is to end when it has to: a file in memory that it inherits and reads then.
//!
//! Each attempt has a line of its own, written in place: a message for each would wake the reaper three times
//! for every process. A line may be read while it is written. So each word stands in it twice, and one whose
//! halves differ does not count.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::Pid;

/// Room for two names of attempts, as `12-3:12-3`, and two groups. All lines are as long as this.
const LINE_BYTES: usize = 128;
/// Where in a line the group stands. Two names of two numbers of up to 20 characters come before it.
const GROUP_AT: usize = 88;

#[derive(Debug)]
pub(super) struct Board {
    file: File,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    /// Lines that there are.
    count: usize,
    /// Those of them that are blank.
    blank: BinaryHeap<Reverse<usize>>,
}

impl Board {
    pub(super) fn new() -> std::io::Result<Board> {
        Ok(Board { file: File::from(create()?), lines: Mutex::default() })
    }

    /// The file, for the reaper.
    pub(super) fn file(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }

    /// Notes an attempt, and returns the number of its line.
    pub(super) fn add(&self, attempt: &str) -> std::io::Result<usize> {
        let line = self.lock().take();
        let written = self.write(line, 0, &format!("{:<width$}\n", twice(attempt), width = LINE_BYTES - 1));
        if written.is_err() {
            self.lock().blank.push(Reverse(line));
        }
        written.map(|()| line)
    }

    /// Notes a group of the attempt in this line.
    pub(super) fn add_group(&self, line: usize, group: Pid) -> std::io::Result<()> {
        self.write(line, GROUP_AT, &twice(&group.as_raw_nonzero().to_string()))
    }

    /// The group in this line is gone. Its attempt stays noted.
    pub(super) fn clear_group(&self, line: usize) -> std::io::Result<()> {
        self.write(line, GROUP_AT, &format!("{:<width$}", "", width = LINE_BYTES - 1 - GROUP_AT))
    }

    /// Nothing of the attempt in this line is to be ended any more.
    pub(super) fn clear(&self, line: usize) -> std::io::Result<()> {
        self.write(line, 0, &format!("{:<width$}\n", "", width = LINE_BYTES - 1))?;
        self.lock().blank.push(Reverse(line));
        Ok(())
    }

    /// No attempt is noted.
    pub(super) fn is_blank(&self) -> bool {
        let lines = self.lock();
        lines.blank.len() == lines.count
    }

    fn write(&self, line: usize, at: usize, text: &str) -> std::io::Result<()> {
        self.file.write_all_at(text.as_bytes(), (line * LINE_BYTES + at) as u64)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    /// The first blank line: so there are never more than attempts that ran at once.
    fn take(&mut self) -> usize {
        self.blank.pop().map_or_else(
            || {
                self.count += 1;
                self.count - 1
            },
            |Reverse(line)| line,
        )
    }
}

fn twice(word: &str) -> String {
    format!("{word}:{word}")
}

/// Kernels before 6.3 do not know that it can be said that nobody executes it; some later ones want it said.
fn create() -> rustix::io::Result<std::os::fd::OwnedFd> {
    const NAME: &str = "windlass-reaper";
    match memfd_create(NAME, MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(NAME, MemfdFlags::CLOEXEC),
        created => created,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn words(board: &Board) -> Vec<Vec<String>> {
        let length = board.file.metadata().unwrap().len() as usize;
        let mut bytes = vec![0; length];
        board.file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(length % LINE_BYTES, 0);
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn a_line_is_used_again_and_holds_nothing_of_before() {
        let board = Board::new().unwrap();
        assert!(board.is_blank());
        let longest = format!("{}-{}", i64::MAX, i64::MAX);
        let (first, second) = (board.add("12-3").unwrap(), board.add(&longest).unwrap());
        board.add_group(second, Pid::from_raw(i32::MAX).unwrap()).unwrap();
        assert_eq!(
            words(&board),
            [vec!["12-3:12-3".to_owned()], vec![twice(&longest), twice(&i32::MAX.to_string())]]
        );
        board.clear_group(second).unwrap();
        assert_eq!(words(&board)[1], [twice(&longest)]);
        board.clear(second).unwrap();
        board.clear(first).unwrap();
        assert!(board.is_blank());
        assert_eq!(board.add("7-1").unwrap(), first, "the first that is blank");
        assert_eq!(words(&board), [vec!["7-1:7-1".to_owned()], vec![]]);
    }
}

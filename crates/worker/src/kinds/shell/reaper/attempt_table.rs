//! The table of attempts that the reaper kills if it has to: a file in memory, which the reaper inherits.
//!
//! Each attempt has a line, which is written in place. Messages instead of a file would wake the reaper three times for
//! every process. The reaper may read a line while it is written. So each word is written twice, and the reaper ignores
//! a word whose halves differ.
//!
//! A line begins and ends with the number of the last confirmation of the lease. When a lease is over, the reaper kills the
//! attempts of the confirmations that it has read. One that was added after a confirmation that is still in the pipe is not
//! killed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::Pid;

/// The length of every line: enough for its confirmation, the name of an attempt and the number of a group, each twice.
const LINE_BYTES: usize = 152;
/// The byte of a line at which the name of the attempt begins. Its confirmation comes before it, a number of up to 20 digits.
const NAME_AT: usize = 22;
/// The byte of a line at which the group begins. The name of the attempt comes before it, twice. A name is two numbers
/// of up to 20 characters.
const GROUP_AT: usize = 108;
/// The byte of a line at which the confirmation stands again.
const END_AT: usize = 130;

#[derive(Debug)]
pub(super) struct AttemptTable {
    file: File,
    allocator: Mutex<LineAllocator>,
}

#[derive(Debug, Default)]
struct LineAllocator {
    /// How many lines there are.
    count: usize,
    /// The lines without an attempt.
    free: BinaryHeap<Reverse<usize>>,
}

impl AttemptTable {
    pub(super) fn new() -> std::io::Result<AttemptTable> {
        Ok(AttemptTable { file: File::from(create()?), allocator: Mutex::default() })
    }

    /// The file, for the reaper to inherit.
    pub(super) fn file(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }

    /// Adds an attempt that begins under this confirmation of the lease, and returns the index of its line.
    pub(super) fn add(&self, attempt: &str, confirmation: u64) -> std::io::Result<usize> {
        let line = self.lock().take();
        let number = format!("@{confirmation}");
        let (name_bytes, end_bytes) = (END_AT - NAME_AT, LINE_BYTES - 1 - END_AT);
        let text = format!("{number:<NAME_AT$}{:<name_bytes$}{number:<end_bytes$}\n", twice(attempt));
        let written = self.write(line, 0, &text);
        if written.is_err() {
            self.lock().free.push(Reverse(line));
        }
        written.map(|()| line)
    }

    /// Adds the process group of the attempt in this line.
    pub(super) fn add_group(&self, line: usize, group: Pid) -> std::io::Result<()> {
        self.write(line, GROUP_AT, &twice(&group.as_raw_nonzero().to_string()))
    }

    /// Removes the group in this line. The attempt stays.
    pub(super) fn clear_group(&self, line: usize) -> std::io::Result<()> {
        self.write(line, GROUP_AT, &format!("{:<width$}", "", width = END_AT - GROUP_AT))
    }

    /// Removes the attempt in this line.
    pub(super) fn clear(&self, line: usize) -> std::io::Result<()> {
        self.write(line, 0, &format!("{:<width$}\n", "", width = LINE_BYTES - 1))?;
        self.lock().free.push(Reverse(line));
        Ok(())
    }

    /// Whether the table has no attempt.
    pub(super) fn is_empty(&self) -> bool {
        let allocator = self.lock();
        allocator.free.len() == allocator.count
    }

    fn write(&self, line: usize, at: usize, text: &str) -> std::io::Result<()> {
        self.file.write_all_at(text.as_bytes(), (line * LINE_BYTES + at) as u64)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LineAllocator> {
        self.allocator.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineAllocator {
    /// Takes the first free line. So there are never more lines than attempts that ran at once.
    fn take(&mut self) -> usize {
        self.free.pop().map_or_else(
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

/// Makes a file in memory that can't be executed. Kernels before 6.3 do not know that flag, and some later ones require
/// it.
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

    fn words(table: &AttemptTable) -> Vec<Vec<String>> {
        let length = table.file.metadata().unwrap().len() as usize;
        let mut bytes = vec![0; length];
        table.file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(length % LINE_BYTES, 0);
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    }

    #[test]
    fn a_line_is_used_again_without_remains_of_the_earlier_attempt() {
        let table = AttemptTable::new().unwrap();
        assert!(table.is_empty());
        let longest = format!("{}-{}", i64::MAX, i64::MAX);
        let last = format!("@{}", u64::MAX);
        let (first, second) = (table.add("12-3", 0).unwrap(), table.add(&longest, u64::MAX).unwrap());
        table.add_group(second, Pid::from_raw(i32::MAX).unwrap()).unwrap();
        assert_eq!(words(&table)[0], ["@0", "12-3:12-3", "@0"]);
        assert_eq!(
            words(&table)[1],
            [last.clone(), twice(&longest), twice(&i32::MAX.to_string()), last.clone()]
        );
        table.clear_group(second).unwrap();
        assert_eq!(words(&table)[1], [last.clone(), twice(&longest), last]);
        table.clear(second).unwrap();
        table.clear(first).unwrap();
        assert!(table.is_empty());
        assert_eq!(table.add("7-1", 3).unwrap(), first, "the first free line");
        assert_eq!(words(&table)[0], ["@3", "7-1:7-1", "@3"]);
        assert_eq!(words(&table)[1], [""; 0]);
    }
}

//! The two streams of a process: a pipe each, whose bytes become lines of the attempt's output.

use std::io::{PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::process::Command;

use rustix::event::PollFlags;
use rustix::process::{Resource, getrlimit};

use super::lines::Lines;
use crate::attempt::Attempt;
use windlass_engine::store::LogStream;

/// Write ends stay open while file numbers are within this part of what this process may have: a quarter. Where many
/// jobs run at once, two files for each of them are better spent on more jobs.
const SPARE_PART: u64 = 4;

/// Both streams.
pub(super) struct Streams {
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
    pub(super) write_ends: WriteEnds,
}

/// What becomes of the write ends here, once the process has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteEnds {
    /// They stay open until the process has ended.
    Stay,
    /// They are closed at once: files are scarce.
    Go,
}

impl WriteEnds {
    /// `number` is that of the last file, and lower ones are used first; `limit` is of how many there may be.
    fn of(number: i32, limit: Option<u64>) -> WriteEnds {
        let is_spare = |limit: u64| u64::try_from(number).is_ok_and(|number| number < limit / SPARE_PART);
        if limit.is_none_or(is_spare) { WriteEnds::Stay } else { WriteEnds::Go }
    }
}

impl Streams {
    /// Has a command write into pipes. It keeps their write ends for as long as it lives itself.
    ///
    /// # Errors
    /// When the system has no pipe to give.
    pub(super) fn of(command: &mut Command) -> std::io::Result<Streams> {
        let (stdout, into_stdout) = std::io::pipe()?;
        let (stderr, into_stderr) = std::io::pipe()?;
        let write_ends = WriteEnds::of(into_stderr.as_raw_fd(), getrlimit(Resource::Nofile).current);
        command.stdout(into_stdout).stderr(into_stderr);
        Ok(Streams {
            write_ends,
            stdout: Stream::new(stdout, LogStream::Stdout),
            stderr: Stream::new(stderr, LogStream::Stderr),
        })
    }
}

/// One stream, until its end.
pub(super) struct Stream {
    pipe: Option<PipeReader>,
    lines: Lines,
    stream: LogStream,
}

/// What a pipe has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    Bytes,
    /// Nobody can write any more, and everything is read.
    End,
}

impl Said {
    /// As `poll` found it.
    pub(super) fn of(events: PollFlags) -> Said {
        if events.is_empty() {
            Said::Nothing
        } else if events.contains(PollFlags::IN) {
            Said::Bytes
        } else {
            Said::End
        }
    }
}

impl Stream {
    fn new(pipe: PipeReader, stream: LogStream) -> Stream {
        Stream { pipe: Some(pipe), lines: Lines::default(), stream }
    }

    /// What to poll, until the end.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.pipe.is_none()
    }

    /// Reads once what is there; returns how much. The end closes the pipe.
    pub(super) fn hear(&mut self, said: Said, attempt: &Attempt, buffer: &mut [u8]) -> usize {
        match said {
            Said::Nothing => 0,
            Said::Bytes => self.read(attempt, buffer),
            Said::End => {
                self.pipe = None;
                0
            }
        }
    }

    fn read(&mut self, attempt: &Attempt, buffer: &mut [u8]) -> usize {
        let Some(pipe) = self.pipe.as_mut() else { return 0 };
        match pipe.read(buffer) {
            Ok(0) | Err(_) => {
                self.pipe = None;
                0
            }
            Ok(read) => {
                let stream = self.stream;
                self.lines.push(&buffer[..read], &mut |line| attempt.log(stream, line));
                read
            }
        }
    }

    /// Hands out a last line that has no end.
    pub(super) fn finish(&mut self, attempt: &Attempt) {
        let stream = self.stream;
        self.lines.finish(&mut |line| attempt.log(stream, line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_ends_stay_where_there_are_files_to_spare() {
        for (number, limit, write_ends) in [
            (30, Some(1_024), WriteEnds::Stay),
            (255, Some(1_024), WriteEnds::Stay),
            (256, Some(1_024), WriteEnds::Go),
            (9, Some(0), WriteEnds::Go),
            (100_000, None, WriteEnds::Stay),
        ] {
            assert_eq!(WriteEnds::of(number, limit), write_ends, "{number} of {limit:?}");
        }
    }
}

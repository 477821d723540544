//! The two output streams of a process. Each is a pipe; its bytes become lines of the attempt's output.

use std::io::{PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::process::Command;
use std::sync::Arc;

use rustix::event::PollFlags;
use rustix::process::{Resource, getrlimit};

use super::lines::LineSplitter;
use crate::handler::{Attempt, Masker, StreamMasker};
use windlass_engine::store::LogStream;

/// Write ends stay open while at most a quarter of the files that this process may have are used. If many jobs run at
/// once, the two files of each job are needed for more jobs.
const SPARE_PART: u64 = 4;

/// Both streams.
pub(super) struct Streams {
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
    pub(super) write_ends: WriteEnds,
}

/// What happens to the write ends in this process after the child has its copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteEnds {
    /// They stay open until the process has ended.
    StayOpen,
    /// They are closed at once, because files are scarce.
    Close,
}

impl WriteEnds {
    /// `number` is the number of the newest file; the system uses low numbers first. `limit` is how many files this
    /// process may have.
    fn of(number: i32, limit: Option<u64>) -> WriteEnds {
        let is_spare = |limit: u64| u64::try_from(number).is_ok_and(|number| number < limit / SPARE_PART);
        if limit.is_none_or(is_spare) { WriteEnds::StayOpen } else { WriteEnds::Close }
    }
}

impl Streams {
    /// Makes a command write into pipes. The command owns their write ends.
    ///
    /// # Errors
    /// The system's, if it has no pipe to give.
    pub(super) fn of(command: &mut Command, masker: Option<&Arc<Masker>>) -> std::io::Result<Streams> {
        let (stdout, into_stdout) = std::io::pipe()?;
        let (stderr, into_stderr) = std::io::pipe()?;
        let write_ends = WriteEnds::of(into_stderr.as_raw_fd(), getrlimit(Resource::Nofile).current);
        command.stdout(into_stdout).stderr(into_stderr);
        Ok(Streams {
            write_ends,
            stdout: Stream::new(stdout, LogStream::Stdout, masker),
            stderr: Stream::new(stderr, LogStream::Stderr, masker),
        })
    }
}

/// One stream, until its end.
pub(super) struct Stream {
    pipe: Option<PipeReader>,
    /// What the attempt's secrets are masked with, if it has any.
    masker: Option<StreamMasker>,
    splitter: LineSplitter,
    stream: LogStream,
}

/// What happened to a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PipeEvent {
    Nothing,
    Bytes,
    /// No process can write any more, and everything is read.
    End,
}

impl PipeEvent {
    /// What `poll` found.
    pub(super) fn of(events: PollFlags) -> PipeEvent {
        if events.is_empty() {
            PipeEvent::Nothing
        } else if events.contains(PollFlags::IN) {
            PipeEvent::Bytes
        } else {
            PipeEvent::End
        }
    }
}

impl Stream {
    fn new(pipe: PipeReader, stream: LogStream, masker: Option<&Arc<Masker>>) -> Stream {
        let masker = masker.map(|masker| StreamMasker::new(Arc::clone(masker)));
        Stream { pipe: Some(pipe), masker, splitter: LineSplitter::default(), stream }
    }

    /// The file to poll, until the end of the stream.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.pipe.is_none()
    }

    /// Reads once what is in the pipe, and returns how many bytes. The end of the stream closes the pipe.
    pub(super) fn read_event(&mut self, event: PipeEvent, attempt: &Attempt, buffer: &mut [u8]) -> usize {
        match event {
            PipeEvent::Nothing => 0,
            PipeEvent::Bytes => self.read(attempt, buffer),
            PipeEvent::End => {
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
                let (stream, splitter) = (self.stream, &mut self.splitter);
                let mut on_bytes = |bytes: &[u8]| splitter.push(bytes, &mut |line| attempt.log(stream, line));
                match &mut self.masker {
                    Some(masker) => masker.push(&buffer[..read], &mut on_bytes),
                    None => on_bytes(&buffer[..read]),
                }
                read
            }
        }
    }

    /// Hands out the last line if it has no line end.
    pub(super) fn finish(&mut self, attempt: &Attempt) {
        let (stream, splitter) = (self.stream, &mut self.splitter);
        let mut on_line = |line| attempt.log(stream, line);
        if let Some(masker) = &mut self.masker {
            masker.finish(&mut |bytes| splitter.push(bytes, &mut on_line));
        }
        splitter.finish(&mut on_line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_ends_stay_open_while_files_are_not_scarce() {
        for (number, limit, write_ends) in [
            (30, Some(1_024), WriteEnds::StayOpen),
            (255, Some(1_024), WriteEnds::StayOpen),
            (256, Some(1_024), WriteEnds::Close),
            (9, Some(0), WriteEnds::Close),
            (100_000, None, WriteEnds::StayOpen),
        ] {
            assert_eq!(WriteEnds::of(number, limit), write_ends, "{number} of {limit:?}");
        }
    }
}

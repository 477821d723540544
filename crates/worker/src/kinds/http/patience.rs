//! How long a request may wait: until its timeout, and until its attempt is asked to stop.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use windlass_system::Clock;

use crate::handler::Stop;

/// The end of a request's time.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    pub(crate) stop: Stop,
    pub(crate) clock: Clock,
    /// By the monotonic clock.
    pub(crate) deadline_ms: i64,
}

/// Why a request must wait no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// The attempt was asked to stop.
    Stopped,
    /// The timeout is over.
    TimedOut,
}

impl Patience {
    /// The patience for what begins now.
    pub(crate) fn of(timeout_ms: i64, stop: &Stop) -> Patience {
        let clock = Clock::system();
        let deadline_ms = clock.monotonic_ms().saturating_add(timeout_ms);
        Patience { stop: stop.clone(), clock, deadline_ms }
    }

    /// Whether the request must end now.
    pub(crate) fn over(&self) -> Option<Over> {
        if self.stop.cause().is_some() {
            return Some(Over::Stopped);
        }
        (self.left_ms() <= 0).then_some(Over::TimedOut)
    }

    pub(super) fn left_ms(&self) -> i64 {
        self.deadline_ms - self.clock.monotonic_ms()
    }

    /// The same, with an earlier deadline if `share` of the time that is left ends before.
    pub(super) fn share(&self, parts: usize) -> Patience {
        let parts = i64::try_from(parts.max(1)).unwrap_or(i64::MAX);
        let deadline_ms = self.clock.monotonic_ms() + self.left_ms().max(0) / parts;
        Patience { deadline_ms, ..self.clone() }
    }

    /// Waits until the file is ready, at most as long as there is patience. The error of the end is
    /// [`io::ErrorKind::TimedOut`]; ask [`Patience::over`] for the reason.
    pub(crate) fn wait(&self, file: BorrowedFd<'_>, flags: PollFlags) -> io::Result<()> {
        let wake_file = self.stop.wake_file()?;
        loop {
            if self.over().is_some() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let mut files =
                [PollFd::from_borrowed_fd(file, flags), PollFd::from_borrowed_fd(wake_file, PollFlags::IN)];
            match poll(&mut files, Some(&timespec(self.left_ms()))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let (is_ready, is_woken) = (!files[0].revents().is_empty(), !files[1].revents().is_empty());
            if is_ready {
                return Ok(());
            }
            // A request to stop that came too late for an earlier attempt of this thread.
            if is_woken && self.stop.cause().is_none() {
                self.stop.reset_wake_file();
            }
        }
    }
}

fn timespec(wait_ms: i64) -> Timespec {
    let wait_ms = wait_ms.max(0);
    Timespec { tv_sec: wait_ms / 1_000, tv_nsec: (wait_ms % 1_000) * 1_000_000 }
}

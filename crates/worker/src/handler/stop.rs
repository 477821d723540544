//! Asking a running attempt to stop.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use windlass_system::event::Event;

/// Why an attempt should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// A person cancelled the job, or the deadline of its run is over.
    Cancelled,
    /// The timeout of the attempt is over.
    TimedOut,
    /// The worker leaves now.
    Leaving,
    /// The worker's lease is over, or the worker was fenced. Another worker may own the job.
    Fenced,
    /// A person cancelled the job and gave it no time to end.
    Killed,
    /// The deadline of the job is over.
    PastDeadline,
}

const NONE: u8 = 0;

impl StopCause {
    fn code(self) -> u8 {
        match self {
            StopCause::Cancelled => 1,
            StopCause::TimedOut => 2,
            StopCause::Leaving => 3,
            StopCause::Fenced => 4,
            StopCause::Killed => 5,
            StopCause::PastDeadline => 6,
        }
    }

    fn from_code(code: u8) -> Option<StopCause> {
        [
            StopCause::Cancelled,
            StopCause::TimedOut,
            StopCause::Leaving,
            StopCause::Fenced,
            StopCause::Killed,
            StopCause::PastDeadline,
        ]
        .into_iter()
        .find(|cause| cause.code() == code)
    }
}

/// Tells an attempt to stop. The first cause stays. Clones are cheap and share their state.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    state: Arc<StopState>,
}

#[derive(Debug, Default)]
struct StopState {
    cause: AtomicU8,
    /// Another worker may own the job, whatever the first cause was.
    is_fenced: AtomicBool,
    requested: Event,
    wake_file: Arc<WakeFile>,
}

/// A file that becomes readable when a stop is requested.
///
/// It is opened when the first attempt polls files. The attempts of one executor use the same file one after the
/// other. So a request that comes too late for one attempt may wake the next one, which finds no cause and goes on.
#[derive(Debug, Default)]
pub(crate) struct WakeFile {
    file: OnceLock<OwnedFd>,
}

impl Stop {
    /// A stop that nobody has requested yet, with the wake file of its executor.
    pub(crate) fn with_wake_file(wake_file: &Arc<WakeFile>) -> Stop {
        Stop { state: Arc::new(StopState { wake_file: Arc::clone(wake_file), ..StopState::default() }) }
    }

    /// Asks for a stop. Only the first cause counts. After [`StopCause::Fenced`] the attempt has no time to end,
    /// whatever the first cause was.
    pub fn request(&self, cause: StopCause) {
        let fences = match cause {
            StopCause::Fenced => !self.state.is_fenced.swap(true, Ordering::AcqRel),
            StopCause::Cancelled
            | StopCause::TimedOut
            | StopCause::Leaving
            | StopCause::Killed
            | StopCause::PastDeadline => false,
        };
        let first = self
            .state
            .cause
            .compare_exchange(NONE, cause.code(), Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        if first || fences {
            self.state.requested.set();
            self.state.wake_file.wake();
        }
    }

    /// Why the attempt should stop, if it should.
    #[must_use]
    pub fn cause(&self) -> Option<StopCause> {
        StopCause::from_code(self.state.cause.load(Ordering::Acquire))
    }

    /// Whether another worker may own the job. Then nothing of the attempt may go on.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        self.state.is_fenced.load(Ordering::Acquire)
    }

    /// Waits until a stop is requested, at most `longest` of real time.
    pub fn wait(&self, longest: Duration) -> Option<StopCause> {
        self.state.requested.wait_for(longest);
        self.cause()
    }

    /// A file that becomes readable when a stop is requested, and again when the attempt is fenced.
    ///
    /// # Errors
    /// The system's, if it has no file to give.
    pub(crate) fn wake_file(&self) -> std::io::Result<BorrowedFd<'_>> {
        if self.state.wake_file.file.get().is_none() {
            let file = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let _opened_meanwhile = self.state.wake_file.file.set(file);
            if self.cause().is_some() {
                self.state.wake_file.wake();
            }
        }
        self.state.wake_file.file.get().map(AsFd::as_fd).ok_or_else(|| std::io::Error::other("no event file"))
    }

    /// Empties the wake file, so that only the next request makes it readable.
    pub(crate) fn reset_wake_file(&self) {
        if let Some(file) = self.state.wake_file.file.get() {
            let _already_empty = rustix::io::read(file, &mut [0; 8]);
        }
    }
}

impl WakeFile {
    fn wake(&self) {
        if let Some(file) = self.file.get() {
            // This fails only if the counter is full, and then the file is readable anyway.
            let _full = rustix::io::write(file, &1u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_stays_and_fencing_makes_it_urgent() {
        let stop = Stop::default();
        stop.request(StopCause::Cancelled);
        stop.request(StopCause::TimedOut);
        assert_eq!((stop.cause(), stop.is_fenced()), (Some(StopCause::Cancelled), false));
        stop.request(StopCause::Fenced);
        assert_eq!((stop.cause(), stop.is_fenced()), (Some(StopCause::Cancelled), true));
    }

    fn is_readable(stop: &Stop) -> bool {
        let file = stop.wake_file().expect("the system has a file");
        let mut files = [rustix::event::PollFd::new(&file, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut files, Some(&rustix::event::Timespec::default())).expect("it can be polled")
            == 1
    }

    #[test]
    fn each_new_request_makes_the_wake_file_readable_once() {
        let stop = Stop::default();
        stop.request(StopCause::Leaving);
        assert!(is_readable(&stop), "requested before the file was opened");
        stop.reset_wake_file();
        assert!(!is_readable(&stop));
        stop.request(StopCause::Fenced);
        assert!(is_readable(&stop), "fenced since");
        stop.reset_wake_file();
        stop.request(StopCause::Fenced);
        assert!(!is_readable(&stop), "it was fenced before");
    }

    #[test]
    fn a_late_request_for_one_attempt_wakes_the_next_one_but_is_no_cause_for_it() {
        let file = Arc::new(WakeFile::default());
        let (first, second) = (Stop::with_wake_file(&file), Stop::with_wake_file(&file));
        assert!(!is_readable(&first));
        first.request(StopCause::Leaving);
        assert!(is_readable(&second), "they share the file");
        assert_eq!(second.cause(), None);
        second.reset_wake_file();
        second.request(StopCause::TimedOut);
        assert!(is_readable(&second));
        assert_eq!(second.cause(), Some(StopCause::TimedOut));
    }
}
